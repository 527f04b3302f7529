"""Verdicts on published values: the rule, by its properties and by hand; forest plots and fronts of pages."""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bentpipe.analysis import inference
from bentpipe.analysis.cell_ratio import EQUIVALENCE
from bentpipe.analysis.inference import Ratio
from bentpipe.study import forest
from bentpipe.study.claims import (
    AGREES,
    CANNOT_TELL,
    CONTRADICTS,
    NOT_JUDGED,
    SAME_DIRECTION,
    VERDICTS,
    Claim,
    MeasuredValue,
    Published,
    equality,
    judged,
    tally,
    verdict,
)
from bentpipe.study.front import Front, Picture, folded, sentences

POSITIVE = st.floats(0.01, 100)


@st.composite
def measured(draw: st.DrawFn) -> MeasuredValue:
    """A positive value inside its interval."""
    low, value, high = sorted(draw(st.tuples(POSITIVE, POSITIVE, POSITIVE)))
    return MeasuredValue(value, low, high)


@st.composite
def published(draw: st.DrawFn) -> Published:
    """What a source may say of a positive quantity: a value, a ratio, a side."""
    value = draw(POSITIVE)
    kinds = (
        Published.number(value),
        Published.ratio(value),
        Published.side(above=draw(st.booleans())),
        Published.at_most(value),
    )
    return draw(st.sampled_from(kinds))


def wider(one: MeasuredValue, factor: float) -> MeasuredValue:
    assert one.low is not None and one.high is not None
    return MeasuredValue(one.value, one.low / factor, one.high * factor)


@given(measured(), published(), st.floats(1, 10))
def test_what_cannot_be_told_cannot_be_told_from_less(
    one: MeasuredValue, said: Published, factor: float
) -> None:
    if verdict(one, said) == CANNOT_TELL:
        assert verdict(wider(one, factor), said) == CANNOT_TELL


@given(measured(), published())
def test_every_verdict_is_one_of_four_and_none_stands_on_no_interval(
    one: MeasuredValue, said: Published
) -> None:
    assert verdict(one, said) in VERDICTS
    assert verdict(MeasuredValue(one.value, None, None), said) == verdict(None, said) == CANNOT_TELL


@given(measured(), POSITIVE)
def test_a_value_says_no_less_than_its_side(one: MeasuredValue, value: float) -> None:
    """A ratio agrees or goes in the same direction where its side would, and is contradicted with it."""
    assume(not 0.96 < value < 1.041)  # a ratio of about 1 is no side, or may be none by its reading
    full = verdict(one, Published.ratio(value))
    side = verdict(one, Published.side(above=value > 1))
    assert side == (SAME_DIRECTION if full in (AGREES, SAME_DIRECTION) else full)


@given(measured(), st.booleans())
def test_the_other_side_is_the_opposite(one: MeasuredValue, above: bool) -> None:
    opposite = {SAME_DIRECTION: CONTRADICTS, CONTRADICTS: SAME_DIRECTION}
    first, second = (verdict(one, Published.side(above=side)) for side in (above, not above))
    assert one.low is not None and one.high is not None
    if one.low >= 1 / 1.02 and one.high <= 1.02:  # no effect is on neither side
        assert first == second == CONTRADICTS
    else:
        assert second == opposite.get(first, first)


@given(measured(), st.booleans())
def test_a_ratio_turned_over_has_the_verdict_turned_over(one: MeasuredValue, above: bool) -> None:
    assert one.low is not None and one.high is not None
    turned = MeasuredValue(1 / one.value, 1 / one.high, 1 / one.low)
    sides = (Published.side(above=above), Published.side(above=not above))
    near = any(abs(end / edge - 1) < 1e-9 for end in (one.low, one.high) for edge in (1.02, 1 / 1.02))
    assert near or verdict(one, sides[0]) == verdict(turned, sides[1])


@given(measured(), published())
def test_only_an_interval_that_holds_it_agrees_with_a_value(one: MeasuredValue, said: Published) -> None:
    if verdict(one, said) == AGREES:
        assert one.low is not None and one.high is not None
        assert said.low is not None and said.high is not None
        assert one.low <= said.high and said.low <= one.high
        assert said.is_bound or one.high <= 1.5 * one.low


