"""Trials over a link of known properties, between two SSH servers: what they come to, and what is left where
a connection, a host or the captures are missing.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from children import wait_for

from bentpipe.cli.commands import invoke
from bentpipe.execution import link_doctor
from bentpipe.execution.remote_results import LeftFiles
from bentpipe.remote import lab
from bentpipe.remote.host import HostConnection
from bentpipe.remote.lab import LinkLaboratory
from bentpipe.remote.links import Links
from bentpipe.remote.session import LinkSession
from bentpipe.remote.ssh import HostGone
from bentpipe.runs import manifest

pytestmark = [
    pytest.mark.real_time,
    pytest.mark.emulated,
    pytest.mark.skipif(lab.lack() is not None, reason=str(lab.lack())),
]
ROOT = Path(__file__).resolve().parents[2]
BYTES = "300kB"
WAYS, COUNTS = ("forward", "return"), ("packets", "bytes", "queue_drops", "losses")
PLACES = f"bentpipe-lab-{os.getpid()}-"
HOSTS: set[str] = set()  # network namespaces of the laboratories here
BEFORE = set(Path("/tmp").glob("bentpipe-remote-*"))  # what was left by others
MORE = '[links.lab.weather]\ncommand = ["echo", \'{"rain_mm": 1.5, "station": {"name": "roof"}}\']\n'


@pytest.fixture(scope="module")
def laboratory() -> Iterator[LinkLaboratory]:
    """A link of 10 Mbit/s and 30 ms."""
    folder = Path(tempfile.mkdtemp(prefix=PLACES, dir="/tmp"))  # the name of a socket is short
    try:
        with LinkLaboratory("goodput", place=folder / "lab") as found:
            yield found
    finally:
        shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def links_file(folder: Path, place: Path, server: str = "", more: str = "") -> Path:
    text = f"""
    [links.lab]
    laboratory = true
    timeout = "20 s"
    [links.lab.client]
    host = "bentpipe-lab-client"
    ssh_config = "{place}/ssh_config"
    [links.lab.server]
    host = "bentpipe-lab-server"
    ssh_config = "{place}/ssh_config"
    ipv4 = "198.51.100.1"
    {server}
    [links.lab.nominal]
    forward_rate = "10 Mbit/s"
    return_rate = "10 Mbit/s"
    delay = "15 ms"
    [links.lab.monitor]
    every_ms = 50
    {more}
    """
    file = folder / "links.toml"
    file.write_text(text)
    return file


def words(file: Path, out: Path, *further: str) -> list[str]:
    ends = ["--client", "quinn", "--server", "noq", "--bytes", BYTES, "--trace", "all"]
    return [
        "run",
        "--testbed",
        "remote",
        "--link",
        str(file),
        *ends,
        "--out",
        str(out),
        "--no-report",
        "--iterations",
        "1",
        *further,
    ]


def records(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]


def left_over() -> list[str]:
    """Processes that are still there in a network namespace of a host of these laboratories, and folders
    that nobody holds.
    """
    found = [str(folder) for folder in folders() - BEFORE if not is_held(folder)]
    there: list[tuple[str, str]] = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            there.append((line, str((entry / "ns" / "net").readlink())))
        except OSError:
            continue
    HOSTS.update(network for line, network in there if PLACES in line and "/sshd_config." in line)
    HOSTS.discard(str(Path("/proc/self/ns/net").readlink()))
    assert HOSTS
    programs = [line for line, network in there if network in HOSTS]
    return found + [line for line in programs if "/bentpipe-remote/" in line.split(" ")[0]]


def folders() -> set[Path]:
    return set(Path("/tmp").glob("bentpipe-remote-*"))


def is_held(folder: Path) -> bool:
    """Whether whoever made it is there; one in a laboratory of these has a process as well."""
    try:
        with (folder / ".alive").open() as alive:
            fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return not folder.exists()
    return False


def test_the_doctor_looks_at_both_hosts(tmp_path: Path, laboratory: LinkLaboratory) -> None:
    found = list(link_doctor.checks(Links(links_file(tmp_path, laboratory.place)), "lab"))
    assert {check.status for check in found} <= {"ok", "warn"}
    said = {check.name: check.found for check in found}
    assert "packets came back" in said["lab: path over IPv4"]
    assert said["lab: client"].startswith("client, Linux") and said["lab: server"].startswith("server, Linux")
    wait_for("nothing to be left", lambda: left_over() == [])


def test_host_keys_are_verified(tmp_path: Path, laboratory: LinkLaboratory) -> None:
    config = (laboratory.place / "ssh_config").read_text()
    (tmp_path / "known").write_text("")
    other = tmp_path / "ssh_config"
    other.write_text(config.replace(str(laboratory.place / "known_hosts"), str(tmp_path / "known")))
    link = Links(links_file(tmp_path, tmp_path)).named("lab")
    with pytest.raises(HostGone, match=r"[Hh]ost key verification failed"):
        HostConnection("client", link.client, tmp_path)


def test_trials_are_as_in_the_other_testbeds(tmp_path: Path, laboratory: LinkLaboratory) -> None:
    """Both captures are joined; clocks set 50 ms apart, on purpose, are found to be, and do not matter."""
    file = links_file(tmp_path, laboratory.place, "clock_ahead_ms = 50", MORE)
    assert invoke(words(file, tmp_path / "run")) == 0
    (record,) = records(tmp_path / "run")
    assert (record["outcome"], record["detail"], record["measured_from"]) == ("ok", "", "wire")
    assert (record["scenario"], record["testbed"], record["tries"]) == ("lab", "remote", 1)
    assert abs(record["clock_offset_ms"] - 50) < 1 + record["clock_error_ms"]
    assert is_told_by_packets(record)
    assert record["rtt_min_ms"] >= 30 and record["handshake_s"] >= 0.03
    assert record["goodput_bps"] < 10e6
    assert record["forward_packets"] > 200 and record["forward_losses"] is not None
    # Who drops what is not to be seen.
    assert record["forward_queue_drops"] is None and record["return_queue_drops"] is None
    assert record["probe_rtt_ms"] >= 30
    assert record["weather"] == {"rain_mm": 1.5, "station.name": "roof"}
    (folder,) = (tmp_path / "run" / "trials").iterdir()
    # No sooner than the link's 15 ms, but for what the clocks may be apart still.
    assert one_way_ms(folder / "trace.pcapng") >= 15 - record["clock_error_ms"]
    assert set(json.loads((folder / "link.json").read_text())["hosts"]) == {"client", "server"}
    wait_for("nothing to be left", lambda: left_over() == [])


def test_packets_that_two_devices_saw_count_once(
    tmp_path: Path, laboratory: LinkLaboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a bridge and on what is plugged into it: each is in both captures twice."""
    fetch = LeftFiles.fetch

    def twice(left: LeftFiles, captures: bool) -> None:
        fetch(left, captures)
        for once in left._scratch.glob("*.capture"):
            seen = once.rename(once.with_suffix(".seen"))
            subprocess.run(["mergecap", "-w", str(once), str(seen), str(seen)], check=True)

    monkeypatch.setattr(LeftFiles, "fetch", twice)
    assert invoke(words(links_file(tmp_path, laboratory.place), tmp_path / "run")) == 0
    (record,) = records(tmp_path / "run")
    assert (record["outcome"], record["detail"], record["measured_from"]) == ("ok", "", "wire")
    assert record["forward_bytes"] < 2 * 300_000
    assert record["forward_losses"] < record["forward_packets"] / 2


