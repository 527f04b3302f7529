"""Sizes and times as people write them."""

from __future__ import annotations

import re
from decimal import Decimal

from bentpipe.errors import UsageError

_SIZE = re.compile(r"([0-9]{1,18})\s*(|B|kB|KiB|MB|MiB|GB|GiB)")
_FACTORS = {"": 1, "B": 1, "kB": 10**3, "KiB": 2**10, "MB": 10**6, "MiB": 2**20, "GB": 10**9, "GiB": 2**30}
_TIME = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)\s*(ms|s|min)")
_MILLISECONDS = {"ms": 1, "s": 1000, "min": 60_000}
_MOST = 10**18  # bytes of a file: more is a slip of the hand


def size(text: str, where: str) -> int:
    """Bytes from `10MiB`, `200 MB` or a plain number; UsageError that names `where` otherwise."""
    match = _SIZE.fullmatch(text.strip())
    count = int(match[1]) * _FACTORS[match[2]] if match else 0
    if not 0 < count < _MOST:
        raise UsageError(
            f'{where}: "{text}" is no size',
            "write a positive whole number below 10^18 bytes, with B, kB, MB, GB, KiB, MiB or GiB",
        )
    return count


def milliseconds(text: str, where: str) -> int:
    """A time, as in `30s` or `1500 ms`; UsageError that names `where` otherwise."""
    match = _TIME.fullmatch(text.strip())
    value = Decimal(match[1]) * _MILLISECONDS[match[2]] if match else None
    if value is None or value != int(value):
        raise UsageError(f'{where}: "{text}" is no time', "write whole milliseconds, as in 30s or 1500 ms")
    return int(value)


def shown_time(time_ms: int) -> str:
    """A time in the largest unit that gives a whole number, as `30s` or `1500ms`."""
    return f"{time_ms}ms" if time_ms % 1000 else f"{time_ms // 1000}s"


def shown_size(count: int) -> str:
    """Bytes in the largest unit that leaves a whole number: `10 MiB`, `100 kB`, `1500 B`."""
    units = sorted(((factor, unit) for unit, factor in _FACTORS.items() if factor > 1), reverse=True)
    return next((f"{count // factor} {unit}" for factor, unit in units if count % factor == 0), f"{count} B")
