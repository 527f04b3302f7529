"""Round trips of probes that were sent one after the other, as ping and irtt send them.

An answered probe gives the round trip that holds from its sending on. Of those that were not answered, a run
of several is an outage, from the first of them until the next probe that was answered; the others are a loss
ratio that holds all the time. Where a file does not say on which way a probe was lost, an outage is of both
ways, and a ratio r is divided evenly: each way loses 1 - √(1 - r).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from bentpipe.analysis.losses import DIRECTIONS, Direction
from bentpipe.analysis.measurements.time_series import Measured, TimeSeries, middle_gap
from bentpipe.errors import UsageError

_ALL = 10**9


@dataclass(frozen=True)
class Echo:
    """A probe: when it was sent, and what became of it."""

    sent_ns: int
    rtt_ns: int | None  # None: it was not answered
    lost: Direction | None = None  # the way on which it was lost, if that is known


@dataclass(frozen=True)
class EchoSeries:
    """Round trips and losses over time, and what to say of them."""

    measured: tuple[Measured, ...]
    notes: tuple[str, ...]


def series(file: str, echoes: Sequence[Echo], outage_from: int) -> EchoSeries:
    """Of probes in the order of sending. UsageError if none was answered."""
    answered = [one.rtt_ns for one in echoes if one.rtt_ns is not None]
    if not answered:
        raise UsageError(f"{file}: no probe was answered", "give a log in which some were")
    times = [one.sent_ns for one in echoes]
    end = times[-1] + middle_gap(times)
    rtt = TimeSeries.of(times, list(_held(echoes, answered[0])), end)
    runs = list(_runs(echoes))
    long = [run for run in runs if len(run) >= outage_from]
    short = [echoes[index] for run in runs if len(run) < outage_from for index in run]
    beside = len(echoes) - sum(map(len, long))
    found = [Measured("rtt", rtt)]
    for way in DIRECTIONS:
        base = _ratio(short, beside, way)
        windows = [run for run in long if _way(echoes, run) in (way, None)]
        if base or windows:
            found.append(Measured("loss", _losses(echoes, windows, base, end), way))
    return EchoSeries(tuple(found), tuple(_notes(echoes, answered, long, short, outage_from)))


def _held(echoes: Sequence[Echo], first: int) -> Iterator[int]:
    """The round trip at each probe: where it was lost, that of the one before."""
    last = first
    for one in echoes:
        last = last if one.rtt_ns is None else one.rtt_ns
        yield last


def _runs(echoes: Sequence[Echo]) -> Iterator[list[int]]:
    for is_lost, group in groupby(range(len(echoes)), key=lambda index: echoes[index].rtt_ns is None):
        if is_lost:
            yield list(group)


def _way(echoes: Sequence[Echo], run: Sequence[int]) -> Direction | None:
    """The way on which all of them were lost; None: not known, or not the same."""
    ways = {echoes[index].lost for index in run}
    return next(iter(ways)) if len(ways) == 1 else None


def _ratio(lost: Sequence[Echo], of: int, way: Direction) -> int:
    """The share of what a way loses, in billionths."""
    here = sum(one.lost == way for one in lost)
    unknown = sum(one.lost is None for one in lost)
    if not here and not unknown:
        return 0
    passes = (1 - here / of) * math.sqrt(1 - unknown / of)
    return round((1 - passes) * _ALL)


def _losses(echoes: Sequence[Echo], windows: Sequence[Sequence[int]], base: int, end: int) -> TimeSeries:
    times, values = [echoes[0].sent_ns], [base]
    for run in windows:
        if run[0] == 0:
            times, values = [], []
        times.append(echoes[run[0]].sent_ns)
        values.append(_ALL)
        if run[-1] + 1 < len(echoes):
            times.append(echoes[run[-1] + 1].sent_ns)
            values.append(base)
    return TimeSeries.of(times, values, end)


def _notes(
    echoes: Sequence[Echo],
    answered: Sequence[int],
    long: Sequence[Sequence[int]],
    short: Sequence[Echo],
    outage_from: int,
) -> Iterator[str]:
    lost = len(echoes) - len(answered)
    if not lost:
        yield f"None of {len(echoes)} probes was lost."
        return
    text = f"{lost} of {len(echoes)} probes were lost"
    if long:
        count = f"{len(long)} outage{'s' if len(long) > 1 else ''}"
        text += f", {sum(map(len, long))} of them in {count} of {outage_from} or more in a row (--outage)"
    if short:
        text += f"; {len(short)} single ones are a random loss" if long else ", each a random loss (--outage)"
    yield f"{text}."
    if any(one.lost is None for one in echoes if one.rtt_ns is None):
        yield "The way on which probes were lost is not known: random losses are divided evenly."
