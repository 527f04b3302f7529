"""The beginning of the page on real links: which goodput pairs of stacks reach, whether the emulation has the
same, and whether it changes from day to day.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bentpipe.analysis.cells import Cell, cells
from bentpipe.runs.records import Record
from bentpipe.study import dots
from bentpipe.study.claims import AGREES, CANNOT_TELL, CONTRADICTS, MeasuredValue
from bentpipe.study.dots import DotPanel, DotRow
from bentpipe.study.front import Front, Picture, fitting
from bentpipe.study.markdown import listed, literal, percent, several
from bentpipe.study.means import arithmetic

from .emulation import NEAR, EmulatedPair, pair_name, pairs
from .timed_trials import Trend, days, timed, trend

PICTURE = "real-links.svg"
_CAPTION = "Goodput of each pair, client → server, with the interval of its mean{emulated}."


@dataclass(frozen=True)
class RealLinks:
    """Trials over links, those over the emulated ones, and which links are a laboratory's."""

    records: Sequence[Record]
    emulated: Sequence[Record]
    laboratories: Sequence[str]

    @cached_property
    def cells(self) -> list[Cell]:
        return cells(list(self.records))

    @cached_property
    def pairs(self) -> list[EmulatedPair]:
        return pairs(self.records, self.emulated)

    @cached_property
    def trend(self) -> Trend | None:
        """The line through goodputs over days; None if the trials are too few, or of less than a day."""
        trials = timed(self.records)
        return trend(trials) if trials and days(trials) >= 1 else None

    @property
    def links(self) -> list[str]:
        return list(dict.fromkeys(one.key.scenario for one in self.cells))

    def of(self, verdict: str) -> list[EmulatedPair]:
        """The pairs of which this is the verdict."""
        return [one for one in self.pairs if one.verdict == verdict]


def goodput(cell: Cell) -> MeasuredValue | None:
    """The mean goodput of the trials that succeeded, in Mbit/s; None without one."""
    return arithmetic([value / 1e6 for value in cell.values("goodput_bps")], 0.0)


def front(run: RealLinks, folder: Path) -> Front:
    """The front of the page; it draws the picture into `folder`."""
    theirs = {one.real.key: one.emulated for one in run.pairs}
    panels = []
    for link in run.links:
        rows = []
        for cell in run.cells:
            both = {"over the link": cell, "emulated": theirs.get(cell.key)}
            known = {name: value for name, one in both.items() if one and (value := goodput(one)) is not None}
            if cell.key.scenario == link and known:
                rows.append(DotRow(pair_name(cell), known))
        if rows:
            panels.append(DotPanel(link, rows))
    picture = None
    if panels:
        file, caption = (
            folder / PICTURE,
            _CAPTION.format(emulated=", over the link and emulated" if theirs else ""),
        )
        dots.draw(panels, file, "goodput, Mbit/s", "goodput of each pair")
        picture = Picture(file, "Goodput of each pair, with intervals", caption)
    return Front(_finding(run), _answer(run), picture, _advice(run))


def _over(run: RealLinks) -> str:
    """Over what: `starlink`, `a laboratory's link`, `2 links`."""
    if len(run.links) > 1:
        return several(len(run.links), "link")
    (only,) = run.links
    return "a laboratory's link" if only in run.laboratories else literal(only)


def _finding(run: RealLinks) -> str:
    if run.pairs:
        begin = f"Over {_over(run)} {len(run.of(AGREES))} of {several(len(run.pairs), 'pair')}"
        end = f"have the goodput of the emulation within {percent(NEAR)}"
        return fitting(f"{begin} of stacks {end}", f"{begin} {end}")
    known = _by_goodput(run)
    if not known:
        return fitting(f"No trial over {_over(run)} succeeded", "No trial over a link succeeded")
    (_, least), (_, most) = known[0], known[-1]
    begin = f"Over {_over(run)} {several(len(known), 'pair')}"
    if len(known) == 1:
        return fitting(f"{begin} reaches {least.written(2, ' Mbit/s')}", f"Goodput over {_over(run)}")
    return fitting(
        f"{begin} of stacks reach {least.written(2, ' Mbit/s')} to {most.written(2, ' Mbit/s')}",
        f"{begin} reach {least.value:.2f} to {most.value:.2f} Mbit/s in the mean",
        "Goodput over several links",
    )


def _by_goodput(run: RealLinks) -> list[tuple[Cell, MeasuredValue]]:
    """The pairs that have a goodput, the least first."""
    known = [(one, value) for one in run.cells if (value := goodput(one)) is not None]
    return sorted(known, key=lambda one: one[1].value)


def _answer(run: RealLinks) -> list[str]:
    known = _by_goodput(run)
    sentences = [] if known else ["No trial succeeded."]
    if known:
        ends = known if len(known) == 1 else [known[0], known[-1]]
        shown = " to ".join(
            f"{value.written(2, ' Mbit/s')} with {literal(pair_name(one))}"
            + (f" over {literal(one.key.scenario)}" if len(run.links) > 1 else "")
            for one, value in ends
        )
        sentences.append(
            f"Over {_over(run)} {several(len(known), 'pair')} of stacks reach a goodput of {shown}."
        )
    if run.pairs:
        unknown = run.of(CANNOT_TELL)
        end = f"; of {len(unknown)} these trials cannot tell" if unknown else ""
        names = listed(sorted({f"`{one.emulated.key.scenario}`" for one in run.pairs}))
        sentences.append(
            f"Beside the emulated link of {names}, {len(run.of(AGREES))} of "
            f"{several(len(run.pairs), 'pair')} have the same goodput within {percent(NEAR)}, and "
            f"{len(run.of(CONTRADICTS))} differ by more, or fail more often on one side{end}."
        )
    return [*sentences, _over_days(run)]


def _over_days(run: RealLinks) -> str:
    if run.trend is None:
        return "The trials are too few, or of less than a day, and show nothing of days and hours."
    word = "" if run.trend.changes else ", which shows no trend"
    return f"From day to day goodput changes by {run.trend.written()}{word}."


def _advice(run: RealLinks) -> str:
    """The lines that these trials show."""
    lines = []
    if run.pairs and len(run.of(AGREES)) == len(run.pairs):
        lines.append(
            f"- For the goodput of these pairs, emulate the link: it is equal within {percent(NEAR)}."
        )
    differing = run.of(CONTRADICTS)
    if differing:
        names = listed(literal(one.name) for one in differing)
        lines.append(
            f"- Do not take emulated goodputs for those of the link with {names}: they differ by more than "
            f"{percent(NEAR)}, or fail more often."
        )
    if run.trend is None:
        lines.append("- Before you compare days or hours, run for several days, with `--shuffle`.")
    elif run.trend.changes:
        lines.append(
            "- Compare pairs by trials of the same days, with `--shuffle`: goodput changes with time."
        )
    return "\n".join(lines)
