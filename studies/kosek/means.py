"""The gain by proxies: the ratio of two arithmetic means, as in the source, with an interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from bentpipe.analysis.cell_ratio import LEAST, are_paired
from bentpipe.analysis.inference import CONFIDENCE, Ratio, t_quantile, t_test

from .runs import Arrivals, Floats


def times_as_much(proxied: Arrivals, direct: Arrivals, at_s: float) -> Ratio | None:
    """Mean bytes with proxies to those without, by then. Where one side has more trials, those of it count
    that have the draws of the other's, if these are enough for pairs.
    """
    if min(len(one.records) for one in (proxied, direct)) >= LEAST:
        proxied, direct = proxied.with_draws_of(direct), direct.with_draws_of(proxied)
    samples = [direct.at(at_s)], [proxied.at(at_s)]
    return ratio_of_means(*samples, paired=in_pairs(proxied, direct))


def in_pairs(*arrivals: Arrivals) -> bool:
    """Whether the trials of all of these have the same random draws, place by place."""
    return in_order([record.seed for record in one.records] for one in arrivals)


def in_order(seeds: Iterable[Iterable[str]]) -> bool:
    """Whether samples, given by the seeds of their trials, have the same seeds in the same places."""
    listed = [list(one) for one in seeds]
    return are_paired(listed) and all(one == listed[0] for one in listed)


_ROUNDING = 1e-12  # relative: what is nearer is equal
Samples = Sequence[Floats | list[float]]


def ratio_of_means(below: Samples, above: Samples, *, paired: bool) -> Ratio | None:
    """The product of the means of the samples `above`, over that of those `below`: with one of each their
    ratio, with two the ratio of two ratios. None where one is empty or its mean is no positive number;
    without interval where one has a single value. In `paired` samples, values in the same place are of trials
    with the same random draws.

    The interval: the logarithm of a mean has a variance of about that of the mean / its square (the delta
    method). The sum of those of independent samples has Welch's t distribution, that of paired ones, whose
    deviations are added trial by trial, Student's. It is of arithmetic means, since those were published:
    `bentpipe.analysis.inference` has that of geometric ones.
    """
    samples = [np.asarray(one, dtype=np.float64) for one in (*below, *above)]
    if not all(len(one) and 0 < one.mean() < math.inf for one in samples):
        return None
    signs = [-1] * len(below) + [1] * len(above)
    difference = sum(sign * math.log(one.mean()) for sign, one in zip(signs, samples, strict=True))
    difference = 0.0 if abs(difference) < _ROUNDING else difference
    value = math.exp(difference)
    if any(len(one) < 2 for one in samples):
        return Ratio(value)
    parts = [sign * one / one.mean() for sign, one in zip(signs, samples, strict=True)]
    if paired:
        parts = [np.sum(parts, axis=0)]
    errors = [0.0 if np.ptp(one) < _ROUNDING else float(one.var(ddof=1)) / len(one) for one in parts]
    error = sum(errors)
    if error == 0:
        return Ratio(value, value, value, 1.0 if difference == 0 else 0.0)
    freedom = error**2 / sum(part**2 / (len(one) - 1) for part, one in zip(errors, parts, strict=True))
    spread = math.sqrt(error)
    reach = math.exp(t_quantile(CONFIDENCE, freedom) * spread)
    return Ratio(value, value / reach, value * reach, t_test(difference / spread, freedom))
