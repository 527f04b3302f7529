"""Drawings of values that change with time: a line of blocks, with figures below it."""

from __future__ import annotations

import locale
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bentpipe.cli.layout import folded

_BLOCKS = "▁▂▃▄▅▆▇█"
_PLAIN = "12345678"  # where these cannot be shown
_INDENT = "    "


_MEANINGS = {
    "modcod": "what Es/N0 must be for the MODCOD in use",
    "elevation": "of the satellite that serves the terminal",
    "in_view": "that the terminal could use",
}
_INTERRUPTIONS = 40  # that are printed one by one
_KNOWN = 10_000  # that bentpipe-sim tells of each direction


def has_blocks() -> bool:
    """Whether the locale and standard output have characters beyond ASCII."""
    encodings = (locale.getencoding(), sys.stdout.encoding or "ascii")
    return all(one.lower().replace("-", "") == "utf8" for one in encodings)


def blocks(values: Sequence[float], levels: str = _BLOCKS) -> str:
    """A character for each value: the first of `levels` for the lowest, the last for the highest."""
    least, most = min(values), max(values)
    step = (most - least) / (len(levels) - 1)
    return "".join(levels[round((value - least) / step) if step else 0] for value in values)


def drawn(key: str, course: Mapping[str, Any], *, trace: bool, both_ways: bool) -> Iterator[str]:
    """The lines of a course; a `trace` is one of mahimahi's."""
    levels = _BLOCKS if has_blocks() else _PLAIN
    unit, parts, length = course["unit"], course["parts"], course["length_s"]
    figures = ", ".join(f"{what} {course[what]:.4g}" for what in ("least", "median", "most", "mean"))
    of = _MEANINGS.get(key.rpartition(".")[2])
    after = ", which repeat" if course["repeats"] else ""
    if course["last_from_s"] is not None:
        after = f", from {course['last_from_s']:g} s on the last value"
    both = ", the same both ways" if both_ways else ""
    yield folded(f"{key}, over {length:g} s{after}{both}", "  ", _INDENT)
    yield _INDENT + blocks(parts, levels)
    yield f"{_INDENT}{figures} {unit}"
    if of:
        yield _INDENT + of
    ends = f"{levels[0]} {min(parts):.4g} to {levels[-1]} {max(parts):.4g} {unit}"
    yield f"{_INDENT}a block is the mean of {length / len(parts):.3g} s: {ends}"
    if modcods := course.get("modcods"):
        yield from _modcods(modcods)
    if trace:
        yield f"{_INDENT}a line of the trace is 1500 bytes, 12 Mbit/s for a millisecond"


def _modcods(modcods: Sequence[tuple[str, float]]) -> Iterator[str]:
    """The MODCODs of a carrier, the fastest first, with their shares of the time."""
    told = [f"{name} {share:.0%}" for name, share in reversed(modcods)]
    text = ", ".join(one.replace("%", " %") for one in told)
    yield folded(f"MODCODs by time: {text}", _INDENT, _INDENT + "  ")


def of_both_ways(key: str, all_: Mapping[str, Any]) -> bool:
    """Whether a course says which satellites there are, and the other direction has the same."""
    forward, back = key.replace(".return.", ".forward."), key.replace(".forward.", ".return.")
    of_sky = key.endswith((".elevation", ".in_view"))
    return of_sky and all_.get(forward) == all_.get(back)


def interrupted(by_key: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    """The lines of handovers and outages: when each is, for how long, and which satellite serves then."""
    for key, each in by_key.items():
        forward = key.replace(".return.", ".forward.")
        if forward != key and by_key.get(forward) == each:
            continue
        both = by_key.get(key.replace(".forward.", ".return.")) == each
        yield f"  {key}{', the same both ways' if both else ''}"
        told = [_interruption(one) for one in each[:_INTERRUPTIONS]]
        if more := len(each) - len(told):
            told.append(f"{more} more, all by --json" if len(each) <= _KNOWN else "and so on")
        yield folded(", ".join(told), _INDENT, _INDENT)


def _interruption(one: Mapping[str, Any]) -> str:
    to = f" to {one['satellite']}" if one["satellite"] else ""
    return f"{one['at_s']:g} s{to} ({one['length_s'] * 1e3:g} ms)"
