"""Traces, read by somebody else's program: tshark must decrypt every packet and find the file in them."""

import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import Command, present

SIZE = 1_000_000
TSHARK = shutil.which("tshark")

pytestmark = [
    pytest.mark.virtual_time,
    pytest.mark.skipif(TSHARK is None, reason="tshark is not installed (apt install tshark)"),
]


def tshark(trace: Path, *arguments: str) -> list[str]:
    """The lines that tshark prints for a trace, with its checks of IP and UDP checksums on."""
    checks = ("-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE")
    command = [str(TSHARK), "-r", str(trace), *checks, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def offsets(trace: Path, interface: str) -> set[int]:
    """The bytes of the reply that were seen on an interface, as the set of their offsets."""
    seen: set[int] = set()
    wanted = f'frame.interface_name == "{interface}" && ip.src == 198.51.100.1 && quic.stream_data'
    fields = ("-e", "quic.stream.offset", "-e", "quic.stream.length", "-e", "quic.stream_data")
    for line in tshark(trace, "-Y", wanted, "-T", "fields", "-E", "separator=;", *fields):
        starts, _, data = (column.split(",") for column in line.split(";"))
        # A frame without the offset field begins at 0; only the first frame of a stream may lack it.
        begins = [int(start) for start in starts if start] or [0]
        for start, content in zip(begins, data, strict=True):
            seen.update(range(start, start + len(content) // 2))
    return seen


def encrypted(trace: Path) -> list[list[str]]:
    """Interface, source and packet number of what tshark cannot decrypt."""
    failed = '_ws.expert.message contains "Decryption failed"'
    fields = ("-e", "frame.interface_name", "-e", "ip.src", "-e", "quic.packet_number")
    return [line.split("\t") for line in tshark(trace, "-Y", failed, "-T", "fields", *fields)]


@pytest.mark.parametrize("server", present())
def test_tshark_finds_the_file_in_a_trace(bentpipe: Command, server: str) -> None:
    client = "quinn" if "quinn" in present() else server
    done = bentpipe(
        "run", "--scenario", "satloss", "--client", client, "--server", server, "--iterations", "1",
        "--bytes", str(SIZE), "--set", "return.loss=0%", "--trace", "all", "--out", "A", "--no-report",
        "--json",
    )  # fmt: skip
    (record,) = done.records()
    assert record["outcome"] == "ok", record["detail"]
    trace = Path("A/trials") / record["trial"] / "trace.pcapng"

    for interface, source, number in encrypted(trace):
        # tshark 4.0 takes a one-byte packet number of all ones that it sees again for one 256 later.
        assert interface == {"192.0.2.1": "server", "198.51.100.1": "client"}[source]
        assert int(number) % 256 == 255
    assert tshark(trace, "-Y", "_ws.malformed || ip.checksum.status == 0 || udp.checksum.status == 0") == []
    assert offsets(trace, "server") == set(range(SIZE))
    if not any(source == "198.51.100.1" for _, source, _ in encrypted(trace)):
        assert offsets(trace, "client") == set(range(SIZE))

    def count(interface: str, source: str) -> int:
        return len(tshark(trace, "-Y", f'frame.interface_name == "{interface}" && ip.src == {source}'))

    lost = record["forward_queue_drops"] + record["forward_losses"]
    assert lost > 0
    assert count("server", "198.51.100.1") == record["forward_packets"]
    assert count("client", "198.51.100.1") == record["forward_packets"] - lost
    assert count("client", "192.0.2.1") == count("server", "192.0.2.1") == record["return_packets"]


def test_a_packet_takes_the_delay_of_the_link(bentpipe: Command) -> None:
    """On both sides a packet carries one IPv4 identification. Its times lie as far apart as the link delays
    it, or farther where it waited.
    """
    pair = present()[0]
    done = bentpipe(
        "run", "--scenario", "sat", "--client", pair, "--server", pair, "--iterations", "1",
        "--bytes", "20000", "--trace", "all", "--out", "A", "--no-report", "--json",
    )  # fmt: skip
    (record,) = done.records()
    trace = Path("A/trials") / record["trial"] / "trace.pcapng"
    fields = ("-e", "ip.id", "-e", "ip.src", "-e", "frame.time_epoch", "-e", "ip.len")
    rows = [line.split("\t") for line in tshark(trace, "-T", "fields", *fields)]
    departures, arrivals = rows[::2], rows[1::2]
    assert len(departures) == len(arrivals) > 20
    for (key, source, sent, size), (same_key, same_source, arrived, same_size) in zip(
        departures, arrivals, strict=True
    ):
        assert (key, source, size) == (same_key, same_source, same_size)
        rate = 20_000_000 if source == "198.51.100.1" else 2_000_000
        least = 300_000_000 + -(-int(size) * 8 * 1_000_000_000 // rate)
        nanos = [int(text.replace(".", "")) for text in (sent, arrived)]
        assert nanos[1] - nanos[0] >= least


def test_the_folders_of_several_trials_are_traced_one_by_one(bentpipe: Command) -> None:
    words = ("--scenario", "goodput", "--client", "noq", "--server", "noq", "--bytes", "100kB")
    bentpipe("run", *words, "--iterations", "2", "--trace", "all", "--no-report", "--out", "two")
    folders = sorted(map(str, Path("two/trials").iterdir()))
    done = bentpipe("trace", *folders, "--explain")
    assert done.code == 0, done.err
    headings = [line for line in done.out.splitlines() if line.startswith("goodput_noq_noq_")]
    assert headings == [f"{Path(folder).name}:" for folder in folders] and len(headings) == 2
    assert bentpipe("trace", *folders, "--json").code == 2
