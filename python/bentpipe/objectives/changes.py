"""The changes of a suite's measures since a base: trials with the same seeds, pair by pair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bentpipe.analysis.comparison import ComparedKey
from bentpipe.analysis.sequential import PairedChange, Rigour, paired_change
from bentpipe.objectives.judge import has_failed, known, telling
from bentpipe.objectives.measures import TIMEOUTS, ObjectiveMeasure, worse_median
from bentpipe.objectives.questions import CellRecords, Question
from bentpipe.runs.records import Record
from bentpipe.schema.verdicts import Direction, MeasuredChange


@dataclass(frozen=True)
class FoundChange:
    """A change, and how many more trials of its cell may decide it; None: none."""

    change: MeasuredChange
    more: int | None = None


@dataclass(frozen=True)
class _Pairs:
    """Trials of one seed, once of the base and once of now."""

    base: tuple[Record, ...]
    now: tuple[Record, ...]


def changes(
    asked: Sequence[Question], base: CellRecords, now: CellRecords, rigour: Rigour, margin: float
) -> tuple[list[FoundChange], list[str]]:
    """The changes, the largest first, and what cannot be compared. The error is the probability of any wrong
    answer among all: each change gets its share of it (Bonferroni).
    """
    comparable, left_out = [], []
    for one in _once(asked):
        pairs, why_not = _pairs(one.cell, one.objective.measure, base, now)
        if why_not:
            left_out.append(f"{one.objective.measure.title}, {one.cell.title}: {why_not}")
        else:
            comparable.append((one, pairs))
    each = rigour.shared(len(comparable))
    found = [_change(one, pairs, each, margin) for one, pairs in comparable]
    return sorted(found, key=lambda one: -_size(one.change)), left_out


def _once(asked: Sequence[Question]) -> list[Question]:
    """Questions that measure the same of the same cell, once."""
    return list({(one.cell, one.objective.measure): one for one in reversed(asked)}.values())[::-1]


def _pairs(
    key: ComparedKey, measure: ObjectiveMeasure, base: CellRecords, now: CellRecords
) -> tuple[_Pairs, str]:
    """The pairs of a cell; or why there are none."""
    before = {record.seed: record for record in base.get(key, ())}
    both = [(before[record.seed], record) for record in now.get(key, ()) if record.seed in before]
    if not both:
        why = "no trial of the base has the same seed" if before else "the base has no trial of it"
        if not now.get(key):
            why = "this check has no trial of it"
        return _Pairs((), ()), why
    if why := _no_measure(both):
        return _Pairs((), ()), why
    if any(_is_whole(one) and measure.of(one) is None for pair in both for one in pair):
        return _Pairs((), ()), f"a trial that succeeded has no {measure.title}"
    return _Pairs(*zip(*both, strict=True)), ""


def _no_measure(both: Sequence[tuple[Record, Record]]) -> str:
    """Why pairs say nothing of a change: the base did not offer it, or a testbed failed. What is not offered
    any more says something.
    """
    for base, now in both:
        for one in (base, now):
            if one.outcome == "invalid" and not has_failed(one):
                return f"invalid: {one.detail}"
        if base.outcome == "unsupported":
            return f"the base: unsupported: {base.detail}"
    return ""


def _is_whole(record: Record) -> bool:
    return record.ok or record.outcome in TIMEOUTS


def _change(asked: Question, pairs: _Pairs, rigour: Rigour, margin: float) -> FoundChange:
    measure = asked.objective.measure
    broken, before = (
        [record for record in side if not _is_whole(record)] for side in (pairs.now, pairs.base)
    )
    if broken or before:
        word: Direction = "undecided"
        if not before or not broken:
            word = "worse" if broken else "better"
        one = (broken or before)[0]
        when = "now" if broken else "in the base"
        why = f"{one.outcome.replace('_', ' ')} {when}: {one.detail}"
        return FoundChange(_filled(asked, pairs, None, word, why))
    if all(_is_identical(*pair) for pair in zip(pairs.base, pairs.now, strict=True)):
        return FoundChange(_filled(asked, pairs, None, "same", "the same packets, byte for byte"))
    both = [[_value(measure, one) for one in side] for side in (pairs.base, pairs.now)]
    logarithms = [_log_ratio(one, other) for one, other in zip(*both, strict=True)]
    found = paired_change(logarithms, rigour, math.log1p(margin))
    word = "undecided"
    if found.sure == "same":
        word = "same"
    elif found.sure is not None:
        word = "better" if (found.sure == "above") == measure.more_is_better else "worse"
    more = rigour.next_look(found.pairs) if found.sure is None else None
    return FoundChange(_filled(asked, pairs, found, word, _why(found, word)), more)


def _is_identical(base: Record, now: Record) -> bool:
    """Whether the same packets were sent, and became the same: nothing can have changed."""
    hashes = ((one.packet_log_hash, one.packet_log_sha256) for one in (base, now))
    return any(one is not None and one == other for one, other in zip(*hashes, strict=True))


def _why(found: PairedChange, word: Direction) -> str:
    if math.isinf(found.low) and math.isinf(found.high):
        return (
            f"{_percent(found.median)}: {found.pairs} pairs are too few to be sure; run the base with --least"
        )
    by = f"{_percent(found.median)} ({_percent(found.low)} to {_percent(found.high)})"
    return f"{by}: none that is sure after {found.pairs} pairs" if word == "undecided" else by


def _percent(logarithm: float) -> str:
    if math.isinf(logarithm):
        return "never before" if logarithm < 0 else "never now"
    return f"{100 * math.expm1(logarithm):+.1f} %"


def _value(measure: ObjectiveMeasure, record: Record) -> float:
    value = measure.of(record)
    assert value is not None, "looked at when pairs were made"
    return value


def _log_ratio(base: float, now: float) -> float:
    """The logarithm of now / base; 0 where neither ever reached it."""
    if base == now:
        return 0.0
    if 0 in (base, now) or math.inf in (base, now):
        return math.inf if now > base else -math.inf
    return math.log(now / base)


def _filled(
    asked: Question, pairs: _Pairs, found: PairedChange | None, word: Direction, why: str
) -> MeasuredChange:
    measure = asked.objective.measure
    more_is_worse = not measure.more_is_better
    count = len(pairs.now) if found is None else found.pairs
    sides = [side[:count] for side in (pairs.base, pairs.now)]
    base, now = ([value for one in side if (value := measure.of(one)) is not None] for side in sides)
    was, is_now = (telling(side) for side in sides)
    assert was is not None and is_now is not None, "there are pairs"
    logarithms = (None,) * 3 if found is None else (found.median, found.low, found.high)
    ratio, low, high = (known(None if one is None else _exp(one)) for one in logarithms)
    return MeasuredChange(
        objective=asked.objective.name,
        **asked.cell._asdict(),
        measure=measure.title,
        outcome=word,
        why=why,
        pairs=count,
        base=known(worse_median(base, more_is_worse=more_is_worse)) if base else None,
        now=known(worse_median(now, more_is_worse=more_is_worse)) if now else None,
        ratio=ratio,
        low=low,
        high=high,
        findings=[
            *(f"+{one}" for one in is_now.findings if one not in was.findings),
            *(f"-{one}" for one in was.findings if one not in is_now.findings),
        ],
        base_trial=was.trial,
        trial=is_now.trial,
    )


def _exp(logarithm: float) -> float:
    return math.exp(logarithm) if logarithm < 300 else math.inf


def _size(change: MeasuredChange) -> float:
    """By how much it changed, for the order: what is sure first, and of that what has no ratio."""
    sure = change.outcome in ("better", "worse")
    if not change.ratio:
        return math.inf if sure else 0.0
    return abs(math.log(change.ratio)) + (1e3 if sure else 0.0)
