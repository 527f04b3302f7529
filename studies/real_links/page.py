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

from bentpipe.analysis.cells import Cell, cells
from bentpipe.errors import BentpipeError
from bentpipe.runs.records import Record
from bentpipe.study import closing, markdown
from bentpipe.study.markdown import mbit, number, percent, several, table
from bentpipe.study.quantiles import median, median_of
from bentpipe.study.source import Source

from .figure import draw
from .timed_trials import LEAST, TimedTrial, Z, timed, trend

NEAR = 0.03  # as a share: medians that are nearer agree
SOURCES = {
    "thesis": "S. Endres, Evaluation and Optimization of the IETF QUIC Protocol for Satellite Networks, "
    "master's thesis, FAU Erlangen-Nürnberg, 2022: table 4.4, section 5.7.4, figures 5.23 and 5.24"
}
_LABORATORY = """**This page is of a laboratory**, not of a satellite: {links} is the emulated link of
a scenario between two SSH servers on one machine (`bentpipe lab`). It shows what the page of a real
link looks like, and how near its measures come to those of the testbed `emu`."""
_LINKS = """What is said of each link, and what was measured. *RTT*: the median and the largest of the
trials' medians of a small regular flow beside them; *lost*: of its packets. *Traffic*: of all trials,
both ways, by the captures. *Clocks*: by how much the server's was ahead at most, and how wrong that may
be."""
_TIME = """A trial's goodput as a share of the mean of its pair, over days and over the hour (UTC) of
its start. The line is a regression; *slope* is what it rises by in a day, with its interval of 95 %.
Hours are set apart from the days by nothing: with few days, what an hour shows may be the day's."""
_WEATHER = """What was noted of the weather behind trials, and how goodput, as a share of its pair's
mean, goes along with it: Pearson's correlation, with its interval of 95 %."""
_EMULATED = """Medians of the goodputs of each pair, Mbit/s, over the link and over the emulated link
of {scenario}. *Agrees*: by less than {near}."""
_LIMITS = """- Trials run one after the other: what differs between pairs may be the hour that each had.
`--shuffle` spreads them.
- The link's rate in a trial is not known: efficiency is a share of the nominal one.
- Who lost a packet, a queue or the medium, is not known."""


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page and its figure to `folder`. BentpipeError if there is no run over a link."""
    real = [run for run in runs if run.manifest.plan.testbed == "remote"]
    emulated = [run for run in runs if run.manifest.plan.testbed == "emu"]
    if not real:
        raise BentpipeError(
            f"{runs[0].folder}: no trial of it was over a real link", "make one with --testbed remote"
        )
    records = [one for run in real for one in run.in_order]
    trials = timed(records)
    page, drawn = folder / "real-links.md", folder / "real-links-time.svg"
    files = [page]
    if trials:
        draw(trials, trend(trials), drawn)
        files.append(drawn)
    page.write_text(markdown.page(_sections(real, emulated, records, trials)))
    return files


def _sections(
    real: Sequence[Source],
    emulated: Sequence[Source],
    records: Sequence[Record],
    trials: Sequence[TimedTrial],
) -> list[str]:
    links = _known(real)
    laboratories = [name for name, known in links.items() if known["link"].get("laboratory")]
    parts = ["# Trials over real links"]
    if laboratories:
        parts.append(_LABORATORY.format(links=", ".join(f"`{name}`" for name in laboratories)))
    parts += ["## The links", _LINKS, _links(links, records)]
    parts += ["## Pairs", _pairs(records)]
    if emulated:
        ours = [one for run in emulated for one in run.in_order]
        names = ", ".join(sorted({f"`{one.scenario}`" for one in ours}))
        parts += ["## Beside the emulation", _EMULATED.format(scenario=names, near=percent(NEAR))]
        parts.append(_beside(records, ours))
    if trials:
        parts += ["## Over days, and times of day", _TIME, _trend(trials)]
        parts += ["![goodput over time](real-links-time.svg)", _hours(trials)]
    if weather := _weather(trials):
        parts += ["## Weather", _WEATHER, weather]
    return [*parts, "## Limits of this page", _LIMITS, *closing.of_all([*real, *emulated], SOURCES)]


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


def _pairs(records: Sequence[Record]) -> str:
    rows = []
    for cell in cells(list(records)):
        failed = sum(cell.failures.values())
        efficiencies = [one.efficiency for one in cell.ok if one.efficiency is not None]
        rows.append(
            [
                cell.key.scenario,
                f"{cell.key.client} → {cell.key.server}",
                str(len(cell.records)),
                str(failed),
                mbit(cell.goodput_mean_bps),
                mbit(_deviation(cell)),
                percent(statistics.fmean(efficiencies)) if efficiencies else "-",
                ", ".join(sorted({one.measured_from for one in cell.records})),
            ]
        )
    head = ["link", "client → server", "trials", "failed", "Mbit/s", "±", "efficiency", "measured from"]
    return table(head, rows, left=2)


def _deviation(cell: Cell) -> float | None:
    goodputs = [one.goodput_bps for one in cell.ok if one.goodput_bps is not None]
    return statistics.stdev(goodputs) if len(goodputs) > 1 else None


def _beside(real: Sequence[Record], emulated: Sequence[Record]) -> str:
    theirs = {
        (cell.key.client, cell.key.server, cell.key.workload): median_of(cell, "goodput_bps")
        for cell in cells(list(emulated))
    }
    rows, differences = [], []
    for cell in cells(list(real)):
        ours, other = (
            median_of(cell, "goodput_bps"),
            theirs.get((cell.key.client, cell.key.server, cell.key.workload)),
        )
        if ours is None or other is None:
            continue
        difference = ours / other - 1
        differences.append(abs(difference))
        agrees = "yes" if abs(difference) < NEAR else "no"
        pair = f"{cell.key.client} → {cell.key.server}"
        rows.append([cell.key.scenario, pair, mbit(ours), mbit(other), f"{100 * difference:+.1f} %", agrees])
    head = ["link", "client → server", "link", "emulated", "difference", "agrees"]
    agree = sum(one < NEAR for one in differences)
    return table(head, rows, left=2) + f"\n\n{agree} of {several(len(rows), 'pair')} agree."


def _trend(trials: Sequence[TimedTrial]) -> str:
    found = trend(trials)
    first, last = (f"{one.began:%Y-%m-%d %H:%M}" for one in (trials[0], trials[-1]))
    told = f"{several(len(trials), 'trial')} that succeeded, from {first} to {last}."
    if found is None:
        return f"{told} Too few for a line."
    days = (trials[-1].began - trials[0].began).total_seconds() / 86400
    if days < 1:
        return f"{told} That is less than a day: no line is drawn through it."
    low, high = found.slope - found.error, found.slope + found.error
    word = "no trend is to be seen" if low <= 0 <= high else "it changes"
    return f"{told} Slope: {100 * found.slope:+.2f} % a day ({100 * low:+.2f} to {100 * high:+.2f}): {word}."


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
