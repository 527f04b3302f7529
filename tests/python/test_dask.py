"""Runs on a cluster of Dask: the records are those of this machine, whoever is killed meanwhile.

The simulator is `fake_sim.py`. Clusters are real ones, of one or two worker processes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from children import PATIENCE_S, wait_for, wait_until_gone
from conftest import NOQ_RUN, STACKS, TOY_RUN, Command, installed_or_skip

from bentpipe import __version__, paths
from bentpipe.errors import BentpipeError
from bentpipe.execution.agreement import Agreement
from bentpipe.execution.dask_cluster import DaskSettings
from bentpipe.execution.dask_executor import _received
from bentpipe.execution.dask_worker import WorkerAnswer, _leave_trace
from bentpipe.execution.kit import Kit, KitFile, KitStore
from bentpipe.execution.requirements import Requirements
from bentpipe.runs import run_folder
from bentpipe.runs.trial_files import TracePlace
from bentpipe.stacks import installed

pytestmark = pytest.mark.usefixtures("fake_sim")
TWO = ["--executor", "dask", "--workers", "2"]
STUCK = [*TOY_RUN, "--iterations", "8", "--trace", "all"]


def stored(folder: Path) -> dict[str, dict[str, Any]]:
    """The records of a run by trial: each trial has one line."""
    lines = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    found = {record["trial"]: record for record in lines}
    assert len(found) == len(lines)
    return found


def left(folder: Path) -> dict[str, bytes]:
    """The files of a run's trials."""
    trials = folder / "trials"
    return {str(one.relative_to(trials)): one.read_bytes() for one in trials.rglob("*") if one.is_file()}


@pytest.fixture
def undisturbed(bentpipe: Command) -> dict[str, dict[str, Any]]:
    """The records of the run `STUCK` on this machine."""
    assert bentpipe(*STUCK, "--out", "here").code == 0
    return stored(Path("here"))


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Has the first trial wait for ever; the file in which it says who it is."""
    monkeypatch.setenv("FAKE_SIM", "stuck")
    monkeypatch.setenv("FAKE_SIM_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("BENTPIPE_STACKS", str(STACKS))
    return tmp_path / "log"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a program of Python; what still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def run(*words: str | Path, **environment: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", *map(str, words)]
        process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env={**os.environ, **environment}
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def said_by(log: Path) -> list[int]:
    """The process of the trial that is stuck, and that of its worker."""
    wait_for("a trial", lambda: log.exists() and log.read_text().endswith("\n"))
    return [int(word) for word in log.read_text().split()]


def test_a_killed_worker_changes_no_record(
    bentpipe: Command,
    undisturbed: dict[str, dict[str, Any]],
    stuck: Path,
    start: Callable[..., subprocess.Popen[str]],
) -> None:
    """Its trial ends with it and is run again, what it had finished stays, and each trial has one record."""
    client = start("bentpipe", *STUCK, *TWO, "--out", "A", "--no-report")
    trial, worker = said_by(stuck)
    os.kill(worker, signal.SIGKILL)
    assert wait_until_gone(trial) == []
    _, err = client.communicate(timeout=PATIENCE_S)
    assert client.returncode == 0, err
    assert stored(Path("A")) == undisturbed
    assert left(Path("A")) == left(Path("here"))
    found, _ = run_folder.read(Path("A"))
    assert found.executed_on == {platform.node(): 8} and found.disagreements == {}


def test_a_client_that_ends_leaves_nothing_and_its_run_is_resumed(
    bentpipe: Command,
    undisturbed: dict[str, dict[str, Any]],
    stuck: Path,
    start: Callable[..., subprocess.Popen[str]],
    tmp_path: Path,
) -> None:
    """However it ends: its trials end on the cluster, which goes on. A worker without programs has them
    brought, once.
    """
    place = ["--scheduler-file", tmp_path / "scheduler.json"]
    here = ["--host", "127.0.0.1", "--no-dashboard"]
    scheduler = start("distributed.cli.dask_scheduler", *place, *here, "--port", "0")
    wait_for("the scheduler", scheduler_said)
    worker = ["distributed.cli.dask_worker", *place, *here, "--nthreads", "1", "--no-nanny"]
    start(*worker)
    start(*worker, BENTPIPE_BIN=str(tmp_path / "none"), BENTPIPE_CACHE=str(tmp_path / "cache"))
    cluster = ["--executor", "dask", "--scheduler", "scheduler.json"]

    killed = start("bentpipe", *STUCK, *cluster, "--out", "A", "--no-report")
    trial, _ = said_by(stuck)
    killed.kill()
    assert wait_until_gone(trial) == []

    stuck.unlink()
    stopped = start("bentpipe", "run", "--resume", "A", *cluster, "--no-report")
    trial, _ = said_by(stuck)
    stopped.send_signal(signal.SIGINT)
    _, err = stopped.communicate(timeout=PATIENCE_S)
    assert stopped.returncode == 130 and f"resume with: bentpipe run --resume A {' '.join(cluster)}\n" in err
    assert "gets no trials" not in err
    (program,) = Path("cache/brought/kits").glob("*/bin/bentpipe-sim")
    assert wait_until_gone(trial) == []

    done = bentpipe("run", "--resume", "A", *cluster, "--no-report", "--json")
    assert done.code == 0, done.err
    assert {record["trial"]: record for record in done.records()} == stored(Path("A")) == undisturbed
    assert left(Path("A")) == left(Path("here")) and "brought to" not in done.err
    assert program.stat().st_nlink == 2 and os.access(program, os.X_OK)

    stuck.unlink()
    lost = start("bentpipe", *STUCK, *cluster, "--out", "B", "--no-report")
    trial, _ = said_by(stuck)
    scheduler.kill()
    _, err = lost.communicate(timeout=PATIENCE_S)
    assert lost.returncode == 1 and "Traceback" not in err
    assert "the Dask scheduler is gone" in err and "continue with: bentpipe run --resume B" in err
    assert wait_until_gone(trial) == []


def scheduler_said() -> bool:
    """Whether the scheduler's file is there, and whole: it is made first and written after."""
    with contextlib.suppress(OSError, ValueError):
        return "address" in json.loads(Path("scheduler.json").read_text())
    return False


