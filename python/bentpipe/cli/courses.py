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


def has_blocks() -> bool:
    """Whether the locale and standard output have characters beyond ASCII."""
    encodings = (locale.getencoding(), sys.stdout.encoding or "ascii")
    return all(one.lower().replace("-", "") == "utf8" for one in encodings)


def blocks(values: Sequence[float], levels: str = _BLOCKS) -> str:
    """A character for each value: the first of `levels` for the lowest, the last for the highest."""
    least, most = min(values), max(values)
    step = (most - least) / (len(levels) - 1)
    return "".join(levels[round((value - least) / step) if step else 0] for value in values)


def drawn(key: str, course: Mapping[str, Any], trace: bool) -> Iterator[str]:
    """The lines of a course; a `trace` is one of mahimahi's."""
    levels = _BLOCKS if has_blocks() else _PLAIN
    unit, parts, length = course["unit"], course["parts"], course["length_s"]
    figures = ", ".join(f"{what} {course[what]:.4g}" for what in ("least", "median", "most", "mean"))
    after = ", which repeat" if course["repeats"] else ""
    if course["last_from_s"] is not None:
        after = f", from {course['last_from_s']:g} s on the last value"
    yield f"  {key}, over {length:g} s{after}"
    yield _INDENT + blocks(parts, levels)
    yield f"{_INDENT}{figures} {unit}"
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
