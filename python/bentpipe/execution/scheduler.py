"""The scheduler of a run: which trial is next, which is tried again, and what becomes of answers and traces.

A trial goes from the queue to an executor (`_hand_out`), from its answer to a record (`_take`), and from its
record into the run's folder (`_keep`); the last one of a cell decides which traces stay (`_settle`).
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from bentpipe.analysis.cells import cells
from bentpipe.errors import BentpipeError
from bentpipe.execution.agreement import Agreement
from bentpipe.execution.bundler import Bundler
from bentpipe.execution.executor import Executor
from bentpipe.execution.guard import TRIES
from bentpipe.execution.jobs import Answer
from bentpipe.execution.kept_traces import KeptTraces
from bentpipe.execution.prepared_run import PreparedRun
from bentpipe.execution.processor_use import ProcessorUse
from bentpipe.execution.settings import Settings
from bentpipe.execution.stop_request import StopRequest
from bentpipe.plan.trial import Trial
from bentpipe.runs.records import CellKey, Record, measured, unmeasured
from bentpipe.runs.run_folder import DiskError

_TICK_S = 0.25  # how soon a signal or the end of a pause is noticed
_Running = dict[Future[Answer], Trial]


class Progress(Protocol):
    """The display for the user while a campaign runs (`bentpipe.progress`)."""

    def start(self, total: int) -> None: ...
    def more(self, trials: int) -> None: ...
    def advance(self, failed: bool, latest: str) -> None: ...
    def note(self, text: str) -> None: ...
    def stop(self) -> None: ...


@dataclass
class Scheduler:
    """The queue of a run's trials, with the policy for retries and traces."""

    run: PreparedRun
    settings: Settings
    progress: Progress
    bundler: Bundler
    processors: ProcessorUse
    stop: StopRequest
    agreement: Agreement
    retry: frozenset[str] = frozenset()  # trials whose record is to be replaced
    harness_failures: int = 0

    def __post_init__(self) -> None:
        self.folder, self.records = self.run.folder, self.run.folder.records
        self.trials = {trial.id: trial for trial in self.run.manifest.trials(self.records)}
        self._traces = KeptTraces(self.folder, self.run.manifest, self.progress.note)
        self._open: dict[CellKey, int] = {}  # cell → trials without a record
        self._members: dict[CellKey, list[str]] = {}  # cell → its trials
        for trial in self.trials.values():
            self._members.setdefault(CellKey.of(trial), []).append(trial.id)
        self._queue: deque[Trial] = deque()
        self._executed: set[str] = set()  # trials that ended since this process began
        self._tries: dict[str, int] = {}  # trial → how often its testbed did not keep to the model
        self._paused = False

    @property
    def finished(self) -> list[str]:
        """The trials with a record, in the order of the campaign."""
        return [trial for trial in self.trials if trial in self.records]

    def plan_work(self) -> None:
        """Queue the trials that remain."""
        left = [t for t in self.trials.values() if t.id not in self.records or t.id in self.retry]
        for trial in left:
            self._open[CellKey.of(trial)] = self._open.get(CellKey.of(trial), 0) + 1
        if self.settings.shuffle:
            random.Random(self.run.manifest.plan.seed).shuffle(left)
        self._queue.extend(left)
        for key in self._members:
            if key not in self._open:
                self._settle(key)

    def work_off(self, executor: Executor, pool: ThreadPoolExecutor, scratch: Path) -> None:
        """Have the executor run the queue, until that is empty or a stop is requested. Captures are analysed
        in the `pool`; `scratch` is named where a disk is full.
        """
        self._scratch = scratch
        self.progress.start(len(self._queue))
        running: _Running = {}
        takes = False
        try:
            while (self._queue or running) and not self.stop.made:
                self._hand_out(executor, running)
                self._wait(running, pool)
            takes = True
        except BentpipeError as error:
            takes = not isinstance(error, DiskError)
            raise
        finally:
            if running:
                self._wind_up(executor, running, takes)

    def reduce_traces(self, pool: ThreadPoolExecutor) -> None:
        """Wait for the analyses of captures of which only the analysis is kept."""
        self._traces.reduce(pool)
        self._traces.say_what_failed()

    def _wait(self, running: _Running, pool: ThreadPoolExecutor) -> None:
        """Take answers, or let a moment pass."""
        if running:
            done, _ = wait(running, timeout=_TICK_S, return_when=FIRST_COMPLETED)
            for future in done:
                trial, answer = running.pop(future), future.result()
                if answer.killed and self.stop.made:  # it was handed out just before
                    self.folder.drop_trial(trial.id)
                else:
                    self._take(trial, answer)
            if not self.run.testbed.needs_processors_in_time:
                self._traces.reduce(pool)
        elif self._queue:
            time.sleep(_TICK_S)  # a pause, or no worker

    def _wind_up(self, executor: Executor, running: _Running, takes: bool) -> None:
        """End the trials under way; if the disk has space, without losing one that has ended by itself."""
        executor.kill()
        wait(running)
        for future, trial in running.items():
            if takes and future.exception() is None and not future.result().killed:
                self._take(trial, future.result())
            else:
                self.folder.drop_trial(trial.id)

    def _hand_out(self, executor: Executor, running: _Running) -> None:
        """Start as many trials as may run now."""
        # Asked also when nothing is left: it says which workers have gone.
        limit = min(executor.window, self.settings.jobs or executor.window)
        while self._queue and len(running) < limit:
            if self._is_paused():
                return
            demand = self.bundler.demand(self._queue[0])
            if not self.processors.admits(demand):
                return
            trial = self._queue.popleft()
            if breach := self.bundler.breach(trial):
                self._keep(trial, unmeasured(trial, "invalid", breach))
            else:
                self.processors.start(demand)
                folder = self.folder.trial_in_work(trial.id).resolve()
                running[executor.submit(self.bundler.bundle(trial), folder)] = trial

    def _is_paused(self) -> bool:
        """Whether no trial may start at this time of the day; a note says so once."""
        pause, before = self.settings.pause, self._paused
        self._paused = pause is not None and pause.holds(datetime.now())
        if pause is not None and self._paused and not before:
            self.progress.note(f"paused until {pause.until}")
        return self._paused

    def _take(self, trial: Trial, answer: Answer) -> None:
        """Make the record of an answer and keep it, or queue the trial again."""
        if answer.disk_full:
            raise self.folder.disk_full(answer.failure, str(self._scratch))
        record = self._record(trial, answer)
        self.processors.end(self.bundler.demand(trial), record)
        may_be_late = self.run.testbed.needs_processors_in_time and answer.values is not None
        if may_be_late and record.outcome == "invalid" and self._try_again(trial, record):
            return
        self.folder.keep_trial(trial.id)
        self._keep(trial, record)

    def _record(self, trial: Trial, answer: Answer) -> Record:
        try:
            if answer.values is None:
                raise ValueError(answer.failure)
            return measured(trial, self.processors.corrected(answer.values))
        except ValueError as error:
            self.harness_failures += 1
            self.progress.note(f"{trial.id}: {error}")
            return unmeasured(trial, "invalid", str(error))

    def _try_again(self, trial: Trial, record: Record) -> bool:
        """Queue a trial again whose testbed did not keep to the model, unless that was so too often."""
        tries = self._tries[trial.id] = self._tries.get(trial.id, 0) + 1
        if tries >= TRIES or self.stop.made:
            return False
        self.folder.drop_trial(trial.id)
        self._queue.append(trial)
        self.progress.note(f"{trial.id}: runs again: {record.detail}")
        return True

    def _keep(self, trial: Trial, record: Record) -> None:
        """Write a trial's record; with the last one of a cell, settle that cell."""
        for one in (self.records.get(trial.id), record):
            if one is not None and one.ok and one.packet_log_hash:
                self.compare(trial.id, one.packet_log_hash)
        self.folder.append(record)
        self._executed.add(trial.id)
        self.progress.advance(record.failed, record.in_a_line)
        key = CellKey.of(trial)
        self._open[key] -= 1
        if self._open[key] == 0:
            self.progress.more(self._settle(key))

    def compare(self, trial: str, packet_hash: str, where: str = "") -> None:
        """Compare the packets of an execution, here or on the host `where`, with those of others of its
        trial. Any thread may call it; a cluster does so before the answer has arrived.
        """
        if self.bundler.repeats(self.trials[trial]):
            self.agreement.compare(trial, packet_hash, where)

    def _settle(self, key: CellKey) -> int:
        """Decide which traces of a complete cell stay; how many trials are queued again to have one."""
        if self.run.manifest.plan.trace not in ("median", "analysis"):
            return 0
        (cell,) = cells(self.records[trial] for trial in self._members[key])
        untraced = self._traces.settle(cell, self._executed)
        if untraced is None:
            return 0
        again = self.trials[untraced]
        self._open[key] = 1
        self._queue.append(again)
        return 1


def to_repeat(records: Mapping[str, Record], which: str) -> frozenset[str]:
    """The trials that --retry-failed or --retry-invalid executes again: `which` is "failed" or "invalid"."""
    return frozenset(
        trial
        for trial, record in records.items()
        if record.outcome == "invalid" or (which == "failed" and record.failed)
    )
