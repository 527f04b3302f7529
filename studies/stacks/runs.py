"""The runs that the page is written from, by campaign, and their traces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from bentpipe.analysis import traces
from bentpipe.analysis.cells import Cell, cells
from bentpipe.analysis.traces import Analysis, TracedRun
from bentpipe.runs.records import Record
from bentpipe.runs.trial_files import is_traced
from bentpipe.study.source import Source

from .published import Published

HANDSHAKES, CONTROLLERS, PACKETS = "interop", "congestion-control", "packets"
HANDSHAKES_CAUSES = "interop-causes"
CAUSES, QUEUE, BURSTS = (f"congestion-control-{word}" for word in ("causes", "queue", "bursts"))


@dataclass(frozen=True)
class StackRuns:
    """The runs of the page, and the published values."""

    sources: tuple[Source, ...]
    known: Published

    def of(self, campaign: str) -> list[Source]:
        return [one for one in self.sources if one.manifest.campaign == campaign]

    def records(self, campaign: str) -> list[Record]:
        return [record for one in self.of(campaign) for record in one.in_order]

    def cells(self, campaign: str) -> list[Cell]:
        return cells(self.records(campaign))

    @cached_property
    def scenarios(self) -> list[str]:
        """The scenarios over which servers were compared."""
        return list(dict.fromkeys(one.scenario for one in self.records(CONTROLLERS)))

    def traces(self, campaign: str) -> Iterator[tuple[Record, Analysis]]:
        """The trials of a campaign that left a trace, or an analysis of one, and have a record."""
        for source in self.of(campaign):
            run = TracedRun.read(source.folder)
            for record in source.in_order:
                folder = source.folder / "trials" / record.trial
                if is_traced(folder):
                    yield record, traces.of_trial(folder, run)


def in_order(names: Sequence[str]) -> list[str]:
    """Without repetition, by name."""
    return sorted(dict.fromkeys(names), key=str.casefold)
