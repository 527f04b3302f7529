"""Programs that know sockets and a clock, in virtual time: Linux's own TCP and whatever else a guest runs."""

import contextlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from children import wait_until_gone
from conftest import Command, installed_or_skip
from test_linux import tshark

pytestmark = pytest.mark.virtual_time

# What keeps the contract: it refuses what it does not know.
REFUSES = '[ "$TESTCASE" = transfer ] && [ -z "$BENTPIPE_OPTIONS" ] || exit 127; '
# Programs of a guest that misbehave as servers → outcome and detail.
SERVERS = {
    "echo ready; while :; do :; done": ("crashed", "server was silent"),
    "exit 3": ("crashed", "the program ended with 3"),
    "exit 0": ("crashed", "the program ended, and had sent nothing"),
    "exit 127": ("unsupported", "it exited with 127"),
    # Switches the guest off.
    "echo ready; sleep 0.005; exec python3 -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)'": (
        "crashed",
        "the guest has ended by itself",
    ),
    # Nobody listens.
    "echo ready; exec sleep 1000": ("missing_file", "nothing was stored"),
}


@pytest.fixture(autouse=True)
def guest() -> None:
    """Leaves a test out where there are no guests."""
    installed_or_skip("linux")


def working_below(folder: Path) -> list[int]:
    """The processes whose working directory is there, as a guest's is."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str((process / "cwd").readlink()).startswith(str(folder)):
                found.append(int(process.name))
    return [pid for pid in found if pid != os.getpid()]


def run(bentpipe: Command, *arguments: str) -> list[dict[str, Any]]:
    words = [*arguments, "--iterations", "1", "--no-report", "--json", "--out", "A"]
    done = bentpipe("run", *words, *([] if "--client" in arguments else ["--client", "linux"]))
    assert done.code == 0, done.err
    return done.records()


def test_each_test_case_option_and_ip_version_proves_itself(bentpipe: Command) -> None:
    cases = "resumption:2x10kB,upload:200kB,handshake:1kB,duration:2s,multiplexing:120x1kB,upload:2x10kB"
    server = "linux:cc=newreno:sack=off:timestamps=off:ecn=on:window=200000"
    records = run(bentpipe, "--scenario", "goodput", "--server", server, "--workload", cases, "--ip", "6")
    assert [(one["outcome"], one["detail"]) for one in records] == [("ok", "")] * 6
    resumption, upload, _, duration, many, uploads = records
    assert (resumption["connections"], resumption["resumed"]) == (2, True)
    assert (many["connections"], uploads["connections"]) == (120, 2)
    assert upload["ttfb_s"] is None and upload["goodput_bps"] > 0
    assert 0 < duration["efficiency"] <= 1
    assert resumption["server_version"].startswith("Linux 6.12.")


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed (apt install tshark)")
def test_times_are_those_that_tshark_reads(bentpipe: Command) -> None:
    (record,) = run(bentpipe, "--scenario", "sat", "--server", "linux", "--bytes", "200kB", "--trace", "all")
    trace = Path("A/trials") / record["trial"] / "trace.pcapng"
    (syn, *_) = tshark(trace, "tcp.flags.syn == 1 && tcp.flags.ack == 0")
    (finished, *_) = tshark(trace, "tls.handshake.type == 20 && tcp.dstport == 443")
    assert (record["outcome"], record["measured_from"]) == ("ok", "wire")
    assert record["handshake_s"] == pytest.approx(finished - syn, abs=1e-6)
    # The path's round trip, and what packets take on its links.
    assert 1.2 < record["handshake_s"] < 1.205
    assert not tshark(trace, "tcp.checksum.status == 0 || ip.checksum.status == 0")


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed (apt install tshark)")
def test_several_connections_are_measured_together_as_tshark_reads_them(bentpipe: Command) -> None:
    words = ["--scenario", "goodput", "--client", "linux:parallel=2", "--server", "linux", "--trace", "all"]
    (record,) = run(bentpipe, *words, "--workload", "transfer:3x100kB")
    trace = Path("A/trials") / record["trial"] / "trace.pcapng"
    syns = tshark(trace, "tcp.flags.syn == 1 && tcp.flags.ack == 0")
    ends = tshark(trace, "tcp.flags.fin == 1 && tcp.srcport == 443")
    finished = tshark(trace, "tls.handshake.type == 20 && tcp.dstport == 443")
    data = tshark(trace, "tcp.srcport == 443 && tcp.len > 0")
    assert (record["outcome"], record["connections"], len(syns)) == ("ok", 3, 3)
    assert syns[1] < finished[0] and ends[0] < syns[2], "two at one time"
    assert record["handshake_s"] == pytest.approx(finished[0] - syns[0], abs=1e-6)
    assert any(record["completion_s"] == pytest.approx(at - syns[0], abs=1e-6) for at in data)
    assert record["completion_s"] == pytest.approx(max(data) - syns[0], abs=0.1), "the last says close_notify"
    assert record["goodput_bps"] == pytest.approx(8 * 300_000 / record["transfer_s"])
    sizes = tshark(trace, "tcp.srcport == 443", "ip.len", place=1)
    assert record["mean_packet_bytes"] == pytest.approx(sum(sizes) / len(sizes))
    assert len(sizes) == record["forward_packets"]


@pytest.mark.parametrize(
    ("workload", "variant", "handshake", "left"),
    [
        ("transfer:10kB", "linux", 2, 3),
        ("transfer:10kB", "linux:tls=off", 1, 2),
        ("zerortt:2x10kB", "linux", 2, 2),
        ("transfer:10kB", "linux:fastopen=on:tls=off", 1, 1),
        ("zerortt:2x10kB", "linux:fastopen=on", 1, 1),
    ],
)
def test_each_round_trip_can_be_saved_and_is_not_counted_then(
    bentpipe: Command, workload: str, variant: str, handshake: int, left: int
) -> None:
    """Over a round trip of 600 ms, and a few milliseconds that packets take on the links."""
    ends = ("--client", variant, "--server", variant)
    (record,) = run(bentpipe, "--scenario", "sat", *ends, "--workload", workload, "--trace", "all")
    assert (record["outcome"], record["detail"], record["measured_from"]) == ("ok", "", "wire")
    assert record["saved_round_trips"] == variant.count("tls=off") + variant.count("fastopen=on")
    assert record["limit_s"] == pytest.approx(left * 0.6 + 10_000 * 8 * 1.05 / 20e6)
    assert left * 0.6 < record["ttfb_s"] < left * 0.6 + 0.01
    assert handshake * 0.6 < record["handshake_s"] < handshake * 0.6 + 0.01
    is_early = workload.startswith("zerortt")
    assert record["zero_rtt_bytes"] == (len("GET /10000-2\r\n") if is_early else 0)
    assert 0.9 < record["share_of_limit"] <= 1


def test_what_is_sent_in_the_clear_is_read_without_secrets(bentpipe: Command) -> None:
    words = ["--scenario", "goodput", "--client", "linux:tls=off", "--server", "linux:tls=off"]
    cases = "upload:200kB,multiplexing:30x1kB,duration:2s"
    records = run(bentpipe, *words, "--trace", "all", "--workload", cases)
    assert [(one["outcome"], one["detail"]) for one in records] == [("ok", "")] * 3
    assert [one["measured_from"] for one in records] == ["wire"] * 3
    assert all(one["goodput_bps"] > 100_000 for one in records)


def test_paced_packets_leave_one_by_one(bentpipe: Command) -> None:
    """CUBIC paces with the option alone; a short queue drops of what comes in bursts."""
    words = ["--scenario", "sat", "--set", "forward.queue=18 packets", "--bytes", "200kB"]
    bursts, paced = run(bentpipe, *words, "--server", "linux,linux:pacing=on")
    assert (bursts["outcome"], paced["outcome"]) == ("ok", "ok")
    assert bursts["forward_queue_drops"] > 0 == paced["forward_queue_drops"]


def test_a_receiver_offers_half_of_the_buffer_with_which_it_begins(bentpipe: Command) -> None:
    """200 kB are 139 packets: more than 64 KiB, and less than 512 KiB, which one flight carries."""
    words = ["--scenario", "sat", "--set", "forward.queue=1 BDP", "--bytes", "200kB"]
    words += ["--server", "linux:iw=200"]
    clients = "linux,linux:rmem=1048576,linux:rmem=67108864"
    kernels, wide, larger = run(bentpipe, *words, "--client", clients)
    assert (kernels["outcome"], wide["outcome"]) == ("ok", "ok")
    # The handshakes of TCP and TLS, the request, and the packets on the link.
    assert 1.8 < wide["completion_s"] < 2.0 and kernels["completion_s"] > 2.4
    assert larger["outcome"] == "unsupported"
    assert "no more than the largest buffer, 33554432 bytes" in larger["detail"]


def test_a_large_window_fits_into_one_run(bentpipe: Command) -> None:
    """More departures than a piece of the kernel's memory holds."""
    words = [
        "--scenario",
        "cnes-250-3-loss1",
        "--set",
        "access.forward.loss=0 %",
        "--server",
        "linux:window=67108864",
    ]
    (record,) = run(bentpipe, *words, "--bytes", "30MB")
    assert (record["outcome"], record["detail"]) == ("ok", "")
    assert record["in_flight_max_bytes"] > 4_000_000


