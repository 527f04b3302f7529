"""Verdicts of a check: generated from schemas/verdicts.toml by `make schemas`."""

from __future__ import annotations

from typing import Literal

import msgspec

FORMAT = 1

# The decision on an objective.
Decision = Literal[
    "pass",
    "fail",
    "undecided",
    "skipped",
]
DECISIONS: tuple[Decision, ...] = (
    "pass",
    "fail",
    "undecided",
    "skipped",
)

# The direction of a change.
Direction = Literal[
    "better",
    "worse",
    "same",
    "undecided",
]
DIRECTIONS: tuple[Direction, ...] = (
    "better",
    "worse",
    "same",
    "undecided",
)


class ObjectiveVerdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The verdict on an objective."""

    # Its name.
    objective: str
    # The requirement, in words: `first 2 MB ≤ 3 s`.
    asked: str
    # The label of the scenario, as in the [records](records.md) of its cell.
    scenario: str
    # The workload, as in these records.
    workload: str
    # The treatment, as in these records.
    treatment: str
    # The client's stack with its options, as in these records.
    client: str
    # The server's stack with its options, as in these records.
    server: str
    # In one word.
    outcome: Decision
    # Why, in words; of `undecided`, what would decide it.
    why: str
    # The number of trials that the verdict rests on: the first iterations of the cell.
    trials: int
    # The median of the measure, in the column's unit; where the objective compares, of the ratios, trial by
    # trial; null most trials did not come so far.
    median: float | None
    # The measure of each of these trials; null of one that did not come so far.
    values: list[float | None]
    # The rules that found something wrong in the median trial.
    findings: list[str]
    # The name of the median trial, whose trace is kept; of a failure, of the first that failed; empty if none
    # ran.
    trial: str


class MeasuredChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The change of an objective's measure since the base."""

    # Its name.
    objective: str
    # The label of the scenario, as in the records of its cell.
    scenario: str
    # The workload, as in these records.
    workload: str
    # The treatment, as in these records.
    treatment: str
    # The client's stack with its options, as in these records.
    client: str
    # The server's stack with its options, as in these records.
    server: str
    # The measure, in words.
    measure: str
    # In one word.
    outcome: Direction
    # The reason, in words.
    why: str
    # Pairs of trials with the same seed that it stands on.
    pairs: int
    # The base's median over these pairs; null most trials of the base did not come so far.
    base: float | None
    # The median of the new run over these pairs; null most trials of the new run did not come so far.
    now: float | None
    # Now / base: the median over the pairs; null most pairs have a trial that did not come so far, or a
    # program failed.
    ratio: float | None
    # The beginning of its interval, with the error above divided by all changes and looks; null as `ratio`;
    # and where there are too few pairs.
    low: float | None
    # The end of its interval; null as `low`.
    high: float | None
    # Findings of the new run that the base does not have, with a `+`, and the other way round, with a `-`.
    findings: list[str]
    # The name of the base's median trial.
    base_trial: str
    # The name of the new run's median trial.
    trial: str


class Verdicts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All verdicts of a check."""

    # The number of this file's format, as at the top of this page.
    format: int
    # The name of the suite.
    suite: str
    # The subject of the suite.
    title: str
    # Where its objectives are from.
    source: str
    # `sim` or `emu`.
    testbed: str
    # The chance of a wrong verdict on an objective, at most; of changes, of a wrong one among all, share.
    error: float
    # Trials of a cell, at most.
    most: int
    # A verdict for each objective, client and server: those of a pair one after the other, in the order of
    # the suite.
    verdicts: list[ObjectiveVerdict]
    # The run that is the base; empty without one.
    against: str
    # Changes that are smaller count as none, share.
    margin: float
    # The changes since the base, for each objective, client and server that both have; the largest first.
    changes: list[MeasuredChange]
    # Combinations that were not compared with the base, and why.
    left_out: list[str]
