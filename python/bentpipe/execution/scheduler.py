"""The scheduler of a run: which trial is next, which is tried again, and what becomes of answers.

One thread (the main one) decides and writes; an executor runs bundles. An end before time, by Ctrl-C,
SIGTERM, a full disk or a cluster that is gone, stops handing out trials, ends those under way, and leaves a
run that can be resumed.
"""

from __future__ import annotations

import random
import signal
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from bentpipe.analysis.cells import cells
from bentpipe.errors import BentpipeError, Interrupted, is_full
from bentpipe.execution.agreement import Agreement
from bentpipe.execution.awake import kept_awake
from bentpipe.execution.bundler import Bundler
from bentpipe.execution.contract_check import ContractCheck
from bentpipe.execution.dask_cluster import DaskSettings
from bentpipe.execution.executor import Executor, LocalExecutor, LostExecutor
from bentpipe.execution.guard import TRIES, LoadGuard
from bentpipe.execution.jobs import Answer
from bentpipe.execution.kept_traces import KeptTraces
from bentpipe.execution.pause import Pause
from bentpipe.execution.processor_load import ProcessorLoad
from bentpipe.execution.remote_executor import remote_executor
from bentpipe.execution.requirements import Requirements
from bentpipe.plan.campaign import PlanVariants
from bentpipe.plan.trial import Trial
from bentpipe.remote.links import Links
from bentpipe.runs.manifest import Manifest, now, stack_versions
from bentpipe.runs.records import CellKey, Record, measured, unmeasured
from bentpipe.runs.run_folder import DiskError, RunFolder
from bentpipe.testbed import TESTBEDS

_TICK_S = 0.25  # how soon a signal or the end of a pause is noticed


@dataclass(frozen=True)
class Settings:
    """How a campaign is executed. None of it changes a result."""

    jobs: int | None = None  # trials at a time; None: as many as suit the testbed, or a cluster
    dask: DaskSettings | None = None  # the cluster that runs them; None: this machine
    shuffle: bool = False
    pause: Pause | None = None
    silence_s: int = 30
    awake: bool = False  # in real time: keep idle processors from sleeping


class Progress(Protocol):
    """What a user is shown while a campaign runs (`bentpipe.progress`)."""

    def start(self, total: int) -> None: ...
    def more(self, trials: int) -> None: ...
    def advance(self, failed: bool, latest: str) -> None: ...
    def note(self, text: str) -> None: ...
    def stop(self) -> None: ...


