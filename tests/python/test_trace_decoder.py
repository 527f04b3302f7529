"""bentpipe-trace against tshark, over traces of real transfers: the same packet numbers, stream frames and
ACK ranges in every captured packet. tshark is given each side by itself: it takes both interfaces for one
observer.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from conftest import Command, present

from bentpipe import paths

pytestmark = pytest.mark.virtual_time

TSHARK = shutil.which("tshark")
SERVERS = ("quinn", "aioquic", "quic-go")
SIZE = 1_000_000
INTERFACES = ("client", "server")

FIELDS = (
    "frame.number",
    "frame.time_epoch",
    "quic.packet_number",
    "quic.frame_type",
    "quic.stream.stream_id",
    "quic.stream.offset",
    "quic.stream.length",
    "quic.stream_data",
    "quic.ack.largest_acknowledged",
    "quic.ack.ack_range_count",
    "quic.ack.first_ack_range",
    "quic.ack.gap",
    "quic.ack.ack_range",
    "quic.key_phase",
)


@dataclass
class Seen:
    """What a captured packet holds, over all QUIC packets in it."""

    time: str
    numbers: list[int] = field(default_factory=list)
    streams: list[tuple[int, int, int]] = field(default_factory=list)  # id, offset, length
    acks: list[list[list[int]]] = field(default_factory=list)  # ranges from the largest down


@pytest.fixture
def traces(bentpipe: Command, server: str) -> dict[str, Path]:
    """The trace of a transfer as each side saw it."""
    if TSHARK is None:
        pytest.skip("tshark is not installed (apt install tshark)")
    if server not in present():
        pytest.skip(f"{server} is not built: its toolchain is missing")
    client = "quinn" if "quinn" in present() else server
    done = bentpipe(
        "run", "--scenario", "sat", "--client", client, "--server", server, "--iterations", "1",
        "--bytes", str(SIZE), "--trace", "all", "--out", "A", "--no-report", "--json",
    )  # fmt: skip
    (record,) = done.records()
    assert record["outcome"] == "ok", record["detail"]
    trace = Path("A/trials") / record["trial"] / "trace.pcapng"
    sides = {name: Path(f"{name}.pcapng") for name in INTERFACES}
    for name, side in sides.items():
        wanted = f'frame.interface_name == "{name}"'
        subprocess.run([TSHARK, "-r", trace, "-Y", wanted, "-w", side], check=True, capture_output=True)
    return {"both": trace, **sides}


def decode(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs `bentpipe-trace packets`."""
    command = [paths.program("bentpipe-trace"), "packets", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def ours(trace: Path) -> dict[int, Seen]:
    """What bentpipe-trace finds, by the number of the captured packet."""
    done = decode(trace)
    assert done.returncode == 0, done.stderr
    assert "not decoded" not in done.stderr
    found: dict[int, Seen] = {}
    for line in done.stdout.splitlines():
        packet = json.loads(line)
        seen = found.setdefault(packet["frame"], Seen(packet["time_s"]))
        seen.numbers.append(packet["number"])
        for frame in packet["frames"]:
            if frame["type"] == "STREAM":
                seen.streams.append((frame["id"], frame["offset"], frame["length"]))
            elif frame["type"] == "ACK":
                seen.acks.append(frame["ranges"])
    return found


def rows(trace: Path) -> Iterator[dict[str, list[str]]]:
    """What tshark prints: for each captured packet, every value of each field."""
    columns = [part for name in FIELDS for part in ("-e", name)]
    command = [str(TSHARK), "-r", str(trace), "-T", "fields", "-E", "separator=;", *columns]
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        values = (cell.split(",") if cell else [] for cell in line.split(";"))
        yield dict(zip(FIELDS, values, strict=True))


def stream_frames(row: dict[str, list[str]]) -> Iterator[tuple[int, int, int]]:
    """The STREAM frames of a row. Which fields each has is told by its type (RFC 9000 section 19.8)."""
    ids, offsets, lengths, data = (iter(row[f"quic.stream{name}"]) for name in
                                   (".stream_id", ".offset", ".length", "_data"))  # fmt: skip
    for kind in map(int, row["quic.frame_type"]):
        if 0x08 <= kind <= 0x0F:
            offset = int(next(offsets)) if kind & 0x04 else 0
            length = int(next(lengths)) if kind & 0x02 else None
            content = next(data, "") if length != 0 else ""
            content = "" if content == "<MISSING>" else content  # tshark's word for no data
            yield int(next(ids)), offset, len(content) // 2 if length is None else length


def ack_ranges(row: dict[str, list[str]]) -> Iterator[list[list[int]]]:
    """The ranges of each ACK frame of a row (RFC 9000 section 19.3.1)."""
    largest, counts, firsts, gaps, ranges = (
        map(int, row[f"quic.ack.{name}"])
        for name in ("largest_acknowledged", "ack_range_count", "first_ack_range", "gap", "ack_range")
    )
    for high, count, first in zip(largest, counts, firsts, strict=True):
        found = [[high - first, high]]
        for _ in range(count):
            high = found[-1][0] - next(gaps) - 2
            found.append([high - next(ranges), high])
        yield found


def theirs(trace: Path) -> tuple[dict[int, Seen], set[str]]:
    """What tshark finds, and the key phases that it saw."""
    found: dict[int, Seen] = {}
    phases: set[str] = set()
    for row in rows(trace):
        numbers = [int(number) for number in row["quic.packet_number"]]
        (frame,), (time,) = row["frame.number"], row["frame.time_epoch"]
        found[int(frame)] = Seen(time, numbers, list(stream_frames(row)), list(ack_ranges(row)))
        phases |= set(row["quic.key_phase"])
    return found, phases


@pytest.mark.parametrize("server", SERVERS)
def test_every_packet_is_as_tshark_sees_it(traces: dict[str, Path], server: str) -> None:
    for interface in INTERFACES:
        mine = ours(traces[interface])
        others, phases = theirs(traces[interface])
        assert len(others) > SIZE // 1500
        assert list(mine) == list(others)
        for frame, seen in others.items():
            assert mine[frame] == seen, f"{interface}, frame {frame}"
        received = {byte for seen in mine.values() for id, offset, length in seen.streams if id == 0
                    for byte in range(offset, offset + length)}  # fmt: skip
        assert received >= set(range(SIZE))
        assert sum(len(seen.acks) for seen in mine.values()) > 50
        if server == "quic-go":
            assert len(phases) == 2, "a key update is part of this test"


@pytest.mark.parametrize("server", ["quinn"])
def test_each_interface_decodes_by_itself(traces: dict[str, Path], server: str) -> None:
    """A file of both sides gives what the files of each side give."""

    def packets(trace: Path) -> list[dict[str, object]]:
        found = [json.loads(line) for line in decode(trace).stdout.splitlines()]
        return [{key: value for key, value in packet.items() if key != "frame"} for packet in found]

    both = packets(traces["both"])
    assert {packet["interface"] for packet in both} == set(INTERFACES)
    for interface in INTERFACES:
        assert [packet for packet in both if packet["interface"] == interface] == packets(traces[interface])


@pytest.mark.parametrize("server", ["quinn"])
def test_a_file_cut_short_gives_what_is_there(traces: dict[str, Path], server: str) -> None:
    whole = decode(traces["both"]).stdout.splitlines()
    content = traces["both"].read_bytes()
    cut = Path("cut.pcapng")
    cut.write_bytes(content[: len(content) // 2])
    done = decode(cut)
    assert done.returncode != 0
    error = done.stderr.splitlines()[-1]
    assert error.startswith("error: cut.pcapng: byte ") and "cut short" in error
    lines = done.stdout.splitlines()
    assert len(whole) // 3 < len(lines) < len(whole)
    assert lines == whole[: len(lines)]


@pytest.mark.parametrize("server", ["quinn"])
def test_without_secrets_only_the_beginning_can_be_read(traces: dict[str, Path], server: str) -> None:
    """pcap has no place for secrets: what is missing is said, and a key log beside the file helps."""
    bare = Path("bare.pcap")
    command = [str(TSHARK), "-r", str(traces["client"]), "-F", "nsecpcap", "-w", str(bare)]
    subprocess.run(command, check=True, capture_output=True)
    done = decode(bare)
    assert done.returncode == 0
    assert {json.loads(line)["type"] for line in done.stdout.splitlines()} == {"Initial"}
    assert "no secret for 1-RTT packets in the key log" in done.stderr

    lines = re.findall(rb"[A-Z_0-9]+ [0-9a-f]{64} [0-9a-f]+\n", traces["client"].read_bytes())
    Path("keys.log").write_bytes(b"".join(lines))
    done = decode(bare, "--keylog", "keys.log")
    assert "not decoded" not in done.stderr
    without_name = [json.loads(line) | {"interface": None} for line in done.stdout.splitlines()]
    named = [json.loads(line) | {"interface": None} for line in decode(traces["client"]).stdout.splitlines()]
    assert without_name == named
