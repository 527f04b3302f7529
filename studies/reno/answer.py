"""The beginning of the page on Reno: whose rate is that of RFC 9002, and how far others are from it."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bentpipe.analysis.cell_ratio import EQUIVALENCE
from bentpipe.analysis.cells import Cell
from bentpipe.analysis.inference import CONFIDENCE, Ratio, paired_ratio, ratio, t_quantile
from bentpipe.runs.records import Record
from bentpipe.study import figures
from bentpipe.study.claims import AGREES, MARGIN, MeasuredValue, equality
from bentpipe.study.figures import Line, Strip
from bentpipe.study.front import Front, Picture, fitting
from bentpipe.study.markdown import listed, percent, several

from .ideal import Sender, formula

PICTURE = "reno.svg"
PACKET = 1200  # bytes of UDP payload
HEADERS = 28  # bytes of IPv4 and UDP
SEEDS = 200  # of the ideal sender
EQUAL, LOWER, HIGHER, CANNOT_TELL = "equal", "lower", "higher", "cannot tell"
_CAPTION = f"""Packets delivered per round trip: a dot for each seed, and the mean with its interval. The band
is within {percent(MARGIN)} of the ideal sender."""
HOW = f"""*Equal* is a stack whose mean rate is within {percent(MARGIN)} of the ideal sender's by two
one-sided tests at 5 %: the interval of 90 % of their ratio lies within that. Of others, *lower* and *higher*
are those whose interval of 95 % has no 1 in it; of the rest these trials *cannot tell*, nor where a trial
failed. Means are geometric, their intervals Welch's on logarithms: each trial has draws of its own, and so
has the ideal sender."""


@dataclass(frozen=True)
class Ideal:
    """The ideal sender over a transfer: its rates, in packets per round trip, in ascending order."""

    rates: list[float]

    @classmethod
    def over(cls, loss: float, packets: int, seeds: int = SEEDS) -> Ideal:
        return cls(sorted(Sender(loss, seed).rate(packets) for seed in range(seeds)))

    @cached_property
    def median(self) -> float:
        return statistics.median(self.rates)

    @cached_property
    def mean(self) -> float:
        return statistics.geometric_mean(self.rates)


def delivered(record: Record) -> float:
    """Packets of 1200 bytes' worth that reached the client."""
    packets, sent_bytes = record.forward_packets, record.forward_bytes
    lost, dropped = record.forward_losses, record.forward_queue_drops
    if packets is None or sent_bytes is None or lost is None or dropped is None:
        raise ValueError(f"{record.trial}: nobody counted what became of its packets")
    return (sent_bytes - HEADERS * packets) * (1 - (lost + dropped) / packets) / PACKET


def per_round_trip(record: Record, rtt_s: float) -> float:
    """Packets of 1200 bytes' worth that reached the client in each round trip of the transfer."""
    if record.goodput_bps is None:
        raise ValueError(f"{record.trial} has no goodput")
    return delivered(record) * record.goodput_bps * rtt_s / (8 * record.size_bytes)


def beside_number(rates: Sequence[float], number: float, confidence: float = CONFIDENCE) -> Ratio | None:
    """The ratio of the rates' geometric mean to a number that is known exactly."""
    return paired_ratio([number] * len(rates), rates, confidence)


@dataclass(frozen=True)
class StackRow:
    """A row of the page: a stack, beside the ideal sender."""

    cell: Cell
    ideal: Ideal

    @property
    def stack(self) -> str:
        return self.cell.key.server_label.stack

    @cached_property
    def measured(self) -> list[Record]:
        return [one for one in self.cell.ok if one.rtt_median_ms is not None and one.goodput_bps is not None]

    @cached_property
    def rates(self) -> list[float]:
        return [per_round_trip(one, (one.rtt_median_ms or 0) / 1e3) for one in self.measured]

    @cached_property
    def share(self) -> MeasuredValue:
        """The mean rate / the ideal sender's, with the interval of 95 %."""
        found = MeasuredValue.of(ratio(self.ideal.rates, self.rates))
        assert found is not None  # rates are positive
        return found

    @cached_property
    def verdict(self) -> str:
        """Whether the rate is the ideal sender's: it cannot be told where trials failed, mostly slow ones."""
        if self.cell.failures:
            return CANNOT_TELL
        if equality(ratio(self.ideal.rates, self.rates, EQUIVALENCE)) == AGREES:
            return EQUAL
        low, high = self.share.low, self.share.high
        if low is None or high is None or low <= 1 <= high:
            return CANNOT_TELL
        return HIGHER if low > 1 else LOWER

    def written(self) -> str:
        return self.share.written(0, " %", 100)


