"""Logs of ping: what iputils, BusyBox, macOS and BSD print.

`ping -D` begins a line with the time at which the answer came, so the probe was sent a round trip before.
Without times, probes are as far apart as `--every` says. Probes that are missing in the sequence were lost;
those behind the last answer are known by what ping says of each (`no answer yet`, `Request timeout`,
`Destination Host Unreachable`). Sequence numbers have 16 bits and begin again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bentpipe.analysis.measurements import echoes, numbers
from bentpipe.analysis.measurements.echoes import Echo
from bentpipe.analysis.measurements.time_series import Reading, middle_gap
from bentpipe.errors import UsageError

NAME = "a log of ping"
_ANSWER = re.compile(
    r"^(?:\[(?P<at>[0-9.]{1,30})\] )?.*bytes from .*\b(?:icmp_|tcp_)?seq[= ](?P<seq>[0-9]{1,9})\b"
    r".*\btime[=<](?P<rtt>[^ ]+) ?(?P<unit>[a-zµ]*)(?P<rest>.*)$"
)
_MISSED = re.compile(
    r"^(?=.*(?:no answer yet|Request timeout|Unreachable|exceeded)).*\b(?:icmp_)?seq[= ](?P<seq>[0-9]{1,9})\b"
)
_SEQUENCE = 2**16
_HINT = "a line is [1790000000.2] 64 bytes from 192.0.2.1: icmp_seq=1 ttl=55 time=29.1 ms, as ping -D has it"
_CUT = "the clock was set, lines are not in order, or the file has several logs: cut it there"
_NO_TIMES = "log it with ping -D, which writes the times, or say how far apart probes are: --every 1s"


@dataclass(frozen=True)
class _Answer:
    line: int
    rtt_ns: int
    at_ns: int | None


@dataclass(frozen=True)
class _ProbeLog:
    answers: dict[int, _Answer]  # by their sequence numbers, which go on where they begin again
    again: int  # answers that came twice
    last: int  # the highest number, also of probes that were lost


def recognises(lines: Sequence[str]) -> bool:
    """Whether these first lines are of ping."""
    return any(_ANSWER.match(line) for line in lines) or any(
        line.startswith("PING ") and "bytes" in line for line in lines[:3]
    )


def read(file: str, lines: Sequence[str], every_ns: int | None, outage_from: int) -> Reading:
    """The round trips and losses. UsageError if there are none, or lines contradict each other."""
    log = _log(file, lines)
    answers = log.answers
    if not answers:
        raise UsageError(f"{file}: no probe was answered", _HINT)
    has_times = {one.at_ns is not None for one in answers.values()}
    if has_times == {True, False}:
        line = next(one.line for one in answers.values() if one.at_ns is None)
        raise bad_line(file, line, lines[line - 1], "has no time, others have", _NO_TIMES)
    if has_times == {False} and every_ns is None:
        raise UsageError(f"{file}: line {min(one.line for one in answers.values())}: no times", _NO_TIMES)
    used = frozenset({"--every"} if has_times == {False} else ())
    found = echoes.series(file, _echoes(file, log, every_ns if used else None), outage_from)
    notes = list(found.notes)
    if log.again:
        notes.append(f"{log.again} answers that came twice are left out.")
    notes.append("A round trip of ping has in it whatever waited in queues then.")
    return Reading(file, NAME, found.measured, tuple(notes), used=used)


def bad_line(file: str, line: int, text: str, what: str, hint: str) -> UsageError:
    return numbers.bad(file, f"line {line}", text, what, hint)


def _log(file: str, lines: Sequence[str]) -> _ProbeLog:
    """The replies, in that order."""
    found: dict[int, _Answer] = {}
    again, last, last_at = 0, None, None
    for line, text in enumerate(lines, start=1):
        match = _ANSWER.match(text) or _MISSED.match(text)
        if match is None:
            continue
        number = _unwrapped(int(match["seq"]), last)
        last = number if last is None else max(last, number)
        if last - min(found, default=last) > numbers.MOST_VALUES:
            raise bad_line(file, line, text, f"is more than {numbers.MOST_VALUES} probes later", _CUT)
        if match.re is _MISSED:
            continue
        one = _answer(file, line, text, match)
        if one.at_ns is not None:
            if last_at is not None and one.at_ns < last_at:
                raise bad_line(file, line, text, "its time is before that of the line above", _CUT)
            last_at = one.at_ns
        if number in found:
            again += 1
        else:
            found[number] = one
    return _ProbeLog(found, again, last or 0)


def _answer(file: str, line: int, text: str, match: re.Match[str]) -> _Answer:
    place = f"line {line}: time"
    factor = numbers.TIMES.get(match["unit"])
    if factor is None:
        raise numbers.bad(file, place, text, f'unit "{match["unit"]}" is not known', _HINT)
    rtt = numbers.whole(numbers.number(match["rtt"], file, place, _HINT), factor, "rtt", file, place)
    at = None
    if match["at"] is not None:
        at = numbers.time(numbers.number(match["at"], file, f"line {line}", _HINT), 10**9, file, place)
    return _Answer(line, rtt, at)


def _unwrapped(seq: int, last: int | None) -> int:
    """The number that is nearest to the last one, of those with these lower bits."""
    if last is None or seq >= _SEQUENCE:
        return seq
    near = last - last % _SEQUENCE + seq
    return min((near - _SEQUENCE, near, near + _SEQUENCE), key=lambda one: abs(one - last))


def _echoes(file: str, log: _ProbeLog, every_ns: int | None) -> list[Echo]:
    """All probes from the first that was answered. One that was lost was sent between its neighbours, or, if
    none came after it, as long after the one before as others were.
    """
    numbered = sorted(log.answers)
    found: list[Echo] = []
    for before, number in zip([None, *numbered], numbered, strict=False):
        one = log.answers[number]
        if every_ns is not None:
            sent = (number - numbered[0]) * every_ns
        else:
            assert one.at_ns is not None
            sent = one.at_ns - one.rtt_ns
        if found and sent <= found[-1].sent_ns:
            what = "was sent before the one with the number before"
            raise numbers.bad(file, f"line {one.line}: icmp_seq", number % _SEQUENCE, what, _CUT)
        if before is not None:
            begin, missing = found[-1].sent_ns, number - before - 1
            steps = (begin + (sent - begin) * step // (missing + 1) for step in range(1, missing + 1))
            found += [Echo(at, None) for at in steps]
        found.append(Echo(sent, one.rtt_ns))
    gap = every_ns or middle_gap([one.sent_ns for one in found])
    end = found[-1].sent_ns
    found += [Echo(end + gap * step, None) for step in range(1, log.last - numbered[-1] + 1)]
    return found
