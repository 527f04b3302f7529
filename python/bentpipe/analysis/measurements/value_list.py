"""Lists: a value in each line, each for the same time, as `--every` says, in the unit of `--unit`."""

from __future__ import annotations

from collections.abc import Sequence

from bentpipe.analysis.measurements import numbers
from bentpipe.analysis.measurements.time_series import Measured, Reading, TimeSeries
from bentpipe.errors import UsageError

NAME = "a list of values"
_HINT = "write a number in each line, all of them in the unit of --unit"


def recognises(lines: Sequence[str]) -> bool:
    """Whether the first line begins with a number and has nothing but a unit behind it."""
    words = lines[0].split() if lines else []
    return 0 < len(words) <= 2 and words[0][:1] in "+-.0123456789" and "," not in lines[0]


def read(
    file: str, lines: Sequence[str], every_ns: int | None, unit: str | None, are_round_trips: bool
) -> Reading:
    """The values. UsageError if an option is missing, or a line is none."""
    if every_ns is None:
        raise UsageError(
            f"{file}: is a list, one value in a line: for how long does each hold?",
            "say it: --every 100ms",
        )
    if unit is None:
        raise UsageError(f"{file}: is a list: of what?", "say it: --unit Mbit/s, or --unit ms for delays")
    quantity, factor = numbers.given_unit(unit)
    used = frozenset({"--every", "--unit"})
    if are_round_trips and quantity == "delay":
        quantity, used = "rtt", used | {"--rtt"}
    values: list[int] = []
    for line, text in enumerate(lines, start=1):
        place = f"line {line}"
        value = numbers.number(text, file, place, _HINT)
        values.append(numbers.whole(value, factor, quantity, file, place))
        if len(values) > numbers.MOST_VALUES:
            raise UsageError(f"{file}: more than {numbers.MOST_VALUES} values", "cut it into parts")
    times = [index * every_ns for index in range(len(values))]
    numbers.check_times(file, [times[0], times[-1] + 1], f"line {len(values)}", lines[-1])
    series = TimeSeries.of(times, values, len(values) * every_ns)
    note = () if quantity != "delay" else ("Its delays are of one way; if they are round trips: --rtt.",)
    return Reading(file, NAME, (Measured(quantity, series),), note, used=used)
