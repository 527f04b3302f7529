"""The trials of one state of the page, which all end when the next state comes.

What a trial leaves, its capture above all, is removed as soon as it is read; `close` removes the rest.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bentpipe.analysis import traces
from bentpipe.analysis.traces import Analysis, TracedRun
from bentpipe.errors import BentpipeError
from bentpipe.execution.bundler import Bundler
from bentpipe.execution.executor import BundleRunner
from bentpipe.execution.jobs import TrialProcesses
from bentpipe.execution.preparation import CheckedRun
from bentpipe.execution.process_watchdog import GroupWatchdog
from bentpipe.explore.curves import TrialCurves
from bentpipe.plan.trial import Trial
from bentpipe.report import traces as report_traces
from bentpipe.runs.records import Record, measured
from bentpipe.schema.explore import ExploredTrial
from bentpipe.stacks.model import Stack

KINDS = ("offset", "rate", "in_flight", "rtt", "queue")  # the plots of the page, in their order


@dataclass(frozen=True)
class PlayedTrial:
    """What a trial came to; with its plots if they were asked for."""

    record: Record
    shown: ExploredTrial | None
    curves: TrialCurves | None  # None: there was no connection


class Generation:
    """The processes and files of a state's trials. `kill` may be called from any thread."""

    def __init__(self, scratch: Path, watchdog: GroupWatchdog, silence_s: int) -> None:
        self._folder = Path(tempfile.mkdtemp(dir=scratch))
        self._processes = TrialProcesses(self._folder, watchdog)
        self._silence_s = silence_s
        self.killed = False

    def kill(self) -> None:
        """End what runs; trials that are played later end at once."""
        self.killed = True
        self._processes.kill()

    def close(self) -> None:
        """Remove what is left; only once nothing runs any more."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def sender(self, checked: CheckedRun) -> SenderTrials:
        """The trials of a sender."""
        place = Path(tempfile.mkdtemp(dir=self._folder))
        return SenderTrials(self, checked, place, self._silence_s)

    def runner(self, known: Mapping[str, Stack], place: Path) -> BundleRunner:
        return BundleRunner(known, place, lambda: self.killed)

    @property
    def processes(self) -> TrialProcesses:
        return self._processes


class SenderTrials:
    """The trials of one sender in their order."""

    def __init__(self, generation: Generation, checked: CheckedRun, place: Path, silence_s: int) -> None:
        self._generation, self._checked, self._place = generation, checked, place
        self._bundler = Bundler(checked.manifest, checked.variants, silence_s)
        self._bundler.ask_versions()
        self._runner = generation.runner(checked.variants.stacks, place)
        self.trials = checked.manifest.trials()

    def play(self, trial: Trial, with_plots: bool) -> PlayedTrial | None:
        """Run a trial, and read what it left; None if it was ended from outside. BentpipeError if the testbed
        failed, or its trace cannot be read.
        """
        folder = self._place / "trials" / trial.id
        folder.mkdir(parents=True)
        try:
            answer = self._runner.run(self._bundler.bundle(trial), folder, self._generation.processes)
            if answer.killed or self._generation.killed:
                return None
            if answer.values is None:
                raise BentpipeError(answer.failure, "bentpipe doctor looks for what is missing")
            record = measured(trial, answer.values)
            analysis = self._analysis(folder, record)
            return self._read(record, analysis, with_plots)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _analysis(self, folder: Path, record: Record) -> Analysis | None:
        """The analysis of a trial's capture; None if it holds no connection."""
        run = TracedRun(self._place, self._checked.manifest.scenarios, {record.trial: record})
        if not (folder / "trace.pcapng").is_file():
            return None
        found = traces.of_trial(folder, run)
        return found if found.summary.connections else None

    @staticmethod
    def _read(record: Record, analysis: Analysis | None, with_plots: bool) -> PlayedTrial:
        shown = None
        if with_plots:
            drawn = analysis and report_traces.script(record.trial, analysis, KINDS, quickly=True)
            shown = ExploredTrial(
                trial=record.trial,
                outcome=record.outcome,
                detail=record.detail or "",
                completion_s=record.completion_s,
                goodput_bps=record.goodput_bps,
                share_of_limit=record.share_of_limit,
                packet_log_hash=record.packet_log_hash or "",
                trace=drawn or {},
            )
        return PlayedTrial(record, shown, TrialCurves.of(analysis) if analysis else None)