def test_ways_of_ssh_that_differ_can_be_told(tmp_path: Path, laboratory: LinkLaboratory) -> None:
    """What goes to the server's host over SSH takes 40 ms longer than what comes back; on the link it does
    not: where that is not told, the clock is wrong by half of it, and the packets of a trial show it.
    """
    (tmp_path / "late.py").write_text(LATE)
    slow = f"ProxyCommand {shlex.join([sys.executable, str(tmp_path / 'late.py'), '40'])} "
    config = (laboratory.place / "ssh_config").read_text()
    client, server = config.split("Host bentpipe-lab-server")
    server = server.replace("ProxyCommand ", slow)
    (tmp_path / "ssh_config").write_text(f"{client}Host bentpipe-lab-server{server}")

    file = links_file(tmp_path, tmp_path, "clock_ahead_ms = 50")
    assert invoke(words(file, tmp_path / "run")) == 0
    (record,) = records(tmp_path / "run")
    assert record["clock_offset_ms"] > 60
    assert is_told_by_packets(record)

    file = links_file(tmp_path, tmp_path, "clock_ahead_ms = 50\ncontrol_asymmetry_ms = 40")
    assert invoke(words(file, tmp_path / "told")) == 0
    (record,) = records(tmp_path / "told")
    assert abs(record["clock_offset_ms"] - 50) <= record["clock_error_ms"]
    assert is_told_by_packets(record)

    session = LinkSession(Links(file), "lab")
    try:
        session.ask_clocks(100)
        found = session.clock()
    finally:
        session.close()
    assert abs(found.offset_ns / 1e6 - 50) <= min(found.error_ns / 1e6, 1 + 40 / 10)
    wait_for("nothing to be left", lambda: left_over() == [])


