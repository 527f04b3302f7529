"""TCP in bentpipe-trace against tshark, segment by segment: a real transfer as each host captured it, and one
that is made up, whose sequence numbers wrap and whose segments have no timestamps.
"""

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tcp_wire import Transfer

from bentpipe import paths

TSHARK = shutil.which("tshark")
CAPTURES = paths.root() / "crates" / "analysis" / "tests" / "captures-tcp"
RETRANSMISSIONS = ("retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order")
FIELDS = (
    "tcp.srcport", "tcp.seq", "tcp.ack", "tcp.len", "tcp.hdr_len", "tcp.flags.syn", "tcp.flags.fin",
    "tcp.window_size", "tcp.options.sack_le", "tcp.options.sack_re", "tcp.options.timestamp.tsval", "ip.id",
    "tcp.analysis.ack_rtt", *(f"tcp.analysis.{kind}" for kind in RETRANSMISSIONS),
)  # fmt: skip

Row = dict[str, Any]


@dataclass
class Segment:
    """A segment as tshark sees it; sequence numbers count from the SYN."""

    from_server: bool
    sequence: int
    ack: int
    length: int
    header: int
    is_syn: bool
    is_fin: bool
    window: int
    sack: list[tuple[int, int]]
    identity: tuple[str, ...]
    rtt_ms: float | None
    is_retransmission: bool

    @classmethod
    def of(cls, line: str, server_port: str) -> "Segment":
        found = dict(zip(FIELDS, line.split("\t"), strict=True))
        edges = [[int(edge) for edge in found[name].split(",") if edge] for name in FIELDS[8:10]]
        return cls(
            from_server=found["tcp.srcport"] == server_port,
            sequence=int(found["tcp.seq"]),
            ack=int(found["tcp.ack"]),
            length=int(found["tcp.len"]),
            header=int(found["tcp.hdr_len"]),
            is_syn=found["tcp.flags.syn"] in ("1", "True"),
            is_fin=found["tcp.flags.fin"] in ("1", "True"),
            window=int(found["tcp.window_size"]),
            sack=list(zip(*edges, strict=True)),
            identity=tuple(found[name] for name in (*FIELDS[:4], *FIELDS[10:12])),
            rtt_ms=float(found["tcp.analysis.ack_rtt"]) * 1000 if found["tcp.analysis.ack_rtt"] else None,
            is_retransmission=any(found[f"tcp.analysis.{kind}"] for kind in RETRANSMISSIONS),
        )

    @property
    def extent(self) -> tuple[int, int]:
        return self.sequence, self.sequence + self.length + self.is_syn + self.is_fin


def tshark(capture: Path, server_port: str) -> list[Segment]:
    if TSHARK is None:
        pytest.skip("tshark is not installed (apt install tshark)")
    fields = [word for name in FIELDS for word in ("-e", name)]
    command: list[str | Path] = [TSHARK, "-r", capture, "-T", "fields", *fields]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [Segment.of(line, server_port) for line in done.stdout.splitlines()]


def analyze(*captures: Path) -> tuple[list[Row], dict[str, Any]]:
    """The segments and the only connection in captures."""
    command: list[str | Path] = [paths.program("bentpipe-trace"), "analyze", *captures, "-o", "analysis"]
    subprocess.run(command, check=True, capture_output=True)
    (connection,) = json.loads(Path("analysis/analysis.json").read_text())["connections"]
    return pq.read_table("analysis/packets.parquet").to_pylist(), connection