@pytest.mark.parametrize(
    ("low", "high", "said", "expected"),
    [
        (0.52, 0.64, Published.ratio(0.58), AGREES),
        (0.07, 0.36, Published.ratio(0.58), SAME_DIRECTION),  # the sign agrees, the size does not
        (1.10, 2.00, Published.ratio(0.58), CONTRADICTS),
        (0.40, 1.20, Published.ratio(0.58), CANNOT_TELL),  # holds the value, and no effect
        (0.90, 0.99, Published.ratio(0.58), CANNOT_TELL),  # 1 % is no effect
        (0.99, 1.01, Published.ratio(0.58), CONTRADICTS),  # all of it is none
        (1.00, 1.00, Published.side(above=False), CONTRADICTS),
        (0.00, 0.00, Published.difference(2.0, 0.1), CONTRADICTS),
        (-0.05, 0.09, Published.difference(2.0, 0.1), CONTRADICTS),  # all of it is none
        (0.05, 0.30, Published.side(above=True, least=0.1), CANNOT_TELL),
        (0.11, 0.30, Published.side(above=True, least=0.1), SAME_DIRECTION),
        (1.03, 400.0, Published.ratio(2.0), SAME_DIRECTION),  # holds 2, and nearly everything else
        (1.01, 1.019, Published.ratio(1.03), CANNOT_TELL),  # no effect, and as read the value, too
        (0.99, 1.01, Published.ratio(1.01), AGREES),  # the source says no effect
        (1.03, 1.30, Published.ratio(1.01), CONTRADICTS),
        (0.80, 0.97, Published.ratio(1.01), CONTRADICTS),
        (0.97, 1.03, Published.ratio(0.99), CANNOT_TELL),
        (59.2, 59.8, Published.at_most(60.0), AGREES),  # close to a bound, and keeps it
        (60.0, 60.0, Published.at_most(60.0), AGREES),
        (60.1, 60.9, Published.at_most(60.0), CONTRADICTS),
        (59.2, 60.8, Published.at_most(60.0), CANNOT_TELL),
        (2.0, math.inf, Published.number(1.0), CONTRADICTS),  # all trials were cut
        (0.5, math.inf, Published.number(1.0), CANNOT_TELL),
        (51.0, 100.0, Published.number(55.0), CANNOT_TELL),  # holds 55, and nearly everything else
        (51.0, 60.0, Published.number(55.0), AGREES),
        (51.0, 54.0, Published.number(60.0), CONTRADICTS),
        (1.0, 1.0, Published.number(1.0), AGREES),  # nothing varies
        (-0.2, 0.6, Published.number(0.0), CANNOT_TELL),  # a correlation of 0 cannot be shown
        (0.1, 0.6, Published.number(0.0), CONTRADICTS),
        (6.0, 8.0, Published.difference(7.0, 0.5), AGREES),
        (-8.0, -6.0, Published.difference(-7.0, 0.5), AGREES),
        (3.0, 12.0, Published.difference(7.0, 0.5), SAME_DIRECTION),
        (-3.0, 12.0, Published.difference(7.0, 0.5), CANNOT_TELL),
        (-9.0, -1.0, Published.difference(7.0, 0.5), CONTRADICTS),
        (0.5, 0.6, Published(), NOT_JUDGED),
    ],
)
def test_verdicts_by_hand(low: float, high: float, said: Published, expected: str) -> None:
    value = low if math.isinf(high) else (low + high) / 2
    assert verdict(MeasuredValue(value, low, high), said) == expected


@given(published(), st.permutations([1.0, 2.0, math.nan]))
def test_what_is_no_number_has_no_verdict(said: Published, values: list[float]) -> None:
    assert verdict(MeasuredValue(*values), said) == CANNOT_TELL


def test_shares_differ_by_fishers_exact_test() -> None:
    """The lady tasting tea: 3 of 4 and 1 of 4 by chance in 34 of 70 cases."""
    assert inference.exact_test((3, 4), (1, 4)) == pytest.approx(34 / 70)
    assert inference.exact_test((30, 30), (4, 10)) < 0.001
    assert inference.exact_test((0, 3), (0, 3)) == inference.exact_test((5, 5), (2, 2)) == 1


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.96, 1.04, AGREES),
        (1.00, 1.00, AGREES),
        (0.94, 1.04, CANNOT_TELL),
        (0.30, 8.00, CANNOT_TELL),  # what differs by up to 8 times is not equal for want of trials
        (1.06, 1.10, CONTRADICTS),
        (1.01, 1.04, AGREES),  # it differs, and by less than 5 %
    ],
)
def test_equality_needs_the_whole_interval(low: float, high: float, expected: str) -> None:
    assert equality(Ratio(1.0, low, high, 0.5)) == expected
    assert equality(Ratio(1.0)) == equality(None) == CANNOT_TELL