LATE = """
import asyncio, sys

async def pass_on():
    loop, late_s = asyncio.get_running_loop(), float(sys.argv[1]) / 1000
    child = await asyncio.create_subprocess_exec(*sys.argv[2:], stdin=asyncio.subprocess.PIPE)
    came = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(came), sys.stdin)
    while part := await came.read(65536):
        loop.call_later(late_s, child.stdin.write, part)
    loop.call_later(late_s, child.stdin.close)
    return await child.wait()

sys.exit(asyncio.run(pass_on()))
"""


def is_told_by_packets(record: dict[str, Any]) -> bool:
    """Whether the fastest packets say how wrong the server's clock is taken to be, which is 50 ms ahead: both
    ways of the laboratory's link take equally long, but for a packet's own length.
    """
    wrong_ms: float = record["clock_offset_ms"] - 50
    half_ms: float = record["one_way_difference_ms"] / 2
    return abs(half_ms - wrong_ms) < 3


def one_way_ms(trace: Path) -> float:
    """The least that a packet of a trace took from one end to the other: arrivals stand behind departures."""
    fields = ["-T", "fields", "-e", "frame.interface_id", "-e", "frame.time_epoch", "-e", "udp.payload"]
    done = subprocess.run(["tshark", "-r", str(trace), *fields], capture_output=True, text=True, check=True)
    sent: dict[str, float] = {}
    took = []
    for _, at, payload in (line.split("\t") for line in done.stdout.splitlines()):
        if payload in sent:
            took.append(float(at) - sent.pop(payload))
        else:
            sent[payload] = float(at)
    return min(took) * 1000


def test_without_captures_times_are_the_programs(
    tmp_path: Path, laboratory: LinkLaboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LinkSession, "find_captures", lambda _session: None)
    file = links_file(tmp_path, laboratory.place)
    assert invoke(words(file, tmp_path / "run")) == 0
    (record,) = records(tmp_path / "run")
    assert (record["outcome"], record["measured_from"]) == ("ok", "qlog")
    assert record["completion_s"] > record["handshake_s"] >= 0.03
    assert {record[f"{way}_{what}"] for way in WAYS for what in COUNTS} == {None}
    assert record["one_way_difference_ms"] is None
    assert record["packet_log_hash"] is None and record["received_bytes"] == record["findings"] == []


