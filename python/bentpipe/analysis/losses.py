"""Losses between the two sides of captures, as `bentpipe-trace losses` fits them.

The program says what each field is: `crates/analysis/src/losses`. What there are too few losses for is None.
Forward is from server to client. Nothing here takes a packet apart.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import msgspec

from bentpipe import paths
from bentpipe.analysis.traces import PROGRAM, argument
from bentpipe.errors import BentpipeError, UsageError

Direction = Literal["forward", "return"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
Model = Literal["uniform", "simplified_gilbert", "gilbert_elliott"]
Answer = Literal["yes", "no", "not_sure"]


class Estimate(msgspec.Struct, frozen=True):
    """An estimate with its 95 % interval."""

    value: float
    low: float
    high: float | None  # None where it is infinite


class SimplifiedGilbert(msgspec.Struct, frozen=True):
    """The simplified Gilbert model, fitted: P(s1|s2) as p_S1_given_S2."""

    p_good_given_good: Estimate
    p_good_given_bad: Estimate
    p_bad_given_bad: Estimate
    p_bad_given_good: Estimate
    mean_burst: Estimate | None
    mean_gap: Estimate | None


class GilbertElliott(msgspec.Struct, frozen=True):
    """The Gilbert-Elliott model, fitted."""

    p_bad_given_good: Estimate
    p_good_given_bad: Estimate
    loss_in_good: Estimate
    loss_in_bad: Estimate
    log_likelihood: float


class ModelFit(msgspec.Struct, frozen=True):
    """The goodness of a model's fit."""

    model: Model
    parameters: int
    log_likelihood: float
    aic: float
    bic: float


class LengthCount(msgspec.Struct, frozen=True):
    """The number of runs of a length."""

    length: int
    count: int


class Lengths(msgspec.Struct, frozen=True):
    """The lengths of bursts or of gaps, in packets."""

    count: int
    mean: float
    min: int
    quartile: int
    median: int
    upper_quartile: int
    percentile_95: int
    max: int
    distribution: list[LengthCount]


class Test(msgspec.Struct, frozen=True):
    """A test with its outcome."""

    __test__ = False  # for pytest

    statistic: float
    degrees_of_freedom: int
    p_value: float


class MarkovTests(msgspec.Struct, frozen=True):
    """The tests whether losses depend on earlier losses."""

    order_0_against_1: Test | None
    order_1_against_2: Test | None
    geometric_bursts: Test | None
    geometric_gaps: Test | None
    independent: Answer
    markov: Answer


class Periodicity(msgspec.Struct, frozen=True):
    """The outcome of the search for a period."""

    statistic: float
    p_value: float
    period_s: float | None
    period_within_s: float | None
    shortest_s: float
    longest_s: float


class TimeBin(msgspec.Struct, frozen=True):
    """The packets sent and lost in a bin of time."""

    start_s: float
    packets: int
    losses: int


class MeasuredPath(msgspec.Struct, frozen=True):
    """The properties of the path, besides losses, that packets show."""

    delay_s: float | None
    rate_bps: int | None


class DirectionLosses(msgspec.Struct, frozen=True):
    """The losses of a direction."""

    packets: int
    losses: int
    queue_drops: int
    unexplained: int
    undecided: int
    duration_s: float
    rate: Estimate | None
    rate_in_bursts: Estimate | None
    simplified_gilbert: SimplifiedGilbert | None
    gilbert_elliott: GilbertElliott | None
    models: list[ModelFit]
    preferred: Model | None
    bursts: Lengths | None
    gaps: Lengths | None
    tests: MarkovTests | None
    periodicity: Periodicity | None
    over_time: list[TimeBin]
    path: MeasuredPath


class Losses(msgspec.Struct, frozen=True, rename={"return_": "return"}):
    """The losses between two sides."""

    files: list[str]
    errors: list[str]
    connections: int
    one_sided: int
    forward: DirectionLosses
    return_: DirectionLosses

    def of(self, direction: Direction) -> DirectionLosses:
        """The losses of one direction."""
        return self.forward if direction == "forward" else self.return_


@dataclass(frozen=True)
class FittedLosses:
    """Losses, and the JSON that they are from."""

    losses: Losses
    json: bytes


def fit(files: Sequence[Path], key_log: Path | None = None) -> FittedLosses:
    """Fit models to the losses in captures of both sides; the secrets of `key_log` find connections of which
    the beginning was not captured. UsageError if they are none, or not of both sides; BentpipeError if the
    program is not built or fails. A file that cannot be read to its end is no error: `errors` says so.
    """
    command = [str(paths.program(PROGRAM)), "losses", *map(argument, files)]
    command += ["--keylog", argument(key_log)] if key_log else []
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode in (0, 1):
        try:
            return FittedLosses(msgspec.json.decode(done.stdout, type=Losses), done.stdout)
        except msgspec.DecodeError as error:
            raise BentpipeError(f"{PROGRAM} answered what is not known: {error}", paths.repair()) from error
    said = done.stderr.decode(errors="replace").strip()
    text, _, hint = said.removeprefix("error: ").partition("\nhint: ")
    if done.returncode == 2:
        raise UsageError(text, hint)
    raise BentpipeError(f"{PROGRAM} ended with {done.returncode}: {text}", hint)
