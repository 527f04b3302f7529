"""Real time: real programs behind emulated links, from the command line to the record.

Left out where the kernel does not let this user make namespaces; the reason is printed. Nothing here depends
on how busy the machine is: what comes out late is run again, and records say so.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import fake_run
import pytest
from children import PATIENCE_S, command_line, wait_for, wait_until_gone
from conftest import Command, installed_or_skip

from bentpipe.execution.awake import is_virtual_machine, kept_awake
from bentpipe.execution.guard import Demand, LoadGuard
from bentpipe.execution.processor_load import ProcessorLoad
from bentpipe.plan import scenarios
from bentpipe.runs.records import Record

pytestmark = pytest.mark.emulated
needs_namespaces = pytest.mark.usefixtures("namespaces")
RUN = ["run", "--testbed", "emu", "--no-report", "--json"]


def stack(folder: Path, name: str, script: str) -> Path:
    """A stack in socket mode that is a shell script."""
    place = folder / name
    place.mkdir(parents=True)
    (place / "program.sh").write_text(script)
    (place / "stack.toml").write_text(
        f'name = "{name}"\ntitle = "{name}"\nlanguage = "sh"\nhome = ""\nroles = ["client", "server"]\n'
        'testcases = ["transfer"]\ndeterministic = false\n\n[commands]\n'
        'sockets = ["/bin/sh", "{folder}/program.sh"]\n'
    )
    return place


# A program that keeps the contract's rule on unknown test cases, and then does as told.
KNOWS_ITS_CASES = '[ "$TESTCASE" = transfer ] || exit 127\n'


def trusted(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records; the test is skipped if the machine is so busy that one could not be trusted five times."""
    for record in records:
        if record["outcome"] == "invalid" and re.search(" late|dropped by the kernel", record["detail"]):
            pytest.skip(f"this machine is too busy for real time: {record['detail']}")
    return records


@needs_namespaces
def test_a_file_arrives_and_the_record_tells_how_exact_the_links_were(bentpipe: Command) -> None:
    installed_or_skip("noq")
    done = bentpipe(*RUN, "--scenario", "goodput", "--client", "noq", "--server", "noq:cc=newreno", "--bytes",
                    "1MiB", "--iterations", "2", "--trace", "all", "--out", "A")  # fmt: skip
    assert done.code == 0, done.err
    for record in trusted(done.records()):
        assert (record["outcome"], record["detail"]) == ("ok", "")
        assert (record["testbed"], record["alpn"], record["measured_from"]) == ("emu", "hq-interop", "wire")
        assert 0.030 <= record["handshake_s"] <= record["ttfb_s"] <= record["completion_s"]
        assert record["limit_s"] <= record["completion_s"]
        assert 0 < record["efficiency"] <= 1
        assert 0 <= record["release_error_p50_ms"] <= record["release_error_p999_ms"] <= 1
        assert record["release_error_limit_ms"] == 1, "the round trip takes 30 ms"
        assert record["kernel_drops"] == 0
        assert record["rtt_min_ms"] >= 30
        assert min(record["memory_client_bytes"], record["memory_server_bytes"]) > 1_000_000
        assert min(record["cpu_client_s"], record["cpu_server_s"]) > 0
        assert record["client_version"] == record["server_version"] != ""
        trace = Path("A/trials") / record["trial"] / "trace.pcapng"
        shown = bentpipe("trace", str(trace), "--json")
        assert shown.code == 0, shown.err
        connections = json.loads(shown.out)["connections"]
        assert len(connections) == 1


@needs_namespaces
def test_two_emulated_segments_lie_behind_each_other(bentpipe: Command) -> None:
    installed_or_skip("noq")
    done = bentpipe(*RUN, "--scenario", "leo-tum", "--client", "noq", "--server", "noq", "--bytes", "300kB",
                    "--iterations", "1", "--out", "A")  # fmt: skip
    (record,) = trusted(done.records())
    assert (record["outcome"], record["detail"]) == ("ok", "")
    rtt_ms = scenarios.resolve("leo-tum", ()).summary["rtt_ms"]
    # No upper limit: endpoints may have to wait for a processor. That links hold up no packet, the testbed
    # looks at itself: the trial would be invalid.
    assert rtt_ms <= record["rtt_min_ms"]
    assert record["forward_packets"] > 200
    # The queue is that of the second segment that the server's packets meet.
    done = bentpipe(*RUN, "--scenario", "leo-tum", "--set", "forward.queue=2 packets", "--client", "noq",
                    "--server", "noq", "--bytes", "300kB", "--iterations", "1", "--out", "B")  # fmt: skip
    (record,) = trusted(done.records())
    assert record["outcome"] == "ok", record["detail"]
    assert record["forward_queue_drops"] > 0
    assert record["forward_losses"] == record["return_losses"] == 0


