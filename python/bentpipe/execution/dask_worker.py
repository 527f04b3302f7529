"""The part that runs in a worker of Dask: bundles of one run of Bentpipe, each in processes that end with
their trial.

The plugin is sent to every worker of the cluster, also to one that joins later. A worker that meets the
requirements declares a resource with the run's name, as many as it has threads, and trials go to those that
have it alone. One that lacks programs says so first, and is brought them (`bentpipe.execution.kit`). A trial
whose result nobody waits for any more, since the client cancelled it or is gone, is ended; those of a worker
that is killed are ended by its watchdog.
"""

from __future__ import annotations

import contextlib
import json
import platform
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any, TypedDict

from distributed import Worker, WorkerPlugin, get_worker
from distributed.utils import sync

from bentpipe import paths
from bentpipe.errors import BentpipeError, is_full
from bentpipe.execution.executor import BundleRunner
from bentpipe.execution.jobs import Answer, TrialProcesses
from bentpipe.execution.kit import KitStore
from bentpipe.execution.process_watchdog import GroupWatchdog
from bentpipe.execution.requirements import Requirements
from bentpipe.runs import trial_files
from bentpipe.schema import reading
from bentpipe.schema.bundle import FORMAT, Bundle

REAL_TIME = "real-time"  # the resource of a worker: the number of trials that it may run in real time at once


class WorkerAnswer(TypedDict):
    """An answer on its way to the client, with all files of the trial that do not stay on the worker."""

    values: dict[str, Any] | None
    failure: str
    killed: bool
    disk_full: bool
    host: str
    files: dict[str, bytes]  # by their paths below the trial's folder


class UnfitWorker(BentpipeError):
    """A worker that no longer meets the requirements of the run: the trial must run elsewhere."""


class TrialWorker(WorkerPlugin):
    """The plugin that prepares a worker for the trials of one run."""

    def __init__(self, name: str, requirements: Requirements, traces_stay: Path | None = None) -> None:
        """`name` is the run's in the cluster: that of the plugin, of its resource, of its events. Traces and
        qlogs stay in a folder of that name in `traces_stay`, if that is given.
        """
        self.name = name
        self._stay = None if traces_stay is None else traces_stay / name
        self._requirements = requirements

    async def setup(self, worker: Worker) -> None:
        self._lock = threading.Lock()
        self._running: dict[str, TrialProcesses] = {}
        self._unwanted: set[str] = set()  # tasks that are not to begin any more
        self._worker = worker
        self._watchdog: GroupWatchdog | None = None
        self._ended = self._given_up = False
        self.store = KitStore(self._requirements.kit)
        try:
            await self._get_ready()
        except BentpipeError as error:
            self._say(unfit=f"{error}; {error.hint}" if error.hint else str(error))
        except OSError as error:
            self._say(unfit=f"{error.filename}: {error.strerror}")

    async def _get_ready(self) -> None:
        kit = self._requirements.kit
        if self._stay is not None:
            try:
                self._stay.mkdir(mode=0o700, parents=True, exist_ok=True)  # traces have TLS secrets
                tempfile.TemporaryFile(dir=self._stay).close()  # another user's worker may have made it
            except OSError as error:
                what = f"traces cannot stay in {self._stay.parent}: {error.strerror}"
                raise BentpipeError(what, "name another folder with --traces-stay") from error
        # Code that reads and copies many files runs beside the loop in which the worker hears of its cluster.
        if why := await self._worker.loop.run_in_executor(None, self._requirements.unmet):
            self._say(unfit=why)
        elif await self._worker.loop.run_in_executor(None, kit.is_own):
            await self.begin(None)
        elif why := kit.misfit():
            self._say(unfit=why)
        elif absent := await self._worker.loop.run_in_executor(None, self.store.absent):
            self._say(lacks=len(absent))
        else:
            await self.begin(await self._worker.loop.run_in_executor(None, self.store.complete))

    def _say(self, **what: Any) -> None:
        self._worker.log_event(self.name, {**what, "worker": self._worker.address, "host": _host()})

    async def begin(self, kit: Path | None) -> None:
        """Take trials from now on, with the programs of a kit, or, without one, with those that are here."""
        known = await self._worker.loop.run_in_executor(None, self._requirements.known)
        if self._ended:  # the run, meanwhile
            return
        self._kit = kit
        self._scratch = Path(tempfile.mkdtemp(prefix="bentpipe-"))
        self._watchdog = GroupWatchdog(self._scratch)
        self._runner = BundleRunner(known, self._scratch)
        await self._worker.set_resources(**{self.name: self._worker.state.nthreads})

    async def teardown(self, worker: Worker) -> None:
        self._ended = True
        with self._lock:
            running = list(self._running.values())
        for processes in running:
            processes.kill()
        if self._stay is not None:
            with contextlib.suppress(OSError):  # something is in it
                self._stay.rmdir()
        if self._watchdog is not None:
            self._watchdog.close()
            with contextlib.suppress(OSError):  # the scheduler may be gone
                await worker.set_resources(**{self.name: 0})

    def transition(self, key: Any, start: str, finish: str, **_more: Any) -> None:
        """Follow the state of a task: `released` while it runs means that nobody waits for it any more. It
        cannot end one that runs; this can.
        """
        if finish != "released" or start not in ("executing", "long-running"):
            return
        with self._lock:
            processes = self._running.get(key)
            if processes is None:
                self._unwanted.add(key)
                return
        threading.Thread(target=processes.kill, daemon=True).start()  # it waits for them to end

    def run(self, key: str, bundle: Bundle) -> WorkerAnswer:
        """Run a bundle for the task `key`."""
        own = Path(tempfile.mkdtemp(prefix="trial-", dir=self._scratch))
        folder = own / "left"  # not there unless the trial leaves something
        processes = TrialProcesses(self._scratch, self._watchdog)
        with self._lock:
            self._running[key] = processes
            if key in self._unwanted:
                processes.kill()
        try:
            self._check_programs()
            with paths.programs_in(self._kit):
                answer = self._runner.run(bundle, folder, processes)
            if not answer.killed and (answer.values or {}).get("outcome") != "ok":
                self._check_programs()  # it may have failed for that
            if answer.values is not None:
                said = {key: answer.values.get(key) for key in ("outcome", "packet_log_hash")}
                self._worker.log_event(self.name, {"trial": bundle.trial, "host": _host(), **said})
            if self._stay is not None and not answer.killed:
                _leave_trace(folder, self._stay, key.removeprefix(f"{self.name}-"))
            return _of(answer, folder)
        except OSError as error:
            if not is_full(error):
                raise
            return _of(Answer(None, str(error), disk_full=True), folder)
        finally:
            with self._lock:
                self._running.pop(key, None)
                self._unwanted.discard(key)
            shutil.rmtree(own, ignore_errors=True)

    def _check_programs(self) -> None:
        """UnfitWorker if a program is gone; this worker gets no more trials then."""
        if (gone := self._requirements.kit.gone(self._kit)) is not None:
            sync(self._worker.loop, self._give_up, gone)
            raise UnfitWorker(f"{gone} is gone")

    async def _give_up(self, gone: Path) -> None:
        """Have the scheduler give this worker no more trials. What it has given comes to its turn, and goes
        back: for that the worker itself keeps the resource, without which it would wait for ever.
        """
        if not self._given_up:
            self._given_up = True
            self._say(unfit=f"{gone} is gone since the run began")
        await self._worker.scheduler.set_resources(
            resources={self.name: 0}, worker=self._worker.contact_address
        )


