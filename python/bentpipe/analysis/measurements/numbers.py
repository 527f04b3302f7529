"""Numbers and units in files, and errors that name where they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from bentpipe.analysis.losses import DIRECTIONS, Direction
from bentpipe.analysis.measurements.time_series import Quantity
from bentpipe.errors import UsageError, one_of

MOST_VALUES = 1_000_000
LONGEST_NS = 366 * 86_400 * 10**9  # of a file: a year
_LARGEST: dict[Quantity, int] = {
    "rate": 10**15,  # bit/s
    "delay": 3600 * 10**9,
    "rtt": 3600 * 10**9,
    "loss": 10**9,
    "queue": 10**9,
}
_SAID: dict[Quantity, str] = {
    "rate": "a rate is at most 1000000 Gbit/s",
    "delay": "a delay is at most an hour",
    "rtt": "a round trip is at most an hour",
    "loss": "a loss is at most 100 %",
    "queue": "a queue has at most 1000000000 packets",
}
_NUMBER = re.compile(r"[+-]?([0-9]{1,20}(\.[0-9]{0,20})?|\.[0-9]{1,20})([eE][+-]?[0-9]{1,2})?")
# The separator of two values, not the one in `Mbit/s`.
_SLASH = re.compile(r"/(?!s\b|sec\b)")
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
# Unit → what it is of, and how many of the whole numbers of a series it is.
_RATES = {
    "bit/s": 1, "bps": 1, "bits/s": 1, "bits/sec": 1, "bits": 1,
    "kbit/s": 10**3, "kbps": 10**3, "kbits/sec": 10**3, "kbits": 10**3, "kbit": 10**3, "kilobits": 10**3,
    "Mbit/s": 10**6, "mbps": 10**6, "mbits/sec": 10**6, "mbits": 10**6, "mbit": 10**6, "megabits": 10**6,
    "Gbit/s": 10**9, "gbps": 10**9, "gbits/sec": 10**9, "gbits": 10**9, "gbit": 10**9,
    "kbits/s": 10**3, "Mbits/s": 10**6, "Gbits/s": 10**9,
    "b/s": 1, "kb/s": 10**3, "Kb/s": 10**3, "Mb/s": 10**6, "Gb/s": 10**9,
    "B/s": 8, "Bps": 8, "bytes/s": 8, "bytes/sec": 8, "byteps": 8, "bytesps": 8,
    "kB/s": 8 * 10**3, "KB/s": 8 * 10**3, "MB/s": 8 * 10**6, "GB/s": 8 * 10**9,
    "kBps": 8 * 10**3, "KBps": 8 * 10**3, "MBps": 8 * 10**6, "GBps": 8 * 10**9,
    "kbytes/s": 8 * 10**3, "MBytes/s": 8 * 10**6, "GBytes/s": 8 * 10**9,
    "kbytes/sec": 8 * 10**3, "MBytes/sec": 8 * 10**6, "GBytes/sec": 8 * 10**9,
}  # fmt: skip
# In these, upper and lower case differ: a `B` is a byte, a `b` a bit.
_BITS_OR_BYTES = re.compile(r"[kKMG]?[bB]/s|[a-zA-Z]?Bps")
TIMES = {
    "ns": 1, "nanoseconds": 1, "us": 10**3, "µs": 10**3, "usec": 10**3, "microseconds": 10**3,
    "ms": 10**6, "msec": 10**6, "milliseconds": 10**6, "millis": 10**6,
    "s": 10**9, "sec": 10**9, "secs": 10**9, "seconds": 10**9, "min": 60 * 10**9,
}  # fmt: skip
_RATIOS = {"%": 10**7, "percent": 10**7, "pct": 10**7, "perc": 10**7, "ratio": 10**9, "fraction": 10**9}
_COUNTS = {"packets": 1, "pkts": 1, "pkt": 1, "packet": 1}
_UNITS: tuple[tuple[Quantity, dict[str, int]], ...] = (
    ("rate", _RATES),
    ("delay", TIMES),
    ("loss", _RATIOS),
    ("queue", _COUNTS),
)
EXAMPLES = {"rate": "Mbit/s", "delay": "ms", "loss": "%"}
USUAL = ("bit/s", "kbit/s", "Mbit/s", "Gbit/s", "ns", "us", "ms", "s", "%")


def bad(file: str, place: str, value: object, what: str, hint: str) -> UsageError:
    """The error for a value at a place of a file, such as `line 3: rate_bps`."""
    shown = str(value)
    shown = shown if len(shown) <= 60 else f"{shown[:59]}…"
    return UsageError(f"{file}: {place}: {printable(shown)}: {what}", hint)


def printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "�" for letter in text)


def unit(text: str) -> tuple[Quantity, int] | None:
    """The quantity of a unit, and its factor; None: it is not known. `MB/s` and `Mb/s` differ, and `MBps` and
    `Mbps`; `mbps` and `Mbps` do not.
    """
    is_exact = _BITS_OR_BYTES.fullmatch(text) is not None
    for known, units in _UNITS:
        if text in units:
            return known, units[text]
        lower = {name.lower(): factor for name, factor in units.items() if not _BITS_OR_BYTES.fullmatch(name)}
        if not is_exact and text.lower() in lower:
            return known, lower[text.lower()]
    return None


def given_unit(text: str) -> tuple[Quantity, int]:
    """The unit of an option. UsageError if it is none."""
    found = unit(text)
    if found is None:
        raise UsageError(f'--unit: "{text}" is no unit', one_of(text, USUAL, "units"))
    return found


def number(text: str, file: str, place: str, hint: str) -> Decimal:
    """A finite number. UsageError, naming the place, if it is none."""
    text = text.strip()
    if _NUMBER.fullmatch(text):
        return Decimal(text)
    if _NOT_FINITE.fullmatch(text):
        raise bad(file, place, text, "is not a finite number", "take the line out, or measure again")
    raise bad(file, place, text or '""', "is not a number", hint)


def whole(value: Decimal | float, factor: int, quantity: Quantity, file: str, place: str) -> int:
    """A value of a series. UsageError if it is negative or beyond all measure."""
    if value < 0:
        raise bad(file, place, value, "is below 0", "take the line out, or measure again")
    scaled = Decimal(value) * factor
    if scaled > _LARGEST[quantity]:
        raise bad(file, place, value, f"too large: {_SAID[quantity]}", "is the unit as meant?")
    return round(scaled)


def time(value: Decimal | float, factor: int, file: str, place: str) -> int:
    """A time in nanoseconds, of any clock. UsageError if it is beyond all measure."""
    scaled = Decimal(value) * factor
    if abs(scaled) > 10**19:
        raise bad(file, place, value, "is no time", "is the unit as meant?")
    return round(scaled)


def check_times(file: str, times_ns: Sequence[int], place: str, said: object) -> None:
    """UsageError if the last time does not follow those before it."""
    if len(times_ns) > MOST_VALUES:
        raise UsageError(f"{file}: more than {MOST_VALUES} values", "cut it into parts")
    if len(times_ns) > 1 and times_ns[-1] <= times_ns[-2]:
        raise bad(file, place, said, "times must increase", "sort the lines by time, one for each time")
    if times_ns[-1] - times_ns[0] > LONGEST_NS:
        raise bad(file, place, said, "is more than a year after the first", "is the unit as meant?")


def span(text: str, option: str) -> int:
    """A time of an option in nanoseconds, as `100ms`. UsageError if it is none, or 0."""
    match = re.fullmatch(r"\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([a-zµ]+)\s*", text)
    factor = TIMES.get(match[2]) if match else None
    found = round(Decimal(match[1]) * factor) if match and factor else 0
    if not 0 < found <= LONGEST_NS:
        raise UsageError(f'{option}: "{text}" is no time', "write it like 100ms or 1s")
    return found


_SCALES = {
    "rate": ((10**9, "Gbit/s"), (10**6, "Mbit/s"), (10**3, "kbit/s"), (1, "bit/s")),
    "delay": ((10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns")),
    "loss": ((10**7, "%"),),
}


def shown(value: int, quantity: Quantity) -> str:
    """A value as scenario files have it, exactly."""
    if quantity == "queue":
        return f"{value} packets"
    scale = _SCALES["delay" if quantity == "rtt" else quantity]
    if quantity in ("delay", "rtt"):
        scale = tuple(one for one in scale if one[1] != "s") if value < 10**10 else scale
    factor, name = next((one for one in scale if value >= one[0]), scale[-1])
    if value == 0 and quantity != "loss":
        factor, name = (10**6, "Mbit/s") if quantity == "rate" else (10**6, "ms")
    text = f"{Decimal(value) / factor:f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {name}"


def both_ways(text: str | None, option: str, quantity: Quantity) -> dict[Direction, str]:
    """The values of an option, as scenario files have them: `100/20Mbit/s`, `50Mbit/s` of both ways,
    `/2Mbit/s` of the return path alone. UsageError if it is none.
    """
    if text is None:
        return {}
    example = "100/20Mbit/s" if quantity == "rate" else "30/20ms"
    parts = [part.strip() for part in _SLASH.split(text)]
    if len(parts) > len(DIRECTIONS) or not any(parts):
        raise UsageError(f'{option}: "{text}" is not valid', f"write it like {example}")
    last = parts[-1] or parts[0]
    behind = re.sub(r"^[0-9.eE+-]*\s*", "", last)
    found: dict[Direction, str] = {}
    for way, part in zip(DIRECTIONS, parts * (1 if len(parts) > 1 else 2), strict=True):
        if part:
            found[way] = _given(part, behind, option, quantity, example)
    return found


def _given(part: str, behind: str, option: str, quantity: Quantity, example: str) -> str:
    match = re.fullmatch(r"([0-9][0-9.]{0,30})\s*(\S*)", part)
    found = unit((match[2] or behind) if match else "")
    if match is None or found is None or found[0] != quantity:
        raise UsageError(f'{option}: "{part}" is no {quantity}', f"write it like {example}")
    value = whole(
        number(match[1], option, part, f"write it like {example}"), found[1], quantity, option, part
    )
    if value == 0:
        raise UsageError(f"{option}: {part}: must be above 0", f"write it like {example}")
    return shown(value, quantity)