@needs_namespaces
def test_several_flows_share_the_link(bentpipe: Command) -> None:
    installed_or_skip("noq")
    done = bentpipe(*RUN, "--scenario", "goodput", "--client", "noq", "--server", "noq", "--workload",
                    "duration:3s", "--flow", "start=1s,workload=transfer:1MB", "--iterations", "1",
                    "--out", "A")  # fmt: skip
    assert done.code == 0, done.err
    (record,) = trusted(done.records())
    assert record["outcome"] == "ok", record["detail"]
    assert [flow["outcome"] for flow in record["flows"]] == ["ok", "ok"], record["flows"]
    assert 0.5 <= record["jain_index"] <= 1


@needs_namespaces
def test_what_a_program_does_wrong_has_its_name(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed_or_skip("noq")
    monkeypatch.setenv("SSLKEYLOGFILE", "the user's")
    stacks = tmp_path / "stacks"
    stack(stacks, "dies", KNOWS_ITS_CASES + "echo it hurts >&2\nexit 3\n")
    stack(stacks, "mute", KNOWS_ITS_CASES + '[ "$ROLE" = client ] || echo ready\nexec sleep 60\n')
    stack(stacks, "quits", KNOWS_ITS_CASES + 'echo ready\necho "key: ${SSLKEYLOGFILE-none}" >&2\n')
    stack(stacks, "picky", "exit 127\n")
    run = [*RUN, "--scenario", "goodput", "--bytes", "1000", "--iterations", "1", "--stacks", str(stacks)]
    found = {}
    for out, settings, servers in (
        ("A", (), "dies,quits,picky,noq:cc=cubix"),
        ("B", ("--set", "timeout=2 s"), "mute"),  # nobody else must be through in this time
    ):
        done = bentpipe(*run, *settings, "--client", "noq", "--server", servers, "--out", out)
        assert done.code == 0, done.err
        for record in trusted(done.records()):
            found[record["server"]] = record["outcome"], record["detail"]
    assert found["dies"] == (
        "crashed",
        "dies as server ended by itself: exit status: 3; it said: it hurts",
    )
    assert found["mute"][0] == "handshake_timeout"
    assert found["mute"][1].endswith("/1000: nothing was stored")
    assert found["quits"] == (
        "crashed",
        "quits as server ended by itself: exit status: 0; it said: key: none",
    )
    assert list(Path("A/trials").glob("*/*.frames")) == [], "there are none in real time"
    assert found["picky"][0] == "unsupported"
    assert found["noq:cc=cubix"][0] == "unsupported"
    assert "cubix" in found["noq:cc=cubix"][1]
    logs = [path.read_text() for path in Path("A/trials").glob("*dies*/server.log")]
    assert logs == ["it hurts\n"]


# A server that serves until a record is written, and then only when it may: until then clients wait. A trial
# that came to nothing on a busy machine, and runs again, is served again.
GATE = """
[ ! -s "{folder}/A/records.jsonl" ] || [ -e "{folder}/open" ] || {{
    echo ready
    touch "{folder}/waits"
    exec sleep 4242
}}
exec {program}
"""


@needs_namespaces
def test_an_interrupt_leaves_nothing_but_a_run_to_resume(bentpipe: Command, tmp_path: Path) -> None:
    program = shlex.join(installed_or_skip("noq").command("sockets"))
    gate = stack(tmp_path / "stacks", "gate", KNOWS_ITS_CASES + GATE.format(folder=tmp_path, program=program))
    run = [*RUN, "--scenario", "sat", "--set", "timeout=600 s", "--client", "noq", "--server", "gate",
           "--stacks", str(gate), "--bytes", "100kB", "--iterations", "4", "--jobs", "2",
           "--out", str(tmp_path / "A")]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "bentpipe", *run],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "WHOSE": str(tmp_path)},
        text=True,
    )
    records = tmp_path / "A" / "records.jsonl"
    wait_for("a record", lambda: records.exists() and records.read_text().endswith("\n"))
    wait_for("a trial that is under way", (tmp_path / "waits").exists)
    assert any("bentpipe-emu" in command_line(one) for one in processes_of(str(tmp_path)))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, err
    assert "resume with" in err
    assert wait_until_gone(*processes_of(str(tmp_path))) == []
    (tmp_path / "open").touch()
    done = bentpipe("run", "--resume", str(tmp_path / "A"), "--no-report", "--json")
    assert [record["outcome"] for record in trusted(done.records())] == ["ok"] * 4, done.err


