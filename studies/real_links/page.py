"""The page of trials over real links: the links, pairs, days and hours, the weather, and the emulation.

What the thesis of Endres (2022) has of its two satellite accesses: table 4.4, section 5.7.4 with figures 5.23
and 5.24. Whether anything depends on time is shown as there, by a regression line, and here with an interval.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bentpipe.analysis.cells import Cell
from bentpipe.errors import BentpipeError
from bentpipe.runs.records import Record
from bentpipe.study import closing, markdown
from bentpipe.study.claims import AGREES, CONTRADICTS
from bentpipe.study.front import folded
from bentpipe.study.markdown import mbit, number, percent, several, table
from bentpipe.study.quantiles import median
from bentpipe.study.source import Source

from . import answer, emulation
from .answer import RealLinks, goodput
from .emulation import EmulatedPair, pair_name
from .figure import draw
from .timed_trials import LEAST, TimedTrial, Z, days, timed, trend

_FIGURE = "real-links-time.svg"
SOURCES = {
    "thesis": "S. Endres, Evaluation and Optimization of the IETF QUIC Protocol for Satellite Networks, "
    "master's thesis, FAU Erlangen-Nürnberg, 2022: table 4.4, section 5.7.4, figures 5.23 and 5.24"
}
_LABORATORY = """**This page is of a laboratory**, not of a satellite: {links} is the emulated link of
a scenario between two SSH servers on one machine (`bentpipe lab`). It shows what the page of a real
link looks like, and how near its measures come to those of the testbed `emu`."""
_LINKS = """The nominal figures of each link, and what was measured. *RTT*: the median and the largest of
the trials' medians of a small regular flow beside them; *lost*: of its packets. *Traffic*: of all trials,
both ways, by the captures. *Clocks*: by how much the server's clock was ahead at most, and the largest error
of that."""
_PAIRS = """Mean goodputs with their intervals, and the standard deviation of the trials."""
_TIME = """A trial's goodput as a share of the mean of its pair, over days and over the hour (UTC) of its
start. The line is a regression, its slope is the change in a day, with its interval of 95 %. Hours are not
separated from days: with few days, a difference between hours may be one between days."""
_WEATHER = """The weather during trials, and Pearson's correlation of goodput, as a share of its pair's mean,
with it, with its interval of 95 %."""
_EMULATED = """Mean goodputs of each pair, Mbit/s, over the link and over the emulated link of {scenario}."""
_LIMITS = """- Trials run one after the other: what differs between pairs may be the hour that each had.
`--shuffle` spreads them.
- The link's rate in a trial is not known: efficiency is a share of the nominal one.
- Whether a queue dropped a packet or the medium lost it is not known."""


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page and its figure to `folder`. BentpipeError if there is no run over a link."""
    real = [run for run in runs if run.manifest.plan.testbed == "remote"]
    emulated = [run for run in runs if run.manifest.plan.testbed == "emu"]
    if not real:
        raise BentpipeError(
            f"{runs[0].folder}: no trial of it was over a real link", "make one with --testbed remote"
        )
    links = _known(real)
    laboratories = [name for name, known in links.items() if known["link"].get("laboratory")]
    records = [one for run in real for one in run.in_order]
    run = RealLinks(records, [one for each in emulated for one in each.in_order], laboratories)
    trials = timed(records)
    page, drawn = folder / "real-links.md", folder / _FIGURE
    front = answer.front(run, folder)
    files = [page, *([] if front.picture is None else [front.picture.file])]
    if trials:
        draw(trials, trend(trials), drawn)
        files.append(drawn)
    parts = [*front.parts(), *_sections(run, links, trials)]
    page.write_text(markdown.page([*parts, *closing.of_all([*real, *emulated], SOURCES)]))
    return files


def _sections(run: RealLinks, links: Mapping[str, dict[str, Any]], trials: Sequence[TimedTrial]) -> list[str]:
    parts = ["## What was run"]
    if run.laboratories:
        parts.append(_LABORATORY.format(links=", ".join(f"`{name}`" for name in run.laboratories)))
    parts += [_LINKS, *folded("Each link", _links(links, run.records))]
    parts += ["## Pairs", _PAIRS, *folded("Each pair", _pairs(run.cells))]
    if run.pairs:
        names = ", ".join(sorted({f"`{one.scenario}`" for one in run.emulated}))
        parts += ["## Beside the emulation", _EMULATED.format(scenario=names), emulation.HOW]
        parts += folded("Each pair beside its emulation", _beside(run.pairs))
    if trials:
        parts += ["## Over days, and times of day", _TIME, _trend(trials), f"![goodput over time]({_FIGURE})"]
        parts += folded("Each hour of the day", _hours(trials))
    if weather := _weather(trials):
        parts += ["## Weather", _WEATHER, *folded("Each measure of the weather", weather)]
    return [*parts, "## Limits of this page", _LIMITS]


def _known(real: Sequence[Source]) -> dict[str, dict[str, Any]]:
    """The summary of each link, by name."""
    return {
        name: {"link": {}, **state.summary} for run in real for name, state in run.manifest.scenarios.items()
    }


