"""Judgement of objectives by the trials of their cells.

A program that crashes, or moves something else than it was asked for, has failed, whatever its other trials
did. Besides, trials say when they had received how much, and the median decides (`analysis.sequential`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bentpipe.analysis.cells import cells
from bentpipe.analysis.sequential import MOST, Rigour, median_side, most_that_disagree
from bentpipe.execution.bundler import BREACH
from bentpipe.objectives.measures import TIMEOUTS, worse_median
from bentpipe.objectives.questions import CellRecords, Question
from bentpipe.objectives.suite import Objective
from bentpipe.runs.records import Record
from bentpipe.schema.verdicts import Decision, ObjectiveVerdict


@dataclass(frozen=True)
class Judgement:
    """The judgement that the trials of a question allow."""

    outcome: Decision
    why: str
    trials: int = 0
    values: tuple[float, ...] = ()
    ratio: float | None = None  # of an objective that compares: the median
    more: int | None = None  # the number of trials of each cell that may decide it


def judge(asked: Question, found: CellRecords, rigour: Rigour) -> Judgement:
    """The judgement whether the objective is met, by the trials so far."""
    own = found.get(asked.cell, ())
    if judged := _without_measuring(own):
        return judged
    values = [asked.objective.measure.of(record) for record in own]
    if None in values:
        return Judgement("undecided", f"a trial has no {asked.objective.measure.title}", len(own))
    known = [value for value in values if value is not None]
    if asked.reference is None:
        judged = _by_bound(asked.objective, known, rigour)
        return replace(judged, why=judged.why + _unreachable(asked.objective, own))
    return _by_reference(asked, known, found.get(asked.reference, ()), rigour)


def _without_measuring(records: Sequence[Record]) -> Judgement | None:
    """The judgement that needs no measure: nothing ran, a program failed, it is unsupported, the testbed
    failed.
    """
    if not records:
        return Judgement("undecided", "no trial of it ran")
    failed = [record for record in records if has_failed(record)]
    if failed:
        word = "crashed" if failed[0].outcome == "invalid" else failed[0].outcome.replace("_", " ")
        many = f"{word} in {len(failed)} of {len(records)} trials"
        return Judgement("fail", f"{many}: {failed[0].detail}", len(records))
    if all(record.outcome == "unsupported" for record in records):
        return Judgement("skipped", records[0].detail, len(records))
    odd = next((record for record in records if record.outcome in ("invalid", "unsupported")), None)
    if odd is not None:
        return Judgement("undecided", f"a trial says nothing: {odd.detail}", len(records))
    return None


def has_failed(record: Record) -> bool:
    """Whether a program of it crashed or transferred something else than was requested, or breaks the
    contract, so that no trial of it is to be trusted.
    """
    if record.outcome == "invalid":
        return BREACH in record.detail
    return record.outcome not in ("ok", "unsupported", *TIMEOUTS)


def _by_bound(objective: Objective, values: Sequence[float], rigour: Rigour) -> Judgement:
    beyond = [_beyond(value, objective) for value in values]
    found = median_side(beyond, rigour)
    seen = values[: found.trials]
    met = sum(one <= 0 for one in beyond[: found.trials])
    middle = objective.measure.text(worse_median(seen, more_is_worse=objective.at_most))
    why = f"{met} of {found.trials} trials meet it, the median is {middle}"
    outcome: Decision = "undecided"
    if found.side is not None:
        outcome = "pass" if found.side == "below" else "fail"
    more = rigour.next_look(found.trials) if found.side is None else None
    if found.side is None:
        why = f"{why}; {_what_decides(met, found.trials, rigour)}"
    return Judgement(outcome, why, found.trials, tuple(seen), more=more)


def _unreachable(objective: Objective, records: Sequence[Record]) -> str:
    """Where the bound is of the whole file and sooner than its limit, an ideal sender's time: the limit."""
    limits = [record.limit_s for record in records if record.limit_s is not None]
    limit = min(limits, default=None)  # where a rate is drawn, each trial has its own
    if records[0].workload.startswith("upload"):  # its limit has the way back of the last answer in it
        return ""
    is_whole = objective.measure.column == "completion_s" or objective.measure.bytes == records[0].size_bytes
    if not is_whole or not objective.at_most or limit is None or limit <= objective.bound:
        return ""
    return f"; the limit, with 5 % for headers, is {objective.measure.text(limit)}"


