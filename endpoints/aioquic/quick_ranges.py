"""Quick additions at the end of a `RangeSet`, where nearly all of them are.

`RangeSet.add` looks for the place from the first range on, and losses leave a range for each gap; packets and
bytes that arrive are mostly added behind all of them. What begins in the last range or behind it has its
place there; all else is left to aioquic. It mirrors `RangeSet` of aioquic 1.7.2, the version that the project
pins.
"""

from __future__ import annotations

from aioquic.quic.rangeset import RangeSet

add_anywhere = RangeSet.add


def install() -> None:
    """To be called before the first connection is made."""
    RangeSet.add = add  # type: ignore[method-assign]


def add(self: RangeSet, start: int, stop: int | None = None) -> None:
    """`RangeSet.add`, with the same result."""
    ranges = self._RangeSet__ranges  # type: ignore[attr-defined]
    if not ranges or start < (last := ranges[-1]).start:
        add_anywhere(self, start, stop)
        return
    if stop is None:
        stop = start + 1
    assert stop > start
    if start > last.stop:
        ranges.append(range(start, stop))
    elif stop > last.stop:
        ranges[-1] = range(last.start, stop)
