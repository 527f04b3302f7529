"""Linux's own TCP with TLS, beside QUIC: what its records say, held against tshark, and what is refused."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from test_emu import RUN, trusted

from bentpipe.analysis import ideal_sender
from bentpipe.stacks import catalogue

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("namespaces")]

SIZE = 200_000
TSHARK = shutil.which("tshark")


def run(bentpipe: Command, *arguments: str, server: str = "linux") -> list[dict[str, Any]]:
    if why := catalogue.discover()["linux"].missing("sockets"):
        pytest.skip(why)
    words = ["--scenario", "goodput", "--client", "linux", "--server", server, "--iterations", "1"]
    return trusted(bentpipe(*RUN, *words, "--out", "A", *arguments).records())


def tshark(trace: Path, filtered: str, field: str = "frame.time_epoch", place: int = 0) -> list[float]:
    """The times, or another field, of packets at the client's side, or the server's, that a filter takes."""
    here = f"({filtered}) && frame.interface_id == {place}"
    command = [str(TSHARK), "-r", str(trace), "-Y", here, "-T", "fields", "-e", field]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [float(line) for line in done.stdout.split()]


@pytest.mark.skipif(TSHARK is None, reason="tshark is not installed (apt install tshark)")
def test_times_are_those_that_tshark_reads(bentpipe: Command) -> None:
    (record,) = run(bentpipe, "--bytes", str(SIZE), "--trace", "all")
    assert (record["outcome"], record["detail"]) == ("ok", "")
    assert (record["transport"], record["alpn"], record["measured_from"]) == ("tcp", "http/0.9", "wire")
    trace = Path("A/trials") / record["trial"] / "trace.pcapng"
    (syn, *_) = tshark(trace, "tcp.flags.syn == 1 && tcp.flags.ack == 0")
    (finished, *_) = tshark(trace, "tls.handshake.type == 20 && tcp.dstport == 443")
    assert record["handshake_s"] == pytest.approx(finished - syn, abs=1e-6)
    data = tshark(trace, "tcp.srcport == 443 && tcp.len > 0")
    assert any(record["completion_s"] == pytest.approx(at - syn, abs=1e-6) for at in data)
    assert record["completion_s"] == pytest.approx(max(data) - syn, abs=0.1), "the last says close_notify"
    assert record["handshake_s"] < record["ttfb_s"] < record["completion_s"]
    assert record["runner_transfer_s"] is None, "TCP has no 1-RTT packets"
    assert record["limit_s"] == pytest.approx(3 * 0.030 + SIZE * 8 * 1.05 / 10e6)
    assert record["server_version"].startswith("Linux ")
    drawn = ideal_sender.curve("transfer", SIZE, record["limit_s"], 0.030, record["transport"])
    assert drawn is not None and drawn[1][0] == pytest.approx(0.090), "SYN, TLS, request"


@pytest.mark.skipif(TSHARK is None, reason="tshark is not installed (apt install tshark)")
def test_a_receiver_offers_half_of_the_buffer_with_which_it_begins(bentpipe: Command) -> None:
    records = run(bentpipe, "--bytes", "1kB", "--trace", "all", "--client", "linux:rmem=1048576")
    windows = {}
    for one in records:
        trace = Path("A/trials") / one["trial"] / "trace.pcapng"
        # That of a SYN cannot be as large.
        (first, *_) = tshark(trace, "tcp.dstport == 443 && tcp.flags.syn == 0", "tcp.window_size")
        windows[one["client"]] = first
    # The SYN's 16 bits leave a little less than 64 KiB of the kernel's own.
    assert 63 << 10 <= windows["linux"] <= 64 << 10 and windows["linux:rmem=1048576"] == 512 << 10


def test_each_test_case_and_ip_version_proves_itself(bentpipe: Command) -> None:
    cases = f"resumption:2x10kB,upload:{SIZE},handshake:1kB,duration:2s,multiplexing:120x1kB,upload:2x10kB"
    records = run(
        bentpipe, "--workload", cases, "--ip", "6", server="linux:cc=newreno:sack=off:timestamps=off"
    )
    assert [(one["outcome"], one["detail"]) for one in records] == [("ok", "")] * 6
    resumption, upload, _, duration, many, uploads = records
    assert (resumption["connections"], resumption["resumed"]) == (2, True)
    assert (many["connections"], uploads["connections"]) == (120, 2)
    assert upload["ttfb_s"] is None and upload["goodput_bps"] > 0
    assert 0 < duration["efficiency"] <= 1


def test_what_it_refuses_is_unsupported_and_says_why(bentpipe: Command) -> None:
    (unknown,) = run(bentpipe, "--bytes", "1kB", server="linux:cc=vegan")
    assert unknown["outcome"] == "unsupported"
    assert "this kernel has" in unknown["detail"] and "sudo modprobe tcp_vegan" in unknown["detail"]
    _, clear = run(bentpipe, "--workload", "zerortt:2x1kB", "--out", "E", "--client", "linux:tls=off")
    assert clear["outcome"] == "unsupported" and '"zerortt" with tls=off' in clear["detail"]
    (bursts,) = run(bentpipe, "--bytes", "1kB", "--out", "F", server="linux:cc=bbr:pacing=off")
    assert bursts["outcome"] == "unsupported" and "no way not to" in bursts["detail"]
