"""The runner's test cases and measurements: their names, abbreviations, and reasons for failures."""

from __future__ import annotations

from dataclasses import dataclass

from bentpipe.schema.record import Outcome

# The contract's test cases that are the runner's, with its abbreviations.
TESTS = {"handshake": "H", "longrtt": "LR", "multiplexing": "M", "resumption": "R", "zerortt": "Z"}
# The runner's others (testcases_quic.py), which runs that were made of its files have.
OTHER_TESTS = {
    "transfer": "DC", "chacha20": "C20", "retry": "S", "http3": "3", "blackhole": "B", "keyupdate": "U",
    "ecn": "E", "amplificationlimit": "A", "handshakeloss": "L1", "transferloss": "L2",
    "handshakecorruption": "C1", "transfercorruption": "C2", "ipv6": "6", "v2": "V2", "rebind-port": "BP",
    "rebind-addr": "BA", "connectionmigration": "CM",
}  # fmt: skip
_TEN_MIB = 10 * 2**20


@dataclass(frozen=True)
class RunnerMeasurement:
    """A measurement of the runner or of its fork: its abbreviation, and the bytes that it transfers."""

    abbr: str
    size_bytes: int = _TEN_MIB

    @property
    def workload(self) -> str:
        return f"transfer:{self.size_bytes}"


# By their names. Those that scenarios of Bentpipe are called like are over the same paths.
MEASUREMENTS = {
    "goodput": RunnerMeasurement("G"),
    "crosstraffic": RunnerMeasurement("C", 25 * 2**20),
    "sat": RunnerMeasurement("SAT"),
    "satloss": RunnerMeasurement("SATL"),
    "realLink": RunnerMeasurement("LNK"),
    "starlink": RunnerMeasurement("SL"),
    "astra": RunnerMeasurement("AST"),
    "eutelsat": RunnerMeasurement("EUT"),
}

UNKNOWN_ERROR = "UNKNOWN_ERROR"
NO_GOODPUT = "NO_TIME_DIFFERENCE"  # between the first packet and the last one

# The fork's error codes for what it and Bentpipe both tell apart; it reads no words of others.
_CODES: dict[Outcome, str] = {
    "unsupported": "UNSUPPORTED_TEST_CASE",
    "handshake_timeout": "TIMEOUT",
    "transfer_timeout": "TIMEOUT",
    "missing_file": "MISSING_DOWNLOADED_FILES",
    "corrupt_file": "DOWNLOADED_FILE_CONTENT_MISSMATCH",
}
_OUTCOMES: dict[str, Outcome] = {
    "UNSUPPORTED_TEST_CASE": "unsupported",
    "TIMEOUT": "transfer_timeout",
    "MISSING_DOWNLOADED_FILES": "missing_file",
    "DOWNLOADED_FILE_SIZE_MISSMATCH": "missing_file",
    "DOWNLOADED_FILE_CONTENT_MISSMATCH": "corrupt_file",
}


def code(outcome: Outcome) -> str:
    """The fork's error code for an outcome that is no success."""
    return _CODES.get(outcome, UNKNOWN_ERROR)


def outcome(error_code: str | None) -> Outcome:
    """The outcome here of a failure with that code: where the runner does not say, `unproven`."""
    return _OUTCOMES.get(error_code or "", "unproven")