def test_the_interval_of_two_one_sided_tests_is_that_of_90_percent() -> None:
    """With two values each side, of the same spread: t of 90 % with 2 degrees of freedom is 2.920."""
    first, second = [1.0, 1.21], [2.0, 2.42]
    wide, narrow = inference.ratio(first, second), inference.ratio(first, second, EQUIVALENCE)
    assert wide and narrow and wide.low and wide.high and narrow.low and narrow.high
    assert narrow.value == wide.value == pytest.approx(2.0)
    assert wide.low < narrow.low < 2 < narrow.high < wide.high
    reach = {4.303: wide.high, 2.920: narrow.high}
    first_t, second_t = ((high / 2) ** (1 / t) for t, high in reach.items())
    assert first_t == pytest.approx(second_t, rel=1e-3)


def claim(label: str, one: MeasuredValue | None, said: Published) -> Claim:
    return Claim("Proxies gain", "2", said, one, "1.9 (1.7 to 2.1)", label)


def test_a_claim_is_a_row_and_a_line_of_a_forest_plot(tmp_path: Path) -> None:
    made = [
        claim("agreeing", MeasuredValue(1.9, 1.7, 2.1), Published.ratio(2.0)),
        claim("contradicted", MeasuredValue(0.8, 0.7, 0.9), Published.ratio(2.0)),
        claim("unknown", None, Published.ratio(2.0)),
        claim("", MeasuredValue(1.9, 1.7, 2.1), Published.ratio(2.0)),
    ]
    assert made[0].row() == ["Proxies gain", "2", "1.9 (1.7 to 2.1)", AGREES]
    open_claim = claim("nobody can tell", MeasuredValue(1.9, 1.7, 2.1), Published())
    assert judged([*made, open_claim]) == made and forest.drawable([open_claim]) == []
    assert (
        tally(one.verdict for one in [*made, open_claim]) == "2 agree, 1 is contradicted and 1 cannot be told"
    )
    forest.draw(made, tmp_path / "plot.svg", "ratio", "claims")
    words = " ".join(ElementTree.parse(tmp_path / "plot.svg").getroot().itertext())
    assert "agreeing" in words and "contradicts" in words and "published" in words
    assert "unknown" not in words and CANNOT_TELL not in words


def test_a_front_is_read_in_half_a_minute() -> None:
    picture = Picture(Path("somewhere/plot.svg"), "a plot", "Lines are intervals.")
    parts = Front("Proxies double it", ["They do.", "Twice."], picture, "Use them.").parts()
    assert parts[:3] == ["# Proxies double it", "They do. Twice.", "![a plot](plot.svg)"]
    for title, answer in (
        ("Proxies.", ["Yes."]),
        ("x" * 101, ["Yes."]),
        ("Proxies", []),
        ("Proxies", ["No."] * 4),
        ("Proxies", ["One. Two.", "Three (3). Four."]),  # as many as are read, however they are given
    ):
        with pytest.raises(ValueError):
            Front(title, answer, None, "").parts()


def test_sentences_are_counted_by_their_ends() -> None:
    said = "QUIC has 2 MB in 0.5 s (0.4 to 0.6), published 1. `noq` takes 2.5 s; TCP none. Twice (2.0)."
    assert sentences(said) == 3
    assert sentences("no end") == 0


def test_headings_are_not_folded() -> None:
    assert folded("2 rows", "| a |\n|---|") == [
        "<details>\n<summary>2 rows</summary>",
        "| a |\n|---|",
        "</details>",
    ]
    assert folded("2 rows", "```sh\n# a comment\n```")[0].startswith("<details>")
    assert folded("nothing") == []
    with pytest.raises(ValueError):
        folded("2 rows", "## All", "| a |")
