"""Judges objectives by the trials of their cells.

A program that crashes, or moves something else than it was asked for, has failed, whatever its other trials
did. Beside that, a trial says when it came how far, and the median decides (`bentpipe.analysis.sequential`).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bentpipe.analysis.cells import cells
from bentpipe.analysis.sequential import Rigour, SideFound, median_side, most_that_disagree, ratio_side
from bentpipe.objectives.measures import TIMEOUTS
from bentpipe.objectives.questions import CellRecords, Question
from bentpipe.objectives.suite import Objective
from bentpipe.runs.records import Record
from bentpipe.schema.verdicts import Decision, ObjectiveVerdict

MOST = 200  # trials of a cell that anybody may ask for


@dataclass(frozen=True)
class Judgement:
    """What the trials of a question come to."""

    outcome: Decision
    why: str
    trials: int = 0
    values: tuple[float, ...] = ()
    ratio: float | None = None  # of an objective that compares
    more: int | None = None  # so many trials of each cell may decide it


def judge(asked: Question, found: CellRecords, rigour: Rigour) -> Judgement:
    """Whether the objective is met, by the trials that there are so far."""
    own = found.get(asked.cell, ())
    if told := _without_measuring(own):
        return told
    values = [asked.objective.measure.of(record) for record in own]
    if None in values:
        return Judgement(
            "undecided", f"a trial that succeeded has no {asked.objective.measure.title}", len(own)
        )
    known = [value for value in values if value is not None]
    if asked.reference is None:
        judged = _by_bound(asked.objective, known, rigour)
        return replace(judged, why=judged.why + _unreachable(asked.objective, own))
    return _by_reference(asked, known, found.get(asked.reference, ()), rigour)


def _without_measuring(records: Sequence[Record]) -> Judgement | None:
    """What needs no measure: nothing ran, it is not offered, a program failed, the testbed did."""
    if not records:
        return Judgement("undecided", "no trial of it ran")
    if one := _first(records, "unsupported"):
        return Judgement("skipped", one.detail, len(records))
    failed = [record for record in records if record.outcome not in ("ok", "invalid", *TIMEOUTS)]
    if failed:
        word = failed[0].outcome.replace("_", " ")
        many = f"{word} in {len(failed)} of {len(records)} trials"
        return Judgement("fail", f"{many}: {failed[0].detail}", len(records))
    if one := _first(records, "invalid"):
        return Judgement("undecided", f"a trial says nothing: {one.detail}", len(records))
    return None


def _first(records: Sequence[Record], outcome: str) -> Record | None:
    return next((record for record in records if record.outcome == outcome), None)


def _by_bound(objective: Objective, values: Sequence[float], rigour: Rigour) -> Judgement:
    found = median_side([_beyond(value, objective) for value in values], rigour)
    seen = values[: found.trials]
    met = sum(_beyond(value, objective) <= 0 for value in seen)
    middle = objective.measure.text(statistics.median_low(seen))
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
    limit = records[0].limit_s
    is_whole = objective.measure.column == "completion_s" or objective.measure.bytes == records[0].size_bytes
    if not is_whole or not objective.at_most or limit is None or limit <= objective.bound:
        return ""
    return f"; the limit, with 5 % for headers, is {objective.measure.text(limit)}"


def _beyond(value: float, objective: Objective) -> float:
    """The logarithm of how far a value is beyond its bound; 0 or less: it meets it."""
    if value in (0, math.inf):
        far = -math.inf if value == 0 else math.inf
    else:
        far = math.log(value / objective.bound)
    return far if objective.at_most else -far


def _what_decides(met: int, trials: int, rigour: Rigour) -> str:
    """How many trials would decide, if further ones are as these were."""
    against = min(met, trials - met) / trials
    whole = Rigour.of(rigour.error, MOST)
    for look in (one for one in whole.looks if one > trials):
        if against * look <= most_that_disagree(whole, look):
            return f"{look} such trials would decide it: --most {look}"
    return f"the median is too near the bound for {whole.looks[-1]} trials to decide it"


def _by_reference(
    asked: Question, values: Sequence[float], others: Sequence[Record], rigour: Rigour
) -> Judgement:
    objective = asked.objective
    if not others or any(not record.ok for record in others):
        odd = next((record for record in others if not record.ok), None)
        what = f"{odd.outcome.replace('_', ' ')}: {odd.detail}" if odd else "no trial of it ran"
        return Judgement("undecided", f"what it is held against: {what}", len(values), tuple(values))
    known = [objective.measure.of(record) for record in others]
    if None in known or 0 in known or any(value in (0, math.inf) for value in values):
        late = sum(value == objective.measure.never for value in values)
        if late:
            why = f"{late} of {len(values)} trials did not come so far"
            return Judgement("fail", why, len(values), tuple(values))
        why = f"a trial has no {objective.measure.title} above 0"
        return Judgement("undecided", why, len(values), tuple(values))
    base = [math.log(value * objective.bound) for value in known if value is not None]
    own = [math.log(value) for value in values]
    found = ratio_side(base, own, rigour)
    ratio = math.exp(statistics.fmean(own) - statistics.fmean(base)) * objective.bound
    why = f"{100 * ratio:.1f} % of {objective.differs}, {found.trials} trials each"
    if found.side is None:
        further = Rigour.of(rigour.error, MOST).next_look(found.trials)
        why += f"; more trials may decide it: --most {further}" if further else "; too near the bound"
        more = rigour.next_look(found.trials)
        return Judgement("undecided", why, found.trials, tuple(values), ratio, more)
    return Judgement(_of(found, objective), why, found.trials, tuple(values[: found.trials]), ratio)


def _of(found: SideFound, objective: Objective) -> Decision:
    return "pass" if (found.side == "below") == objective.at_most else "fail"


def verdict(asked: Question, judged: Judgement, found: CellRecords) -> ObjectiveVerdict:
    """A judgement as files have it."""
    own = list(found.get(asked.cell, ()))
    middle = cells(own)[0].median if own else None
    median: float | None = judged.ratio
    if median is None and judged.values:
        median = statistics.median_low(judged.values)
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


def known(value: float | None) -> float | None:
    """A value for JSON, which has no infinity."""
    return value if value is not None and math.isfinite(value) else None
