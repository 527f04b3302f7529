"""The page on how near each variant comes to an ideal sender, over sizes and paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bentpipe import labels, workload
from bentpipe.analysis.cells import Cell
from bentpipe.schema.manifest import ScenarioState
from bentpipe.study import closing, figures, markdown
from bentpipe.study.grid import Grid, is_reference
from bentpipe.study.markdown import bytes_as, literal, percent, several, table, trials
from bentpipe.study.source import Source, pooled, single_transfers, title
from bentpipe.study.variants import definitions, short_names

_FIGURE = "limit.svg"
_HOW = """Shares are medians over the trials that succeeded, of `limit_s` / `completion_s`: 100 % is a
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
_KEY = "Numbers are percent; `!`: some trials failed, the median is over the others; `x`: no trial succeeded."


@dataclass(frozen=True)
class Page:
    """The runs of the page, and their cells."""

    sources: tuple[Source, ...]

    @cached_property
    def cells(self) -> list[Cell]:
        return single_transfers(pooled(self.sources))

    @cached_property
    def variants(self) -> dict[str, str]:
        return short_names(list(dict.fromkeys(one.key.server for one in self.cells)))

    @cached_property
    def scenarios(self) -> list[str]:
        return list(dict.fromkeys(one.key.scenario for one in self.cells))

    @cached_property
    def sizes(self) -> list[str]:
        found = {workload.parse(one.key.workload, "the run").size_bytes for one in self.cells}
        return [bytes_as(one) for one in sorted(found)]

    @cached_property
    def clients(self) -> list[str]:
        """One for each stack."""
        return list(dict.fromkeys(one.key.client for one in self.cells))

    def state(self, scenario: str) -> ScenarioState:
        known = (one.manifest.scenarios for one in self.sources)
        return next(one[scenario] for one in known if scenario in one)

    def over(self, scenario: str) -> Grid:
        """Variants against sizes."""
        mine = [one for one in self.cells if one.key.scenario == scenario]
        found = {(one.key.server, bytes_as(one.records[0].size_bytes)): one for one in mine}
        return Grid(self.variants, [size for size in self.sizes if any(s == size for _, s in found)], found)

    def of_size(self, size: str) -> Grid:
        """Variants against scenarios."""
        mine = [one for one in self.cells if bytes_as(one.records[0].size_bytes) == size]
        return Grid(self.variants, self.scenarios, {(one.key.server, one.key.scenario): one for one in mine})

    @cached_property
    def reference(self) -> str | None:
        return next((one for one in self.variants if is_reference(one)), None)


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page and its figure to `folder`; the files, the page first. BentpipeError if the runs have
    no transfers of one file with several variants, of each stack with one client.
    """
    page = Page(tuple(runs))
    stacks = {labels.variant(one).stack for one in page.clients}
    if len(page.variants) < 2 or len(page.clients) != len(stacks):
        raise runs[0].refused(
            "wanted are transfers of one file, one client of each stack and several "
            f"servers; the runs have {several(len(page.clients), 'client')} and "
            f"{several(len(page.variants), 'server')} with such",
            "run limit",
        )
    _draw(page, folder / _FIGURE)
    path = folder / "limit.md"
    path.write_text(markdown.page(_sections(page)))
    return [path, folder / _FIGURE]


def _draw(page: Page, path: Path) -> None:
    grids = [(size, page.of_size(size)) for size in page.sizes]
    panels = [
        (f"{size}: share of the limit, percent", grid.squares(list(page.variants))) for size, grid in grids
    ]
    columns = [[labels.scenario(one).name for one in grid.settings] for _, grid in grids]
    figures.grids(panels, list(page.variants.values()), columns, path, "share of the limit")


def _sections(page: Page) -> list[str]:
    parts = ["# How near to the limit", _opening(page), _HOW, _best(page)]
    parts += [f"![Share of the limit of every variant, size and path, in percent]({_FIGURE})", _KEY]
    for scenario in page.scenarios:
        parts += [
            f"## {labels.scenario(scenario).name}",
            _facts(page, scenario),
            page.over(scenario).markdown("server"),
        ]
    return [*parts, *closing.of_all(page.sources, definitions(list(page.variants)))]


def _opening(page: Page) -> str:
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
    text += f" In bold, {_BOLD}"
    if page.reference is None:
        return f"{text}. Look at what is dropped beside it: speed that is bought with loss is no gain."
    return (
        f"{text}, among those that never failed there and drop no more than CUBIC with HyStart++ "
        f"({literal(page.reference)}) does, where that one succeeds: speed that is bought with loss is "
        f"no gain."
    )


def _best(page: Page) -> str:
    """Scenarios against sizes: who is best."""
    rows = []
    for scenario in page.scenarios:
        grid = page.over(scenario)
        rows.append([labels.scenario(scenario).name, *(_winner(page, grid, size) for size in page.sizes)])
    text = "The best of each; *or*: those that chance could have put behind it."
    return f"{text}\n\n{table(['', *page.sizes], rows, left=1 + len(page.sizes))}"


def _winner(page: Page, grid: Grid, size: str) -> str:
    best = grid.best(size) if size in grid.settings else set()
    if not best:
        return "-"
    share = grid.spots[min(best), size].share
    rivals = grid.rivals(size)
    text = f"{percent(share)}: {_listed(page, best)}"
    return f"{text}; or {_listed(page, rivals)}" if rivals else text


def _listed(page: Page, variants: set[str]) -> str:
    names = [name for one, name in page.variants.items() if one in variants]
    return literal(", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else ""))


def _facts(page: Page, scenario: str) -> str:
    summary = page.state(scenario).summary
    known = [
        ("queue", summary.get("forward_queue")),
        ("loss", summary.get("forward_loss")),
        ("timeout", f"{summary['timeout_s']:g} s" if "timeout_s" in summary else None),
    ]
    said: Sequence[str] = [f"{word} {literal(str(value))}" for word, value in known if value is not None]
    return f"{literal(title(page.sources, scenario))}. Towards the client: {', '.join(said)}."