def run_bundle(name: str, key: str, bundle: bytes) -> WorkerAnswer:
    """The task: run a bundle, as JSON, of the run `name`."""
    return _plugin(get_worker(), name).run(
        key, reading.convert(json.loads(bundle), Bundle, FORMAT, numbered=True)
    )


async def lacking(name: str, dask_worker: Worker) -> list[str]:
    """Runs in the worker: the hashes of files that it is to be brought for the run `name`."""
    return await dask_worker.loop.run_in_executor(None, _plugin(dask_worker, name).store.absent)


async def bring(name: str, sha256: str, content: bytes, dask_worker: Worker) -> None:
    """Runs in the worker: keep a file. BentpipeError if it is not what its hash says."""
    await dask_worker.loop.run_in_executor(None, _plugin(dask_worker, name).store.put, sha256, content)


async def begin(name: str, dask_worker: Worker) -> None:
    """Runs in the worker, which has all files now: take trials."""
    plugin = _plugin(dask_worker, name)
    await plugin.begin(await dask_worker.loop.run_in_executor(None, plugin.store.complete))


def _plugin(worker: Worker, name: str) -> TrialWorker:
    plugin = worker.plugins[name]
    assert isinstance(plugin, TrialWorker)
    return plugin


def _of(answer: Answer, folder: Path) -> WorkerAnswer:
    place = f"{_host()}: {answer.failure}" if answer.failure else ""
    found = {} if answer.killed else {file: (folder / file).read_bytes() for file in _files(folder)}
    return WorkerAnswer(
        values=answer.values,
        failure=place,
        killed=answer.killed,
        disk_full=answer.disk_full,
        host=_host(),
        files=found,
    )


def _leave_trace(folder: Path, stay: Path, trial: str) -> None:
    """Move the trace and the qlogs of a trial to where they stay, and say in its folder where. Each execution
    has its own folder: Dask may run a task again while it still runs elsewhere.
    """
    names = [name for name in _files(folder) if trial_files.is_of_trace(name)]
    if not names:
        return
    place, sizes = Path(tempfile.mkdtemp(prefix=f"{trial}-", dir=stay)), {}
    for name in names:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(folder / name, place / name)
        sizes[name] = (place / name).stat().st_size
    trial_files.TracePlace(_host(), str(place), sizes).write(folder)


def _files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def _host() -> str:
    return platform.node()
