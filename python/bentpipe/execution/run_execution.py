"""The execution of a run, from its plan to its sealed records.

One thread (the main one) decides and writes; an executor runs bundles. An end before time, by Ctrl-C,
SIGTERM, a full disk or a cluster that is gone, stops handing out trials, ends those under way, and leaves a
run that can be resumed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bentpipe.errors import BentpipeError, Interrupted, is_full
from bentpipe.execution.agreement import Agreement
from bentpipe.execution.bundler import Bundler
from bentpipe.execution.contract_check import ContractCheck
from bentpipe.execution.executor import LostExecutor
from bentpipe.execution.executor_choice import ExecutorChoice
from bentpipe.execution.prepared_run import PreparedRun
from bentpipe.execution.processor_use import ProcessorUse
from bentpipe.execution.scheduler import Progress, Scheduler
from bentpipe.execution.settings import Settings
from bentpipe.execution.stop_request import StopRequest
from bentpipe.runs.records import Record


@dataclass
class RunExecution:
    """The execution of a run. `execute` brings it to its end; the folder then has every trial's record."""

    run: PreparedRun
    settings: Settings
    progress: Progress
    retry: frozenset[str] = frozenset()  # trials whose record is to be replaced

    def __post_init__(self) -> None:
        self._stop = StopRequest()
        self._bundler = Bundler(self.run.manifest, self.run.variants, self.settings.silence_s)
        self._processors = ProcessorUse.of(self.run.testbed, self.settings)
        self.run.manifest.awake = self._processors.awake
        self._scheduler = Scheduler(
            run=self.run,
            settings=self.settings,
            progress=self.progress,
            bundler=self._bundler,
            processors=self._processors,
            stop=self._stop,
            agreement=Agreement(self.progress.note, self.run.manifest.disagreements),
            retry=self.retry,
        )

    @property
    def in_order(self) -> Iterator[Record]:
        """The records in the order of the campaign's trials, each read when it is its turn."""
        return (self.run.folder.records[trial] for trial in self._scheduler.finished)

    @property
    def harness_failures(self) -> int:
        """How many trials have no answer from their testbed."""
        return self._scheduler.harness_failures

    def execute(self) -> None:
        """Execute what is left. Interrupted, DiskError or another BentpipeError if it ends early; it can then
        be resumed.
        """
        self._scheduler.plan_work()
        with (
            self._stop.by_signals(),
            tempfile.TemporaryDirectory(prefix="bentpipe-", ignore_cleanup_errors=True) as scratch,
            ThreadPoolExecutor(self.run.testbed.jobs(self.settings.jobs)) as pool,
            self._processors.kept_awake(),
        ):
            try:
                self._execute(Path(scratch), pool)
            except OSError as error:
                raise self._early_end(error, scratch) from error
            except LostExecutor as error:
                hint = f"finished trials are kept; continue with: {self.run.folder.resume_command}"
                raise BentpipeError(f"the run cannot go on: {error}", hint) from error
            finally:
                self.progress.stop()
        if self._stop.made:
            raise self._interrupted()
        self.run.folder.complete(self.run.manifest, self._scheduler.finished)

    def _execute(self, scratch: Path, pool: ThreadPoolExecutor) -> None:
        self._bundler.ask_versions()
        choice = ExecutorChoice(
            self.run, self.settings, self._stop, self.progress.note, self._scheduler.compare
        )
        with choice.opened(scratch, pool) as executor:
            executor.prepare(self._bundler.files, self._bundler.contents)
            if self._stop.made:
                return
            self._check_contract(scratch, pool)
            self._scheduler.work_off(executor, pool, scratch)
        if not self._stop.made:
            self._scheduler.reduce_traces(pool)

    def _check_contract(self, scratch: Path, pool: ThreadPoolExecutor) -> None:
        """Ask the stacks whether they keep the contract; the manifest says which do not."""
        check = ContractCheck(self.run.variants, self.run.testbed, scratch, self.settings.silence_s)
        breaches = check.breaches(pool)
        if self._stop.made:  # a Ctrl-C may have ended what was asked
            return
        for name, answer in breaches.items():
            self.progress.note(f"{name} breaks the contract: asked for an unknown test case, {answer}")
        self.run.manifest.contract_breaches = breaches
        self.run.folder.write_manifest(self.run.manifest)

    def _early_end(self, error: OSError, scratch: str) -> BentpipeError:
        folder, what = self.run.folder, f"{error.filename or scratch}: {error.strerror}"
        if is_full(error):
            return folder.disk_full(what, scratch)
        return BentpipeError(
            f"the run cannot go on: {what}",
            f"finished trials are kept; continue with: {folder.resume_command}",
        )

    def _interrupted(self) -> Interrupted:
        self.run.folder.write_manifest(self.run.manifest)
        done, total = len(self._scheduler.finished), len(self._scheduler.trials)
        return Interrupted(
            f"interrupted: {done} of {total} trials are done",
            f"resume with: {self.run.folder.resume_command}",
        )