def front(rows: Sequence[StackRow], loss: float, folder: Path) -> Front:
    """The front of the page; it draws the picture into `folder`."""
    ideal, known, file = rows[0].ideal, formula(loss), folder / PICTURE
    strips = [Strip("ideal sender", ideal.rates, ideal.mean)]
    for row in rows:
        ends = [ideal.mean * end for end in (row.share.low, row.share.high) if end is not None]
        strips.append(Strip(row.stack, row.rates, ideal.mean * row.share.value, ends))
    lines = [
        Line(known, f"formula, {known:.2f}"),
        Line(ideal.mean, f"ideal sender, {ideal.mean:.2f}", "--"),
    ]
    figures.strips(strips, lines, MARGIN, "1200-byte packets delivered per round trip", file)
    picture = Picture(file, "Packets per round trip of every stack, with intervals", _CAPTION)
    return Front(_finding(rows, loss), _answer(rows, loss), picture, _advice(rows))


def _of(rows: Sequence[StackRow], *verdicts: str) -> list[StackRow]:
    return [row for row in rows if row.verdict in verdicts]


def _names(rows: Iterable[StackRow]) -> str:
    return listed(row.stack for row in rows)


def _farthest(rows: Sequence[StackRow]) -> StackRow | None:
    apart = _of(rows, LOWER, HIGHER)
    return max(apart, key=lambda row: abs(math.log(row.share.value)), default=None)


def _finding(rows: Sequence[StackRow], loss: float) -> str:
    equal = len(_of(rows, EQUAL))
    verb = "has" if equal == 1 else "have"
    begin = f"At {100 * loss:g} % of loss {equal} of {several(len(rows), 'stack')} {verb} "
    long, short = (
        f"the rate of RFC 9002's Reno within {percent(MARGIN)}",
        f"Reno's rate within {percent(MARGIN)}",
    )
    farthest = _farthest(rows)
    end = f"; {farthest.stack} has {farthest.written()}" if farthest else ""
    return fitting(begin + long + end, begin + short + end, begin + short)


def _answer(rows: Sequence[StackRow], loss: float) -> list[str]:
    equal, apart, unknown = _of(rows, EQUAL), _of(rows, LOWER, HIGHER), _of(rows, CANNOT_TELL)
    who = f": {_names(equal)}" if equal else ""
    verb = "delivers" if len(equal) == 1 else "deliver"
    text = (
        f"Of {several(len(rows), 'stack')} with `cc=newreno`, {len(equal)} {verb} within {percent(MARGIN)} "
        f"of what an ideal sender delivers that keeps RFC 9002{who}"
    )
    if unknown:
        text += f"; of {_names(unknown)} these trials cannot tell"
    sentences = [f"{text}."]
    if apart:
        each = listed(f"{row.stack} {row.written()}" for row in apart)
        sentences.append(f"Of its rate the others reach: {each}.")
    return [*sentences, _beside_formula(rows, loss)]


def _beside_formula(rows: Sequence[StackRow], loss: float) -> str:
    """How the ideal sender and the stacks are beside the formula."""
    known = formula(loss)
    whole = MeasuredValue.of(beside_number(rows[0].ideal.rates, known))
    assert whole is not None  # rates are positive
    near = [
        row
        for row in rows
        if not row.cell.failures and equality(beside_number(row.rates, known, EQUIVALENCE)) == AGREES
    ]
    who = f": {_names(near)}" if near else ""
    return (
        f"The formula of Mathis et al. has {known:.2f} packets per round trip, of which the ideal sender "
        f"delivers {whole.written(0, ' %', 100)}; within {percent(MARGIN)} of it "
        f"{'is' if len(near) == 1 else 'are'} {several(len(near), 'stack')}{who}."
    )


def _advice(rows: Sequence[StackRow]) -> str:
    """The lines that this run shows."""
    lines = []
    equal, apart = _of(rows, EQUAL), _of(rows, LOWER, HIGHER)
    if equal:
        lines.append(f"- For the Reno of RFC 9002, take `cc=newreno` of one of these: {_names(equal)}.")
    if apart:
        lines.append(
            f"- Compare `cc=newreno` of {_names(apart)} with that of other stacks only with [the reasons "
            "below](#those-that-differ) in mind: its rate is not that of RFC 9002's Reno."
        )
    spread = statistics.stdev(map(math.log, rows[0].ideal.rates))
    trials = next(n for n in itertools.count(2) if _reach(spread, n) <= math.log1p(MARGIN))
    lines.append(
        f"- Run {several(trials, 'trial')} or more: even the ideal sender's rate has a standard deviation of "
        f"{percent(spread)} from seed to seed, and fewer leave an interval wider than ± {percent(MARGIN)}."
    )
    return "\n".join(lines)


def _reach(spread: float, trials: int) -> float:
    """Half the interval of a mean of so many logarithms, of this standard deviation."""
    return t_quantile(CONFIDENCE, trials - 1) * spread / math.sqrt(trials)