@pytest.mark.virtual_time
def test_a_worker_without_programs_is_brought_them(
    bentpipe: Command,
    start: Callable[..., subprocess.Popen[str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Real ones, with which it has the same packets; and of them again what is not what it was."""
    monkeypatch.delenv("BENTPIPE_BIN")
    installed_or_skip("noq")
    assert bentpipe(*NOQ_RUN, "--out", "here", "--no-report").code == 0
    place = ["--scheduler-file", tmp_path / "scheduler.json"]
    here = ["--host", "127.0.0.1", "--no-dashboard"]
    start("distributed.cli.dask_scheduler", *place, *here, "--port", "0")
    wait_for("the scheduler", scheduler_said)
    cache = tmp_path / "cache"
    nothing = {"BENTPIPE_BIN": str(tmp_path / "none"), "BENTPIPE_CACHE": str(cache)}
    start("distributed.cli.dask_worker", *place, *here, "--nthreads", "1", "--no-nanny", **nothing)
    run = [*NOQ_RUN, "--executor", "dask", "--scheduler", "scheduler.json", "--no-report", "--out"]

    done = bentpipe(*run, "A")
    assert done.code == 0 and f"brought to {platform.node()}: 3 files of programs" in done.err
    packets = {trial: one["packet_log_hash"] for trial, one in stored(Path("here")).items()}
    assert {trial: one["packet_log_hash"] for trial, one in stored(Path("A")).items()} == packets

    (program,) = cache.glob("brought/kits/*/stacks/noq-*/bin/*")
    program.chmod(0o755)
    program.write_text("#!/bin/false\n")
    done = bentpipe(*run, "B")
    assert done.code == 0 and "1 file of programs" in done.err
    assert {trial: one["packet_log_hash"] for trial, one in stored(Path("B")).items()} == packets


def test_a_kit_holds_what_its_hashes_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENTPIPE_BIN", str(tmp_path / "none"))
    monkeypatch.setenv("BENTPIPE_CACHE", str(tmp_path / "cache"))
    content = b"#!/bin/sh\n"
    sha256 = hashlib.sha256(content).hexdigest()
    kit = Kit({"bin/a": KitFile(sha256, True), "stacks/toy-0123/data": KitFile(sha256, False)}, "another")
    store = KitStore(kit)
    assert not kit.is_own() and store.absent() == [sha256]
    with pytest.raises(BentpipeError, match="not what its hash"):
        store.put(sha256, b"#!/bin/false\n")
    with pytest.raises(BentpipeError, match="not what its hash"):
        store.put(hashlib.sha256(b"x").hexdigest(), b"x")
    assert store.absent() == [sha256]
    store.put(sha256, content)
    folder = store.complete()
    assert (folder / "bin" / "a").samefile(folder / "stacks" / "toy-0123" / "data")
    assert [one.name for one in (tmp_path / "cache" / "brought" / "files").iterdir()] == [sha256]
    with paths.programs_in(folder):
        assert paths.program("a").read_bytes() == content and kit.is_own()
        assert installed.CacheEntry("toy", "0123").folder == folder / "stacks" / "toy-0123"
    why = kit.misfit()
    assert why is not None and "programs than those for another, and is " in why
    assert KitStore(Kit.here([folder / "bin" / "a"], [])).absent() == [] and Kit({}).files == {}


def test_own_programs_that_are_damaged_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kit is brought then: a trial would find the program gone, or its installation damaged."""
    monkeypatch.setenv("BENTPIPE_BIN", str(tmp_path / "bin"))
    monkeypatch.setenv("BENTPIPE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "cache" / "stacks" / "toy-0123456789abcdef"
    program, sim = folder / "toy", tmp_path / "bin" / "sim"
    for one in (program, sim):
        one.parent.mkdir(parents=True, exist_ok=True)
        one.write_text("#!/bin/sh\n")
        one.chmod(0o755)
    made = installed.Installation("toy", "01" * 32, None, {}, {}, {}, "", 0.0, installed.files(folder))
    made.write(folder)
    kit = Kit.here([sim], [folder])
    assert kit.is_own()
    for one in (program, sim):
        one.chmod(0o644)
        assert not kit.is_own()
        one.chmod(0o755)
    replace(made, files={**made.files, "more": {"sha256": ""}}).write(folder)
    assert not kit.is_own()
    (folder / installed.FILE).unlink()
    assert not kit.is_own() and len(KitStore(kit).absent()) == 1


def test_workers_of_one_host_do_not_disturb_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a kit that is damaged each file that is whole stays, whichever of them mends it."""
    monkeypatch.setenv("BENTPIPE_BIN", str(tmp_path / "none"))
    monkeypatch.setenv("BENTPIPE_CACHE", str(tmp_path / "cache"))
    contents = [b"#!/bin/sh\n" * number for number in range(1, 9)]
    by_hash = {hashlib.sha256(one).hexdigest(): one for one in contents}
    kit = Kit({f"bin/{place}": KitFile(sha256, True) for place, sha256 in enumerate(by_hash)})

    def work(_: int) -> Path:
        store = KitStore(kit)
        for sha256 in store.absent():
            store.put(sha256, by_hash[sha256])
        return store.complete()

    with ThreadPoolExecutor(4) as workers:
        (folder,) = set(workers.map(work, range(8)))
        whole = [(folder / "bin" / str(place)).stat().st_ino for place in range(2, 8)]
        (folder / "bin" / "0").unlink()
        (folder / "bin" / "1").chmod(0o755)
        (folder / "bin" / "1").write_text("#!/bin/false\n")
        assert set(workers.map(work, range(8))) == {folder}
    assert [(folder / "bin" / str(place)).read_bytes() for place in range(8)] == contents
    assert [(folder / "bin" / str(place)).stat().st_ino for place in range(2, 8)] == whole
    assert [one.name for one in folder.parent.iterdir()] == [folder.name]


ABSENT = "echo '\tlibx.so.9 => not found'"
OLD = 'echo "a: /lib/libx.so.9: version \\`V1\' not found (required by a)" >&2'


@pytest.mark.parametrize(
    ("ldd", "needs"),
    [
        (ABSENT, "libx.so.9 => not found"),
        (OLD, "a: /lib/libx.so.9: version `V1' not found (required by a)"),
        (f"{OLD}; exit 1", "a: /lib/libx.so.9: version `V1' not found (required by a)"),
        ("echo 'bad ELF' >&2; exit 1", "what ldd fails on with 1: bad ELF"),
        ("echo 'not a dynamic executable' >&2; exit 1", None),
        ("echo 'libx.so.9 => /lib/libx.so.9 (0x1)'", None),
    ],
)
@pytest.mark.parametrize("path", ["bin/a", "stacks/toy-0123/sub/a"])
def test_a_program_without_its_library_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ldd: str, needs: str | None, path: str
) -> None:
    """Each one, also where another starts it; a library that came along is none that is missing."""
    monkeypatch.setenv("BENTPIPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (tmp_path / "ldd").write_text(f"#!/bin/sh\n{ldd}\n")
    (tmp_path / "ldd").chmod(0o755)
    content = b"\x7fELF"
    sha256 = hashlib.sha256(content).hexdigest()
    store = KitStore(Kit({path: KitFile(sha256, True)}))
    store.put(sha256, content)
    if needs is None:
        assert store.complete() == store.folder
    else:
        with pytest.raises(BentpipeError, match=re.escape(f"{path} was brought, and needs {needs}")):
            store.complete()
    beside = str(Path(path).parent / "lib" / "libx.so.9")
    if needs is not None and "libx" in needs and path.startswith("stacks/"):
        assert KitStore(Kit({path: KitFile(sha256, True), beside: KitFile(sha256, False)})).complete()


def test_a_worker_with_other_code_or_stacks_is_told_what_differs() -> None:
    version = {"Bentpipe's version": "0.0.1"}
    assert Requirements("sim", (), (), (), (), version, Kit({})).unmet() == (
        f"Bentpipe's version is not the same: here {__version__}, wanted 0.0.1"
    )
    why = Requirements("sim", ("nobody",), (), (), (), {}, Kit({})).unmet()
    assert why == "there is no stack nobody; name its folder in BENTPIPE_STACKS"


def test_a_trace_that_stays_is_told_where_it_is(
    bentpipe: Command,
    start: Callable[..., subprocess.Popen[str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """In place of what would read it, until it is brought."""
    monkeypatch.setenv("BENTPIPE_STACKS", str(STACKS))
    words = ["--iterations", "1", "--trace", "all", "--out", "A", "--executor", "dask", "--workers", "1"]
    client = start("bentpipe", *TOY_RUN, *words, "--traces-stay", tmp_path / "stay")
    _, err = client.communicate(timeout=PATIENCE_S)
    assert client.returncode == 0, err
    (trial,) = Path("A/trials").iterdir()
    (trace,) = (tmp_path / "stay").glob("*/*/trace.pcapng")
    assert trace.parents[1].stat().st_mode & 0o77 == 0
    assert [one.name for one in trial.iterdir()] == ["elsewhere.json"] and trace.read_bytes() == b"trace"
    place = TracePlace.of(trial)
    assert place == TracePlace(platform.node(), str(trace.parent), {"trace.pcapng": 5})
    reads = ("trace", ""), ("trace", "trace.pcapng"), ("losses", ""), ("qlog", "qlog/*/*")
    for command, name in reads:
        done = bentpipe(command, str(trial / name))
        assert done.code == 2 and f"stays on {platform.node()}, in {trace.parent}\n" in done.err
        assert f"scp -r -- {platform.node()}:{trace.parent}/. {trial}/" in done.err
    done = bentpipe("trace", "A")
    assert done.code == 2 and "its traces stay on the hosts" in done.err
    assert bentpipe("report", "A").code == 0
    assert any(f"trace on {platform.node()}" in one.read_text() for one in Path("A/report").rglob("*.js"))
    (trial / "trace.pcapng").write_bytes(b"tra")  # it is on its way, or was cut off
    assert TracePlace.of(trial) == place
    for command in ("trace", "losses"):
        assert f"stays on {platform.node()}" in bentpipe(command, str(trial)).err
    trace.rename(trial / "trace.pcapng")
    assert TracePlace.of(trial) is None
    (trial / "elsewhere.json").write_text('{"host": "-oProxyCommand=x", "folder": "/x", "files": {}}')
    assert bentpipe("report", "A").code == 0
    assert any("elsewhere.json, which cannot be read" in one.read_text() for one in Path("A").rglob("*.js"))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("host", "-oProxyCommand=x"),
        ("host", "h:"),
        ("host", "user@h"),
        ("host", "h\n"),
        ("host", ""),
        ("host", 1),
        ("folder", "x"),
        ("folder", "/x\n"),
        ("folder", "/x\x1b[2J"),
        ("folder", None),
        ("files", []),
        ("files", {"trace.pcapng": "5"}),
        ("files", {"trace.pcapng": True}),
        ("files", {"trace.pcapng": 5.0}),
        ("files", {"../trace.pcapng": 5}),
    ],
)
def test_a_place_that_cannot_be_is_none_to_bring_a_trace_from(
    tmp_path: Path, key: str, value: object
) -> None:
    """A worker wrote it, and it becomes part of a command."""
    good = {"host": "h-1.example", "folder": "/x/y z", "files": {"trace.pcapng": 5, "qlog/client/a": 0}}
    file = tmp_path / "elsewhere.json"
    file.write_text(json.dumps(good))
    place = TracePlace.of(tmp_path)
    assert place is not None and place.how_to_bring(Path("t")) == "scp -r -- 'h-1.example:/x/y z/.' t/"
    file.write_text(json.dumps({**good, key: value}))
    with pytest.raises(BentpipeError, match=r"elsewhere\.json: cannot be read: "):
        TracePlace.of(tmp_path)


def test_each_execution_leaves_its_trace_in_a_place_of_its_own(tmp_path: Path) -> None:
    """Though Dask runs a task again under the same key."""
    places = []
    for content in ("first", "second"):
        trial = tmp_path / content
        trial.mkdir()
        (trial / "trace.pcapng").write_text(content)
        _leave_trace(trial, tmp_path, "sat_1-0")
        place = TracePlace.of(trial)
        assert place is not None and (Path(place.folder) / "trace.pcapng").read_text() == content
        assert (
            Path(place.folder).name.startswith("sat_1-0-") and Path(place.folder).stat().st_mode & 0o77 == 0
        )
        places.append(place.folder)
    assert places[0] != places[1]
    (tmp_path / "none").mkdir()
    _leave_trace(tmp_path / "none", tmp_path, "sat_2-1")
    assert not list(tmp_path.glob("sat_2*"))


def test_two_executions_that_disagree_are_reported(
    bentpipe: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bentpipe(*TOY_RUN, "--iterations", "3", "--trace", "median", "--out", "A").code == 0
    (trace,) = Path("A/trials").glob("*/trace.pcapng")
    trace.unlink()  # so that its trial is executed again
    monkeypatch.setenv("FAKE_SIM", "slower")
    done = bentpipe("run", "--resume", "A", "--no-report")
    assert f"{trace.parent.name}: two executions disagree: packets " in done.err
    found, _ = run_folder.read(Path("A"))
    assert trace.parent.name in found.disagreements


def test_the_first_answer_counts_and_a_later_one_must_agree() -> None:
    notes: list[str] = []
    agreement = Agreement(notes.append, {})
    for trial, packets, where in (("a", "0a" * 32, ""), ("b", "0b" * 32, "x"), ("a", "0a" * 32, "y")):
        agreement.compare(trial, packets, where)
    assert notes == [] and agreement.disagreements == {}
    agreement.compare("b", "0c" * 32, "z")
    what = "packets 0b0b0b0b0b0b0b0b…, and on z 0c0c0c0c0c0c0c0c…"
    assert agreement.disagreements == {"b": what} and notes == [f"b: two executions disagree: {what}"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--workers", "2"], "--workers is of clusters"),
        (["--executor", "local", "--scheduler", "tcp://127.0.0.1:1"], "--scheduler is of clusters"),
        (["--executor", "dask"], "no cluster is named"),
        ([*TWO, "--scheduler", "tcp://127.0.0.1:1"], "both are given"),
        ([*TWO, "--awake"], "--awake is of this machine"),
        (["--traces-stay", "/x"], "--traces-stay is of clusters"),
        ([*TWO, "--traces-stay", "x"], "--traces-stay x: workers have folders of their own"),
        ([*TWO, "--traces-stay", "/x"], "--traces-stay /x: this run has trace = median"),
        (["--executor", "dask", "--scheduler", "tls://h:1", "--tls-ca", "ca"], "--tls-ca stands alone"),
    ],
)
def test_what_does_not_fit_together_is_an_error(bentpipe: Command, words: list[str], message: str) -> None:
    done = bentpipe(*TOY_RUN, *words)
    assert done.code == 2 and message in done.err and not Path("runs").exists()


@pytest.mark.parametrize("scheduler", ["nonsense", "tcp://", "tcp://:1", "tcp://h:x", "h:1:2", "broken.json"])
def test_a_scheduler_that_cannot_be_is_an_error(bentpipe: Command, scheduler: str) -> None:
    Path("broken.json").write_text("{}")
    done = bentpipe(*TOY_RUN, "--executor", "dask", "--scheduler", scheduler)
    assert done.code == 2 and f"--scheduler {scheduler}: " in done.err and not Path("runs").exists()


def test_a_worker_names_no_file_outside_of_the_trials_folder(tmp_path: Path) -> None:
    answer = WorkerAnswer(values={}, failure="", killed=False, disk_full=False, host="h", files={"a": b"x"})
    assert _received(answer, tmp_path / "t").values == {}
    assert (tmp_path / "t" / "a").read_bytes() == b"x"
    answer["files"] = {"b": b"x", "../out": b"x"}
    found = _received(answer, tmp_path / "t")
    assert found.values is None and "h: a file is called '../out'" in found.failure
    assert not (tmp_path / "out").exists() and not (tmp_path / "t" / "b").exists()


def test_tls_without_certificates_is_an_error(bentpipe: Command) -> None:
    done = bentpipe(*TOY_RUN, "--executor", "dask", "--scheduler", "tls://127.0.0.1:1")
    assert done.code == 2 and "TLS needs certificates" in done.err and "--tls-ca" in done.err


def test_without_the_package_the_error_names_the_extra(
    bentpipe: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = bentpipe(*TOY_RUN, *TWO)
    assert done.code == 1 and 'pip install "bentpipe[dask]"' in done.err


@pytest.mark.parametrize(
    ("address", "is_open"),
    [
        ("tcp://10.0.0.1:8786", True),
        ("cluster.example:8786", True),
        ("tcp://127.0.0.1:1", False),
        ("tcp://[::1]:8786", False),
        ("localhost:8786", False),
        ("tls://10.0.0.1:8786", False),
    ],
)
def test_a_scheduler_that_whoever_may_use_is_told(tmp_path: Path, address: str, is_open: bool) -> None:
    assert DaskSettings(scheduler=address).is_open() is is_open
    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps({"address": address}))
    assert DaskSettings(scheduler=str(file)).is_open() is is_open
    assert not DaskSettings(workers=2).is_open()