def _links(links: Mapping[str, dict[str, Any]], records: Sequence[Record]) -> str:
    rows = []
    for name, known in links.items():
        own = [one for one in records if one.scenario == name]
        asked = [one.probe_rtt_ms for one in own if one.probe_rtt_ms is not None]
        lost = [one.probe_loss_share for one in own if one.probe_loss_share is not None]
        ahead = [abs(one.clock_offset_ms) for one in own if one.clock_offset_ms is not None]
        wrong = [one.clock_error_ms for one in own if one.clock_error_ms is not None]
        said = known["link"]
        rates = "/".join(_rate(known[key]) for key in ("forward_rate_bps", "return_rate_bps"))
        moved = [(one.forward_bytes, one.return_bytes) for one in own]
        moved_bytes = [there + back for there, back in moved if there is not None and back is not None]
        rows.append(
            [
                name,
                markdown.literal(str(said.get("operator", ""))) or "-",
                said.get("orbit") or "-",
                rates,
                f"{statistics.median(asked):.1f} / {max(asked):.1f} ms" if asked else "-",
                f"{100 * statistics.fmean(lost):.2f} %" if lost else "-",
                _traffic(moved_bytes, len(own)),
                f"{max(ahead):.3f} ± {max(wrong):.3f} ms" if ahead else "-",
                "6" if any(one.ip == 6 for one in own) else "4",
            ]
        )
    head = ["link", "operator", "orbit", "nominal Mbit/s", "RTT", "lost", "traffic", "clocks", "IP"]
    return table(head, rows, left=3)


def _traffic(moved_bytes: Sequence[int], trials: int) -> str:
    """The traffic of a link, of the trials in which it was counted."""
    if not moved_bytes:
        return "-"
    some = f" of {len(moved_bytes)} of {several(trials, 'trial')}" if len(moved_bytes) < trials else ""
    return f"{sum(moved_bytes) / 1e6:.0f} MB{some}"


def _rate(bps: object) -> str:
    return f"{bps / 1e6:g}" if isinstance(bps, (int, float)) else "?"


def _pairs(known: Sequence[Cell]) -> str:
    rows = []
    for cell in known:
        efficiencies = [one.efficiency for one in cell.ok if one.efficiency is not None]
        rows.append(
            [
                cell.key.scenario,
                pair_name(cell),
                str(len(cell.records)),
                str(cell.failures.total()),
                _goodput(cell),
                mbit(_deviation(cell)),
                percent(statistics.fmean(efficiencies)) if efficiencies else "-",
                ", ".join(sorted({one.measured_from for one in cell.records})),
            ]
        )
    head = ["link", "client → server", "trials", "failed", "Mbit/s", "deviation", "efficiency"]
    return table([*head, "measured from"], rows, left=2)


def _goodput(cell: Cell) -> str:
    value = goodput(cell)
    return "-" if value is None else value.written()


def _deviation(cell: Cell) -> float | None:
    goodputs = [one.goodput_bps for one in cell.ok if one.goodput_bps is not None]
    return statistics.stdev(goodputs) if len(goodputs) > 1 else None


def _beside(pairs: Sequence[EmulatedPair]) -> str:
    words = {AGREES: "equal", CONTRADICTS: "differs"}
    rows = []
    for one in pairs:
        difference = one.difference
        rows.append(
            [
                one.real.key.scenario,
                one.name,
                *map(_goodput, (one.real, one.emulated)),
                "-" if difference is None else difference.written(1, " %"),
                words.get(one.verdict, one.verdict),
            ]
        )
    return table(["link", "client → server", "over the link", "emulated", "difference", ""], rows, left=2)


def _trend(trials: Sequence[TimedTrial]) -> str:
    found = trend(trials)
    first, last = (f"{one.began:%Y-%m-%d %H:%M}" for one in (trials[0], trials[-1]))
    text = f"{several(len(trials), 'trial')} succeeded, from {first} to {last}."
    if found is None:
        return f"{text} That is too few for a line."
    if days(trials) < 1:
        return f"{text} That is less than a day: no line is drawn."
    word = "goodput changes" if found.changes else "no trend is shown"
    return f"{text} Slope: {found.written()}: {word}."


def _hours(trials: Sequence[TimedTrial]) -> str:
    rows = []
    for hour in range(24):
        own = [one for one in trials if one.began.hour == hour]
        if own:
            rows.append(
                [
                    f"{hour:02d}:00",
                    str(len(own)),
                    f"{100 * statistics.fmean(one.share for one in own):.0f} %",
                    number(median(one.record.probe_rtt_ms for one in own), 1),
                ]
            )
    return table(["hour (UTC)", "trials", "goodput", "RTT ms"], rows)


def _weather(trials: Sequence[TimedTrial]) -> str:
    """A row for each number of the weather; empty if there is none."""
    named: dict[str, list[tuple[float, float]]] = {}
    for one in trials:
        for name, value in one.record.weather.items():
            if isinstance(value, (int, float)):
                named.setdefault(name, []).append((float(value), one.share))
    rows = [
        [
            markdown.literal(name),
            *(f"{value:g}" for value in _range([value for value, _ in pairs])),
            _correlation(pairs),
        ]
        for name, pairs in sorted(named.items())
    ]
    return table(["weather", "least", "median", "most", "correlation"], rows) if rows else ""


def _range(values: Sequence[float]) -> tuple[float, float, float]:
    return min(values), statistics.median(values), max(values)


def _correlation(pairs: Sequence[tuple[float, float]]) -> str:
    """Pearson's, with the interval by Fisher's transformation."""
    values, shares = zip(*pairs, strict=True)
    if len(pairs) < LEAST or len(set(values)) == 1 or len(set(shares)) == 1:
        return "-"
    found = statistics.correlation(values, shares)
    if abs(found) >= 1:
        return f"{found:+.2f}"
    reach = Z / math.sqrt(len(pairs) - 3)
    low, high = (math.tanh(math.atanh(found) + side * reach) for side in (-1, 1))
    return f"{found:+.2f} ({low:+.2f} to {high:+.2f})"
