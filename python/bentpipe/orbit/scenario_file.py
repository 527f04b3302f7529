"""The scenario that comes of a passage: a file, and beside it the trace of its delays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from bentpipe.orbit.passage import Change, Passage


@dataclass(frozen=True)
class ChosenLink:
    """Keys that geometry does not give, in the form of scenario files."""

    forward_rate: str
    return_rate: str
    queue: str
    gap_ms: int
    in_flight: str
    added_ns: int  # to each one-way delay
    then: str  # `end`, `repeat` or `hold`: what comes after the passage


def trace_of(passage: Passage, names: Sequence[str], added_ns: int) -> str:
    """The trace of delays, a row for each sample. The columns behind the delay are for people."""
    rows = ["time_s,delay_ms,satellite,elevation_deg,in_view"]
    first = passage.samples[0]
    if first.at_ns:
        rows.append(_row(0, first.delay_ns + added_ns, "", "", 0))
    for sample in passage.samples:
        elevation = f"{sample.elevation:.2f}"
        name = names[sample.satellite].replace(",", " ")
        rows.append(_row(sample.at_ns, sample.delay_ns + added_ns, name, elevation, sample.in_view))
    return "".join(f"{row}\n" for row in rows)


def _row(at_ns: int, delay_ns: int, name: str, elevation: str, in_view: int) -> str:
    return f"{_decimal(at_ns, 9)},{_decimal(delay_ns, 6)},{name},{elevation},{in_view}"


def _decimal(count: int, places: int) -> str:
    return f"{(Decimal(count).scaleb(-places)).normalize():f}"


def scenario_of(
    passage: Passage, trace: str, chosen: ChosenLink, length_ms: int, title: str, notes: Sequence[str]
) -> str:
    """The scenario file; `trace` is the name of the file beside it."""
    length = _seconds(length_ms)
    after = {"end": f', ends = "{length}"', "repeat": f', period = "{length}"', "hold": ""}[chosen.then]
    delay = f'delay = {{ trace = {json.dumps(trace)}, between = "linear"{after} }}'
    lines = [
        f"title = {json.dumps(title)}",
        'source = "made by bentpipe scenarios orbit, from geometry"',
        f"notes = {json.dumps(chr(10).join(notes), ensure_ascii=False)}",
        f'timeout = "{length}"',
    ]
    for direction, rate in (("forward", chosen.forward_rate), ("return", chosen.return_rate)):
        lines += ["", f"[satellite.{direction}]", f"rate = {json.dumps(rate)}", delay]
        lines += [f"queue = {json.dumps(chosen.queue)}", *_handovers(passage, chosen, length_ms)]
    return "".join(f"{line}\n" for line in lines)


def _handovers(passage: Passage, chosen: ChosenLink, length_ms: int) -> list[str]:
    changes = list(passage.changes)
    if chosen.then == "repeat" and not (changes and changes[0].at_ms == 0):
        changes.insert(0, Change(0, 0))  # from the last path to the first
    if not changes:
        return []
    rows = ["handovers = { times = ["]
    each = ((_seconds(change.at_ms), _own_gap(change, chosen, length_ms)) for change in changes)
    rows += [f'  {{ at = "{at}"{gap} }},' for at, gap in each]
    period = f', period = "{_seconds(length_ms)}"' if chosen.then == "repeat" else ""
    return [*rows, f'], gap = "{chosen.gap_ms} ms", in_flight = "{chosen.in_flight}"{period} }}']


def _own_gap(change: Change, chosen: ChosenLink, length_ms: int) -> str:
    """Of a time without a path the gap goes on when the next one is there; at the end there is none."""
    if change.until_ms == change.at_ms:
        return ""
    gap_ms = change.until_ms - change.at_ms
    if change.until_ms < length_ms:
        gap_ms += chosen.gap_ms
    elif chosen.then == "repeat":
        gap_ms -= 1
    return f', gap = "{_seconds(gap_ms)}"'


def _seconds(time_ms: int) -> str:
    return f"{_decimal(time_ms, 3)} s"
