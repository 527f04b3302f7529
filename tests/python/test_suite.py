"""Suites: those that come along, and what is wrong with others."""

from __future__ import annotations

from pathlib import Path

import pytest

from bentpipe.errors import UsageError
from bentpipe.objectives import suite
from bentpipe.objectives.questions import questions

GOOD = """
title = "Mine"
[[objectives]]
name = "a"
scenario = "sat"
workload = "transfer:10MB"
"""
WITHIN = 'within = { "2 MB" = "3 s" }'


def load(folder: Path, text: str) -> suite.Suite:
    file = folder / "mine.toml"
    file.write_text(text)
    return suite.load(str(file))


def test_the_suites_that_come_along_can_be_read() -> None:
    assert {"quic-4-sat", "kuhn-2020", "pep", "own"} <= set(suite.names())
    for name in suite.names():
        one = suite.load(name)
        assert one.title and one.objectives
        assert len({objective.name for objective in one.objectives}) == len(one.objectives)


def test_the_draft_has_eighteen_times() -> None:
    """Three sizes in six of its seven use cases; of the seventh it leaves the times open."""
    one = suite.load("quic-4-sat")
    assert len(one.objectives) == 18
    asked = {objective.name: objective.asked for objective in one.objectives}
    assert asked["large 100 MB"] == "first 100 MB ≤ 8 s"
    assert asked["small up 100 MB"] == "first 100 MB ≤ 420 s"
    assert len({objective.setting for objective in one.objectives}) == 6, "one transfer answers three"


def test_bounds_have_units_and_comparisons_are_in_percent(tmp_path: Path) -> None:
    one = load(
        tmp_path,
        GOOD
        + """
measure = "goodput_bps"
at_least = "90 %"
than = { server = "quinn" }

[[objectives]]
name = "b"
scenario = "sat"
workload = "page:kosek"
measure = "plt_s"
at_most = "4500 ms"
client = "noq"
server = "noq:iw=32"
treatment = "quic-pep"
""",
    )
    first, second = one.objectives
    assert (first.bound, first.at_most) == (0.9, False)
    assert first.asked == "goodput ≥ 90 % of quinn"
    assert second.bound == 4.5
    assert second.asked == "page load time ≤ 4.5 s"
    assert second.setting.treatment == "quic-pep terminal,gateway"
    (of_first, of_second) = questions(one, ["noq"], ["quic-go"])
    assert of_first.reference is not None and of_first.reference.server == "quinn"
    assert (of_second.cell.client, of_second.cell.server) == ("noq", "noq:iw=32")


def test_each_pair_is_asked_unless_the_objective_fixes_it(tmp_path: Path) -> None:
    one = load(tmp_path, GOOD + 'within = { "1 MB" = "3 s", "10 MB" = "9 s" }\nserver = "noq"\n')
    asked = questions(one, ["a", "b"], ["c", "d"])
    assert [(each.cell.client, each.cell.server) for each in asked] == [("a", "noq")] * 2 + [("b", "noq")] * 2


@pytest.mark.parametrize(
    ("text", "says", "hint"),
    [
        ("title = 1", "mine.toml: title: 1 is not valid", "a text"),
        ('title = "x"\nobjectives = []', "mine.toml: objectives", "[[objectives]]"),
        (GOOD + 'speed = "fast"', 'unknown key "objectives 1: speed"', "keys: "),
        (GOOD, 'objectives 1: the key "measure" is missing', "within"),
        (GOOD + 'measure = "plt"', 'objectives 1: measure: "plt" is not valid', 'did you mean "plt_s"?'),
        (GOOD + 'measure = "plt_s"', "it has neither at_most nor at_least", "give one"),
        (GOOD + 'measure = "plt_s"\nat_most = "3 s"\nat_least = "1 s"', "both at_most and at_least", "one"),
        (GOOD + 'measure = "plt_s"\nat_most = "3 Mbit/s"', 'at_most: "3 Mbit/s" is not valid', "in s or ms"),
        (GOOD + 'measure = "plt_s"\nat_most = "0 s"', 'at_most: "0 s" is not valid', "above 0"),
        (GOOD + 'within = { "3 MB" = "3 s" }', "records have no time of 3 MB", "1 MB, 2 MB"),
        (GOOD + 'within = { "20 MB" = "3 s" }', "the file has 10 MB", "less"),
        (GOOD + 'within = { "2 MB" = "soon" }', '"soon" is not valid', "in s or ms"),
        (GOOD + 'within = { "2 MB" = "3 s" }\nmeasure = "plt_s"', "within stands alone", "leave out"),
        (GOOD.replace("transfer:", "multiplexing:2x") + WITHIN, "of one file", "tra"),
        (GOOD.replace('"sat"', '"sot"') + WITHIN, 'unknown scenario "sot"', "sat"),
        (GOOD.replace("transfer", "fetch") + WITHIN, 'unknown test case "fetch"', "x"),
        (GOOD + 'treatment = "pep"\nwithin = { "2 MB" = "3 s" }', 'unknown treatment "pep"', "quic-pep"),
        (GOOD + 'measure = "ttfb_s"\nat_most = "95 %"\nthan = {}', "than: it is empty", "in what"),
        (
            GOOD + 'measure = "ttfb_s"\nat_most = "95 %"\nthan = { treatment = "direct" }',
            "than: it is what the objective itself is of",
            "differs",
        ),
        (GOOD + 'measure = "ttfb_s"\nat_most = "3 s"\nthan = { server = "noq" }', '"3 s" is not', "in %"),
        ('error = "20 %"' + GOOD + WITHIN, "error: '20 %' is not valid", "10 %"),
        (
            GOOD + WITHIN + GOOD.partition('"Mine"')[2] + 'within = { "2 MB" = "1 s" }',
            'two objectives are called "a 2 MB"',
            "name of its own",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, says: str, hint: str) -> None:
    with pytest.raises(UsageError) as error:
        load(tmp_path, text)
    assert says in str(error.value)
    assert hint in error.value.hint


def test_an_unknown_suite_is_named() -> None:
    with pytest.raises(UsageError) as error:
        suite.load("quic4sat")
    assert "quic-4-sat" in error.value.hint
