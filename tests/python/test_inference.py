"""Ratios, their intervals and what is significant: against closed forms, and over made-up samples."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bentpipe.analysis.inference import adjusted, geometric_mean, paired_ratio, ratio, t_quantile, t_test

POSITIVE = st.floats(1e-3, 1e9)
SAMPLE = st.lists(POSITIVE, min_size=2, max_size=8)


@given(st.floats(-50, 50))
def test_t_of_one_and_of_two_degrees_of_freedom_has_a_closed_form(t: float) -> None:
    assert t_test(t, 1) == pytest.approx(1 - 2 / math.pi * math.atan(abs(t)), abs=1e-11)
    assert t_test(t, 2) == pytest.approx(1 - abs(t) / math.sqrt(2 + t * t), abs=1e-11)


@given(st.floats(0, 8))
def test_t_of_very_many_degrees_is_the_normal_distribution(t: float) -> None:
    assert t_test(t, 1e7) == pytest.approx(math.erfc(t / math.sqrt(2)), abs=1e-6)


@pytest.mark.parametrize(("freedom", "t"), [(1, 12.7062), (4, 2.77645), (10, 2.22814), (30, 2.04227)])
def test_quantiles_are_those_of_the_tables(freedom: float, t: float) -> None:
    assert t_quantile(0.95, freedom) == pytest.approx(t, abs=5e-6 * t)


@given(st.floats(0.5, 0.999), st.floats(1, 200))
def test_a_quantile_is_the_inverse_of_the_test(confidence: float, freedom: float) -> None:
    assert t_test(t_quantile(confidence, freedom), freedom) == pytest.approx(1 - confidence, rel=1e-6)


def test_the_ratio_of_two_samples_by_hand() -> None:
    # Logarithms 0, 2 and 3, 5: means 1 and 4, variances 2, so that t = 3 / √2 with 2 degrees of freedom.
    found = ratio([1, math.e**2], [math.e**3, math.e**5])
    assert found is not None and found.low is not None and found.high is not None
    assert found.value == pytest.approx(math.e**3)
    assert found.p == pytest.approx(1 - (3 / math.sqrt(2)) / math.sqrt(2 + 4.5))
    assert math.log(found.high) == pytest.approx(3 + 4.302653 * math.sqrt(2))
    assert math.log(found.low) == pytest.approx(3 - 4.302653 * math.sqrt(2))


def test_the_ratio_of_pairs_by_hand() -> None:
    # Differences of logarithms 1, 3: mean 2, variance 2, so that t = 2 / 1 with 1 degree of freedom.
    found = paired_ratio([1, math.e**9], [math.e, math.e**12])
    assert found is not None and found.low is not None and found.high is not None
    assert found.value == pytest.approx(math.e**2)
    assert found.p == pytest.approx(1 - 2 / math.pi * math.atan(2))
    assert math.log(found.high) == pytest.approx(2 + 12.7062, rel=1e-5)
    assert math.log(found.low) == pytest.approx(2 - 12.7062, rel=1e-5)
    same = paired_ratio([1, 2], [3, 6])
    assert same is not None and same.low == same.value == same.high == pytest.approx(3) and same.p == 0
    near = paired_ratio([1, 2, 3, 4, 5], [one * (1 + 1e-9 * one) for one in (1, 2, 3, 4, 5)])
    assert near is not None and near.value == near.low == near.high == near.p == 1, (
        "rounding is no difference"
    )
    assert paired_ratio([], []) is None and paired_ratio([0.0, 1.0], [1.0, 1.0]) is None
    alone = paired_ratio([1.0], [2.0])
    assert alone is not None and alone.value == pytest.approx(2) and alone.low is alone.p is None


@given(SAMPLE, SAMPLE)
def test_exchanging_the_samples_inverts_the_ratio(first: list[float], second: list[float]) -> None:
    one, other = ratio(first, second), ratio(second, first)
    assert one is not None and other is not None
    assert one.p == pytest.approx(other.p)
    for value, inverse in ((one.value, other.value), (one.low, other.high), (one.high, other.low)):
        assert value is not None and inverse is not None
        if 0 < value < math.inf and 0 < inverse < math.inf:
            assert math.log(value) == pytest.approx(-math.log(inverse), rel=1e-6, abs=1e-9)


@given(SAMPLE, SAMPLE, st.floats(1e-3, 1e3))
def test_the_unit_does_not_matter(first: list[float], second: list[float], unit: float) -> None:
    here = ratio(first, second)
    there = ratio([unit * value for value in first], [unit * value for value in second])
    assert here is not None and there is not None
    assert here.value == pytest.approx(there.value, rel=1e-6)


@given(SAMPLE, SAMPLE)
def test_an_interval_leaves_1_out_just_where_p_is_below_5_percent(
    first: list[float], second: list[float]
) -> None:
    found = ratio(first, second)
    assert found is not None and found.p is not None and found.low is not None and found.high is not None
    assert found.low <= found.value <= found.high
    if abs(found.p - 0.05) > 1e-6:
        assert (found.p < 0.05) == (not found.low <= 1 <= found.high)


@given(POSITIVE, POSITIVE, st.integers(2, 12))
def test_where_nothing_varies_the_interval_is_a_point(a: float, b: float, count: int) -> None:
    found = ratio([a] * count, [b] * count)
    assert found is not None
    assert found.low == found.value == found.high
    assert found.p == (1 if math.log(a) == math.log(b) else 0)


def test_one_side_that_does_not_vary_leaves_the_spread_of_the_other() -> None:
    found = ratio([10.0] * 5, [9.0, 9.1, 8.9, 9.05])
    assert found is not None and found.low is not None and found.high is not None
    logarithms = [math.log(value) for value in (9.0, 9.1, 8.9, 9.05)]
    error = float(np.std(logarithms, ddof=1)) / 2
    assert math.log(found.high / found.low) == pytest.approx(2 * 3.182446 * error)


def test_single_values_have_a_ratio_and_nothing_else() -> None:
    for first, second in (([2.0], [3.0, 3.0]), ([2.0, 2.0], [3.0]), ([2.0], [3.0])):
        found = ratio(first, second)
        assert found is not None and found.value == pytest.approx(1.5)
        assert (found.low, found.high, found.p) == (None, None, None)


@pytest.mark.parametrize("values", [[], [0.0], [1.0, -1.0], [math.inf], [math.nan]])
def test_what_has_no_logarithm_has_no_ratio(values: list[float]) -> None:
    assert ratio(values, [1.0, 2.0]) is None and ratio([1.0, 2.0], values) is None
    assert geometric_mean(values) is None


def coverage(count: int) -> tuple[float, float]:
    """How often the interval of a ratio of 2 contains it, with so many values on each side that spread by 10
    and 30 percent; and how often that of a bootstrap does.
    """
    draw, resample = random.Random(20261122), np.random.default_rng(20261122)
    hits, bootstrapped, rounds = 0, 0, 600
    for _ in range(rounds):
        a = [draw.lognormvariate(0, 0.1) for _ in range(count)]
        b = [draw.lognormvariate(math.log(2), 0.3) for _ in range(count)]
        found = ratio(a, b)
        assert found is not None and found.low is not None and found.high is not None
        hits += found.low <= 2 <= found.high
        means = [np.log(resample.choice(sample, (400, count))).mean(axis=1) for sample in (a, b)]
        low, high = np.percentile(np.exp(means[1] - means[0]), [2.5, 97.5])
        bootstrapped += bool(low <= 2 <= high)
    return hits / rounds, bootstrapped / rounds


@pytest.mark.parametrize("count", [3, 5, 10])
def test_intervals_contain_the_truth_in_95_percent_of_cases(count: int) -> None:
    ours, bootstrap = coverage(count)
    assert 0.93 <= ours <= 0.975, ours
    if count < 10:  # what the module's head says
        assert bootstrap == pytest.approx({3: 0.76, 5: 0.86}[count], abs=0.03)


@given(st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=20))
def test_adjusting_keeps_the_order_and_makes_nothing_smaller(p_values: list[float | None]) -> None:
    found = adjusted(p_values)
    assert [one is None for one in found] == [one is None for one in p_values]
    pairs = [(p, q) for p, q in zip(p_values, found, strict=True) if p is not None and q is not None]
    assert all(p <= q <= 1 for p, q in pairs)
    assert [q for _, q in sorted(pairs)] == sorted(q for _, q in pairs)


def test_adjusting_by_hand() -> None:
    assert adjusted([0.01, None, 0.04, 0.03, 0.5]) == pytest.approx(
        [0.04, None, 0.04 * 4 / 3, 0.04 * 4 / 3, 0.5]
    )


def stepped_up(p_values: Sequence[float], rate: float) -> set[int]:
    """The rule as Benjamini and Hochberg write it: the k smallest, for the largest k with p(k) ≤ k/m · q."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    ranks = [k for k in range(1, len(order) + 1) if p_values[order[k - 1]] <= rate * k / len(order)]
    return set(order[: max(ranks, default=0)])