def test_an_upload_and_what_cannot_be_brought(tmp_path: Path, laboratory: LinkLaboratory) -> None:
    file = links_file(tmp_path, laboratory.place)
    more = ["--workload", "upload:100kB", "--client", "quinn,aioquic"]
    line = [word for word in words(file, tmp_path / "run", *more) if word not in ("--bytes", BYTES)]
    assert invoke(line) == 0
    (record,) = records(tmp_path / "run")
    assert (record["client"], record["outcome"], record["measured_from"]) == ("quinn", "ok", "wire")
    (why,) = manifest.read(tmp_path / "run").not_applicable
    assert (why.combinations, why.of) == (1, 2)
    assert why.reason.startswith("aioquic cannot be brought to another host: ")


def test_an_allowance_is_kept(
    tmp_path: Path, laboratory: LinkLaboratory, capfd: pytest.CaptureFixture[str]
) -> None:
    more = '[links.lab.traffic]\nallowance = "500 kB"\n'
    file = links_file(tmp_path, laboratory.place, more=more)
    assert invoke(words(file, tmp_path / "run", "--iterations", "3")) == 1
    told = capfd.readouterr().err
    assert "the traffic allowance of lab is used up" in told and "--resume" in told
    assert len(records(tmp_path / "run")) == 1
    file.write_text(file.read_text().replace("500 kB", "50 MB"))
    assert invoke(["run", "--resume", str(tmp_path / "run"), "--no-report"]) == 0
    assert [record["outcome"] for record in records(tmp_path / "run")] == ["ok"] * 3


def test_connections_that_break_cost_no_trial(tmp_path: Path) -> None:
    """One breaks in the middle of a trial: nothing is left on its hosts, and the trial runs again. Both hosts
    go away: the run ends, and goes on when they are back.
    """
    place = Path(tempfile.mkdtemp(prefix=PLACES, dir="/tmp")) / "lab"
    file = links_file(tmp_path, place)
    file.write_text(file.read_text().replace('timeout = "20 s"', 'timeout = "20 s"\n    patience_s = 1'))
    out = tmp_path / "run"
    line = [*words(file, out, "--iterations", "2"), "--workload", "transfer:2MB"]
    line = [word for word in line if word not in ("--bytes", BYTES)]
    command = [str(ROOT / ".venv" / "bin" / "bentpipe"), *line]
    try:
        with LinkLaboratory("goodput", place=place):
            run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
            wait_for("a client", lambda: processes("/bentpipe-remote/", "bentpipe-endpoint-quinn"))
            assert left_over() != []  # it is found by its namespace, also when the laboratory is gone
            cut = processes("enter", f"{place}/client.door")
            for pid in cut:
                os.kill(pid, signal.SIGKILL)
            wait_for("its end", lambda: not set(processes("enter", f"{place}/client.door")) & set(cut))
            wait_for("the first record", lambda: out.exists() and len(records(out)) >= 1)
        # The laboratory is gone, with all that is on its hosts.
        _, told = run.communicate()
        assert run.returncode == 1
        assert "the trial runs again" in told and "did not come back" in told and "--resume" in told
        # Of hosts that had no time to leave, folders stay, until Bentpipe is there again.
        assert [found for found in left_over() if not found.startswith("/tmp")] == []
        before = records(out)
        assert (before[0]["outcome"], before[0]["tries"]) == ("ok", 2)
        with LinkLaboratory("goodput", place=place):
            assert invoke(["run", "--resume", str(out), "--no-report"]) == 0
        found = records(out)
        assert [record["outcome"] for record in found] == ["ok", "ok"]
        assert found[0] == before[0]
        wait_for("nothing to be left", lambda: left_over() == [])
    finally:
        shutil.rmtree(place.parent, ignore_errors=True)


def processes(*said: str) -> list[int]:
    """Those that have these words in their command line."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if all(word in line for word in said) and "ssh\0" not in line[:4]:
            found.append(int(entry.name))
    return found