def test_a_flow_of_tcp_beside_one_of_quic(bentpipe: Command) -> None:
    installed_or_skip("noq")
    flow = "client=linux,server=linux,start=1s"
    (record,) = run(bentpipe, "--scenario", "goodput", "--client", "noq", "--server", "noq",
                    "--workload", "duration:4s", "--flow", flow)  # fmt: skip
    assert (record["outcome"], record["detail"]) == ("ok", "")
    assert [one["outcome"] for one in record["flows"]] == ["ok", "ok"]
    assert all(one["goodput_bps"] > 100_000 for one in record["flows"])


def odd_server(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Makes `odd` a stack whose program is a script of the shell in a guest."""
    place = folder / "stacks" / "odd"
    place.mkdir(parents=True)
    text = (Path(installed_or_skip("linux").folder) / "stack.toml").read_text()
    text = text.split("[options]")[0].replace('name = "linux"', 'name = "odd"')
    command = ["{programs}/bentpipe-guest", "{guest}/linux", "--", "/bin/sh", "-c", REFUSES + script]
    text += f'[commands]\nvirtual-time = {json.dumps(command)}\nsockets = ["true"]\n'
    (place / "stack.toml").write_text(text)
    monkeypatch.setenv("BENTPIPE_STACKS", str(place))


@pytest.mark.parametrize("script", SERVERS)
def test_every_misbehaviour_in_a_guest_has_its_outcome(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    odd_server(tmp_path, monkeypatch, script)
    monkeypatch.setenv("BENTPIPE_SILENCE_S", "10")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    outcome, detail = SERVERS[script]
    (record,) = run(bentpipe, "--scenario", "goodput", "--server", "odd", "--bytes", "1kB")
    assert (record["outcome"], detail in record["detail"]) == (outcome, True), record["detail"]
    assert wait_until_gone(*working_below(tmp_path)) == []
