"""What runs in a worker of Dask: bundles of one run of Bentpipe, each in processes that end with their trial.

The plugin comes to every worker of the cluster, also to one that joins later. A worker that meets the
requirements declares a resource with the run's name, as many as it has threads, and trials go to those that
have it alone. A trial whose result nobody waits for any more, since the client cancelled it or is gone, is
ended; those of a worker that is killed are ended by its keeper.
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

from bentpipe.errors import is_full
from bentpipe.execution.executor import BundleRunner
from bentpipe.execution.jobs import Answer, TrialProcesses
from bentpipe.execution.keeper import GroupKeeper
from bentpipe.execution.requirements import Requirements
from bentpipe.schema import reading
from bentpipe.schema.bundle import FORMAT, Bundle

REAL_TIME = "real-time"  # the resource of a worker that may run so many trials in real time at once


class WorkerAnswer(TypedDict):
    """An answer on its way to the client, with all that the trial left."""

    values: dict[str, Any] | None
    failure: str
    killed: bool
    disk_full: bool
    host: str
    files: dict[str, bytes]  # by their paths below the trial's folder


class TrialWorker(WorkerPlugin):
    """Makes a worker ready for the trials of one run."""

    def __init__(self, name: str, requirements: Requirements) -> None:
        """`name` is the run's in the cluster: that of the plugin, of its resource, of its events."""
        self.name = name
        self._requirements = requirements

    async def setup(self, worker: Worker) -> None:
        self._lock = threading.Lock()
        self._running: dict[str, TrialProcesses] = {}
        self._unwanted: set[str] = set()  # tasks that are not to begin any more
        self._worker = worker
        self._keeper: GroupKeeper | None = None
        if why := self._requirements.unmet():
            worker.log_event(self.name, {"unfit": why, "worker": worker.address, "host": _host()})
            return
        self._scratch = Path(tempfile.mkdtemp(prefix="bentpipe-"))
        self._keeper = GroupKeeper(self._scratch)
        self._runner = BundleRunner(self._requirements.known(), self._scratch)
        await worker.set_resources(**{self.name: worker.state.nthreads})

    async def teardown(self, worker: Worker) -> None:
        with self._lock:
            running = list(self._running.values())
        for processes in running:
            processes.kill()
        if self._keeper is not None:
            self._keeper.close()
            with contextlib.suppress(OSError):  # the scheduler may be gone
                await worker.set_resources(**{self.name: 0})

    def transition(self, key: Any, start: str, finish: str, **_more: Any) -> None:
        """Dask says what is to become of a task: `released` while it runs, if nobody waits for it any more.
        It cannot end one that runs; this can.
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
        processes = TrialProcesses(self._scratch, self._keeper)
        with self._lock:
            self._running[key] = processes
            if key in self._unwanted:
                processes.kill()
        try:
            answer = self._runner.run(bundle, folder, processes)
            if answer.values is not None:
                said = {key: answer.values.get(key) for key in ("outcome", "packet_log_sha256")}
                self._worker.log_event(self.name, {"trial": bundle.trial, "host": _host(), **said})
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


def run_bundle(name: str, key: str, bundle: bytes) -> WorkerAnswer:
    """The task: run a bundle, as JSON, of the run `name`."""
    plugin = get_worker().plugins[name]
    assert isinstance(plugin, TrialWorker)
    return plugin.run(key, reading.convert(json.loads(bundle), Bundle, FORMAT, numbered=True))


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


def _files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def _host() -> str:
    return platform.node()
