"""The traces that a run keeps: that of the trial that represents its cell, or its analysis."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from bentpipe.analysis import traces
from bentpipe.analysis.cells import Cell
from bentpipe.runs import trial_files
from bentpipe.runs.manifest import Manifest
from bentpipe.runs.run_folder import RunFolder
from bentpipe.testbed import TESTBEDS


@dataclass
class KeptTraces:
    """The traces of cells that have become complete."""

    folder: RunFolder
    manifest: Manifest
    note: Callable[[str], None]
    _complete: list[Cell] = field(default_factory=list)  # since their traces were last looked after
    _analyses: dict[str, Future[None]] = field(default_factory=dict)  # trial → its capture is being reduced

    def settle(self, cell: Cell, executed: set[str]) -> str | None:
        """Keep, of a complete cell, the trace of the trial that represents it. If that has none, because its
        record is from before a resume, and its trial is not among those `executed` since, return the trial:
        it must be executed again, with the same seed and so the same packets. A failed one need not be: it
        may have ended before there was anything to trace.
        """
        self._complete.append(cell)
        plan, median = self.manifest.plan, cell.median
        if plan.trace not in ("median", "analysis") or median is None:
            return None
        for record in cell.records:
            if record is not median:
                self.folder.forget_trace(record.trial)
        if not median.ok or median.trial in executed or self.folder.has_trace(median.trial):
            return None
        if not TESTBEDS[plan.testbed].repeats:  # it would be another trial
            self.note(f"{median.trial}: its cell's median now, but its trace is not there any more")
            return None
        return median.trial

    def reduce(self, pool: ThreadPoolExecutor) -> None:
        """Replace the traces of cells that are now complete by their analyses, if the plan says so."""
        complete, self._complete = self._complete, []
        if self.manifest.plan.trace != "analysis":
            return
        for record in (record for cell in complete for record in cell.records):
            folder, under_way = self.folder.trial(record.trial), self._analyses.get(record.trial)
            if under_way is not None and not under_way.done():
                continue  # a resumed cell is complete twice: before a lost trace is made again, and after
            if trial_files.has_capture(folder):
                run = traces.TracedRun(self.folder.path, self.manifest.scenarios, {record.trial: record})
                self._analyses[record.trial] = pool.submit(traces.reduce_to_analysis, folder, run)

    def say_what_failed(self) -> None:
        """Wait for the analyses, and name those that could not be made."""
        for trial, analysis in self._analyses.items():
            if (error := analysis.exception()) is not None:
                self.note(f"{trial}: its capture was kept, for it could not be analysed: {error}")
