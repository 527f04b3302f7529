"""Tables: CSV with a header, a row for each time, as trace-driven qdiscs and measurement tools have them.

Fields are separated by commas, semicolons, tabs or white space. Times are seconds unless the column's name
has a unit; of a clock that counts since 1970 also milliseconds and finer ones, and dates of ISO 8601. Without
a column of times, rows are as far apart as `--every` says. A row holds until the next. A round trip that is
empty, or `lost`, is one that did not come back.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from bentpipe.analysis.measurements import echoes, numbers, table_columns
from bentpipe.analysis.measurements.echoes import Echo
from bentpipe.analysis.measurements.table_columns import HINT, Named, NamedColumns
from bentpipe.analysis.measurements.time_series import Measured, Reading, TimeSeries, middle_gap
from bentpipe.errors import UsageError

NAME = "a table"
_LOST = frozenset({"", "-", "*", "lost", "timeout", "none", "null", "na", "n/a"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# From this size on, a time without a unit counts since 1970 in milliseconds, microseconds, nanoseconds.
_FINER = ((10**17, 1), (10**14, 10**3), (10**11, 10**6))


def recognises(lines: Sequence[str]) -> bool:
    """Whether the first line has names, and several fields or one that is a quantity."""
    header = lines[0].replace("\t", " ")
    return any(letter.isalpha() for letter in header) and header.isprintable()


def read(
    file: str, lines: Sequence[str], every_ns: int | None, unit: str | None, outage_from: int
) -> Reading:
    """The columns that are known. UsageError, naming line and column, if there are none, or a value is not
    valid.
    """
    header = lines[0].lstrip("# ")  # as gnuplot has it
    delimiter = _delimiter(header)
    rows = _rows(file, [header, *lines[1:]], delimiter)
    _, names = next(rows)
    columns = table_columns.named(file, names, unit)
    if columns.time is None and every_ns is None:
        hint = "name one time_s, or say how far apart rows are: --every 100ms"
        raise UsageError(f"{file}: no column of times", hint)
    times: list[int] = []
    fields: list[tuple[int, list[str]]] = []
    for line, row in rows:
        if len(row) != len(names):
            raise numbers.bad(file, f"line {line}", delimiter.join(row),
                              f"has {len(row)} fields, the header has {len(names)}", HINT)  # fmt: skip
        times.append(_time(file, line, columns.time, row, every_ns, len(times)))
        said = row[columns.time.index] if columns.time else line
        numbers.check_times(
            file, times, f"line {line}: {columns.time.name if columns.time else 'time'}", said
        )
        fields.append((line, row))
    if not times:
        raise UsageError(f"{file}: no row after the header", HINT)
    return _reading(file, columns, times, fields, outage_from)


def _reading(
    file: str,
    columns: NamedColumns,
    times: Sequence[int],
    fields: Sequence[tuple[int, list[str]]],
    outage_from: int,
) -> Reading:
    end = times[-1] + middle_gap(times)
    measured: list[Measured] = []
    notes: list[str] = []
    has_losses = any(one.quantity == "loss" for one in columns.values)
    for column in columns.values:
        if column.quantity == "rtt":
            found = echoes.series(file, list(_echoes(file, column, times, fields)), outage_from)
            measured += [one for one in found.measured if one.quantity == "rtt" or not has_losses]
            notes += found.notes
            continue
        assert column.quantity != "time" and column.factor is not None
        values = [
            numbers.whole(
                numbers.number(row[column.index], file, (place := f"line {line}: {column.name}"), HINT),
                column.factor, column.quantity, file, place,
            )
            for line, row in fields
        ]  # fmt: skip
        measured.append(Measured(column.quantity, TimeSeries.of(times, values, end), column.way))
    if columns.left_out:
        notes.append(f"Columns that are left out: {', '.join(columns.left_out)}.")
    used = {"--every"} if columns.time is None else set()
    used |= {"--unit"} if columns.uses_given_unit else set()
    return Reading(file, NAME, tuple(measured), tuple(notes), used=frozenset(used))


def _delimiter(header: str) -> str:
    """Of the header, what stands there most often; white space if there is nothing else."""
    most = max(",;\t", key=header.count)
    return most if most in header else " "


def _rows(file: str, lines: Sequence[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The fields of each line that is not empty, and its number."""
    if delimiter == " ":
        yield from ((line, text.split()) for line, text in enumerate(lines, start=1) if text.strip())
        return
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if any(field.strip() for field in row):
                yield reader.line_num, row
    except csv.Error as error:
        raise UsageError(f"{file}: line {reader.line_num}: {error}", HINT) from None


def _time(
    file: str, line: int, column: Named | None, row: Sequence[str], every_ns: int | None, index: int
) -> int:
    if column is None:
        assert every_ns is not None
        return index * every_ns
    text, place = row[column.index].strip(), f"line {line}: {column.name}"
    if column.factor is None and "-" in text[1:] and ":" in text:
        return _date(file, place, text)
    value = numbers.number(text, file, place, HINT)
    finer = (factor for least, factor in _FINER if value >= least)
    factor = column.factor if column.factor is not None else next(finer, 10**9)
    return numbers.time(value, factor, file, place)


def _date(file: str, place: str, text: str) -> int:
    try:
        found = datetime.fromisoformat(text)
        since = (found if found.tzinfo else found.replace(tzinfo=UTC)) - _EPOCH
    except (ValueError, OverflowError):
        raise numbers.bad(
            file, place, text, "is no time", "write 2026-11-28T12:00:00.5Z, or seconds"
        ) from None
    return since // timedelta(microseconds=1) * 1000


def _echoes(
    file: str, column: Named, times: Sequence[int], fields: Sequence[tuple[int, list[str]]]
) -> Iterator[Echo]:
    assert column.factor is not None
    for at, (line, row) in zip(times, fields, strict=True):
        text, place = row[column.index].strip(), f"line {line}: {column.name}"
        rtt = None
        if text.lower() not in _LOST:
            value = numbers.number(text, file, place, HINT)
            rtt = numbers.whole(value, column.factor, "rtt", file, place)
        yield Echo(at, rtt, None)
