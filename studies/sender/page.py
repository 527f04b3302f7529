"""The page on Bentpipe's sender beside the best of other stacks and of Linux: a ratio of times per path,
size and sender.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from bentpipe.analysis.cell_ratio import cell_ratio
from bentpipe.analysis.cells import Cell, cells
from bentpipe.analysis.inference import Ratio, adjusted
from bentpipe.analysis.trial_marks import marked
from bentpipe.study import closing, markdown
from bentpipe.study.markdown import bytes_as, literal, number, several, table, trials
from bentpipe.study.quantiles import median_of
from bentpipe.study.source import Source, pooled

OURS = "noq:cc=bentpipe"
_SURE = 0.05  # adjusted p
_SMALL = 0.02  # ratios that are nearer to 1 are not listed one by one
_HOW = """Each cell has the time of another sender divided by that of Bentpipe's, from the client's first
packet to the last byte: 2.00 says that the other takes twice as long. It is the ratio of geometric means;
in brackets is [its interval](../../docs/reference/study-verdicts.md#intervals-of-ratios) of 95 % where
trials differ. **Bold**: the difference is beyond chance (p < 0.05 after Benjamini and Hochberg over all
cells of the page). The client of all QUIC senders is noq without options, so that Bentpipe's sender is at
one end alone; that of Linux's TCP is Linux, with TLS, whose handshakes take a round trip more."""
_LEFT_OUT = """- Uploads, and Bentpipe's sender at the client: [the study of
  objectives](../objectives/objectives.md) has them.
- 100 MB: the study of objectives has them over five paths.
- The other scenarios: most differ from one here in rate and round-trip time alone.
- Queue disciplines other than the scenario's own, and several flows on a path: [how the sender
  behaves](../../docs/design/sender.md) has them."""


class Pairing(NamedTuple):
    """Bentpipe's sender and another one over the same path, with the same file."""

    ours: Cell
    other: Cell


@dataclass(frozen=True)
class Beside:
    """How the other sender's time compares, and how sure that is."""

    pair: Pairing
    ratio: Ratio
    p: float | None

    @property
    def is_sure(self) -> bool:
        return self.p is not None and self.p <= _SURE

    @property
    def is_faster(self) -> bool:
        """Bentpipe's sender takes less time, beyond chance."""
        return self.is_sure and self.ratio.value > 1

    @property
    def is_slower(self) -> bool:
        return self.is_sure and self.ratio.value < 1

    def text(self) -> str:
        one = self.ratio
        value = f"{one.value:.2f}"
        if one.low is not None and one.high is not None and one.low != one.high:
            value += f" ({one.low:.2f} to {one.high:.2f})"
        return f"**{value}**" if self.is_sure else value


@dataclass(frozen=True)
class Page:
    """The runs of the page, and what they compare."""

    sources: tuple[Source, ...]

    @cached_property
    def cells(self) -> list[Cell]:
        return cells(pooled(self.sources))

    @cached_property
    def ours(self) -> dict[tuple[str, str], Cell]:
        """Bentpipe's sender by path and workload."""
        return {_place(one): one for one in self.cells if one.key.server == OURS}

    @cached_property
    def others(self) -> list[str]:
        return list(dict.fromkeys(one.key.server for one in self.cells if one.key.server != OURS))

    @cached_property
    def beside(self) -> dict[tuple[str, str, str], Beside]:
        """By path, workload and other sender, of cells in which no trial failed."""
        pairs = [
            Pairing(self.ours[_place(one)], one)
            for one in self.cells
            if one.key.server != OURS and _place(one) in self.ours and not one.failures
        ]
        pairs = [one for one in pairs if not one.ours.failures]
        found = [(one, of) for one in pairs if (of := cell_ratio(one.ours, one.other, "completion_s"))]
        sure = adjusted([of.p for _, of in found])
        return {
            (*_place(one.other), one.other.key.server): Beside(one, of, p)
            for (one, of), p in zip(found, sure, strict=True)
        }

    def failed(self) -> list[Cell]:
        return [one for one in self.cells if one.failures]


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page to `folder`. BentpipeError if the runs do not have Bentpipe's sender and another one."""
    page = Page(tuple(runs))
    if not page.beside:
        raise runs[0].refused(f"wanted are {OURS} and other servers over the same paths", "study sender")
    file = folder / "sender.md"
    file.write_text(markdown.page(_sections(page)))
    return [file]


def _place(cell: Cell) -> tuple[str, str]:
    return cell.key.scenario, cell.key.workload


def _sections(page: Page) -> list[str]:
    found = page.beside.values()
    parts = ["# Bentpipe's sender beside the best", _answer(page), _tally(page), _HOW, _count(page)]
    parts += ["## Where it is slower", *_slower(found)]
    for workload in dict.fromkeys(workload for _, workload in page.ours):
        cell = next(one for (_, mine), one in page.ours.items() if mine == workload)
        parts += [f"## {_size(cell)}", _matrix(page, workload)]
    return [*parts, "## What is left out", _LEFT_OUT, *closing.of_all(page.sources)]


def _answer(page: Page) -> str:
    found = list(page.beside.values())
    faster, slower = sum(one.is_faster for one in found), sum(one.is_slower for one in found)
    best = [_best(page, place) for place in page.ours]
    known = [one for one in best if one]
    ahead = sum(not one.is_slower for one in known)
    return (
        f"`{OURS}` takes less time than another sender in {faster} of {several(len(found), 'comparison')}, "
        f"more in {slower}; in the others the difference may be chance. In {ahead} of {len(known)} settings "
        "of path and size no other sender is faster beyond chance."
    )


def _best(page: Page, place: tuple[str, str]) -> Beside | None:
    """The comparison with the other sender that takes least time there."""
    mine = [one for key, one in page.beside.items() if key[:2] == place]
    slower = [one for one in mine if one.is_slower]
    return min(slower or mine, key=lambda one: one.ratio.value, default=None)


def _tally(page: Page) -> str:
    rows = []
    for server in page.others:
        mine = [one for (_, _, other), one in page.beside.items() if other == server]
        faster, slower = sum(one.is_faster for one in mine), sum(one.is_slower for one in mine)
        rows.append([literal(server), *map(str, (faster, len(mine) - faster - slower, slower))])
    return table(["beside", "it is faster", "no difference beyond chance", "slower"], rows)


def _count(page: Page) -> str:
    return f"{trials({len(one.records) for one in page.cells}).capitalize()} of each."


def _slower(found: Iterable[Beside]) -> list[str]:
    slower = sorted((one for one in found if one.is_slower), key=lambda one: one.ratio.value)
    large = [one for one in slower if one.ratio.value < 1 - _SMALL]
    said = f"In {several(len(slower), 'comparison')} beyond chance"
    if not large:
        return [f"{said}, in all by less than 2 %."]
    rows = [
        [
            literal(one.pair.ours.key.scenario),
            _size(one.pair.ours),
            literal(one.pair.other.key.server),
            one.text().strip("*"),
            *(
                marked(number(median_of(cell, "completion_s")), cell)
                for cell in (one.pair.ours, one.pair.other)
            ),
        ]
        for one in large
    ]
    head = ["path", "size", "the other", "its time, divided by ours", "ours, s", "the other's, s"]
    rest = f"; {len(slower) - len(large)} of them differ by less than 2 % and are not listed"
    return [f"{said}{rest}. Seconds are medians.", table(head, rows, left=3)]


def _matrix(page: Page, workload: str) -> str:
    rows = []
    for (scenario, mine), ours in page.ours.items():
        if mine != workload:
            continue
        cells_of = (_text(page, (scenario, workload, other)) for other in page.others)
        seconds = marked(number(median_of(ours, "completion_s")), ours)
        rows.append([literal(scenario), seconds, *cells_of])
    return table(["path", "Bentpipe's, s", *map(literal, page.others)], rows)


def _text(page: Page, key: tuple[str, str, str]) -> str:
    if key in page.beside:
        return page.beside[key].text()
    mine = [one for one in page.failed() if (*_place(one), one.key.server) == key]
    return f"{sum(mine[0].failures.values())} failed" if mine else "-"


def _size(cell: Cell) -> str:
    return bytes_as(cell.records[0].size_bytes)
