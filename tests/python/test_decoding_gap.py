"""What cannot be decoded is not told as if it were: a client whose key log has secrets that are others.

Its own times are right; the wire shows them only to who has the secrets.
"""

import json
import re
from pathlib import Path
from typing import Any

import misled_noq
import pytest
from conftest import Command

pytestmark = pytest.mark.virtual_time

SERVER, CLIENT = "SERVER_TRAFFIC_SECRET_0", "CLIENT_TRAFFIC_SECRET_0"
SAID = re.compile(r"(\d+) of (\d+) 1-RTT packets could not be decoded, so times are the client's")
DAMAGED = {"of-server": [SERVER], "of-client": [CLIENT], "of-both": [SERVER, CLIENT]}
CASES = ["transfer", "multiplexing", "upload"]
# Columns that the client knows as well as the wire.
OF_CLIENT = ("handshake_s", "ttfb_s", "completion_s", "transfer_s", "goodput_bps", "runner_transfer_s")
OF_WIRE = ("rtt_min_ms", "retransmitted_share", "acks_per_data_packet", "in_flight_max_bytes")


def assigned(script: Path) -> Any:
    """What a data script of the report assigns."""
    return json.loads(script.read_text().partition("=")[2].rstrip(";\n"))


@pytest.fixture(autouse=True)
def _stacks(bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """noq with its key log as it is, and damaged."""
    for name, labels in {"as-it-is": [], **DAMAGED}.items():
        misled_noq.write(tmp_path / "stacks", name, {"damage": labels}, CASES)
    monkeypatch.setenv("BENTPIPE_STACKS", str(tmp_path / "stacks"))


def run(bentpipe: Command, clients: str, workload: str, *more: str) -> dict[str, dict[str, Any]]:
    """The records, by their clients."""
    words = ["--scenario", "sat", "--client", clients, "--server", "noq", "--workload", workload]
    done = bentpipe("run", *words, "--iterations", "1", "--json", *more)
    assert done.code == 0, done.err
    return {record["client"]: record for record in done.records()}


def test_times_are_the_clients(bentpipe: Command) -> None:
    clients = ",".join(["as-it-is", *DAMAGED])
    found = run(bentpipe, clients, "transfer:1MB", "--trace", "none", "--no-report", "--out", "A")
    honest = found.pop("as-it-is")
    assert (honest["measured_from"], honest["undecoded_packets"], honest["detail"]) == ("wire", 0, "")
    packets = honest["forward_packets"] + honest["return_packets"]
    for record in found.values():
        assert (record["outcome"], record["measured_from"]) == ("ok", "client")
        said = SAID.fullmatch(record["detail"])
        assert said is not None
        undecoded, of = map(int, said.groups())
        assert record["undecoded_packets"] == undecoded
        assert packets / 10 < undecoded <= of < 1.1 * packets
        for column in OF_CLIENT:
            assert record[column] == pytest.approx(honest[column], rel=0.02), column
        assert [record[column] for column in OF_WIRE] == [None] * len(OF_WIRE)
        assert (record["findings"], record["first_mb_s"]) == ([], [])


def test_everything_that_tells_of_it_says_so(bentpipe: Command) -> None:
    words = ["--scenario", "sat", "--client", "of-server", "--server", "noq", "--workload", "transfer:1MB"]
    done = bentpipe("run", *words, "--iterations", "1", "--trace", "all", "--out", "A")
    assert done.code == 0, done.err
    assert re.search(r"sat: of-server → noq: 1 ok: \d+ of \d+ 1-RTT packets could not be decoded", done.out)
    assert "one flight" not in done.out
    (trial,) = Path("A/trials").iterdir()
    explained = bentpipe("trace", trial, "--explain").out
    assert "no rule could judge" in explained
    assert re.search(r"\d+ of \d+ 1-RTT packets could not be decoded", " ".join(explained.split()))
    assert "yes:" not in explained and "ruled out:" not in explained
    assert re.search(r"not decoded: \d+ QUIC packets", explained)
    shown = json.loads((trial / "analysis.json").read_text())["connections"][0]
    assert [one["name"] for one in shown["events"]] == ["handshake_complete"]
    (cell,) = Path("A/report/data/cells").iterdir()
    (iteration,) = assigned(cell)["iterations"]
    assert SAID.fullmatch(iteration["detail"])
    page = assigned(Path(f"A/report/data/trials/{trial.name}.js"))
    assert page["notes"][0].startswith("Not decoded: ")
    assert {one["verdict"] for one in page["findings"]} == {"not_sure"}


@pytest.mark.parametrize("workload", ["multiplexing:100x32B", "upload:50kB"])
def test_what_cannot_be_read_proves_nothing(bentpipe: Command, workload: str) -> None:
    record = run(bentpipe, "of-both", workload, "--trace", "none", "--no-report", "--out", "A")["of-both"]
    assert record["outcome"] == "unproven"
    shown, said = record["detail"].split("; ")
    assert shown == "the wire does not show what the test case asks for"
    assert SAID.fullmatch(said)


def test_the_contracts_test_blames_nothing_else(bentpipe: Command) -> None:
    done = bentpipe("stacks", "test", "of-server", "--json")
    checks = {check["name"].partition(":")[0]: check for check in json.loads(done.out)["checks"]}
    for name in ("multiplexing", "upload", "TLS secrets are written when they are asked for"):
        check = checks[name]
        assert check["passed"] is False
        assert "1-RTT packets could not be decoded" in check["detail"]
        assert "MAX_STREAMS" not in check["hint"] and "leave it off" in check["hint"]