@pytest.fixture(params=["client", "server", "made-up"])
def capture(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A capture of one host; the one that is made up is the server's."""
    monkeypatch.chdir(tmp_path)
    if request.param != "made-up":
        return CAPTURES / f"{request.param}.pcap"
    file = Path("server.pcap")
    file.write_bytes(Transfer(segments=300, loss=0.02, seed=2).file())
    return file


AT_THE_SENDER = pytest.mark.parametrize("capture", ["server", "made-up"], indirect=True)


def server_port(connection: dict[str, Any]) -> str:
    return str(connection["server"]).rpartition(":")[2]


def test_segments_are_those_of_tshark(capture: Path) -> None:
    rows, connection = analyze(capture)
    segments = tshark(capture, server_port(connection))
    assert len(rows) == len(segments) == connection["packets"] > 400
    counts = {"client": 0, "server": 0}
    for row, segment in zip(rows, segments, strict=True):
        assert row["sender"] == ("server" if segment.from_server else "client")
        assert row["number"] == counts[row["sender"]]
        counts[row["sender"]] += 1
        assert row["size_bytes"] == segment.header + segment.length
        assert ("SYN" in row["frames"]) == segment.is_syn
        if segment.length or segment.is_fin:
            # tshark gives the SYN the relative number 0; it shows 32 bits.
            assert [offset % 2**32 for offset in row["stream_offset"]] == [segment.sequence - 1]
            assert row["stream_bytes"] == [segment.length]
        else:
            assert row["stream_offset"] == []
        if row["max_stream_data"] is not None:
            assert row["max_stream_data"] == max(segment.ack - 1, 0) + segment.window


@AT_THE_SENDER
def test_retransmissions_are_those_of_tshark(capture: Path) -> None:
    """At the sender's side nothing is out of order: what tshark calls so as it comes soon was sent again."""
    rows, connection = analyze(capture)
    segments = tshark(capture, server_port(connection))
    again = [at for at, row in enumerate(rows) if row["retransmitted_bytes"]]
    assert again == [at for at, it in enumerate(segments) if it.is_retransmission and it.length]
    assert len(again) > 3


def test_acks_cover_the_segments_that_tshark_saw(capture: Path) -> None:
    """What a side has acknowledged up to a segment is what ACK fields and SACK blocks up to it cover."""
    rows, connection = analyze(capture)
    segments = tshark(capture, server_port(connection))
    for end in ("client", "server"):
        sent: list[tuple[int, tuple[int, int]]] = []  # by the other end: number and extent
        acked: set[int] = set()
        covered: set[int] = set()
        for row, segment in zip(rows, segments, strict=True):
            first, behind = segment.extent
            if row["sender"] != end:
                sent += [(row["number"], (first, behind))] if behind > first else []
                continue
            for low, high in zip(row["ack_first"], row["ack_last"], strict=True):
                acked |= {number for number, _ in sent if low <= number <= high}
            blocks = [(0, segment.ack), *segment.sack]
            if row["ack_first"]:
                covered |= {
                    number
                    for number, extent in sent
                    if any(block[0] <= extent[0] and extent[1] <= block[1] for block in blocks)
                }
            assert acked == covered, row


@AT_THE_SENDER
def test_rtt_samples_are_those_of_tshark(capture: Path) -> None:
    """Where both give one and no gap is being closed: then tshark looks at the last segment covered, which a
    SACK block may have had before.
    """
    rows, connection = analyze(capture)
    segments = tshark(capture, server_port(connection))
    compared, is_gap_open = 0, False
    for row, segment in zip(rows, segments, strict=True):
        if segment.from_server:
            continue
        if not segment.sack and not is_gap_open and None not in (row["rtt_ms"], segment.rtt_ms):
            assert row["rtt_ms"] == pytest.approx(segment.rtt_ms, abs=2e-3)
            compared += 1
        is_gap_open = bool(segment.sack)
    assert compared > 15


def test_no_sample_is_of_bytes_that_were_sent_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Karn's algorithm, where there are no timestamps."""
    monkeypatch.chdir(tmp_path)
    file = Path("server.pcap")
    file.write_bytes(Transfer(segments=300, loss=0.05, seed=3).file())
    rows, _ = analyze(file)
    data = [row for row in rows if row["stream_bytes"]]
    offsets = [row["stream_offset"][0] for row in data]
    sampled = 0
    for row in rows:
        if (
            row["rtt_ms"] is not None
            and row["ack_last"]
            and row["received_s"] is not None
            and row["received_s"] > 0.2
        ):
            sent = row["received_s"] - row["rtt_ms"] / 1000
            answered = min(data, key=lambda it: abs(it["sent_s"] - sent))
            assert offsets.count(answered["stream_offset"][0]) == 1, row
            sampled += 1
    assert len(set(offsets)) < len(offsets)
    assert sampled > 200


def test_what_was_lost_is_in_only_one_of_two_captures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    captures = [CAPTURES / f"{side}.pcap" for side in ("client", "server")]
    rows, connection = analyze(*captures)
    seen = [[it.identity for it in tshark(capture, server_port(connection))] for capture in captures]
    client, server = (set(identities) for identities in seen)
    lost = {row["sender"]: 0 for row in rows}
    for row in rows:
        # "unknown": the last ACKs would have come when the server's capture had ended.
        lost[row["sender"]] += row["fate"] in ("not_received", "unknown")
    assert lost["server"] == len([it for it in server - client if it[0] == "8080"]) > 3
    assert lost["client"] == len([it for it in client - server if it[0] != "8080"]) > 3
    assert all(row["acked_s"] is None for row in rows if row["fate"] == "not_received")
    assert connection["metrics"]["stream_bytes"] == 330_000
