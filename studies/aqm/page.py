"""The page on queue disciplines and ECN: one flow of every stack, two equal flows, and a sparse one beside a
bulk one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from bentpipe.analysis.cells import Cell, cells
from bentpipe.study import closing, markdown
from bentpipe.study.markdown import listed
from bentpipe.study.source import Source, pooled

from . import answer, comparison, ecn, one_flow, two_flows
from .disciplines import TAIL, discipline, path_of

_HOW = """Each queue holds one bandwidth-delay product, and each discipline has the defaults of its RFC:
[CoDel](https://www.rfc-editor.org/rfc/rfc8289), [FQ-CoDel](https://www.rfc-editor.org/rfc/rfc8290),
[PIE](https://www.rfc-editor.org/rfc/rfc8033), [DualPI2](https://www.rfc-editor.org/rfc/rfc9332). These are
made for round trips up to 100 ms{}. *Queueing* is the delay of a packet on its way to the client beyond the
least delay of the links. Tables have medians over the trials of a cell."""


class Page:
    """The runs of the page, and their cells."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = sources

    @cached_property
    def cells(self) -> list[Cell]:
        return [one for one in cells(pooled(self.sources)) if one.key.scenario_label.queue]

    @cached_property
    def single(self) -> list[Cell]:
        """Of single flows."""
        return [one for one in self.cells if " + " not in one.key.workload]

    @cached_property
    def shared(self) -> list[Cell]:
        """Of two flows."""
        return [one for one in self.cells if " + " in one.key.workload]

    def round_trip_ms(self, scenario: str) -> float | None:
        """The round trip without queueing over a scenario; None where no run says it."""
        states = (one.manifest.scenarios.get(scenario) for one in self.sources)
        return next((one.summary.get("rtt_ms") for one in states if one is not None), None)


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page to `folder`. BentpipeError if the runs have no discipline beside drop-tail."""
    page = Page(runs)
    if {discipline(one) for one in page.single} <= {TAIL}:
        raise runs[0].refused(
            "wanted are single flows, and a sweep of forward.queue with and without an aqm", "run aqm"
        )
    paths = answer.effects(page.single, page.shared)
    front = answer.front(paths, folder)
    file = folder / "aqm.md"
    file.write_text(markdown.page([*front.parts(), *_sections(page, answer.extremes(paths))]))
    return [file, *([] if front.picture is None else [front.picture.file])]


def _sections(page: Page, extremes: str) -> list[str]:
    parts = ["## What was run", _HOW.format(_round_trips(page)), comparison.HOW, *filter(None, [extremes])]
    parts += ecn.sections(page.single)
    for path in dict.fromkeys(map(path_of, page.single)):
        mine = [one for one in page.single if path_of(one) == path]
        parts += [f"## {path}", *one_flow.sections(mine)]
        parts += two_flows.sections([one for one in page.shared if path_of(one) == path])
    return [*parts, *closing.of_all(page.sources)]


def _round_trips(page: Page) -> str:
    """The round trip of each path, as the end of a sentence; "" where the runs do not say it."""
    known = {path_of(one): page.round_trip_ms(one.key.scenario) for one in page.single}
    shown = [f"`{name}` has {time_ms:.0f} ms" for name, time_ms in known.items() if time_ms is not None]
    return f"; {listed(shown)}" if shown else ""
