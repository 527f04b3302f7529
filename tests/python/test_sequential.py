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
)

ERROR = 0.01
RIGOUR = Rigour.of(ERROR, 200)
MARGIN = math.log1p(0.01)
SAMPLES = 1000


def test_the_first_look_is_where_trials_that_agree_are_enough() -> None:
    assert RIGOUR.looks == (7, 14, 28, 56, 112)
    assert Rigour.of(0.05, 20).looks == (5, 10, 20)
    assert Rigour.of(0.001, 1).looks == (11,)
    assert Rigour.of(0.01, 28, least=8).looks == (14, 28)
    assert Rigour.of(0.01, 7, least=14).looks == (14,)
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


def test_changes_that_all_agree_need_as_many_pairs_as_there_are_changes_to_err_in() -> None:
    assert RIGOUR.shared(1).looks == (14, 28, 56, 112)
    assert RIGOUR.shared(5).looks == (14, 28, 56, 112)
    assert RIGOUR.shared(100).looks == (28, 56, 112)
    assert Rigour.of(ERROR, 7).shared(20).looks == (7,), "where more is not wanted, nothing can be sure"
    assert paired_change([0.03] * 7, Rigour.of(ERROR, 7).shared(20), MARGIN).sure is None


@pytest.mark.parametrize("error", [0.0005, 0.01])
def test_an_interval_of_the_median_misses_it_as_seldom_as_is_said(error: float) -> None:
    """Exactly, whatever the distribution: ranks decide where it ends. Of values that are their ranks it
    begins at the rank below which lie too few by chance.
    """
    rigour = Rigour.of(error, 200).shared(1)
    total = 0.0
    for look in rigour.looks:
        alone = Rigour(rigour.spent(look) / 0.8, (look,))  # spends at its only look as much as here
        found = paired_change([float(rank) for rank in range(look)], alone, 0.0)
        assert found.pairs == look and found.high == look - 1 - found.low
        total += 2 * sum(math.comb(look, count) for count in range(int(found.low) + 1)) / 2**look
    assert 0.2 * error < total <= error


def test_a_change_of_three_percent_is_found_and_none_is_not() -> None:
    """With pairs that vary by 1 %, in nine cases of ten; with none, in at most one of a hundred."""
    chance = random.Random(23)
    each = RIGOUR.shared(20)

    def found(change: float) -> list[PairedChange]:
        samples = ([chance.gauss(change, 0.01) for _ in range(28)] for _ in range(SAMPLES))
        return [paired_change(one, each, MARGIN) for one in samples]

    slower = found(math.log1p(0.03))
    assert sum(one.sure == "above" for one in slower) >= 0.9 * len(slower)
    equal = found(0)
    assert sum(one.sure in ("above", "below") for one in equal) <= 0.01 * len(equal)


def test_trials_that_hang_now_and_then_are_no_change_of_the_median_and_none_of_what_is_sure() -> None:
    """One trial in ten takes four times as long, on both sides: means and t would be sure of much."""
    chance = random.Random(24)

    def time() -> float:
        return math.log(4) if chance.random() < 0.1 else chance.gauss(0, 0.001)

    drawn = ([time() - time() for _ in range(28)] for _ in range(SAMPLES))
    wrong = sum(paired_change(one, RIGOUR.shared(1), MARGIN).sure in ("above", "below") for one in drawn)
    assert wrong / SAMPLES <= ERROR


def test_changes_of_pairs_that_fall_into_two_groups_are_seldom_found() -> None:
    """A load has a round trip more or not: pairs then differ by it one way, the other way, or not at all."""
    chance = random.Random(25)
    group = [0.0, math.log(1.1)]
    pairs = ([chance.choice(group) - chance.choice(group) for _ in range(28)] for _ in range(SAMPLES))
    wrong = sum(paired_change(one, RIGOUR.shared(1), MARGIN).sure in ("above", "below") for one in pairs)
    assert wrong / SAMPLES <= ERROR


def test_pairs_that_are_equal_are_the_same_and_small_constant_changes_too() -> None:
    each = RIGOUR.shared(20)
    assert paired_change([0.0] * 14, each, MARGIN).sure == "same"
    assert paired_change([0.004] * 14, each, MARGIN).sure == "same"
    worse = paired_change([0.03] * 14, each, MARGIN)
    assert worse == PairedChange("above", 14, 0.03, 0.03, 0.03)
    assert paired_change([0.004] * 13 + [0.02], each, MARGIN).sure is None


def test_a_base_with_few_trials_has_a_median_and_no_interval() -> None:
    few = paired_change([0.03, 0.02, 0.04], RIGOUR, MARGIN)
    assert few == PairedChange(None, 3, 0.03, -math.inf, math.inf)


def test_pairs_of_which_one_never_came_so_far() -> None:
    each = RIGOUR.shared(1)
    assert paired_change([math.inf] * 14, each, MARGIN).sure == "above"
    assert paired_change([math.inf] * 5, each, MARGIN).sure is None
    assert paired_change([math.inf, -math.inf] * 14, each, MARGIN).sure is None
    assert paired_change([math.inf] + [1e-6] * 13, each, MARGIN).sure == "same", "it is of the median"


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
