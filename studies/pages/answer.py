"""The beginning of the page on pages: what proxies and HTTP's versions change, beside the paper's table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from bentpipe.analysis.cell_ratio import cell_ratio
from bentpipe.analysis.cells import Cell
from bentpipe.study import forest
from bentpipe.study.claims import SAME_DIRECTION, Claim, MeasuredValue, Published, tally, verdict
from bentpipe.study.front import Front, Picture, fitting
from bentpipe.study.markdown import listed, several
from bentpipe.workload.http import TITLES

from .published import Published as Said
from .published import TableRow
from .runs import PageRuns, seconds

PICTURE = "pages-claims.svg"
GEO, LEO = "geo-tum", "leo-tum"
_ORBITS = {GEO: "GEO", LEO: "LEO"}
_CAPTION = """Page load time behind proxies / without, of the paper's browser and of our trials, with
intervals of 95 %: left of 1 proxies are faster."""
HOW = """Ratios of page load times: of the source those of its medians, of ours those of geometric means,
with [its interval](../../docs/reference/study-verdicts.md#intervals-of-ratios) of 95 %. The source's times
have more than the path in them, so ratios are compared, not seconds."""


def claims(runs: PageRuns, said: Said) -> list[Claim]:
    """Of the paper's table: what proxies change, and what HTTP/3 changes."""
    return [*_of_proxies(runs, said), *_of_version(runs, said)]


def _row(said: Said, scenario: str, version: str, *, proxies: bool) -> TableRow | None:
    return next(
        (one for one in said.table if (one.scenario, one.http, one.proxies) == (scenario, version, proxies)),
        None,
    )


def _cell(runs: PageRuns, row: TableRow, loss: str) -> Cell | None:
    return runs.of_table(row.scenario, row.http, row.proxies, loss.replace(" ", ""))


def _of_proxies(runs: PageRuns, said: Said) -> Iterator[Claim]:
    for scenario in _ORBITS:
        for version in ("h3", "h1"):
            both = [_row(said, scenario, version, proxies=way) for way in (True, False)]
            if both[0] is not None and both[1] is not None:
                title = f"{TITLES[version]}, {_ORBITS[scenario]}"
                yield from _each_loss(runs, said, (both[0], both[1]), f"{title}, proxies / none")


def _of_version(runs: PageRuns, said: Said) -> Iterator[Claim]:
    for scenario in _ORBITS:
        both = [_row(said, scenario, version, proxies=False) for version in ("h3", "h1")]
        if both[0] is not None and both[1] is not None:
            yield from _each_loss(runs, said, (both[0], both[1]), f"HTTP/3 / HTTP/1.1, {_ORBITS[scenario]}")


def _each_loss(runs: PageRuns, said: Said, both: tuple[TableRow, TableRow], title: str) -> Iterator[Claim]:
    for place, loss in enumerate(said.losses):
        cells = [_cell(runs, one, loss) for one in both]
        if cells[0] is None or cells[1] is None:
            continue
        failed = cells[0].failures.total() + cells[1].failures.total()
        ratio = cell_ratio(cells[1], cells[0], "plt_s")
        measured = None if failed else MeasuredValue.of(ratio)  # those that succeed are the fast ones
        note = f"{several(failed, 'trial')} failed" if failed else ""
        then = both[0].plt[place] / both[1].plt[place]
        here = "-" if measured is None else measured.written()
        label = f"{title}, {loss}"
        text, published = f"Page load time, {label}", Published.ratio(then)
        yield Claim(text, f"{then:.2f}", published, measured, here, label, note)


def front(runs: PageRuns, said: Said, known: Sequence[Claim], folder: Path) -> Front:
    """The front of the page; it draws the picture into `folder`."""
    picture, shown = None, forest.drawable(known)
    if shown:
        file = folder / PICTURE
        forest.draw(shown, file, "page load time, ratio", "what proxies and versions change")
        picture = Picture(file, "Ratios of page load times, published and ours, with intervals", _CAPTION)
    return Front(_finding(known), _answer(runs, said, known), picture, _advice(known))


def _advice(known: Sequence[Claim]) -> str:
    """The lines that the intervals of our ratios show, whatever the source says."""
    lines = []
    for words, is_meant, above in (
        ("Proxies shorten the page load time of", _is_of_proxies, False),
        ("Leave proxies out, which lengthen it, of", _is_of_proxies, True),
        ("HTTP/3 is faster than HTTP/1.1 over", _is_of_version, False),
        ("HTTP/3 is slower than HTTP/1.1 over", _is_of_version, True),
    ):
        losses: dict[str, list[str]] = {}
        for one in known:
            if is_meant(one) and verdict(one.measured, Published.side(above=above)) == SAME_DIRECTION:
                what, loss = _setting(one)
                losses.setdefault(what, []).append(loss.removesuffix(" %"))
        if losses:
            each = [f"{what} at {listed(some)} % of loss" for what, some in losses.items()]
            lines.append(f"- {words} {'; '.join(each)}.")
    return "\n".join(lines)


def _is_of_proxies(one: Claim) -> bool:
    return "proxies / none" in one.label


def _is_of_version(one: Claim) -> bool:
    return one.label.startswith("HTTP/3 / HTTP/1.1")


def _setting(one: Claim) -> tuple[str, str]:
    """What a ratio is of, and at which loss: `HTTP/3 over GEO` and `0.1 %`."""
    what, _, loss = one.label.rpartition(", ")
    short = what.removesuffix(", proxies / none").removeprefix("HTTP/3 / HTTP/1.1, ")
    return short.replace(", ", " over "), loss


def _finding(known: Sequence[Claim]) -> str:
    mine = [one for one in known if one.label.startswith("HTTP/3, GEO, proxies") and one.measured]
    if not mine:
        return "How long a page takes over each version of HTTP behind a satellite"
    first, last = mine[0], mine[-1]
    begin = f"Behind proxies HTTP/3 takes {first.here} of a page's time over GEO"
    plain = f"{begin} at {_setting(first)[1]} of loss"
    return plain if first is last else fitting(f"{begin}, {last.here} at {_setting(last)[1]} of loss", plain)


def _answer(runs: PageRuns, said: Said, known: Sequence[Claim]) -> list[str]:
    times = []
    for version in ("h3", "h1"):
        row = _row(said, GEO, version, proxies=False)
        cell = None if row is None else _cell(runs, row, said.losses[0])
        if row is not None and cell is not None:
            times.append(f"{seconds(cell, 'plt_s', ' s')} over {TITLES[version]} ({row.plt[0] / 1000:.2f} s)")
    sentences = []
    if times:
        sentences.append(
            f"Over GEO without losses and without proxies a page takes {' and '.join(times)}; in parentheses "
            "the paper's, of a browser."
        )
    verdicts = tally(one.verdict for one in known)
    return [*sentences, f"Of {several(len(known), 'ratio')} of the paper's table, {verdicts}."]
