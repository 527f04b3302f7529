"""A scenario of what was measured: what files and options give, and what is assumed where they do not.

The satellite's link has it all. Both ways are the same where only one is known. A file begins again at its
end, or its last value holds, or everything is lost from then on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from bentpipe.analysis import scenario_text
from bentpipe.analysis.losses import DIRECTIONS, Direction
from bentpipe.analysis.measurements import numbers
from bentpipe.analysis.measurements.time_series import Quantity, Reading, TimeSeries
from bentpipe.errors import UsageError

AtEnd = Literal["repeat", "hold", "outage"]
_TIMEOUT = "600 s"
_ALL = 10**9  # of what is sent, in billionths
_QUEUE = "1 BDP"
_OTHER: dict[Direction, Direction] = {"forward": "return", "return": "forward"}
_MIRRORED: tuple[Quantity, ...] = ("rate", "delay", "queue")
_UNITS: dict[Quantity, tuple[float, str]] = {
    "rate": (1e6, "Mbit/s"),
    "delay": (1e6, "ms"),
    "rtt": (1e6, "ms"),
    "loss": (1e7, "%"),
    "queue": (1, "packets"),
}


@dataclass(frozen=True)
class Wanted:
    """Values that are not in the files: of both ways as scenario files have them."""

    rates: Mapping[Direction, str] = field(default_factory=dict)
    delays: Mapping[Direction, str] = field(default_factory=dict)
    queue: str | None = None
    forward_share: float = 0.5  # of a round trip
    at_end: AtEnd = "repeat"


@dataclass(frozen=True)
class Composed:
    """A scenario file, and what to tell of it."""

    text: str
    figures: tuple[str, ...]  # lines: what was in the files
    assumed: tuple[str, ...]  # sentences


@dataclass(frozen=True)
class _Value:
    """A quantity of a way, and the file that it is from."""

    series: TimeSeries
    reading: Reading


_Found = dict[tuple[Quantity, Direction], _Value]


def compose(readings: Sequence[Reading], returns: Sequence[Reading], wanted: Wanted, out: Path) -> Composed:
    """The scenario for the file `out`, of files of which some are of the return path alone. UsageError if
    they and the options contradict each other, or something is missing.
    """
    found = _sorted(readings, returns, wanted)
    notes = [note for one in (*readings, *returns) for note in one.notes]
    notes += _replace(found, wanted)
    notes += _mirror(found, wanted)
    notes += _check_values(found, wanted)
    end_ns = min((value.series.end_ns for value in found.values() if _changes(value)), default=None)
    satellite = {way: _link(found, way, wanted, out, end_ns) for way in DIRECTIONS}
    notes += _assumptions(found, satellite, wanted, end_ns)
    scenario = {
        "title": f"As measured: {', '.join(Path(one.file).name for one in (*readings, *returns))}",
        "source": f"bentpipe scenarios import, of {'; '.join(_told(one) for one in (*readings, *returns))}",
        "notes": "\n".join(notes),
        "timeout": _TIMEOUT,
        "satellite": satellite,
    }
    figures = [line for one in (*readings, *returns) for line in _figures(one)]
    return Composed(scenario_text.text(scenario), tuple(figures), tuple(notes))


def _told(reading: Reading) -> str:
    ends = max(one.series.end_ns for one in reading.measured)
    return f"{reading.file}, {reading.format} of {ends / 1e9:.6g} s"


def _figures(reading: Reading) -> Iterator[str]:
    """A line for the file, and one for each quantity."""
    yield f"{reading.file}: {reading.format}"
    for one in reading.measured:
        factor, unit = _UNITS[one.quantity]
        median, high = one.series.quantiles((0.5, 0.99))
        figures = (min(one.series.values), median, high, max(one.series.values))
        least, middle, most_often, most = (f"{value / factor:.4g}" for value in figures)
        name = f"{one.way or ''} {'round trip' if one.quantity == 'rtt' else one.quantity}".strip()
        count = len(one.series.values)
        yield (
            f"  {name}: {count} value{'s' if count > 1 else ''} over {one.series.end_ns / 1e9:.6g} s: "
            f"least {least}, median {middle}, p99 {most_often}, most {most} {unit}"
        )


def _sorted(readings: Sequence[Reading], returns: Sequence[Reading], wanted: Wanted) -> _Found:
    """The values by quantity and way; round trips become two delays."""
    found: _Found = {}
    for reading in (*readings, *returns):
        is_return = reading in returns
        for one in reading.measured:
            way = one.way or ("return" if is_return else "forward")
            if is_return and (one.way == "forward" or one.quantity == "rtt"):
                what = "a round trip" if one.quantity == "rtt" else f"a {one.quantity} of the forward path"
                raise UsageError(f"--return: {reading.file} has {what}", "give it without --return")
            if one.quantity == "rtt":
                share = wanted.forward_share
                forward = one.series.changed(lambda rtt: round(rtt * share))  # noqa: B023
                halves = zip(one.series.values, forward.values, strict=True)
                back = TimeSeries(
                    one.series.times_ns, tuple(rtt - half for rtt, half in halves), one.series.end_ns
                )
                _add(found, "delay", "forward", _Value(forward, reading))
                _add(found, "delay", "return", _Value(back, reading))
            else:
                _add(found, one.quantity, way, _Value(one.series, reading))
    return found


def _add(found: _Found, quantity: Quantity, way: Direction, value: _Value) -> None:
    there = found.get((quantity, way))
    if there is not None:
        raise UsageError(
            f"{there.reading.file} and {value.reading.file}: both have a {way} {quantity}",
            "give one of them, or that of the return path with --return",
        )
    found[quantity, way] = value


def _replace(found: _Found, wanted: Wanted) -> Iterator[str]:
    """Values of options replace those of files."""
    given: tuple[tuple[str, Quantity, Mapping[Direction, str]], ...] = (
        ("--rate", "rate", wanted.rates),
        ("--delay", "delay", wanted.delays),
        ("--queue", "queue", {} if wanted.queue is None else dict.fromkeys(DIRECTIONS, wanted.queue)),
    )
    for option, quantity, values in given:
        for way in values:
            there = found.pop((quantity, way), None)
            if there is not None:
                yield f"The {way} {quantity} is that of {option}, not that of {there.reading.file}."


def _mirror(found: _Found, wanted: Wanted) -> Iterator[str]:
    """A value that is known of one way alone is taken for the other, too."""
    for quantity in _MIRRORED:
        given = {"rate": wanted.rates, "delay": wanted.delays}.get(quantity, {})
        for way in DIRECTIONS:
            known = found.get((quantity, _OTHER[way]))
            is_given = way in given or (quantity == "queue" and wanted.queue is not None)
            if known is not None and (quantity, way) not in found and not is_given:
                found[quantity, way] = known
                option = {"rate": "--rate, --return", "delay": "--delay, --return"}.get(quantity, "--queue")
                yield f"The {way} {quantity} is that of the {_OTHER[way]} path ({option})."


def _check_values(found: _Found, wanted: Wanted) -> Iterator[str]:
    """UsageError if a link cannot have these values; notes if it can only nearly."""
    for (quantity, way), value in found.items():
        file, series = value.reading.file, value.series
        if quantity == "rate" and not any(series.values):
            raise UsageError(f"{file}: the {way} rate is always 0", "give a file in which something passed")
        if quantity == "rate" and wanted.at_end == "hold" and value.reading.is_trace:
            raise UsageError(
                f"--at-end hold: {file}: a trace of mahimahi begins again", "use --at-end repeat"
            )
        if quantity == "rate" and wanted.at_end == "hold" and series.values[-1] == 0:
            raise UsageError(
                f"--at-end hold: {file}: the last {way} rate is 0, and would hold", "use --at-end repeat"
            )
        if quantity == "delay" and min(series.values) == 0:
            raise UsageError(f"{file}: has a {way} delay of 0", "a path needs some delay at all times")
    of_both = _both(lambda way: _has_steps(found.get(("queue", way))))
    if of_both:
        yield f"The {of_both} queue changes, which that of a link cannot: its median is taken (--queue)."
    for way in DIRECTIONS:
        if ("delay", way) not in found and way not in wanted.delays:
            raise UsageError(f"no delay of the {way} path", "give a file with delays too, or --delay 25ms")


def _has_steps(value: _Value | None) -> bool:
    return value is not None and len(set(value.series.values)) > 1


def _changes(value: _Value) -> bool:
    return value.reading.is_trace or _has_steps(value)


def _link(found: _Found, way: Direction, wanted: Wanted, out: Path, end_ns: int | None) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    rate = found.get(("rate", way))
    if rate is not None and rate.reading.is_trace:
        fields["rate"] = {"trace": os.path.relpath(rate.reading.file, out.parent)}
    elif rate is not None:
        fields["rate"] = _steps(rate.series, "rate", wanted.at_end)
    elif way in wanted.rates:
        fields["rate"] = wanted.rates[way]
    delay = found.get(("delay", way))
    fields["delay"] = wanted.delays[way] if delay is None else _steps(delay.series, "delay", wanted.at_end)
    queue = found.get(("queue", way))
    measured = None if queue is None else numbers.shown(queue.series.quantiles((0.5,))[0], "queue")
    if "rate" in fields:
        fields["queue"] = wanted.queue or measured or _QUEUE
    loss = found.get(("loss", way))
    fields["loss"] = _loss(loss.series if loss else None, wanted.at_end, end_ns)
    return fields


def _steps(series: TimeSeries, quantity: Quantity, at_end: AtEnd) -> Any:
    """A fixed value, or steps and what comes after them."""
    steps = list(series.steps)
    if len(steps) == 1:
        return numbers.shown(steps[0][1], quantity)
    if at_end == "outage" and quantity == "rate" and steps[-1][1] == 0:
        steps.append((series.end_ns, max(series.values)))  # what is sent then is lost behind the rate
    rows = [[numbers.shown(time, "delay"), numbers.shown(value, quantity)] for time, value in steps]
    return {"steps": rows} | ({"period": numbers.shown(series.end_ns, "delay")} if at_end == "repeat" else {})


def _loss(series: TimeSeries | None, at_end: AtEnd, end_ns: int | None) -> Any:
    if at_end == "outage" and end_ns is not None:
        known = series or TimeSeries((0,), (0,), end_ns)
        kept = [(time, value) for time, value in known.steps if time < end_ns]
        rows = [
            [numbers.shown(at, "delay"), numbers.shown(value, "loss")]
            for at, value in (*kept, (end_ns, _ALL))
        ]
        return {"model": "steps", "steps": rows}
    if series is None:
        return "none"
    found = _steps(series, "loss", at_end)
    return {"model": "steps"} | found if isinstance(found, dict) else found


def _assumptions(
    found: _Found, satellite: Mapping[Direction, Mapping[str, Any]], wanted: Wanted, end_ns: int | None
) -> Iterator[str]:
    delays = [value.reading for (quantity, _), value in found.items() if quantity == "delay"]
    if any(one.quantity == "rtt" for reading in delays for one in reading.measured):
        yield f"{wanted.forward_share:.0%} of a round trip is the forward delay (--forward-share)."
    of_both = _both(lambda way: "rate" not in satellite[way])
    if of_both:
        yield f"The {of_both} rate is unlimited, so nothing waits there (--rate)."
    chosen = _both(lambda way: satellite[way].get("queue") == _QUEUE and wanted.queue is None)
    if chosen:
        yield f"The {chosen} queue of {_QUEUE}, of the highest rate, is chosen (--queue)."
    if (of_both := _both(lambda way: satellite[way]["loss"] == "none")) and wanted.at_end != "outage":
        yield f"The {of_both} path loses nothing but in full queues (--set forward.loss=…)."
    if end_ns is None:
        return
    ends = sorted({value.series.end_ns for value in found.values() if _changes(value)})
    told = " and ".join(f"{end / 1e9:.6g} s" for end in ends)
    yield {
        "repeat": f"After its end, at {told}, what was measured begins again (--at-end).",
        "hold": f"After its end, at {told}, the last value of each holds (--at-end).",
        "outage": f"From {end_ns / 1e9:.6g} s on, where the first ends, all is lost (--at-end).",
    }[wanted.at_end]


def _both(holds: Callable[[Direction], bool]) -> str:
    """The ways for which something holds, in words."""
    return " and ".join(way for way in DIRECTIONS if holds(way))
