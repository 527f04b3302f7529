"""Table II of the source: goodput under random losses, beside what is measured here and what CUBIC's formula
gives; and what moves it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from bentpipe import labels
from bentpipe.analysis.cell_ratio import cell_ratio
from bentpipe.analysis.inference import CONFIDENCE, t_quantile
from bentpipe.study.intervals import with_ends
from bentpipe.study.markdown import several, table

from .published import Kuhn, LossRow
from .runs import KuhnRuns, LossyGoodputs

TABLE, OPTIONS, CAUSES, BURSTS, GIGABYTE = (
    f"kuhn-satellite{ending}" for ending in ("", "-options", "-causes", "-bursts", "-gigabyte")
)
_RTT_S = 0.6
_SEGMENT = 1448  # bytes
_C, _BETA = 0.4, 0.7
_SERVER = "linux:cc=cubic"
_TABLE = """Goodput of one connection over 10 Mbit/s both ways, 600 ms, a queue of 1 BDP, losses towards
the client alone; {trials} of {lasting} for each loss, with the mean's 95 % interval. The source moves one
file of 1 GB for each loss, once, over a real satellite that it shares with others. It states neither round
trip nor queue, nor on which way the losses are."""
_COLUMNS = """*CUBIC's formula* is the mean window of RFC 9438, section 5.1, (C (3 + β) / (4 (1 - β)))^¼ ·
(RTT / p)^¾ packets of 1448 bytes for each round trip of 600 ms, without Reno's part and not above 10
Mbit/s. *Exponent* is of what lies between a row and the one above it: goodput falls with p to that power;
the formula's is 0.75, Reno's 0.5. *First half* and *second half* are of the same trials, by payload that
arrived, with all headers of TLS: what slow start does at the beginning is in the first half."""


_BURSTS = """The source's losses are netem's. Where a kernel hands netem segments that are cut into packets
later, one loss takes several packets, and a sender answers it once. The source does not say whether that was
so, and in virtual time there is no such offload. Here losses come two at a time on average, as many in all,
in Mbit/s:"""


def formula_mbps(loss: float) -> float:
    """By RFC 9438, equation 5; at most the link's."""
    if not loss:
        return 10.0
    window: float = (_C * (3 + _BETA) / (4 * (1 - _BETA))) ** 0.25 * (_RTT_S / loss) ** 0.75
    return min(window * _SEGMENT * 8 / _RTT_S / 1e6, 10.0)


