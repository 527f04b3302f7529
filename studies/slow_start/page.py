"""The page on slow starts side by side, over queues, those of QUIC and those of Linux's TCP: how near to the
limit, what is dropped, and what ended slow start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bentpipe.analysis.cells import Cell
from bentpipe.analysis.trial_marks import marked
from bentpipe.schema.manifest import ScenarioState
from bentpipe.study import closing, figures, markdown, sheets
from bentpipe.study.front import folded
from bentpipe.study.grid import Grid, dropped
from bentpipe.study.markdown import literal, several, table, trials
from bentpipe.study.slow_starts import MB, SlowStartTrial
from bentpipe.study.source import Source
from bentpipe.study.variants import definitions

from . import answer
from .runs import SlowStartRuns, is_tcp

_FIGURE = "slow-start.svg"
_MEASURES = {"share_of_limit": lambda one: one.share_of_limit, "dropped_share": dropped}
_HOW = """Share of the limit, geometric means of `limit_s` / `completion_s`: 100 % is a sender that knows
the path. *dropped*: what the queue dropped, in percent of the file. In bold, the best of a column among
those that drop no more than CUBIC with HyStart++ does there, and what equals it to the percent, where the
interval (95 %, t on logarithms) is above that of all others."""
_TCP = """Of TCP the limit has a round trip more, its handshake and that of TLS being apart: at equal shares
its file is there a round trip later."""
_LEFT = """The second table of each path has what ended slow start most frequently, and when: the median,
from the client's first packet on. `loss` means that the slow start did not see the full link
before its queue overflowed, or that a packet was lost on the medium; *not left* that the file was
there before; *not reported* that the stack does not say."""

_ACTS = """The least queue from which on a slow start acts before the first loss in most trials: it ends, or
first slows down, as HyStart++ does:"""


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page, its figures and its sheet to `folder`; the files, the page first. BentpipeError if
    the run has not several slow starts and a sweep of the forward queue.
    """
    page = SlowStartRuns(tuple(runs))
    if len(page.variants) < 2:
        raise runs[0].refused(
            "wanted are servers with ss=, and a sweep of forward.queue; the run has "
            f"{several(len(page.variants), 'server')} with both",
            "run slow-start",
        )
    grids = page.over.items()
    figures.grids(
        [
            (f"{path[0]}: share of the limit, percent", grid.squares(list(page.variants)))
            for path, grid in grids
        ],
        list(page.variants.values()),
        [list(grid.settings) for _, grid in grids],
        folder / _FIGURE,
        "share of the limit over queues",
    )
    front = answer.front(page, folder)
    sheet = folder / "slow-start.csv"
    line = sheets.of_cells(page.cells, _MEASURES, sheet)
    written = folder / "slow-start.md"
    written.write_text(markdown.page([*front.parts(), *_sections(page, line)]))
    return [written, folder / answer.PICTURE, folder / _FIGURE, sheet]


def _sections(page: SlowStartRuns, sheet: str) -> list[str]:
    parts = ["## What was run", _opening(page), _HOW, answer.HOW, *([_TCP] if page.tcp else [])]
    parts += ["## Every slow start"]
    parts += [f"![Share of the limit of every slow start, over queues, in percent]({_FIGURE})", sheet]
    if page.tells:
        parts += ["## When slow starts act", _ACTS, _acting(page), _LEFT]
    for path, grid in page.over.items():
        parts += [f"## {path[0]}", _title(page, path[0])]
        parts += folded("Shares of the limit, and what is dropped", grid.markdown("server"))
        parts += folded("What ended slow start, and when", _left(page, grid)) if page.tells else []
    return [*parts, *closing.of_all(page.sources, definitions(list(page.variants)))]


def _opening(page: SlowStartRuns) -> str:
    count = {len(one.records) for one in page.cells}
    sizes = ", ".join(
        f"{size / MB:g} MB" for size in sorted({one.records[0].size_bytes for one in page.cells})
    )
    return (
        f"{several(len(page.variants), 'variant')} as the server, each over "
        f"{several(len(page.over), 'path')} with queues from a tenth of "
        f"what the path holds to several times that; files of {sizes}, {trials(count)} each."
    )


def _acting(page: SlowStartRuns) -> str:
    """Slow starts against paths: the least queue."""
    grids = list(page.over.values())
    rows = [[literal(name), *(_from(grid, one) for grid in grids)] for one, name in page.variants.items()]
    return table(["", *(path[0] for path in page.over)], rows, left=1 + len(grids))


def _from(grid: Grid, variant: str) -> str:
    """The queue from which on a slow start acts in most trials; the queues grow from left to
    right."""
    if not _says(grid, variant):
        return "not reported"
    least = None
    for setting in reversed(grid.settings):
        cell = grid.cells.get((variant, setting))
        if cell is None or not _acts(cell):
            break
        least = setting
    return least or "never"


def _says(grid: Grid, variant: str) -> bool:
    """Whether it is a stack that says how its slow start ends."""
    mine = (cell for (one, _), cell in grid.cells.items() if one == variant)
    return not any(map(is_tcp, mine))


def _acts(cell: Cell) -> bool:
    return sum(SlowStartTrial(one).acted for one in cell.records) > len(cell.records) / 2


def _title(page: SlowStartRuns, scenario: str) -> str:
    label = next(
        one.key.scenario for one in page.cells if str(one.key.scenario_label.without_queue) == scenario
    )
    return f"{literal(str(_state(page, label).summary.get('title', scenario)))}."


def _state(page: SlowStartRuns, label: str) -> ScenarioState:
    return next(one.manifest.scenarios[label] for one in page.sources if label in one.manifest.scenarios)


def _left(page: SlowStartRuns, grid: Grid) -> str:
    rows = [
        [literal(page.variants[one]), *(marked(_ended(cell), cell) for cell in row)]
        for one in grid.variants
        for row in ([grid.cells.get((one, setting)) for setting in grid.settings],)
    ]
    return table(["", *grid.settings], rows, left=1 + len(grid.settings))


def _ended(cell: Cell | None) -> str:
    if cell is None:
        return ""
    runs = [SlowStartTrial(one) for one in cell.records]
    ((word, count),) = Counter(one.left_by for one in runs).most_common(1)
    if word is None:
        return "not reported" if is_tcp(cell) else "not left"
    times = sorted(one.left_s for one in runs if one.left_by == word and one.left_s is not None)
    said = literal(word.replace("_", " "))
    text = f"{said} {times[len(times) // 2]:.1f} s" if times else said
    return text if count == len(runs) else f"{text} ({count} of {len(runs)})"
