"""Columns of numbers in a data script, small and quick to read.

All columns of a script lie behind each other as differences in 32-bit integers, little-endian, compressed
with zlib and written in base64. A column that is there already is not written again. A value is the sum of
the integers of its column up to it, times the column's unit. Times and offsets grow in steps that repeat, so
a number takes about a byte.
`report-ui/src/trace/columns.ts` reads them.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

_LARGEST = 2**31 - 1


class Columns:
    """The columns of one script, as they are added."""

    def __init__(self) -> None:
        self._parts: list[npt.NDArray[np.int32]] = []
        self._length = 0
        self._places: dict[bytes, int] = {}  # where the column with these bytes begins

    def add(self, values: npt.NDArray[Any], unit: float) -> dict[str, float]:
        """Add a column, rounded to `unit`; where to find it. Values that lie too far apart for integers of 32
        bits are rounded to a larger unit, which the answer names.
        """
        steps = np.diff(np.rint(values / unit), prepend=0.0)
        while np.abs(steps).max(initial=0.0) > _LARGEST:
            unit *= 1000
            steps = np.diff(np.rint(values / unit), prepend=0.0)
        part = steps.astype("<i4")
        at = self._places.setdefault(part.tobytes(), self._length)
        if at == self._length:
            self._parts.append(part)
            self._length += len(part)
        return {"at": at, "count": len(part), "unit": unit}

    def base64(self, level: int = 9) -> str:
        """All columns, compressed at a `level` of zlib."""
        whole = b"".join(part.tobytes() for part in self._parts)
        return base64.b64encode(zlib.compress(whole, level=level)).decode()
