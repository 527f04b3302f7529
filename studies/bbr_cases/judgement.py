"""What a case comes to: pass, fail, or that it cannot be told; of one trial, and of several seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["pass", "fail", "?"]


@dataclass(frozen=True)
class Judgement:
    """What a trial comes to, and what was seen."""

    outcome: Outcome
    seen: str


def passed(seen: str) -> Judgement:
    return Judgement("pass", seen)


def failed(seen: str) -> Judgement:
    return Judgement("fail", seen)


def untold(why: str) -> Judgement:
    """It cannot be told."""
    return Judgement("?", why)


def held(good: bool, seen: str) -> Judgement:
    return passed(seen) if good else failed(seen)


def over_seeds(found: Sequence[Judgement]) -> Judgement:
    """What most seeds come to, and what was seen in the first of these; `?` with equal votes."""
    counts = Counter(one.outcome for one in found).most_common()
    most, votes = counts[0]
    if len(counts) > 1 and counts[1][1] == votes:
        return untold("seeds disagree: " + "; ".join(f"{one.outcome}: {one.seen}" for one in found))
    return Judgement(most, next(one.seen for one in found if one.outcome == most))


def in_words(found: Sequence[Judgement]) -> str:
    """The outcome, with a share where seeds disagree: `pass`, `fail 2/3`."""
    if not found:
        return "-"
    outcome = over_seeds(found).outcome
    votes = sum(one.outcome == outcome for one in found)
    return outcome if votes in (0, len(found)) else f"{outcome} {votes}/{len(found)}"