@dataclass
class Scheduler:
    """A campaign under way. `run` brings it to its end; the folder then has every trial's record."""

    folder: RunFolder
    manifest: Manifest
    variants: PlanVariants
    settings: Settings
    progress: Progress
    retry: frozenset[str] = frozenset()  # trials whose record is to be replaced
    harness_failures: int = 0
    _stop: bool = False

    def __post_init__(self) -> None:
        plan = self.manifest.plan
        self._trials = {trial.id: trial for trial in self.manifest.trials(self.folder.records)}
        self._bundler = Bundler(self.manifest, self.variants, self.settings.silence_s)
        self._traces = KeptTraces(self.folder, self.manifest, self.progress.note)
        self.records = self.folder.records
        self._open: dict[CellKey, int] = {}  # cell → trials without a record
        self._members: dict[CellKey, list[str]] = {}  # cell → its trials
        for trial in self._trials.values():
            self._members.setdefault(CellKey.of(trial), []).append(trial.id)
        self._queue: deque[Trial] = deque()
        self._executed: set[str] = set()  # trials that ended since this process began
        self._testbed = TESTBEDS[plan.testbed]
        self._jobs = self._testbed.jobs(self.settings.jobs)
        guarded = self._testbed.needs_processors_in_time
        here = self.settings.dask is None  # on other machines, how much may run is theirs to say
        self._awake = self.manifest.awake = self.settings.awake and guarded and here
        self._guard = None
        if guarded and here:
            self._guard = LoadGuard(self._jobs, not self._awake, load=ProcessorLoad().since_last)
        self._tries: dict[str, int] = {}  # trial → how often its testbed did not keep to the model
        self._paused = False
        self._agreement = Agreement(self.progress.note, self.manifest.disagreements)

    @property
    def in_order(self) -> Iterator[Record]:
        """The records in the order of the campaign's trials, each read when it is its turn."""
        return (self.records[trial] for trial in self._finished)

    @property
    def _finished(self) -> list[str]:
        return [trial for trial in self._trials if trial in self.records]

    def run(self) -> None:
        """Execute what is left. Interrupted, DiskError or another BentpipeError if it ends early; it can then
        be resumed.
        """
        self._plan_work()
        with (
            _signals(self._ask_to_stop),
            tempfile.TemporaryDirectory(prefix="bentpipe-", ignore_cleanup_errors=True) as scratch,
            ThreadPoolExecutor(self._jobs) as pool,
            kept_awake() if self._awake else nullcontext(),
        ):
            try:
                self._execute(Path(scratch), pool)
            except OSError as error:
                raise self._early_end(error, scratch) from error
            except LostExecutor as error:
                hint = f"finished trials are kept; continue with: {self.folder.resume_command}"
                raise BentpipeError(f"the run cannot go on: {error}", hint) from error
            finally:
                self.progress.stop()
        if self._stop:
            self.folder.write_manifest(self.manifest)
            done, total = len(self._finished), len(self._trials)
            raise Interrupted(
                f"interrupted: {done} of {total} trials are done",
                f"resume with: {self.folder.resume_command}",
            )

    def _execute(self, scratch: Path, pool: ThreadPoolExecutor) -> None:
        self._scratch = scratch
        self._bundler.ask_versions()
        with self._executor(scratch, pool) as executor:
            executor.prepare(self._bundler.files, self._bundler.contents)
            if self._stop:
                return
            self._check_contract(
                ContractCheck(self.variants, self._testbed, scratch, self.settings.silence_s), pool
            )
            self.progress.start(len(self._queue))
            self._work_off(executor, pool)
        if not self._stop:
            self._traces.reduce(pool)
            self._traces.say_what_failed()

    def _executor(self, scratch: Path, pool: ThreadPoolExecutor) -> AbstractContextManager[Executor]:
        stopped = lambda: self._stop  # noqa: E731
        if self._testbed.is_elsewhere:
            links = Links(Path(self.manifest.plan.link))
            return remote_executor(links, self.variants.stacks, scratch, pool, stopped, self.progress.note)
        if self.settings.dask is None:
            return nullcontext(LocalExecutor(self.variants.stacks, scratch, pool, self._jobs, stopped))
        from bentpipe.execution.dask_executor import opened

        folders = tuple(self.manifest.stack_folders)
        wanted = Requirements.of(self.manifest.plan, self.variants, folders)
        return opened(
            self.settings.dask,
            wanted,
            self._testbed,
            scratch,
            self.progress.note,
            self._heard,
            self.manifest.executed_on,
        )

    def _heard(self, trial: str, packets_sha256: str, where: str) -> None:
        """An execution ended well somewhere, and its answer may be on its way."""
        if self._bundler.repeats(self._trials[trial]):
            self._agreement.heard(trial, packets_sha256, where)

    def _early_end(self, error: OSError, scratch: str) -> BentpipeError:
        what = f"{error.filename or scratch}: {error.strerror}"
        if is_full(error):
            return self.folder.disk_full(what, scratch)
        return BentpipeError(
            f"the run cannot go on: {what}",
            f"finished trials are kept; continue with: {self.folder.resume_command}",
        )

    def finish(self) -> None:
        """Seal the records and complete the manifest."""
        self.manifest.finished = now()
        self.manifest.versions["stacks"] = stack_versions(self.in_order)
        self.folder.seal(self._finished)
        self.folder.write_manifest(self.manifest)

    def _ask_to_stop(self) -> None:
        self._stop = True

    def _plan_work(self) -> None:
        left = [t for t in self._trials.values() if t.id not in self.records or t.id in self.retry]
        for trial in left:
            self._open[CellKey.of(trial)] = self._open.get(CellKey.of(trial), 0) + 1
        if self.settings.shuffle:
            random.Random(self.manifest.plan.seed).shuffle(left)
        self._queue.extend(left)
        for key in self._members:
            if key not in self._open:
                self._settle(key)

    def _check_contract(self, check: ContractCheck, pool: ThreadPoolExecutor) -> None:
        breaches = check.breaches(pool)
        if self._stop:  # a Ctrl-C may have ended what was asked
            return
        for name, answer in breaches.items():
            self.progress.note(f"{name} breaks the contract: asked for an unknown test case, {answer}")
        self.manifest.contract_breaches = breaches
        self.folder.write_manifest(self.manifest)

    def _work_off(self, executor: Executor, pool: ThreadPoolExecutor) -> None:
        running: dict[Future[Answer], Trial] = {}
        takes = False
        try:
            while (self._queue or running) and not self._stop:
                self._hand_out(executor, running)
                if running:
                    done, _ = wait(running, timeout=_TICK_S, return_when=FIRST_COMPLETED)
                    for future in done:
                        self._take(running.pop(future), future.result())
                    if not self._testbed.needs_processors_in_time:
                        self._traces.reduce(pool)
                elif self._queue:
                    time.sleep(_TICK_S)  # a pause, or no worker
            takes = True
        except BentpipeError as error:
            takes = not isinstance(error, DiskError)
            raise
        finally:
            if running:
                self._wind_up(executor, running, takes)

    def _wind_up(self, executor: Executor, running: dict[Future[Answer], Trial], takes: bool) -> None:
        """End the trials under way; if there is room for it, without losing one that has ended by itself."""
        executor.kill()
        wait(running)
        for future, trial in running.items():
            if takes and future.exception() is None and not future.result().killed:
                self._take(trial, future.result())
            else:
                self.folder.drop_trial(trial.id)

    def _hand_out(self, executor: Executor, running: dict[Future[Answer], Trial]) -> None:
        limit = self._limit(executor)  # asked also when nothing is left: it says who has gone
        while self._queue and len(running) < limit:
            if self.settings.pause is not None and self.settings.pause.holds(datetime.now()):
                if not self._paused:
                    self.progress.note(f"paused until {self.settings.pause.until}")
                self._paused = True
                return
            self._paused = False
            demand = self._bundler.demand(self._queue[0])
            if self._guard and not self._guard.admits(demand):
                return
            trial = self._queue.popleft()
            if breach := self._bundler.breach(trial):
                self._keep(trial, unmeasured(trial, "invalid", breach))
            else:
                if self._guard:
                    self._guard.start(demand)
                folder = self.folder.trial_in_work(trial.id).resolve()
                running[executor.submit(self._bundler.bundle(trial), folder)] = trial

    def _limit(self, executor: Executor) -> int:
        """How many trials are handed out at a time, at most."""
        return min(executor.window, self.settings.jobs or executor.window)

    def _take(self, trial: Trial, answer: Answer) -> None:
        if answer.disk_full:
            raise self.folder.disk_full(answer.failure, str(self._scratch))
        record = self._record(trial, answer)
        if self._guard:
            self._guard.end(self._bundler.demand(trial), record)
        late = self._testbed.needs_processors_in_time and answer.values is not None
        if late and record.outcome == "invalid" and self._try_again(trial, record):
            return
        self.folder.keep_trial(trial.id)
        self._keep(trial, record)

    def _try_again(self, trial: Trial, record: Record) -> bool:
        """Queue a trial again whose testbed did not keep to the model, unless that was so too often."""
        tries = self._tries[trial.id] = self._tries.get(trial.id, 0) + 1
        if tries >= TRIES or self._stop:
            return False
        self.folder.drop_trial(trial.id)
        self._queue.append(trial)
        self.progress.note(f"{trial.id}: runs again: {record.detail}")
        return True

    def _record(self, trial: Trial, answer: Answer) -> Record:
        try:
            if answer.values is None:
                raise ValueError(answer.failure)
            values = answer.values
            if self._awake:  # what keeps processors awake waits for them whenever something else runs
                values = {**values, "cpu_pressure": None}
            return measured(trial, values)
        except ValueError as error:
            self.harness_failures += 1
            self.progress.note(f"{trial.id}: {error}")
            return unmeasured(trial, "invalid", str(error))

    def _keep(self, trial: Trial, record: Record) -> None:
        if trial.id in self.records:
            self._compare(trial, self.records[trial.id])
        self._compare(trial, record)
        self.folder.append(record)
        self._executed.add(trial.id)
        self.progress.advance(record.failed, record.in_a_line)
        key = CellKey.of(trial)
        self._open[key] -= 1
        if self._open[key] == 0:
            self.progress.more(self._settle(key))

    def _settle(self, key: CellKey) -> int:
        """Look after the traces of a complete cell; how many trials are to run again for it."""
        if self.manifest.plan.trace not in ("median", "analysis"):
            return 0
        (cell,) = cells(self.records[trial] for trial in self._members[key])
        return self._queue_again(self._traces.settle(cell, self._executed))

    def _compare(self, trial: Trial, record: Record) -> None:
        """Hold a record against other executions of its trial."""
        if record.ok and record.packet_log_sha256 and self._bundler.repeats(trial):
            self._agreement.heard(trial.id, record.packet_log_sha256)

    def _queue_again(self, trial: str | None) -> int:
        """Queue the trial, if one is named, whose trace is gone; how many were queued."""
        if trial is None:
            return 0
        again = self._trials[trial]
        self._open[CellKey.of(again)] = 1
        self._queue.append(again)
        return 1


def to_repeat(records: Mapping[str, Record], which: str) -> frozenset[str]:
    """The trials that --retry-failed or --retry-invalid executes again: `which` is "failed" or "invalid"."""
    return frozenset(
        trial
        for trial, record in records.items()
        if record.outcome == "invalid" or (which == "failed" and record.failed)
    )


@contextmanager
def _signals(stop: Any) -> Iterator[None]:
    """Have Ctrl-C, SIGTERM and SIGHUP call `stop`, however often, instead of ending the process."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, lambda *_: stop()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
