"""Sequential verdicts: by hand, and how often they are wrong over made-up samples."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bentpipe.analysis.sequential import (
    PairedChange,
    Rigour,
    SideFound,
    median_side,
    most_that_disagree,
    paired_change,
    ratio_side,
)

ERROR = 0.01
RIGOUR = Rigour.of(ERROR, 200)
MARGIN = math.log1p(0.01)
SAMPLES = 1000


def test_the_first_look_is_where_trials_that_agree_are_enough() -> None:
    assert RIGOUR.looks == (7, 14, 28, 56, 112)
    assert Rigour.of(0.05, 20).looks == (5, 10, 20)
    assert Rigour.of(0.001, 1).looks == (11,)
    assert median_side([-0.1] * 6, RIGOUR) == SideFound(None, 6)
    assert median_side([-0.1] * 9, RIGOUR) == SideFound("below", 7)
    assert median_side([math.inf] * 7, RIGOUR) == SideFound("above", 7)


def test_later_looks_bear_some_that_disagree() -> None:
    """By the binomial distribution: of 28 fair coins 23 or more fall on one side in 0.046 %."""
    assert [most_that_disagree(RIGOUR, look) for look in RIGOUR.looks] == [0, 0, 5, 15, 38]
    mixed = [0.5] * 5 + [-0.5] * 23
    assert median_side(mixed, RIGOUR) == SideFound("below", 28)
    assert median_side([0.5, *mixed[:5], *mixed[6:]], RIGOUR).side is None
    assert median_side([math.inf, -0.5] * 10, RIGOUR) == SideFound(None, 20)


def test_a_trial_on_the_bound_meets_it() -> None:
    assert median_side([0.0] * 8, RIGOUR) == SideFound("below", 7)


@pytest.mark.parametrize("error", [0.0001, 0.01, 0.1])
def test_a_median_at_the_bound_is_called_far_from_it_as_seldom_as_is_said(error: float) -> None:
    """Exactly, whatever the distribution: a walk of fair coins that ends where a look is sure. Either answer
    is wrong here, and each may be given with that error.
    """
    rigour = Rigour.of(error, 200)
    walks, wrong = {0: 1.0}, 0.0
    for trials in range(1, rigour.looks[-1] + 1):
        split: dict[int, float] = {}
        for above, share in walks.items():
            for side in (0, 1):
                split[above + side] = split.get(above + side, 0.0) + share / 2
        walks = split
        if trials in rigour.looks:
            bears = most_that_disagree(rigour, trials)
            sure = [above for above in walks if min(above, trials - above) <= bears]
            wrong += sum(walks.pop(above) for above in sure)
    assert 0.3 * error < wrong / 2 <= error


def test_a_ratio_at_the_bound_is_seldom_called_far_from_it() -> None:
    chance = random.Random(22)

    def sample() -> list[float]:
        return [chance.gauss(0, 0.05) for _ in range(28)]

    wrong = sum(ratio_side(sample(), sample(), RIGOUR).side is not None for _ in range(SAMPLES))
    assert wrong / SAMPLES <= 2 * ERROR
    assert ratio_side([0.0] * 7, [0.1] * 7, RIGOUR) == SideFound("above", 7)
    assert ratio_side([0.0] * 7, [-0.1] * 7, RIGOUR) == SideFound("below", 7)
    assert ratio_side([0.0] * 7, [0.001] * 7, RIGOUR).side is None, (
        "0.1 % of spread counts where there is none"
    )


def test_a_change_of_three_percent_is_found_and_none_is_not() -> None:
    """With pairs that vary by 1 %, in nine cases of ten; with none, in at most one of a hundred."""
    chance = random.Random(23)
    each = RIGOUR.shared(20)

    def found(change: float) -> list[PairedChange]:
        samples = ([chance.gauss(change, 0.01) for _ in range(28)] for _ in range(SAMPLES // 2))
        return [paired_change(one, each, MARGIN) for one in samples]

    slower = found(math.log1p(0.03))
    assert sum(one.sure == "above" for one in slower) >= 0.9 * len(slower)
    equal = found(0)
    assert sum(one.sure in ("above", "below") for one in equal) <= 0.01 * len(equal)


def test_changes_of_pairs_that_fall_into_two_groups_are_seldom_found() -> None:
    """A load has a round trip more or not: pairs then differ by it one way, the other way, or not at all."""
    chance = random.Random(24)
    group = [0.0, math.log(1.1)]
    pairs = ([chance.choice(group) - chance.choice(group) for _ in range(28)] for _ in range(SAMPLES))
    wrong = sum(paired_change(one, RIGOUR, MARGIN).sure in ("above", "below") for one in pairs)
    assert wrong / SAMPLES <= ERROR


def test_pairs_that_are_equal_are_the_same_and_small_constant_changes_too() -> None:
    each = RIGOUR.shared(20)
    assert paired_change([0.0] * 7, each, MARGIN).sure == "same"
    assert paired_change([0.004] * 7, each, MARGIN).sure == "same"
    worse = paired_change([0.03] * 7, each, MARGIN)
    assert worse.sure == "above" and worse.pairs == 7
    assert worse.low is not None and worse.high is not None and worse.low < 0.03 < worse.high


def test_a_base_with_few_trials_has_an_interval_and_no_verdict() -> None:
    few = paired_change([0.03] * 3, RIGOUR, MARGIN)
    assert few.sure is None and few.mean == pytest.approx(0.03) and few.low is not None
    assert paired_change([0.03], RIGOUR, MARGIN).sure is None


def test_pairs_of_which_one_never_came_so_far() -> None:
    lost = paired_change([math.inf] * 14, RIGOUR, MARGIN)
    assert lost.sure == "above" and lost.mean is None
    assert paired_change([math.inf] * 5, RIGOUR, MARGIN).sure is None
    assert paired_change([math.inf, -math.inf] * 14, RIGOUR, MARGIN).sure is None


@given(st.lists(st.floats(-1, 1), min_size=7, max_size=40), st.integers(0, 40))
def test_further_trials_do_not_change_a_verdict(values: list[float], cut: int) -> None:
    """What a round decided stands, whatever a run that goes on has more of it."""
    early = median_side(values[:cut], RIGOUR)
    if early.side is not None:
        assert median_side(values, RIGOUR) == early


@given(st.lists(st.floats(0.1, 1) | st.floats(-1, -0.1), min_size=7, max_size=30))
def test_the_other_way_round_is_the_other_side(values: list[float]) -> None:
    one, other = median_side(values, RIGOUR), median_side([-value for value in values], RIGOUR)
    assert one.trials == other.trials
    assert {one.side, other.side} in ({None}, {"below", "above"})
