"""Running a campaign: trials in parallel, each a process of its own; records as they end; then traces,
tables, report.

One thread (the main one) decides and writes; the pool's threads only wait for a process each. An end before
time, by Ctrl-C, SIGTERM or a full disk, stops handing out trials, ends those under way, and leaves a run that
can be resumed.
"""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from bentpipe.analysis import traces
from bentpipe.analysis.cells import Cell, CellKey, cells
from bentpipe.errors import BentpipeError, Interrupted, is_full
from bentpipe.execution.awake import kept_awake
from bentpipe.execution.guard import TRIES, Guard
from bentpipe.execution.jobs import Answer, Flow, Job, Trials
from bentpipe.execution.pause import Pause
from bentpipe.plan import flows
from bentpipe.plan.campaign import Cast
from bentpipe.plan.trial import Trial
from bentpipe.plan.workload import write_files
from bentpipe.runs import trial_files
from bentpipe.runs.manifest import Manifest, now, stack_versions
from bentpipe.runs.records import Record, measured, unmeasured
from bentpipe.runs.run_folder import RunFolder
from bentpipe.stacks import loopback, pipe, protocol, state
from bentpipe.stacks.model import PROTOCOLS, Stack
from bentpipe.testbed import TESTBEDS, Testbed

_TICK_S = 0.25  # how soon a signal or the end of a pause is noticed


@dataclass(frozen=True)
class Settings:
    """How a campaign is executed. None of it changes a result."""

    jobs: int | None = None  # trials at a time; None: as many as suit the testbed
    shuffle: bool = False
    pause: Pause | None = None
    silence_s: int = 30
    awake: bool = False  # in real time: keep idle processors from sleeping


def jobs_for(testbed: Testbed, asked: int | None) -> int:
    """How many trials run at a time, at most."""
    cores = os.cpu_count() or 1
    # A trial's programs wait for each other at times; in real time for the link, and a guard sets the limit.
    return asked or (8 * cores if testbed.is_real_time else cores + 1)


class Progress(Protocol):
    """What a user is shown while a campaign runs (`bentpipe.progress`)."""

    def start(self, total: int) -> None: ...
    def more(self, trials: int) -> None: ...
    def advance(self, failed: bool, latest: str) -> None: ...
    def note(self, text: str) -> None: ...
    def stop(self) -> None: ...


