"""bentpipe-trace qlog over what the four stacks log: converted, it is what qvis opens, and tells of the same
packets as the trace of the same trial, at the same times.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import Command, present

from bentpipe import paths
from bentpipe.analysis import traces

pytestmark = pytest.mark.virtual_time

EPOCH = "2000-01-01T00:00:00Z"  # of virtual time: what noq and quinn count from
TYPES = {"initial": "Initial", "handshake": "Handshake", "1RTT": "1-RTT"}
SIDES = ("client", "server")

# Client, server: each stack once in each role.
PAIRS = (("noq", "quinn"), ("quinn", "noq"), ("aioquic", "quic-go"), ("quic-go", "aioquic"))
# What their qlog calls itself.
VERSIONS = {
    "noq": ("qlog of the current schema", "JSON-SEQ", "unknown"),
    "quinn": ("qlog 0.3", "JSON-SEQ", "unknown"),
    "aioquic": ("qlog 0.3", "JSON", "unix"),
    "quic-go": ("qlog of the current schema", "JSON-SEQ", "unix"),
}
# Stacks whose qlog has frames. quinn 0.11 logs headers only.
WITH_FRAMES = ("noq", "aioquic", "quic-go")
# Stacks whose qlog has the size of received packets.
WITH_RECEIVED_SIZES = ("aioquic", "quic-go")


class Packet(NamedTuple):
    kind: str
    number: int


class Seen(NamedTuple):
    time_ms: float
    size: int | None
    streams: list[tuple[int, int, int]]  # id, offset, length
    acks: list[list[list[int]]]  # ranges of each


class Trial(NamedTuple):
    """A trial's trace and logs, and the stack on each side."""

    trace: Path
    logs: dict[str, Path]
    stacks: dict[str, str]


@pytest.fixture
def trial(bentpipe: Command, pair: tuple[str, str]) -> Trial:
    if absent := set(pair) - set(present()):
        pytest.skip(f"{', '.join(absent)} is not built: its toolchain is missing")
    client, server = pair
    done = bentpipe(
        "run", "--scenario", "sat", "--client", client, "--server", server, "--iterations", "1",
        "--bytes", "300kB", "--trace", "all", "--qlog", "--out", "A", "--no-report", "--json",
    )  # fmt: skip
    (record,) = done.records()
    assert record["outcome"] == "ok", record["detail"]
    folder = Path("A/trials") / record["trial"]
    logs = {side: next((folder / "qlog" / side).iterdir()) for side in SIDES}
    return Trial(folder / "trace.pcapng", logs, dict(zip(SIDES, pair, strict=True)))