def processes_of(word: str) -> list[int]:
    """Those whose environment names `word`."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if word.encode() in entry.read_bytes():
                found.append(int(entry.parent.name))
        except OSError:
            continue  # it is gone, or somebody else's
    return found


def test_the_guard_finds_how_many_trials_the_machine_bears() -> None:
    def ended(outcome: str, late_ms: float) -> Record:
        made = fake_run.record("sat", "noq", "noq", 1)
        return fake_run.change(
            made, outcome=outcome, release_error_p999_ms=late_ms, release_error_limit_ms=1.0
        )

    guard = LoadGuard(most=16, least=2, limit=4)
    assert guard.admits(Demand(20)), "one always may, if none is running"
    guard.start(Demand(3))
    assert not guard.admits(Demand(2))
    guard.end(Demand(3), ended("ok", 0.1))
    guard.start(Demand(3))
    guard.end(Demand(3), ended("ok", 0.7))
    assert guard.limit == 4.5, "what came out late by half of what is allowed leaves no room for more"
    guard.start(Demand(2))
    guard.end(Demand(2), ended("ok", 0.1))
    assert guard.limit == 4.5, "one that had the machine for itself does not say that it bears more"
    guard.start(Demand(3))
    guard.end(Demand(3), ended("invalid", 3.0))
    assert guard.limit == 2.25
    guard.start(Demand(3))
    guard.end(Demand(3), ended("invalid", 3.0))
    assert guard.limit == 2, "no less than one for each processor"
    guard.start(Demand(16))
    for _ in range(50):
        guard.start(Demand(1))
        guard.end(Demand(1), ended("ok", 0.1))
    assert guard.limit == 16


def test_the_guard_admits_more_while_processors_are_idle() -> None:
    load: float | None = 0.9
    guard = LoadGuard(most=6, by_pressure=False, least=2, limit=4, load=lambda: load)
    for _ in range(4):
        guard.start(Demand(1))
    assert not guard.admits(Demand(1))
    load = None
    assert not guard.admits(Demand(1)), "nothing is known since the last time"
    load = 0.1
    assert guard.admits(Demand(1)) and guard.limit == 5
    guard.start(Demand(1))
    assert guard.admits(Demand(1))
    guard.start(Demand(1))
    assert not guard.admits(Demand(1)) and guard.limit == 6


def test_processors_are_idle_while_nothing_but_what_gives_way_runs(tmp_path: Path) -> None:
    stat = tmp_path / "stat"

    def told(user: int, nice: int, system: int, idle: int) -> float | None:
        stat.write_text(f"cpu  {user} {nice} {system} {idle} 0 0 0 0 0 0\n")
        return load.since_last()

    load = ProcessorLoad(stat, every_s=0.0)
    assert told(500, 0, 0, 500) is None, "the first time there is no time that it is the load of"
    assert told(510, 60, 10, 520) == pytest.approx(0.2)
    assert told(610, 60, 10, 520) == 1.0
    stat.unlink()
    assert load.since_last() is None


def test_browsers_have_processors_of_their_own() -> None:
    browser = Demand(4, processors=2)
    guard = LoadGuard(most=16, least=4, limit=16, by_pressure=False)
    guard.start(browser)
    assert guard.admits(browser), "two of four are free"
    guard.start(browser)
    assert not guard.admits(browser)
    assert not guard.admits(Demand(1)), "nor has anything else a processor left"
    shared = LoadGuard(most=16, least=2, limit=16, by_pressure=False)
    assert shared.admits(browser), "one always may"
    shared.start(Demand(1))
    assert not shared.admits(browser)
    assert shared.admits(Demand(1)), "those that share do not count processors"


def test_the_processor_says_whether_it_is_a_virtual_one(tmp_path: Path) -> None:
    said = tmp_path / "cpuinfo"
    said.write_text("processor\t: 0\nmodel name\t: no hypervisor\nflags\t\t: fpu vme sse2\n")
    assert not is_virtual_machine(said)
    said.write_text("processor\t: 0\nflags\t\t: fpu vme sse2 hypervisor lahf_lm\n")
    assert is_virtual_machine(said)
    assert not is_virtual_machine(tmp_path / "none")


def test_processors_are_kept_awake_by_threads_that_give_way_to_all_else() -> None:
    with kept_awake():
        wait_for("the program", lambda: _children("awake"))  # it has no name yet when it has just begun
        [program] = _children("awake")
        wait_for("a thread for each", lambda: _kept_awake_by(program) == os.sched_getaffinity(0))
    assert not _children("awake"), "nothing is left of it"


def _children(argument: str) -> list[int]:
    """Processes of the emulator's program that this one started with `argument`."""
    found = []
    for entry in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        for number in entry.read_text().split():
            words = Path(f"/proc/{number}/cmdline").read_bytes().split(b"\0")
            if words[1:2] == [argument.encode()]:
                found.append(int(number))
    return found


def _kept_awake_by(process: int) -> set[int]:
    """The processors that have a thread of their own, at the priority of what is idle."""
    threads = [int(one.name) for one in Path(f"/proc/{process}/task").iterdir()]
    idle = [one for one in threads if os.sched_getscheduler(one) == os.SCHED_IDLE]
    return {processor for one in idle for processor in os.sched_getaffinity(one)}