@dataclass
class Execution:
    """A campaign under way. `run` brings it to its end; `records` then has every trial's record."""

    folder: RunFolder
    manifest: Manifest
    cast: Cast
    settings: Settings
    progress: Progress
    records: dict[str, Record] = field(default_factory=dict)  # by trial
    retry: frozenset[str] = frozenset()  # trials whose record is to be replaced
    harness_failures: int = 0
    _stop: bool = False

    def __post_init__(self) -> None:
        plan = self.manifest.plan
        self._trace = plan.trace
        self._workloads = {str(one): one for one in plan.parsed_workloads}
        self._treatments = {str(one): one for one in plan.parsed_treatments}
        self._trials = {trial.id: trial for trial in plan.trials(tuple(self.manifest.left_out))}
        self._open: dict[CellKey, int] = {}  # cell → trials without a record
        self._queue: deque[Trial] = deque()
        self._executed: set[str] = set()  # trials that ended since this process began
        self._testbed = TESTBEDS[plan.testbed]
        self._jobs = jobs_for(self._testbed, self.settings.jobs)
        self._awake = self.manifest.awake = self.settings.awake and self._testbed.is_real_time
        self._guard = Guard(self._jobs, not self._awake) if self._testbed.is_real_time else None
        self._tries: dict[str, int] = {}  # trial → how often its testbed did not keep to the model
        self._versions: dict[str, str | None] = {}
        self._analyses: dict[str, Future[None]] = {}  # trial → its capture is being reduced to an analysis
        self._paused = False
        self._complete: list[Cell] = []  # since their traces were last looked after

    @property
    def in_order(self) -> list[Record]:
        """The records in the order of the campaign's trials."""
        return [self.records[trial] for trial in self._trials if trial in self.records]

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
            finally:
                self.progress.stop()
        if self._stop:
            done, total = len(self.in_order), len(self._trials)
            raise Interrupted(
                f"interrupted: {done} of {total} trials are done",
                f"resume with: {self.folder.resume_command}",
            )

    def _execute(self, scratch: Path, pool: ThreadPoolExecutor) -> None:
        self._scratch, self._www = scratch, scratch / "www"
        further = [flow.workload for flow in flows.every(self._workloads.values()) if flow.workload]
        for workload in dict.fromkeys(one.alone for one in (*self._workloads.values(), *further)):
            write_files(self._www, workload, lambda: self._stop)
        if self._stop:
            return
        self._sim = Trials(scratch)
        if self._testbed.is_real_time:  # in virtual time each program says it anew
            self._versions = {name: state.of(stack).version for name, stack in self.cast.stacks.items()}
        self._check_contract(pool)
        self.progress.start(len(self._queue))
        self._work_off(pool)
        if not self._stop:
            self._reduce_traces(pool)
            self._say_what_could_not_be_analysed()

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
        self.manifest.versions["stacks"] = stack_versions(self.records.values())
        self.folder.seal(self.in_order)
        self.folder.write_manifest(self.manifest)

    def _ask_to_stop(self) -> None:
        self._stop = True

    def _plan_work(self) -> None:
        left = [t for t in self._trials.values() if t.id not in self.records or t.id in self.retry]
        for trial in left:
            self._open[_cell(trial)] = self._open.get(_cell(trial), 0) + 1
        if self.settings.shuffle:
            random.Random(self.manifest.plan.seed).shuffle(left)
        self._queue.extend(left)
        for cell in cells(self.in_order):
            if cell.key not in self._open:
                self._settle_traces(cell)
                self._complete.append(cell)

    def _check_contract(self, pool: ThreadPoolExecutor) -> None:
        """Prove with a random test case that every endpoint says so when it does not know one (exit code
        127).
        """
        word = f"unknown-{random.SystemRandom().getrandbits(32):08x}"
        wanted = {}
        for role, variants in (("client", self.cast.clients), ("server", self.cast.servers)):
            for variant in variants.values():
                wanted[f"{variant.stack.name} as {role}"] = (variant.stack, role)
        asked = {name: pool.submit(self._refusal, *which, word) for name, which in wanted.items()}
        breaches = {name: answer for name, future in asked.items() if (answer := future.result())}
        if self._stop:  # a Ctrl-C may have ended what was asked
            return
        for name, answer in breaches.items():
            self.progress.note(f"{name} breaks the contract: asked for an unknown test case, {answer}")
        self.manifest.contract_breaches = breaches
        self.folder.write_manifest(self.manifest)

    def _refusal(self, stack: Stack, role: str, word: str) -> str | None:
        """None if the program says that it does not know the test case `word`; else what it did, in words."""
        if self._testbed.is_real_time:
            folder = self._scratch / f"{stack.name}-{role}"
            asked = loopback.Transfer(self._www, ("/1000",), folder, testcase=word, alpn=stack.alpn[0])
            return loopback.refusal(stack, role, asked)
        greeting = pipe.hello(role, word, {}, self._scratch)
        return pipe.refusal(stack.command("virtual-time"), greeting, self.settings.silence_s)

    def _work_off(self, pool: ThreadPoolExecutor) -> None:
        running: dict[Future[Answer], Trial] = {}
        try:
            while (self._queue or running) and not self._stop:
                self._hand_out(pool, running)
                if running:
                    done, _ = wait(running, timeout=_TICK_S, return_when=FIRST_COMPLETED)
                    for future in done:
                        self._take(running.pop(future), future.result())
                    if not self._testbed.is_real_time:  # where processors are needed in time
                        self._reduce_traces(pool)
                elif self._queue:
                    time.sleep(_TICK_S)  # a pause
        finally:
            if running:
                self._wind_up(running)

    def _wind_up(self, running: dict[Future[Answer], Trial]) -> None:
        """End the trials under way, without losing one that has ended by itself."""
        self._sim.kill()
        wait(running)
        for future, trial in running.items():
            if self._stop and not future.result().killed:
                self._take(trial, future.result())
            else:
                self.folder.drop_trial(trial.id)

    def _hand_out(self, pool: ThreadPoolExecutor, running: dict[Future[Answer], Trial]) -> None:
        while self._queue and len(running) < self._jobs:
            if self.settings.pause is not None and self.settings.pause.holds(datetime.now()):
                if not self._paused:
                    self.progress.note(f"paused until {self.settings.pause.until}")
                self._paused = True
                return
            self._paused = False
            weight = self._weight(self._queue[0])
            if self._guard and not self._guard.admits(weight):
                return
            trial = self._queue.popleft()
            if breach := self._breach(trial):
                self._keep(trial, unmeasured(trial, "invalid", breach))
            elif lack := self._lack(trial):
                self._keep(trial, unmeasured(trial, "unsupported", lack))
            else:
                if self._guard:
                    self._guard.start(weight)
                running[pool.submit(self._sim.trial, self._job(trial))] = trial

    def _weight(self, trial: Trial) -> float:
        """How much of the machine a trial in real time takes, where one of two light stacks takes 1."""
        return max(max(flow.client.stack.weight, flow.server.stack.weight) for flow in self._flows(trial))

    def _breach(self, trial: Trial) -> str | None:
        ends = [("client", flow.client) for flow in self._flows(trial)]
        ends += [("server", flow.server) for flow in self._flows(trial)]
        for role, variant in ends:
            name = f"{variant.stack.name} as {role}"
            if name in self.manifest.contract_breaches:
                return f"{name} breaks the contract: {self.manifest.contract_breaches[name]}"
        return None

    def _lack(self, trial: Trial) -> str | None:
        """Why a trial need not be started: an end does not even promise its test case. What is promised and
        not kept shows in the trial.
        """
        for flow in self._flows(trial):
            for role, variant in (("client", flow.client), ("server", flow.server)):
                name = variant.stack.name
                if flow.testcase not in variant.stack.testcases:
                    return f"{name} as {role}: its stack.toml does not list {flow.testcase}; not started"
            if self._testbed.is_real_time and (
                lack := protocol.lack(flow.client.stack, flow.server.stack, flow.testcase)
            ):
                return f"{lack}; not started"
        return None

    def _flows(self, trial: Trial) -> list[Flow]:
        """Those of a trial, its own first."""
        own = self._workloads[trial.workload]
        found = []
        for flow in (flows.Flow(), *flows.of(own)):
            moved = flow.workload or own
            client = self.cast.clients[flow.client or trial.client]
            server = self.cast.servers[flow.server or trial.server]
            common = protocol.common(client.stack, server.stack, moved.testcase)
            found.append(
                Flow(
                    testcase=moved.testcase,
                    requests=moved.requests,
                    client=client,
                    server=server,
                    alpn=common or PROTOCOLS[0],
                    start_ms=flow.start_ms,
                    duration_ms=moved.duration_ms,
                )
            )
        return found

    def _job(self, trial: Trial) -> Job:
        workload = self._workloads[trial.workload]
        own, *others = self._flows(trial)
        return Job(
            scenario=self.manifest.scenarios[trial.scenario].scenario,
            testcase=workload.testcase,
            requests=workload.requests,
            size_bytes=workload.size_bytes,
            www=self._www,
            seed=trial.seed,
            folder=self.folder.trial_in_work(trial.id).resolve(),
            trace=self._trace != "none",
            qlog=self.manifest.plan.qlog,
            silence_s=self.settings.silence_s,
            client=own.client,
            server=own.server,
            duration_ms=own.duration_ms,
            others=tuple(others),
            alpn=own.alpn,
            treatment=self._treatments[trial.treatment],
            testbed=self._testbed,
            versions=self._versions,
        )

    def _take(self, trial: Trial, answer: Answer) -> None:
        if answer.disk_full:
            raise self.folder.disk_full(answer.failure, str(self._scratch))
        record = self._record(trial, answer)
        if self._guard:
            self._guard.end(self._weight(trial), record)
            if answer.values is not None and record.outcome == "invalid" and self._try_again(trial, record):
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
            everything = {**self.records, trial.id: record}
            self.folder.replace(everything[known] for known in self._trials if known in everything)
        else:
            self.folder.append(record)
        self.records[trial.id] = record
        self._executed.add(trial.id)
        self.progress.advance(record.failed, record.in_a_line)
        key = _cell(trial)
        self._open[key] -= 1
        if self._open[key] == 0:
            mine = (r for r in self.records.values() if _cell(self._trials[r.trial]) == key)
            cell = cells(mine)[0]
            self.progress.more(self._settle_traces(cell))
            self._complete.append(cell)

    def _settle_traces(self, cell: Cell) -> int:
        """Of a complete cell, keep the trace of the trial that stands for it. If that has none, because its
        record is from before a resume, it is executed again: same seed, same packets. A failed trial is not:
        it may have ended before there was anything to trace. Returns how many trials were queued.
        """
        median = cell.median
        if self._trace not in ("median", "analysis") or median is None:
            return 0
        for record in cell.records:
            if record is not median:
                self.folder.forget_trace(record.trial)
        if not median.ok or median.trial in self._executed or self.folder.has_trace(median.trial):
            return 0
        if self._testbed.is_real_time:  # it would be another trial
            self.progress.note(f"{median.trial}: its cell's median now, but its trace is not there any more")
            return 0
        self._open[cell.key] = 1
        self._queue.append(self._trials[median.trial])
        return 1

    def _reduce_traces(self, pool: ThreadPoolExecutor) -> None:
        """Of the traces of cells that are complete now keep the analyses alone, if that is asked for."""
        complete, self._complete = self._complete, []
        for record in (record for cell in complete for record in cell.records):
            folder, under_way = self.folder.trial(record.trial), self._analyses.get(record.trial)
            if under_way is not None and not under_way.done():
                continue  # a resumed cell is complete twice: before a lost trace is made again, and after
            if self._trace == "analysis" and trial_files.has_capture(folder):
                run = traces.Run(self.folder.path, self.manifest.scenarios, {record.trial: record})
                self._analyses[record.trial] = pool.submit(traces.reduce_to_analysis, folder, run)

    def _say_what_could_not_be_analysed(self) -> None:
        for trial, analysis in self._analyses.items():
            if (error := analysis.exception()) is not None:
                self.progress.note(f"{trial}: its capture was kept, for it could not be analysed: {error}")


def failed(records: Mapping[str, Record]) -> frozenset[str]:
    """The trials that --retry-failed executes again."""
    return frozenset(trial for trial, record in records.items() if record.failed)


def _cell(trial: Trial) -> CellKey:
    return CellKey(trial.scenario, trial.workload, trial.treatment, trial.testbed, trial.client, trial.server)


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