def with_interval(values: Sequence[float]) -> str:
    """The mean and its interval."""
    if not values:
        return "-"
    mean = statistics.fmean(values)
    if len(values) < 2:
        return f"{mean:.2f}"
    reach = t_quantile(CONFIDENCE, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return with_ends(mean, mean - reach, mean + reach)


def sections(runs: KuhnRuns, known: Kuhn) -> list[str]:
    rows = {one.loss: one for one in runs.losing(TABLE)}
    if not rows:
        return []
    some = next(iter(rows.values()))
    lasting = some.cell.key.workload.partition(":")[2]
    trials = several(len(some.cell.records), "trial")
    parts = [
        "## Goodput under random losses",
        _TABLE.format(trials=trials, lasting=lasting),
        _against(runs, rows, known),
        _COLUMNS,
        _said(rows, known),
    ]
    return [*parts, *_gigabyte(runs, known), *_moved(runs, known), *_bursts(runs, known)]


def _against(runs: KuhnRuns, rows: dict[float, LossyGoodputs], known: Kuhn) -> str:
    lines = []
    above: tuple[LossRow, float] | None = None
    for row in known.losses.rows:
        here = rows.get(row.loss)
        if here is None or not here.goodputs:
            continue
        mean, then = statistics.fmean(here.goodputs), goodput(row, known)
        halves = here.halves
        lines.append(
            [
                _percent(row.loss),
                f"{row.time_s:g} s",
                f"{row.goodput_mbps:g}",
                with_interval(here.goodputs),
                f"{mean / then:.2f}",
                f"{formula_mbps(row.loss):.2f}",
                "-" if above is None else _exponent(above[0].loss, row.loss, goodput(above[0], known), then),
                "-" if above is None else _exponent(above[0].loss, row.loss, above[1], mean),
                *(["-", "-"] if halves is None else [f"{one:.2f}" for one in halves]),
            ]
        )
        above = (row, mean) if row.loss else None
    head = [
        *("loss", "published, 1 GB", "published, Mbit/s", "here, Mbit/s", "here / published"),
        *("CUBIC's formula", "exponent, published", "exponent, here", "first half", "second half"),
    ]
    return table(head, lines)


def goodput(row: LossRow, known: Kuhn) -> float:
    """In Mbit/s, of the published time, which has more digits than the published goodput."""
    return known.losses.bytes * 8 / row.time_s / 1e6


def _exponent(loss: float, next_loss: float, rate: float, next_rate: float) -> str:
    return f"{math.log(rate / next_rate) / math.log(next_loss / loss):.2f}"


def _percent(loss: float) -> str:
    return f"{100 * loss:g} %"


def _said(rows: dict[float, LossyGoodputs], known: Kuhn) -> str:
    ratios = {
        row.loss: statistics.fmean(rows[row.loss].goodputs) / goodput(row, known)
        for row in known.losses.rows
        if row.loss in rows and rows[row.loss].goodputs
    }
    near = [_percent(one) for one, value in ratios.items() if abs(value - 1) <= 0.15]
    far = [f"{_percent(one)} ({value:.2f})" for one, value in ratios.items() if abs(value - 1) > 0.15]
    text = f"Within 15 % of what was published: at {', '.join(near) or 'no loss'}."
    return text + (f" Farther, as here / published: at {', '.join(far)}." if far else "")


def _gigabyte(runs: KuhnRuns, known: Kuhn) -> list[str]:
    found = runs.losing(GIGABYTE)
    if not found:
        return []
    then = {row.loss: row for row in known.losses.rows}
    short = {one.loss: one for one in runs.losing(TABLE)}
    lines = []
    for one in found:
        row = then.get(one.loss)
        if row is None:
            continue
        times = ", ".join(f"{r.completion_s:.0f} s" for r in one.cell.ok if r.completion_s is not None)
        each = ", ".join(f"{value:.2f}" for value in one.goodputs)
        mean = f"{statistics.fmean(short[one.loss].goodputs):.2f}" if one.loss in short else "-"
        lines.append(
            [_percent(one.loss), f"{row.time_s:g} s", times, f"{goodput(row, known):.2f}", each, mean]
        )
    head = ["loss", "1 GB: published", "here, each trial", "Mbit/s: published", "here, each trial",
            "here, 300 s"]  # fmt: skip
    text = "The whole gigabyte, as the source moves it:"
    return [text, table(head, lines)]


def _moved(runs: KuhnRuns, known: Kuhn) -> list[str]:
    base = {one.loss: one for one in runs.losing(TABLE)}
    lines = []
    for one in runs.losing(OPTIONS):
        if one.cell.key.server != _SERVER:
            options = labels.variant(one.cell.key.server).options
            changed = ", ".join(
                f"{key}={value}" for key, value in options.items() if (key, value) != ("cc", "cubic")
            )
            lines.append(_line(one, changed, base))
    for one in runs.losing(CAUSES):
        changes = _changed(one.values)
        if len(changes) == 1:
            lines.append(_line(one, changes[0], base))
    if not lines:
        return []
    text = (
        "One change at a time. The factor is of geometric means, with [its interval](../../docs/reference/"
        "study-verdicts.md#intervals-of-ratios) of 95 %: one that has 1 in it may be chance."
    )
    head = ["changed", "loss", "Mbit/s", "times as much as unchanged"]
    tried = [*runs.losing(OPTIONS), *(one for one in runs.losing(CAUSES) if len(_changed(one.values)) == 1)]
    return ["### What moves it", text, table(head, lines, left=2), _fastest(tried, known)]


def _fastest(changed: Sequence[LossyGoodputs], known: Kuhn) -> str:
    """The best of these goodputs beside the published one."""
    means = {
        row.loss: max(statistics.fmean(one.goodputs) for one in here)
        for row in known.losses.rows
        if (here := [one for one in changed if one.goodputs and math.isclose(one.loss, row.loss)])
    }
    told = [
        f"{mean:.2f} of {goodput(row, known):.2f} Mbit/s at {_percent(row.loss)}"
        for row in known.losses.rows
        if (mean := means.get(row.loss)) is not None
    ]
    return f"The best mean of these, of what was published: {', '.join(told)}."


def _bursts(runs: KuhnRuns, known: Kuhn) -> list[str]:
    found = runs.losing(BURSTS)
    if not found:
        return []
    lines, between = [], []
    for row in known.losses.rows:
        pair, alone = _of(row.loss, found), _of(row.loss, runs.losing(TABLE))
        if pair is None or alone is None:
            continue
        then, one, two = goodput(row, known), *(statistics.fmean(x.goodputs) for x in (alone, pair))
        if min(one, two) <= then <= max(one, two):
            between.append(_percent(row.loss))
        told = [f"{then:.2f}", f"{one:.2f}", f"{one / then:.2f}"]
        lines.append([_percent(row.loss), *told, with_interval(pair.goodputs), f"{two / then:.2f}"])
    head = ["loss", "published", "here, one by one", "of published", "here, two at a time", "of published"]
    said = f"What was published lies between the two at: {', '.join(between) or 'no loss'}."
    return ["### Losses two at a time", _BURSTS, table(head, lines), said]


def at(loss: float, found: Sequence[LossyGoodputs]) -> list[float]:
    """The goodputs of the trials at about this loss, in Mbit/s."""
    one = _of(loss, found)
    return [] if one is None else one.goodputs


def _of(loss: float, found: Sequence[LossyGoodputs]) -> LossyGoodputs | None:
    """The goodputs at about this loss: that of bursts is within a hundredth of it."""
    return next((one for one in found if one.goodputs and math.isclose(one.loss, loss, rel_tol=0.02)), None)


def _line(one: LossyGoodputs, changed: str, base: dict[float, LossyGoodputs]) -> list[str]:
    unchanged = base.get(one.loss)
    factor = cell_ratio(unchanged.cell, one.cell, "goodput_bps") if unchanged is not None else None
    told = "-" if factor is None else with_ends(factor.value, factor.low, factor.high)
    return [changed, _percent(one.loss), with_interval(one.goodputs), told]


def _changed(values: dict[str, str]) -> list[str]:
    """In words, what a path has that the one of the table has not."""
    found = []
    if values.get("return.loss", "0%") != "0%":
        found.append(f"{values['return.loss'].replace('%', ' %')} loss both ways")
    if values.get("forward.queue", "1BDP") != "1BDP":
        found.append(f"a queue of {values['forward.queue'].replace('BDP', ' BDP')}")
    if values.get("forward.delay", "300ms") != "300ms":
        found.append(f"{2 * float(values['forward.delay'].removesuffix('ms')):g} ms round trip")
    return found
