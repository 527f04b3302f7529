"""The trials of one state of the page, which all end when the next state comes.

What a trial leaves, its capture above all, is removed as soon as it is read; `close` removes the rest.
"""

from __future__ import annotations

import shutil
import tempfile
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
from bentpipe.runs.trial_files import TRACE
from bentpipe.schema.explore import ExploredTrial

KINDS = ("offset", "rate", "in_flight", "rtt", "queue")  # the plots of the page, in their order


@dataclass(frozen=True)
class PlayedTrial:
    """The result of a trial, with its plots if they were asked for."""

    record: Record
    shown: ExploredTrial | None
    analysis: Analysis | None  # its packets are in memory; None: there was no connection

    def curves(self) -> TrialCurves | None:
        """The curves of its connection."""
        return None if self.analysis is None else TrialCurves.of(self.analysis)


class Generation:
    """The processes and files of a state's trials. `kill` may be called from any thread."""

    def __init__(self, scratch: Path, watchdog: GroupWatchdog, silence_s: int) -> None:
        self.folder = Path(tempfile.mkdtemp(dir=scratch))
        self.processes = TrialProcesses(self.folder, watchdog)
        self.silence_s = silence_s
        self.killed = False

    def kill(self) -> None:
        """End what runs; trials that are played later end at once."""
        self.killed = True
        self.processes.kill()

    def close(self) -> None:
        """Remove what is left; only once nothing runs any more."""
        shutil.rmtree(self.folder, ignore_errors=True)


class SenderTrials:
    """The trials of one sender in their order."""

    def __init__(self, generation: Generation, checked: CheckedRun) -> None:
        self._generation, self._checked = generation, checked
        self._place = Path(tempfile.mkdtemp(dir=generation.folder))
        self._bundler = Bundler(checked.manifest, checked.variants, generation.silence_s)
        self._bundler.ask_versions()
        self._runner = BundleRunner(checked.variants.stacks, self._place, lambda: generation.killed)
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
            return PlayedTrial(record, _shown(record, analysis) if with_plots else None, analysis)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _analysis(self, folder: Path, record: Record) -> Analysis | None:
        """The analysis of a trial's capture, with its packets; None if it holds no connection."""
        if not (folder / TRACE).is_file():
            return None
        run = TracedRun(self._place, self._checked.manifest.scenarios, {record.trial: record})
        found = traces.of_trial(folder, run)
        if not found.summary.connections:
            return None
        assert found.packets is not None  # read while the file is there
        return found


def _shown(record: Record, analysis: Analysis | None) -> ExploredTrial:
    drawn = {} if analysis is None else report_traces.script(record.trial, analysis, KINDS, quickly=True)
    return ExploredTrial(
        trial=record.trial,
        outcome=record.outcome,
        detail=record.detail,
        completion_s=record.completion_s,
        goodput_bps=record.goodput_bps,
        share_of_limit=record.share_of_limit,
        packet_log_hash=record.packet_log_hash or "",
        trace=drawn,
    )
