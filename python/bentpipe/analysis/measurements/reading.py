"""Finds out by its content which format a file has, and reads it. Names count for nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bentpipe import packed
from bentpipe.analysis.measurements import (
    captures,
    iperf3_json,
    iperf3_text,
    irtt,
    mahimahi,
    ping,
    table,
    value_list,
)
from bentpipe.analysis.measurements.time_series import Reading
from bentpipe.errors import UsageError

MOST_FILE_BYTES = 2**28  # unpacked
OUTAGE = 3  # lost probes in a row
_LOOKED_AT = 200  # lines
_LONGEST_LINE = 100_000
HINT = (
    "formats: a trace of mahimahi, a log of ping -D, irtt's JSON, iperf3's JSON or log, a list of values "
    "(with --every and --unit), a table with a header, captures of both ends"
)


@dataclass(frozen=True)
class ReadingOptions:
    """How files are to be read: what they do not say themselves."""

    every_ns: int | None = None
    unit: str | None = None
    are_round_trips: bool = False  # the delays of lists
    outage_from: int = OUTAGE


def read_all(files: Sequence[Path], asked: ReadingOptions) -> list[Reading]:
    """The content of each file; captures are one. UsageError if a file is of no known format or not valid."""
    contents = [packed.read(file, MOST_FILE_BYTES, HINT) for file in files]
    of_capture = [file for file, content in zip(files, contents, strict=True) if captures.recognises(content)]
    found = [
        read(str(file), content, asked)
        for file, content in zip(files, contents, strict=True)
        if not captures.recognises(content)
    ]
    if of_capture:
        found.append(captures.read(of_capture, asked.every_ns))
    return found


def read(file: str, content: bytes, asked: ReadingOptions) -> Reading:
    """The content of a file that is no capture."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    if not content.strip():
        raise UsageError(f"{file}: is empty", HINT)
    if content.lstrip().startswith(b"{"):
        return _json(file, content, asked)
    return _text(file, _lines(file, content), asked)


def _json(file: str, content: bytes, asked: ReadingOptions) -> Reading:
    """The keys show which program wrote it."""
    head = content[: 2**16]
    if b'"round_trips"' in content:
        return irtt.read(file, content, asked.outage_from)
    if b'"intervals"' in content:
        return iperf3_json.read(file, content)
    shown = json.dumps(head[:40].decode(errors="replace"))
    raise UsageError(f"{file}: JSON of neither irtt nor iperf3: {shown}", HINT)


def _text(file: str, lines: list[str], asked: ReadingOptions) -> Reading:
    head = lines[:_LOOKED_AT]
    if iperf3_text.recognises(head):
        return iperf3_text.read(file, lines)
    if ping.recognises(head):
        return ping.read(file, lines, asked.every_ns, asked.outage_from)
    if value_list.recognises(lines):
        if asked.every_ns is None and asked.unit is None and mahimahi.recognises(lines):
            return mahimahi.read(file, lines)
        return value_list.read(file, lines, asked.every_ns, asked.unit, asked.are_round_trips)
    if table.recognises(lines):
        return table.read(file, lines, asked.every_ns, asked.unit, asked.outage_from)
    raise UsageError(f"{file}: line 1: not known: {json.dumps(lines[0][:60])}", HINT)


def check_used(readings: Sequence[Reading], asked: ReadingOptions) -> None:
    """UsageError if an option is given of which no file has any need."""
    used = {option for one in readings for option in one.used}
    for option, given in (
        ("--every", asked.every_ns),
        ("--unit", asked.unit),
        ("--rtt", asked.are_round_trips),
    ):
        if given and option not in used:
            formats = "; ".join(f"{one.file} is {one.format}" for one in readings)
            raise UsageError(f"{option} is of no use: {formats}", "leave it out")


def _lines(file: str, content: bytes) -> list[str]:
    """The lines of a text; those at its end that are empty are none."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise UsageError(f"{file}: line {line}: is no text in UTF-8", HINT) from None
    lines = text.rstrip().split("\n")
    long = next((index for index, line in enumerate(lines, start=1) if len(line) > _LONGEST_LINE), None)
    if long is not None:
        raise UsageError(f"{file}: line {long}: more than {_LONGEST_LINE} characters", HINT)
    return [line.removesuffix("\r") for line in lines]
