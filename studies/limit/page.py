"""The page on how close each variant comes to an ideal sender, over sizes and paths."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bentpipe import labels
from bentpipe.study import closing, figures, markdown, sheets
from bentpipe.study.front import folded
from bentpipe.study.grid import Grid, dropped
from bentpipe.study.markdown import literal, percent, several, table, trials
from bentpipe.study.source import Source, title
from bentpipe.study.variants import definitions

from . import answer
from .runs import LimitRuns

_FIGURE = "limit.svg"
_MEASURES = {"share_of_limit": lambda one: one.share_of_limit, "dropped_share": dropped}
_BEST = "The best of each; *or*: those that chance could have put behind it."
_HOW = """Shares are geometric means over the trials that succeeded, of `limit_s` / `completion_s`: 100 % is a
sender that knows the path, waits a round trip for the handshake and one for the request, and then
fills the link with 5 % for headers; a share may exceed it where headers take less. In brackets
how many trials failed; a word, the most frequent outcome, where all did. *dropped*: what the
queue towards the client dropped, in percent of the file: that is overshoot, and random losses are
not in it."""


_TCP = """Of TCP the limit has a round trip more, its handshake and that of TLS being apart: at equal shares
its file is there a round trip later. Linux's own buffers, 4 MiB of a sender, hold less than some of these
paths: `window` makes them larger."""
_BOLD = """the best of a column, and what equals it to the percent, where the interval (95 %, t on logarithms)
is above that of all others"""
_KEY = "Numbers are percent; `!`: some trials failed, the mean is over the others; `x`: no trial succeeded."


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page, its figures and its sheet to `folder`; the files, the page first. BentpipeError if the
    runs have no transfers of one file with several variants, of each stack with one client.
    """
    page = LimitRuns(tuple(runs))
    stacks = {labels.variant(one).stack for one in page.clients}
    if len(page.variants) < 2 or len(page.clients) != len(stacks):
        raise runs[0].refused(
            "wanted are transfers of one file, one client of each stack and several "
            f"servers; the runs have {several(len(page.clients), 'client')} and "
            f"{several(len(page.variants), 'server')} with such",
            "run limit",
        )
    _draw(page, folder / _FIGURE)
    front = answer.front(page, folder)
    sheet = folder / "limit.csv"
    line = sheets.of_cells(page.cells, _MEASURES, sheet)
    path = folder / "limit.md"
    path.write_text(markdown.page([*front.parts(), *_sections(page, line)]))
    return [path, folder / answer.PICTURE, folder / _FIGURE, sheet]


def _draw(page: LimitRuns, path: Path) -> None:
    grids = [(size, page.of_size(size)) for size in page.sizes]
    panels = [
        (f"{size}: share of the limit, percent", grid.squares(list(page.variants))) for size, grid in grids
    ]
    columns = [[labels.scenario(one).name for one in grid.settings] for _, grid in grids]
    figures.grids(panels, list(page.variants.values()), columns, path, "share of the limit")


def _sections(page: LimitRuns, sheet: str) -> list[str]:
    parts = ["## What was run", _opening(page), _HOW, answer.HOW, "## Every variant", _BEST]
    parts += folded("The best of each path and size", _best(page))
    parts += [f"![Share of the limit of every variant, size and path, in percent]({_FIGURE})", _KEY, sheet]
    for scenario, grid in page.over.items():
        parts += [f"## {labels.scenario(scenario).name}", _facts(page, scenario)]
        parts += folded(several(len(grid.variants), "variant"), grid.markdown("server"))
    return [*parts, *closing.of_all(page.sources, definitions(list(page.variants)))]


def _opening(page: LimitRuns) -> str:
    count = {len(one.records) for one in page.cells}
    same = " of the same stack" if len(page.clients) > 1 else ""
    text = (
        f"Files of {', '.join(page.sizes)} over {several(len(page.scenarios), 'path')}, with "
        f"{several(len(page.variants), 'variant')} "
        f"as the server and {literal(', '.join(page.clients))} as the client{same}; {trials(count)} of each. "
        "With `ss=`, slow start and congestion avoidance are Bentpipe's own; without, the controller is the "
        "stack's."
    )
    if any(record.transport == "tcp" for one in page.cells for record in one.records):
        text += f" {_TCP}"
    text += f" In bold, in the tables, {_BOLD}"
    if page.reference is None:
        return f"{text}. Look at what is dropped beside it: speed that is bought with loss is no gain."
    return (
        f"{text}, among those that never failed there and drop no more than CUBIC with HyStart++ "
        f"({literal(page.reference)}) does, where that one succeeds: speed that is bought with loss is "
        f"no gain."
    )


def _best(page: LimitRuns) -> str:
    """Scenarios against sizes: who is best."""
    rows = []
    for scenario in page.scenarios:
        grid = page.over[scenario]
        rows.append([labels.scenario(scenario).name, *(_winner(page, grid, size) for size in page.sizes)])
    return table(["", *page.sizes], rows, left=1 + len(page.sizes))


def _winner(page: LimitRuns, grid: Grid, size: str) -> str:
    best = grid.best(size) if size in grid.settings else set()
    if not best:
        return "-"
    share = grid.spots[min(best), size].share
    rivals = grid.rivals(size)
    text = f"{percent(share)}: {_listed(page, best)}"
    return f"{text}; or {_listed(page, rivals)}" if rivals else text


def _listed(page: LimitRuns, variants: set[str]) -> str:
    names = [name for one, name in page.variants.items() if one in variants]
    return literal(", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else ""))


def _facts(page: LimitRuns, scenario: str) -> str:
    summary = page.state(scenario).summary
    known = [
        ("queue", summary.get("forward_queue")),
        ("loss", summary.get("forward_loss")),
        ("timeout", f"{summary['timeout_s']:g} s" if "timeout_s" in summary else None),
    ]
    said: Sequence[str] = [f"{word} {literal(str(value))}" for word, value in known if value is not None]
    return f"{literal(title(page.sources, scenario))}. Towards the client: {', '.join(said)}."