@given(st.lists(st.integers(0, 1000), max_size=30))
def test_what_is_significant_is_what_their_rule_rejects(thousandths: list[int]) -> None:
    p_values = [count / 1000 for count in thousandths]
    found = adjusted(p_values)
    # Just above the rate, since k/m · 0.05 and p · m/k are rounded differently.
    rate = 0.05 + 1e-12
    assert {place for place, q in enumerate(found) if q is not None and q <= rate} == stepped_up(
        p_values, rate
    )


@pytest.mark.parametrize(("count", "narrower"), [(3, False), (5, True), (10, True)])
def test_pairs_are_narrower_from_five_on(count: int, narrower: bool) -> None:
    """The intervals of samples whose logarithms have a correlation of 0.3."""
    draw, widths = np.random.default_rng(7), []
    for _ in range(1000):
        first, other = draw.normal(size=(2, count))
        second = 0.3 * first + math.sqrt(1 - 0.3**2) * other
        both = [np.exp(one).tolist() for one in (first, second)]
        pairs, apart = paired_ratio(both[0], both[1]), ratio(both[0], both[1])
        assert pairs and apart and pairs.low and pairs.high and apart.low and apart.high
        widths.append(math.log(pairs.high / pairs.low) / math.log(apart.high / apart.low))
    assert (float(np.median(widths)) < 1) is narrower
