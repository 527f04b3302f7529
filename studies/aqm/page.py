"""The page on queue disciplines and ECN: one flow of every stack, two equal flows, and a sparse one beside a
bulk one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from bentpipe.analysis.cells import Cell, cells
from bentpipe.study import closing, markdown
from bentpipe.study.source import Source, pooled

from . import ecn, one_flow, two_flows
from .disciplines import TAIL, discipline, path_of

_HOW = """Each queue holds one bandwidth-delay product, and each discipline has the defaults of its RFC:
[CoDel](https://www.rfc-editor.org/rfc/rfc8289), [FQ-CoDel](https://www.rfc-editor.org/rfc/rfc8290),
[PIE](https://www.rfc-editor.org/rfc/rfc8033), [DualPI2](https://www.rfc-editor.org/rfc/rfc9332). These are
made for round trips up to 100 ms; `sat` has 600 ms. *Queueing* is by how much longer a packet was on its way
to the client than the links' least delay. All figures are medians over the trials of a cell."""


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


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page to `folder`. BentpipeError if the runs have no discipline beside drop-tail."""
    page = Page(runs)
    if {discipline(one) for one in page.single} <= {TAIL}:
        raise runs[0].refused(
            "wanted are single flows, and a sweep of forward.queue with and without an aqm", "run aqm"
        )
    file = folder / "aqm.md"
    file.write_text(markdown.page(_sections(page)))
    return [file]


def _sections(page: Page) -> list[str]:
    parts = ["# Queue disciplines and ECN", _answer(page), _HOW, *ecn.sections(page.single)]
    for path in dict.fromkeys(map(path_of, page.single)):
        mine = [one for one in page.single if path_of(one) == path]
        parts += [f"## {path}", *one_flow.sections(mine)]
        parts += two_flows.sections([one for one in page.shared if path_of(one) == path])
    return [*parts, *closing.of_all(page.sources)]


def _answer(page: Page) -> str:
    """The answer: a sentence on single flows, one on ECN, one on two flows."""
    by_path: dict[str, list[Cell]] = {}
    for one in page.single:
        by_path.setdefault(path_of(one), []).append(one)
    sentences = [one_flow.sentence(by_path), ecn.sentence(page.single), two_flows.sentence(page.shared)]
    return " ".join(one for one in sentences if one)
