"""IPv6 in trials of both testbeds: what crosses links has its headers, and records and traces say so."""

import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import Command, installed_or_skip, present
from test_emu import trusted

from bentpipe.runs.records import Record
from bentpipe.stacks import catalogue

TSHARK = shutil.which("tshark")
RUN = ["run", "--client", "noq", "--server", "noq", "--iterations", "1", "--no-report", "--json"]


def records(bentpipe: Command, *options: str) -> list[Record]:
    """What comes of trials of noq with noq."""
    installed_or_skip("noq")
    done = bentpipe(*RUN, *options)
    assert done.code == 0, done.err
    found = [Record.from_mapping(one) for one in trusted(done.records())]
    assert [one.outcome for one in found] == ["ok"] * len(found), found
    return found


@pytest.mark.virtual_time
def test_headers_are_those_of_the_version(bentpipe: Command) -> None:
    (four,) = records(bentpipe, "--scenario", "sat", "--bytes", "1MB", "--ip", "4")
    (six,) = records(bentpipe, "--scenario", "sat", "--bytes", "1MB", "--ip", "6")
    assert (four.ip, six.ip) == (4, 6)
    assert four.trial == six.trial, "the version changes no seed"
    assert four.packet_log_hash != six.packet_log_hash
    # noq's full packets have 1452 bytes of UDP payload over both: the rest is headers.
    assert four.largest_packet_bytes == 1452 + 28
    assert six.largest_packet_bytes == 1452 + 48
    # Links count them, too: with as many packets each way, that of ACKs grows by 20 bytes for each.
    assert (six.forward_packets, six.return_packets) == (four.forward_packets, four.return_packets)
    assert six.return_bytes is not None and four.return_bytes is not None
    assert six.return_packets is not None
    assert six.return_bytes - four.return_bytes == 20 * six.return_packets


@pytest.mark.virtual_time
def test_every_stack_speaks_ipv6(bentpipe: Command) -> None:
    known = catalogue.discover().items()
    both = {name: one for name, one in known if len(one.roles) == 2}
    installed = {name for name, one in both.items() if not one.missing("virtual-time")}
    assert installed >= set(present())
    names = ",".join(sorted(installed))
    done = bentpipe(
        "run", "--scenario", "satloss", "--client", names, "--server", names, "--pairs", "self", "--ip", "6",
        "--bytes", "100kB", "--iterations", "1", "--no-report", "--json",
    )  # fmt: skip
    outcomes = {record["client"]: (record["outcome"], record["detail"]) for record in done.records()}
    assert outcomes.keys() == installed
    assert {outcome for outcome, _ in outcomes.values()} == {"ok"}, outcomes


@pytest.mark.virtual_time
def test_it_repeats_and_crosses_proxies(bentpipe: Command) -> None:
    options = ("--scenario", "geo-tum", "--bytes", "1MB", "--ip", "6", "--treatment", "direct,quic-pep")
    first, again = records(bentpipe, *options), records(bentpipe, *options)
    assert len(first) == 2
    assert [one.packet_log_hash for one in first] == [one.packet_log_hash for one in again]


@pytest.mark.virtual_time
@pytest.mark.skipif(TSHARK is None, reason="tshark is not installed (apt install tshark)")
def test_tshark_reads_the_trace(bentpipe: Command) -> None:
    (record,) = records(
        bentpipe, "--scenario", "sat", "--bytes", "100kB", "--ip", "6", "--trace", "all", "--out", "A"
    )
    trace = Path("A/trials") / record.trial / "trace.pcapng"

    def tshark(*arguments: str) -> list[str]:
        command = [str(TSHARK), "-r", str(trace), "-o", "udp.check_checksum:TRUE", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()

    assert tshark("-Y", "ip || _ws.malformed || udp.checksum.status == 0") == []
    sent = tshark("-Y", 'frame.interface_name == "client" && ipv6.src == 2001:db8:1::1 && quic')
    assert len(sent) == record.return_packets
    assert tshark("-Y", '_ws.expert.message contains "Decryption failed"') == []


@pytest.mark.emulated
@pytest.mark.usefixtures("namespaces")
def test_in_real_time_too(bentpipe: Command) -> None:
    """Over two emulated segments, where departures are joined with arrivals, and through proxies."""
    found = records(
        bentpipe, "--testbed", "emu", "--scenario", "leo-tum", "--bytes", "200kB", "--ip", "6",
        "--treatment", "direct,quic-pep",
    )  # fmt: skip
    for record in found:
        assert record.ip == 6
        assert record.forward_bytes is not None and record.forward_bytes > 200_000
        assert record.measured_from == "wire"
