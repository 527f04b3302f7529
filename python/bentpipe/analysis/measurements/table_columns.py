"""Quantities of a table's columns, by their names: `rate_bps`, `Latency (ms)`, `download_mbps`, `loss [%]`.

A name has words for a quantity and perhaps for a direction, and a unit at its end or in brackets. Down is
forward, from the server to the client; up is return.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from bentpipe.analysis.losses import Direction
from bentpipe.analysis.measurements import numbers
from bentpipe.analysis.measurements.time_series import Quantity
from bentpipe.errors import UsageError

_BRACKETS = re.compile(r"(.*?)[\[(]\s*([^\[\]()]+?)\s*[\])]\s*")
_SEPARATORS = re.compile(r"[\s_.:-]+")
_MOST_COLUMNS = 200
# In this order: a loss rate is a loss. Words that say that a column is something else come first.
_WORDS: tuple[tuple[Quantity | Literal["time", ""], frozenset[str]], ...] = (
    ("", frozenset({"jitter", "std", "stddev", "stdev", "mdev", "variance", "var", "correlation", "corr"})),
    ("loss", frozenset({"loss", "lost", "losses", "plr"})),
    ("queue", frozenset({"queue", "qlen", "limit", "buffer"})),
    ("rtt", frozenset({"rtt", "ping", "roundtrip"})),
    ("delay", frozenset({"delay", "latency", "owd"})),
    ("rate", frozenset({"rate", "bandwidth", "bw", "throughput", "capacity", "bitrate", "goodput", "speed"})),
    ("time", frozenset({"time", "t", "at", "timestamp", "ts", "elapsed", "date", "datetime", "seconds"})),
)
_WAYS: dict[Direction, frozenset[str]] = {
    "forward": frozenset({"forward", "down", "dl", "download", "downlink", "downstream"}),
    "return": frozenset({"return", "up", "ul", "upload", "uplink", "upstream"}),
}
_BYTES = frozenset({"bytes", "byte", "kb", "mb", "kib", "mib"})
HINT = "the first line names the columns, as in time_s,rtt_ms or time_s,rate_mbps,delay_ms,loss_percent"


@dataclass(frozen=True)
class Named:
    """The quantity of a column."""

    index: int
    name: str
    quantity: Quantity | Literal["time"]
    way: Direction | None
    factor: int | None  # of its unit; None: it names none


@dataclass(frozen=True)
class NamedColumns:
    """The columns of a table that are read, and the names of the others."""

    time: Named | None
    values: tuple[Named, ...]
    left_out: tuple[str, ...]
    uses_given_unit: bool


def named(file: str, names: Sequence[str], unit: str | None) -> NamedColumns:
    """The columns by these names; `unit` is for those that name none. UsageError if there are none."""
    if len(names) > _MOST_COLUMNS:
        raise UsageError(f"{file}: line 1: {len(names)} columns", HINT)
    time: Named | None = None
    values: dict[tuple[Quantity, Direction | None], Named] = {}
    left_out: list[str] = []
    given = numbers.given_unit(unit) if unit is not None else None
    uses_given_unit = False
    for one in _each(file, names):
        if isinstance(one, str):
            left_out.append(one)
        elif one.quantity == "time":
            if time is not None:
                raise _twice(file, time, one)
            time = one
        else:
            key = (one.quantity, one.way)
            if key in values:
                raise _twice(file, values[key], one)
            uses_given_unit |= one.factor is None and one.quantity != "queue"
            values[key] = _with_unit(file, one, given)
    if not values:
        shown = numbers.printable(", ".join(names))[:200]
        raise UsageError(f"{file}: line 1: no column with a rate, delay, RTT or loss: {shown}", HINT)
    return NamedColumns(time, tuple(values.values()), tuple(left_out), uses_given_unit)


def _each(file: str, names: Sequence[str]) -> Iterator[Named | str]:
    """Each column; the name alone of one that is not known."""
    for index, name in enumerate(names):
        name = numbers.printable(name.strip())
        text, found = _unit(name)
        words = {word for word in _SEPARATORS.split(text.lower()) if word}
        if {"round", "trip"} <= words:
            words.add("rtt")
        way = next((way for way, known in _WAYS.items() if words & known), None)
        quantity = next((one for one, known in _WORDS if words & known), None)
        if quantity is None and found is not None and found[0] == "rate" and (way or not words):
            quantity = "rate"
        if quantity is None and found is not None and text == "" and found[0] == "delay":
            quantity = "time"  # `seconds`, `ms`
        if not quantity or (quantity == "queue" and words & _BYTES):
            yield name
            continue
        of = "delay" if quantity in ("rtt", "time") else quantity
        if found is not None and found[0] != of:
            raise UsageError(
                f"{file}: line 1: {name}: a {quantity} in a unit of a {found[0]}", "rename the column"
            )
        yield Named(index, name, quantity, way, found and found[1])


def _unit(name: str) -> tuple[str, tuple[Quantity, int] | None]:
    """The name without its unit, and the unit."""
    match = _BRACKETS.fullmatch(name)
    if match:
        return match[1], numbers.unit(match[2])
    words = [word for word in _SEPARATORS.split(name) if word]
    for count in (3, 2, 1):
        tail = "/".join(word for word in words[-count:] if word != "per")
        found = numbers.unit(tail) if len(words) >= count else None
        # `t` alone, or `ms` alone, may be a time: its name is its unit.
        if found is not None:
            return " ".join(words[:-count]), found
    return name, None


def _with_unit(file: str, one: Named, given: tuple[Quantity, int] | None) -> Named:
    if one.factor is not None:
        return one
    assert one.quantity != "time"
    if one.quantity == "queue":
        return Named(one.index, one.name, one.quantity, one.way, 1)
    of = "delay" if one.quantity == "rtt" else one.quantity
    if given is None or given[0] != of:
        example = {"rate": "mbps", "delay": "ms", "loss": "percent"}[of]
        raise UsageError(
            f"{file}: line 1: {one.name}: in which unit?",
            f"name it {one.name}_{example}, or say it: --unit {numbers.EXAMPLES[of]}",
        )
    return Named(one.index, one.name, one.quantity, one.way, given[1])


def _twice(file: str, first: Named, second: Named) -> UsageError:
    return UsageError(
        f"{file}: line 1: {first.name} and {second.name} are both a {first.quantity}",
        "take one of them out, or name directions: rate_down_mbps, rate_up_mbps",
    )