def _beyond(value: float, objective: Objective, reference: float | None = None) -> float:
    """The logarithm of how far a value is beyond the bound, or beyond that of the reference; 0 or less: it
    meets it. What was never reached is beyond any, unless the reference never was either.
    """
    worst = objective.measure.never
    if worst in (value, reference):
        if value != worst:
            return -math.inf
        if reference != worst:
            return math.inf
        value = reference = 1.0
    wanted = objective.bound if reference is None else objective.bound * reference
    if 0 in (value, wanted):
        far = 0.0 if value == wanted else -math.inf if value == 0 else math.inf
    else:
        far = math.log(value / wanted)
    return far if objective.at_most else -far


def _what_decides(met: int, trials: int, rigour: Rigour) -> str:
    """The number of trials that would decide, if further ones are like these."""
    against = min(met, trials - met) / trials
    whole = Rigour.of(rigour.error, MOST)
    for look in (one for one in whole.looks if one > trials):
        if against * look <= most_that_disagree(whole, look):
            return f"{look} such trials would decide it: --most {look}"
    return f"the median is too near the bound for {whole.looks[-1]} trials to decide it"


def _by_reference(
    asked: Question, values: Sequence[float], others: Sequence[Record], rigour: Rigour
) -> Judgement:
    """Trial by trial: the median of the ratios."""
    objective = asked.objective
    odd = next((record for record in others if not record.ok and record.outcome not in TIMEOUTS), None)
    known = [objective.measure.of(record) for record in others]
    if odd is not None or not others or None in known:
        what = f"{odd.outcome.replace('_', ' ')}: {odd.detail}" if odd else "it has no such value"
        return Judgement("undecided", f"the reference cannot be used: {what}", len(values), tuple(values))
    both = [(value, other) for value, other in zip(values, known, strict=False) if other is not None]
    found = median_side([_beyond(value, objective, other) for value, other in both], rigour)
    seen = both[: found.trials]
    ratio = worse_median([_ratio(*both) for both in seen], more_is_worse=objective.at_most)
    share = "never" if math.isinf(ratio) else f"{100 * ratio:.1f} %"
    why = f"the median is {share} of {objective.differs}, trial by trial"
    used = tuple(value for value, _ in seen)
    if found.side is None:
        more = rigour.next_look(found.trials)
        further = Rigour.of(rigour.error, MOST).next_look(found.trials)
        why += f"; more trials may decide it: --most {further}" if further else "; too near the bound"
        return Judgement("undecided", why, found.trials, used, ratio, more)
    return Judgement("pass" if found.side == "below" else "fail", why, found.trials, used, ratio)


def _ratio(value: float, reference: float) -> float:
    if value == reference:
        return 1.0
    return math.inf if reference == 0 else value / reference


def verdict(asked: Question, judged: Judgement, found: CellRecords) -> ObjectiveVerdict:
    """A judgement in the form of the verdicts' file."""
    own = list(found.get(asked.cell, ()))
    middle = telling(own)
    median: float | None = judged.ratio
    if median is None and judged.values:
        median = worse_median(judged.values, more_is_worse=asked.objective.at_most)
    return ObjectiveVerdict(
        objective=asked.objective.name,
        asked=asked.objective.asked,
        **asked.cell._asdict(),
        outcome=judged.outcome,
        why=judged.why,
        trials=judged.trials,
        median=known(median),
        values=[known(value) for value in judged.values],
        findings=list(middle.findings) if middle else [],
        trial=middle.trial if middle else "",
    )


def telling(records: Sequence[Record]) -> Record | None:
    """The most informative trial: the first that failed, or the one in the middle, whose trace is kept."""
    failed = next((record for record in records if has_failed(record)), None)
    return failed or (cells(records)[0].median if records else None)


def known(value: float | None) -> float | None:
    """A value for JSON, which has no infinity."""
    return value if value is not None and math.isfinite(value) else None