def bentpipe_trace(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [paths.program("bentpipe-trace"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def summary(log: Path) -> dict[str, Any]:
    done = bentpipe_trace("qlog", "--json", log)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def convert(*logs: Path) -> dict[str, Any]:
    done = bentpipe_trace("qlog", *logs, "-o", "both.qlog", "--epoch", EPOCH)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    found = json.loads(Path("both.qlog").read_text())
    assert isinstance(found, dict)
    return found


def logged(trace: dict[str, Any], name: str) -> Iterator[tuple[Packet, Seen]]:
    """The packets of a converted trace, at their time since the Unix epoch."""
    reference = trace["common_fields"]["reference_time"]
    for event in trace["events"]:
        if event["name"] == name:
            data = event["data"]
            packet = Packet(TYPES[data["header"]["packet_type"]], data["header"]["packet_number"])
            frames = data.get("frames", [])
            streams = [
                (frame["stream_id"], frame["offset"], frame["length"])
                for frame in frames
                if frame["frame_type"] == "stream"
            ]
            acks = [sorted(frame["acked_ranges"]) for frame in frames if frame["frame_type"] == "ack"]
            time = reference + event["time"]
            yield packet, Seen(time, data.get("raw", {}).get("length"), streams, acks)


def captured(trace: Path, side: str, *, sent: bool) -> Iterator[tuple[Packet, Seen]]:
    """The packets that passed the interface of one side."""
    done = bentpipe_trace("packets", trace)
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        packet = json.loads(line)
        if packet["interface"] == side and (packet["sender"] == side) == sent:
            frames = packet["frames"]
            streams = [
                (frame["id"], frame["offset"], frame["length"])
                for frame in frames
                if frame["type"] == "STREAM"
            ]
            acks = [sorted(frame["ranges"]) for frame in frames if frame["type"] == "ACK"]
            seen = Seen(float(packet["time_s"]) * 1000, packet["size"], streams, acks)
            yield Packet(packet["type"], packet["number"]), seen


def first_of_each(packets: Iterator[tuple[Packet, Seen]]) -> dict[Packet, Seen]:
    found: dict[Packet, Seen] = {}
    for packet, seen in packets:
        found.setdefault(packet, seen)
    return found


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_the_logs_of_a_trial(trial: Trial) -> None:
    for side in SIDES:
        check_summary(summary(trial.logs[side]), side, trial.stacks[side])
    file = convert(*trial.logs.values())
    check_qvis_can_open(file)
    assert [trace["vantage_point"]["type"] for trace in file["traces"]] == list(SIDES)
    for side, trace in zip(SIDES, file["traces"], strict=True):
        check_sent(trial, side, trace)
        check_received(trial, side, trace)
        check_congestion(side, trace)


def check_summary(found: dict[str, Any], side: str, stack: str) -> None:
    (trace,) = found["traces"]
    assert (found["generation"], found["format"], trace["clock"]) == VERSIONS[stack]
    assert trace["vantage_point"] == side
    assert trace["vantage_point_inferred"] == (stack == "quinn")
    assert found["problems"] == []


def check_qvis_can_open(file: dict[str, Any]) -> None:
    """What QlogLoaderV2.ts of qvis asks of a file."""
    assert (file["qlog_version"], file["qlog_format"]) == ("0.3", "JSON")
    assert "qlog_version" in Path("both.qlog").read_text()[:1024]
    for trace in file["traces"]:
        assert trace["common_fields"]["time_format"] == "relative"
        assert trace["events"]
        times = [event["time"] for event in trace["events"]]
        assert times == sorted(times)
        assert times[0] == 0
        for event in trace["events"]:
            category, _, kind = event["name"].partition(":")
            known = category in ("transport", "recovery", "connectivity", "security")
            assert kind and (known or event["name"] == "quic:timer_updated"), event["name"]
            assert isinstance(event["data"], dict)
            assert "group_id" not in event
            for frame in event["data"].get("frames", []):
                check_frame(frame)


def check_frame(frame: dict[str, Any]) -> None:
    if frame["frame_type"] in ("stream", "crypto"):
        assert isinstance(frame["length"], int) and isinstance(frame["offset"], int)
    if frame["frame_type"] == "ack":
        assert all(len(ends) == 2 for ends in frame["acked_ranges"])


def check_sent(trial: Trial, side: str, trace: dict[str, Any]) -> None:
    """Every packet was logged, when it left, with its size. quic-go's answers to packets after it has closed
    the connection are copies of one packet, which are not logged.
    """
    log = list(logged(trace, "transport:packet_sent"))
    wire = list(captured(trial.trace, side, sent=True))
    stack = trial.stacks[side]
    if stack != "quic-go":
        assert len(log) == len(wire)
    assert len({packet for packet, _ in log}) == len(log)
    by_packet = first_of_each(iter(wire))
    assert {packet for packet, _ in log} == by_packet.keys()
    for packet, seen in log:
        assert abs(seen.time_ms - by_packet[packet].time_ms) < 0.002, packet
        assert seen.size == by_packet[packet].size, packet
        if stack in WITH_FRAMES:
            assert seen.streams == by_packet[packet].streams, packet
            assert seen.acks == by_packet[packet].acks, packet
    frames = any("frames" in event["data"] for event in trace["events"])
    assert frames == (stack in WITH_FRAMES)


def check_received(trial: Trial, side: str, trace: dict[str, Any]) -> None:
    """Every packet that was logged had arrived just then. The others came when their keys were gone, or after
    the connection was closed.
    """
    log = list(logged(trace, "transport:packet_received"))
    wire = first_of_each(captured(trial.trace, side, sent=False))
    for packet, seen in log:
        assert abs(seen.time_ms - wire[packet].time_ms) < 0.002, packet
        if trial.stacks[side] in WITH_FRAMES:
            assert seen.acks == wire[packet].acks, packet
        if trial.stacks[side] in WITH_RECEIVED_SIZES:
            assert seen.size == wire[packet].size, packet
    last = max(packet.number for packet, _ in log if packet.kind == "1-RTT")
    missing = wire.keys() - {packet for packet, _ in log}
    assert [packet for packet in missing if packet.kind == "1-RTT" and packet.number <= last] == []


def check_congestion(side: str, trace: dict[str, Any]) -> None:
    metrics = [event["data"] for event in trace["events"] if event["name"] == "recovery:metrics_updated"]
    windows = [data["congestion_window"] for data in metrics if "congestion_window" in data]
    in_flight = [data["bytes_in_flight"] for data in metrics if "bytes_in_flight" in data]
    assert windows and in_flight
    if side == "server":
        assert max(windows) > min(windows)
        assert max(in_flight) > 20_000
    for data in metrics:
        assert 300 < data.get("smoothed_rtt", 600) < 2000


@pytest.mark.parametrize("pair", [("quinn", "aioquic")], ids="-".join)
def test_a_log_that_is_cut_gives_what_is_there(trial: Trial) -> None:
    for side, log in trial.logs.items():
        whole = summary(log)["traces"][0]["events"]
        content = log.read_bytes()
        cut = Path(f"cut-{side}.qlog")
        cut.write_bytes(content[: len(content) // 2])
        done = bentpipe_trace("qlog", "--json", cut)
        assert done.returncode == 1
        assert done.stderr.startswith(f"error: {cut}: line ") and "cut short" in done.stderr
        (trace,) = json.loads(done.stdout)["traces"]
        assert trace["vantage_point"] == side
        assert sum(whole.values()) // 3 < sum(trace["events"].values()) < sum(whole.values())

        done = bentpipe_trace("qlog", cut, "-o", "half.qlog")
        assert done.returncode == 1
        (trace_of_half,) = json.loads(Path("half.qlog").read_text())["traces"]
        assert len(trace_of_half["events"]) == sum(trace["events"].values())


def test_mistakes_are_named(tmp_path: Path) -> None:
    log = tmp_path / "x.qlog"
    log.write_text('{"qlog_version":"0.3","traces":[]}')
    cases: list[tuple[list[str | Path], list[str]]] = [
        (["qlog"], ["needs a FILE", "hint"]),
        (["qlog", tmp_path / "none"], [str(tmp_path / "none"), "No such file"]),
        (["qlog", log, "-o", log], [str(log), "one of the files to be read", "hint"]),
        (["qlog", log, "-o", tmp_path / "out"], ["out", "no event"]),
        (["qlog", Path(__file__)], ["not a qlog file", "hint"]),
    ]
    for arguments, words in cases:
        done = bentpipe_trace(*arguments)
        assert done.returncode == 2
        assert done.stderr.startswith("error: ")
        assert all(word in done.stderr for word in words), done.stderr
    assert not (tmp_path / "out").exists()


def test_what_a_file_says_of_its_version_is_said(tmp_path: Path) -> None:
    """Nothing, an old one, or one that is told by the generation alone."""
    event = '{"time": 1, "name": "transport:packet_sent", "data": {}}'
    for said, printed, version in (
        ("", "says no version, read as qlog 0.3, JSON", None),
        ('"qlog_version": "draft-02", ', "qlog before 0.3 (draft-02), JSON", "draft-02"),
        ('"qlog_version": "0.3", ', "qlog 0.3, JSON", "0.3"),
        ('"qlog_version": "0.4", ', "qlog of the current schema (0.4), JSON", "0.4"),
        ('"file_schema": "urn:x", ', "qlog of the current schema, JSON", "urn:x"),
    ):
        log = tmp_path / "x.qlog"
        log.write_text(f'{{{said}"traces": [{{"events": [{event}]}}]}}')
        done = bentpipe_trace("qlog", log)
        assert done.returncode == 0 and done.stdout.startswith(f"{log}: {printed}\n"), done.stdout
        assert summary(log)["version"] == version


def test_phases_of_congestion_control_are_listed_with_their_reasons(tmp_path: Path) -> None:
    """As drafts and the current schema name the event; a stack need not say why, nor the window."""
    events = [
        '{"time": 1.5, "name": "recovery:congestion_state_updated", "data": {"old": "slow_start", '
        '"new": "recovery", "trigger": "loss", "congestion_window": 6000}}',
        '{"time": 20, "name": "recovery:congestion_state_updated", "data": {"new": "congestion_avoidance"}}',
    ]
    log = tmp_path / "x.qlog"
    log.write_text(f'{{"qlog_version": "0.3", "traces": [{{"events": [{", ".join(events)}]}}]}}')
    lines = bentpipe_trace("qlog", log, "--explain").stdout.splitlines()
    assert [line.split() for line in lines[-2:]] == [
        ["1.5", "ms", "slow_start", "->", "recovery", "(loss),", "window", "6000", "bytes"],
        ["20", "ms", "congestion_avoidance"],
    ]
    (trace,) = json.loads(bentpipe_trace("qlog", log, "--explain", "--json").stdout)["traces"]
    assert trace["phases"][0]["window_bytes"] == 6000 and trace["phases"][1]["trigger"] is None
    assert "recovery (loss)" not in bentpipe_trace("qlog", log).stdout


# The option of the treatment, and the initial window of its client's hop towards the client, in packets: that
# of the terminal, whose option is for the satellite, or that of the server.
@pytest.mark.parametrize(
    ("treatment", "packets"), [("quic-pep=terminal:iw=50,gateway:iw=25", 10), ("masque", 20)]
)
def test_windows_behind_proxies_are_those_of_the_clients_hop(
    bentpipe: Command, treatment: str, packets: int
) -> None:
    bentpipe(
        "run", "--scenario", "geo-tum", "--client", "noq:iw=99", "--server", "noq:iw=20", "--iterations", "1",
        "--treatment", treatment, "--bytes", "100kB", "--trace", "all", "--qlog", "--out", "A", "--no-report",
    )  # fmt: skip
    (folder,) = Path("A/trials").iterdir()
    shown = traces.of_trial(folder).connection()
    assert shown.qlog is not None and shown.qlog.client is not None and shown.qlog.server is not None
    firsts = [end.cwnd.bytes[0] for end in (shown.qlog.client, shown.qlog.server)]
    assert firsts == [pytest.approx(one * 1200, rel=0.05) for one in (99, packets)]
