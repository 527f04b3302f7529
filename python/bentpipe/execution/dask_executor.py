"""The executor that is a cluster of Dask.

At least once, and kept once: Dask runs a task again when its worker is gone, and this submits a trial again
that Dask has given up; the first answer is the trial's. Each execution has a folder of its
own on its worker, and what it left arrives with the answer, but for traces that are to stay there.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from distributed import Client, KilledWorker
from distributed import Future as Task
from distributed.comm.core import CommClosedError

from bentpipe.errors import BentpipeError
from bentpipe.execution.dask_cluster import DaskSettings, connected
from bentpipe.execution.dask_worker import (
    REAL_TIME,
    TrialWorker,
    UnfitWorker,
    WorkerAnswer,
    begin,
    bring,
    lacking,
    run_bundle,
)
from bentpipe.execution.executor import LostExecutor
from bentpipe.execution.jobs import Answer
from bentpipe.execution.requirements import Requirements
from bentpipe.runs.trial_files import within
from bentpipe.schema.bundle import Bundle
from bentpipe.testbed import Testbed

_PER_SLOT = (
    3  # tasks, so that no worker waits for the next one; few, as each is blamed for its worker's death
)
_LOOK_S = 1.0  # how often it is asked which workers there are
_GONE = "the Dask scheduler is gone, or cannot be reached any more"
_HOSTS = 8  # that are brought programs at a time: each holds one file in memory
_DEATHS = 5  # times that Dask gives up a trial, before it is the trial that kills workers


@dataclass
class _Attempt:
    """A trial that is to be answered, and the task that runs it now."""

    bundle: Bundle
    folder: Path
    answer: Future[Answer]
    deaths: int = 0
    task: Task[WorkerAnswer] | None = None


class DaskExecutor:
    """The executor that hands bundles to those workers of a cluster that meet the requirements."""

    def __init__(
        self,
        client: Client,
        requirements: Requirements,
        testbed: Testbed,
        note: Callable[[str], None],
        executed: Callable[[str, str, str], None],
        hosts: dict[str, int],
        settings: DaskSettings,
    ) -> None:
        """`executed` is called for every execution that ends well, also if its answer is lost: with trial,
        the hash of its packets, and the host. `hosts` counts the trials that each host answers.
        """
        self._client, self._requirements, self._testbed = client, requirements, testbed
        self._note, self._executed, self._hosts, self._settings = note, executed, hosts, settings
        self.name = f"bentpipe-{secrets.token_hex(6)}"
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._attempts: dict[str, _Attempt] = {}  # task → what it runs
        self._killed = False
        self._looked, self._slots = 0.0, 0
        self._fit: set[str] = set()  # addresses of workers
        self._waits = False
        # By host, each one worker after the other: what one was brought, others on its host have too.
        self._carriers = collections.defaultdict[str, ThreadPoolExecutor](lambda: ThreadPoolExecutor(1))
        self._carrying = threading.Semaphore(_HOSTS)
        self._lacking: set[str] = set()  # addresses of workers that are brought programs
        self._unfit: dict[str, str] = {}  # address of a worker → why it gets no trials
        self._ended = False

    def begin(self) -> None:
        """Prepare the cluster's workers. BentpipeError if one of them has no Bentpipe."""
        self._client.subscribe_topic(self.name, self._event)
        try:
            plugin = TrialWorker(self.name, self._requirements, self._settings.traces_stay)
            self._client.register_plugin(plugin, name=self.name)
        except (ImportError, AttributeError) as error:
            self.end()
            raise BentpipeError(
                f"a worker of the cluster cannot load Bentpipe: {error}",
                'install the same version there: pip install "bentpipe[dask]", or start workers with the '
                "Python of the same checkout",
            ) from error

    def end(self) -> None:
        """Remove everything of this run from the workers, except programs in their caches."""
        with self._lock:
            self._ended = True
        for carrier in self._carriers.values():
            carrier.shutdown(wait=False, cancel_futures=True)
        with contextlib.suppress(Exception):  # the cluster may be gone, in whatever way
            self._client.unregister_worker_plugin(self.name)

    @property
    def window(self) -> int:
        if self._client.status not in ("running", "connecting"):
            raise LostExecutor(_GONE)
        if time.monotonic() - self._looked >= _LOOK_S:
            self._look()
        return self._slots * (1 if self._testbed.needs_processors_in_time else _PER_SLOT)

    def prepare(self, files: Mapping[str, int], contents: Mapping[str, bytes]) -> None:
        """Do nothing: each worker makes the files itself."""

    def submit(self, bundle: Bundle, folder: Path) -> Future[Answer]:
        attempt = _Attempt(bundle, folder, Future())
        self._send(attempt)
        return attempt.answer

    def kill(self) -> None:
        """Drop what waits, and end what runs: workers end a trial whose task is cancelled."""
        with self._lock:
            self._killed = True
            attempts = list(self._attempts.values())
        tasks = [one.task for one in attempts if one.task is not None]
        with contextlib.suppress(Exception):  # the cluster may be gone, in whatever way
            self._client.cancel(tasks, force=True)
        for attempt in attempts:
            self._settle(attempt, Answer(None, killed=True))

    def _send(self, attempt: _Attempt) -> None:
        key = f"{self.name}-{attempt.bundle.trial}-{next(self._numbers)}"
        with self._lock:
            if not (is_killed := self._killed):
                self._attempts[key] = attempt
        if is_killed:
            self._settle(attempt, Answer(None, killed=True))
            return
        resources = {self.name: 1}
        if self._testbed.needs_processors_in_time:
            resources[REAL_TIME] = 1
        text = json.dumps(msgspec.to_builtins(attempt.bundle)).encode()
        attempt.task = self._client.submit(
            run_bundle, self.name, key, text, key=key, resources=resources, pure=False
        )
        attempt.task.add_done_callback(lambda task: self._done(key, task))

    def _done(self, key: str, task: Task[WorkerAnswer]) -> None:
        with self._lock:
            attempt = self._attempts.pop(key, None)
        if attempt is None or attempt.answer.done():
            return
        try:
            answer = task.result()
            task.release()
        except KilledWorker:
            attempt.deaths += 1
            self._again(attempt)
        except UnfitWorker:
            self._again(attempt)
        except (CancelledError, CommClosedError):  # while the result was fetched
            self._lost(attempt)
        except Exception as error:  # the worker's fault, not the trial's: no record says otherwise
            self._fail(attempt, LostExecutor(f"{attempt.bundle.trial}: a worker cannot run it: {error!r}"))
        else:
            self._take(attempt, answer)

    def _take(self, attempt: _Attempt, answer: WorkerAnswer) -> None:
        if not answer["killed"]:
            self._hosts[answer["host"]] = self._hosts.get(answer["host"], 0) + 1
        try:
            self._settle(attempt, _received(answer, attempt.folder))
        except OSError as error:
            self._fail(attempt, error)

    def _again(self, attempt: _Attempt) -> None:
        if attempt.deaths < _DEATHS:
            self._send(attempt)
        else:
            why = f"the workers that ran it died, again and again ({attempt.deaths} tasks were given up)"
            self._settle(attempt, Answer(None, why))

    def _lost(self, attempt: _Attempt) -> None:
        """Its task is gone though nobody cancelled it: so is the scheduler."""
        if self._killed:
            self._settle(attempt, Answer(None, killed=True))
        else:
            self._fail(attempt, LostExecutor(_GONE))

    def _settle(self, attempt: _Attempt, answer: Answer) -> None:
        with contextlib.suppress(Exception):  # it was settled meanwhile: the first answer counts
            attempt.answer.set_result(answer)

    def _fail(self, attempt: _Attempt, error: Exception) -> None:
        with contextlib.suppress(Exception):
            attempt.answer.set_exception(error)

    def _look(self) -> None:
        """See which workers there are. Tasks whose workers are all gone do not find new ones by themselves,
        since these declare the run's resource only after they have joined.
        """
        self._looked = time.monotonic()
        try:
            workers = self._client.scheduler_info(n_workers=-1)["workers"]
        except (OSError, TimeoutError):
            return  # its tasks will say so
        fit = {place: one for place, one in workers.items() if one["resources"].get(self.name, 0) >= 1}
        if self._testbed.needs_processors_in_time:
            self._slots = sum(int(one["resources"].get(REAL_TIME, 0)) for one in fit.values())
        else:
            self._slots = sum(one["nthreads"] for one in fit.values())
        own = self._settings.workers  # no others will join, but one that died is started again
        if own and not fit and len(workers) >= own and workers.keys() <= self._unfit.keys():
            why = self._unfit[next(iter(workers))]
            raise LostExecutor(f"none of the {own} workers can run trials any more: {why}")
        if not self._slots and not self._waits and not self._lacking:
            self._note(self._why_none(len(workers), len(fit)))
        self._waits = not self._slots and not self._lacking
        if fit and self._fit and not self._fit & fit.keys():
            self._resend()
        self._fit = set(fit) or self._fit

    def _why_none(self, workers: int, fit: int) -> str:
        if fit and self._testbed.needs_processors_in_time:
            return f"no worker may run trials in real time: start it with --resources {REAL_TIME}=1"
        return (
            f"waiting for a worker: {workers} {'is' if workers == 1 else 'are'} there, {fit} can run trials"
        )

    def _resend(self) -> None:
        with self._lock:
            stranded = list(self._attempts.items())
            for key, _ in stranded:
                del self._attempts[key]
        self._client.cancel([one.task for _, one in stranded if one.task is not None], force=True)
        for _, attempt in stranded:
            self._send(attempt)

    def _event(self, event: tuple[float, dict[str, Any]]) -> None:
        """Handle an event of a worker: its state, or a trial that ended there."""
        said = event[1]
        if "lacks" in said:
            with self._lock:
                if not self._ended:
                    self._lacking.add(said["worker"])
                    self._carriers[said["host"]].submit(self._bring, said["worker"], said["host"])
        elif "unfit" in said:
            self._unfit[said["worker"]] = said["unfit"]
            self._note(f"worker {said['worker']} on {said['host']} gets no trials: {said['unfit']}")
        elif said["outcome"] == "ok" and said.get("packet_log_hash"):
            self._executed(said["trial"], said["packet_log_hash"], said["host"])

    def _bring(self, worker: str, host: str) -> None:
        """Have a worker have the programs that it lacks."""
        with self._carrying:
            self._carry(worker, host)

    def _carry(self, worker: str, host: str) -> None:
        began = time.monotonic()
        try:
            hashes = self._client.run(lacking, self.name, workers=[worker])[worker]
            size = 0
            for sha256 in hashes:
                content = self._requirements.kit.content(sha256)
                size += len(content)
                self._client.run(bring, self.name, sha256, content, workers=[worker])
            self._client.run(begin, self.name, workers=[worker])
        except Exception as error:  # whatever it is, this worker alone is without trials
            if self._ended:
                return
            why = f"{error}; {error.hint}" if isinstance(error, BentpipeError) and error.hint else str(error)
            self._unfit[worker] = f"it cannot be brought programs: {why}"
            self._note(f"worker {worker} on {host} gets no trials: {self._unfit[worker]}")
        else:
            if hashes:
                count = f"{len(hashes)} file{'s' if len(hashes) > 1 else ''}"
                took_s = time.monotonic() - began
                self._note(f"brought to {host}: {count} of programs, {size / 1e6:.1f} MB, in {took_s:.1f} s")
        finally:
            self._lacking.discard(worker)
            self._looked = 0.0


def _received(answer: WorkerAnswer, folder: Path) -> Answer:
    """The answer, with what the trial left in `folder`. OSError if there is no room for it."""
    try:
        files = {within(folder, name): content for name, content in answer["files"].items()}
    except BentpipeError as error:
        return Answer(None, f"{answer['host']}: {error}")
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return Answer(answer["values"], answer["failure"], answer["killed"], answer["disk_full"])


@contextlib.contextmanager
def opened(
    settings: DaskSettings,
    requirements: Requirements,
    testbed: Testbed,
    scratch: Path,
    note: Callable[[str], None],
    executed: Callable[[str, str, str], None],
    hosts: dict[str, int],
) -> Iterator[DaskExecutor]:
    """An executor on the requested cluster; what was started for it ends with it."""
    if settings.is_open():
        note(
            f"{settings.scheduler} has no authentication: who reaches it runs programs as the user of its "
            "workers; use TLS (docs/how-to/run-on-many-machines.md)"
        )
    with connected(settings, testbed, scratch) as client:
        executor = DaskExecutor(client, requirements, testbed, note, executed, hosts, settings)
        executor.begin()
        try:
            yield executor
        finally:
            executor.end()
