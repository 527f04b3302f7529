"""How objectives are judged, and changes: by made-up records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import fake_run
import pytest

from bentpipe.analysis.comparison import ComparedKey
from bentpipe.analysis.sequential import Rigour
from bentpipe.objectives import badge, junit, markdown
from bentpipe.objectives.changes import changes
from bentpipe.objectives.derivation import reached
from bentpipe.objectives.judge import judge, verdict
from bentpipe.objectives.measures import ObjectiveMeasure
from bentpipe.objectives.questions import Question, by_cell
from bentpipe.objectives.suite import Objective, Setting
from bentpipe.objectives.tally import FAILED, PASSED, UNDECIDED, exit_code, tally
from bentpipe.runs.records import Record
from bentpipe.schema.verdicts import ObjectiveVerdict, Verdicts

RIGOUR = Rigour.of(0.01, 28)
SETTING = Setting("sat", "transfer:10485760", "direct")
KEY = ComparedKey("sat", "transfer:10485760", "direct", "noq", "quinn")
OTHER = KEY._replace(server="noq")


def question(bound: float = 3.0, reference: ComparedKey | None = None) -> Question:
    """Whether completion takes at most so many seconds, or times that of `reference`."""
    other = None if reference is None else Setting(*reference)
    measure = ObjectiveMeasure("completion_s")
    return Question(Objective("mine", SETTING, measure, bound, True, other), KEY, reference)


def trials(key: ComparedKey, times: Sequence[float | str]) -> list[Record]:
    """Trials that took so long, or ended so."""
    made = []
    for number, time in enumerate(times, start=1):
        one = fake_run.record(key.scenario, key.client, key.server, number)
        ok = not isinstance(time, str)
        made.append(
            fake_run.change(
                one,
                workload=key.workload,
                outcome="ok" if ok else time,
                detail="" if ok else "as the test has it",
                completion_s=time if ok else None,
                seed=f"{number:016x}",
                packet_log_hash=str(time),
                findings=["slow"] if ok else [],
            )
        )
    return made


@pytest.mark.parametrize(
    ("times", "outcome", "count", "why"),
    [
        ([2.5] * 7, "pass", 7, "7 of 7 trials meet it"),
        ([3.5] * 9, "fail", 7, "0 of 7 trials meet it"),
        ([2.5, 3.5, 2.5], "undecided", 3, "2 of 3 trials meet it"),
        (["transfer_timeout"] * 7, "fail", 7, "0 of 7 trials meet it"),
        ([2.5, 2.5, "crashed"], "fail", 3, "crashed in 1 of 3 trials: as the test has it"),
        ([2.5, "corrupt_file", "crashed"], "fail", 3, "corrupt file in 2 of 3 trials"),
        (["unsupported"] * 3, "skipped", 3, "as the test has it"),
        (["unsupported", "crashed", 2.5], "fail", 3, "crashed in 1 of 3 trials"),
        (["unsupported", 2.5, 2.5], "undecided", 3, "a trial says nothing"),
        ([2.5, 2.5, "invalid"], "undecided", 3, "a trial says nothing: as the test has it"),
        ([], "undecided", 0, "no trial of it ran"),
    ],
)
def test_a_bound_is_judged(times: list[float | str], outcome: str, count: int, why: str) -> None:
    judged = judge(question(), by_cell(trials(KEY, times)), RIGOUR)
    assert (judged.outcome, judged.trials) == (outcome, count)
    assert judged.why.startswith(why)


def test_more_trials_are_asked_for_only_where_they_may_decide() -> None:
    mixed = judge(question(), by_cell(trials(KEY, [2.5, 3.5, 2.5])), RIGOUR)
    assert mixed.more == 7
    assert judge(question(), by_cell(trials(KEY, [2.5] * 7)), RIGOUR).more is None
    at_the_end = judge(question(), by_cell(trials(KEY, [2.5, 3.5] * 14)), RIGOUR)
    assert at_the_end.outcome == "undecided" and at_the_end.more is None
    assert "too near the bound" in at_the_end.why
    nearly = judge(question(), by_cell(trials(KEY, [2.5, 2.5, 2.5, 3.5] * 7)), RIGOUR)
    assert "56 such trials would decide it: --most 56" in nearly.why


def test_of_an_even_number_of_trials_the_median_is_the_worse_of_two() -> None:
    """It is that of the trial which the verdict leads to, and what is derived from the same trials."""
    times = [2.0, 2.25, 2.75, 3.5]
    made = [
        fake_run.change(one, goodput_bps=8e7 / time, first_mb_s=[time, time])
        for one, time in zip(trials(KEY, times), times, strict=True)
    ]
    found = by_cell(made)
    judged = verdict(question(), judge(question(), found, RIGOUR), found)
    assert judged.median == 2.75 and judged.trial == made[2].trial and "median is 2.75 s" in judged.why
    assert reached(made)[0].times_s[2] == 2.75
    faster = Question(Objective("mine", SETTING, ObjectiveMeasure("goodput_bps"), 1e7, False), KEY)
    assert verdict(faster, judge(faster, found, RIGOUR), found).median == 8e7 / 2.75
    found_changes, _ = changes([question()], found, found, RIGOUR, 0.01)
    assert [(one.change.base, one.change.now) for one in found_changes] == [(2.75, 2.75)]


def test_a_bound_below_the_least_limit_is_said_to_be_unreachable() -> None:
    """Where rates are drawn, each trial has its own."""

    def why(*limits: float) -> str:
        made = trials(KEY, [3.5] * len(limits))
        with_limits = [fake_run.change(one, limit_s=limit) for one, limit in zip(made, limits, strict=True)]
        return judge(question(), by_cell(with_limits), RIGOUR).why

    assert "the limit, with 5 % for headers, is 3.1 s" in why(3.2, 3.1, 3.3)
    assert "the limit" not in why(3.2, 2.9, 3.3)


def test_a_measure_that_stacks_do_not_have_is_undecided() -> None:
    page = Question(Objective("mine", SETTING, ObjectiveMeasure("plt_s"), 3.0, True), KEY)
    judged = judge(page, by_cell(trials(KEY, [2.5] * 3)), RIGOUR)
    assert (judged.outcome, judged.why) == ("undecided", "a trial has no page load time")


def test_first_bytes_count_even_where_the_whole_never_came() -> None:
    first = Question(Objective("mine", SETTING, ObjectiveMeasure("first_mb_s", 1), 3.0, True), KEY)
    all_of_it = Question(Objective("mine", SETTING, ObjectiveMeasure("first_mb_s", 6), 9.0, True), KEY)
    cut = [fake_run.change(one, first_mb_s=[1.5, 2.0]) for one in trials(KEY, ["transfer_timeout"] * 8)]
    assert judge(first, by_cell(cut), RIGOUR).outcome == "pass"
    assert judge(all_of_it, by_cell(cut), RIGOUR).outcome == "fail"
    assert all_of_it.objective.asked == "first 100 MB ≤ 9 s"


@pytest.mark.parametrize(
    ("own", "reference", "bound", "outcome"),
    [
        ([2.0] * 7, [2.0] * 7, 1.05, "pass"),
        ([2.2] * 7, [2.0] * 7, 1.05, "fail"),
        ([2.0, 3.0, 2.5], [2.0, 3.0, 2.5], 1.05, "undecided"),
        ([2.0] * 6 + ["transfer_timeout"], [2.0] * 7, 1.05, "undecided"),
        (["transfer_timeout"] * 7, [2.0] * 7, 1.05, "fail"),
        (["transfer_timeout"] * 7, ["transfer_timeout"] * 7, 1.05, "pass"),
        ([2.0, 2.0, 2.0], [2.0, 2.0, "crashed"], 1.05, "undecided"),
        ([2.0, 2.0, 2.0], [], 1.05, "undecided"),
    ],
)
def test_a_comparison_is_judged(
    own: list[float | str], reference: list[float | str], bound: float, outcome: str
) -> None:
    found = by_cell([*trials(KEY, own), *trials(OTHER, reference)])
    assert judge(question(bound, OTHER), found, RIGOUR).outcome == outcome


def test_changes_are_found_pair_by_pair_and_the_largest_is_first() -> None:
    slow, fast = KEY, OTHER
    asked = [question(), Question(question().objective, fast)]
    base = by_cell([*trials(slow, [2.0, 2.5] * 7), *trials(fast, [1.0] * 14)])
    now = by_cell([*trials(slow, [2.2, 2.75] * 7), *trials(fast, [0.8] * 14)])
    found, left_out = changes(asked, base, now, RIGOUR, 0.01)
    assert left_out == []
    words = [(one.change.server, one.change.outcome) for one in found]
    assert words == [("noq", "better"), ("quinn", "worse")]
    worse = found[1].change
    assert worse.ratio == pytest.approx(1.1)
    assert worse.why == "+10.0 % (+10.0 % to +10.0 %)"
    assert (worse.base, worse.now) == (2.5, 2.75)


def test_what_crashes_now_is_worse_and_what_did_is_better() -> None:
    whole, broken = by_cell(trials(KEY, [2.0] * 3)), by_cell(trials(KEY, [2.0, 2.0, "crashed"]))
    (worse,), _ = changes([question()], whole, broken, RIGOUR, 0.01)
    (better,), _ = changes([question()], broken, whole, RIGOUR, 0.01)
    assert (worse.change.outcome, better.change.outcome) == ("worse", "better")
    assert "crashed now" in worse.change.why


def test_what_is_not_offered_any_more_is_worse() -> None:
    whole, gone = by_cell(trials(KEY, [2.0] * 3)), by_cell(trials(KEY, ["unsupported"] * 3))
    (worse,), left_out = changes([question()], whole, gone, RIGOUR, 0.01)
    assert (worse.change.outcome, left_out) == ("worse", [])
    found, left_out = changes([question()], gone, whole, RIGOUR, 0.01)
    assert found == [] and "the base: unsupported" in left_out[0]


@pytest.mark.parametrize(
    ("outcome", "verdict"), [("handshake_timeout", "fail"), ("transfer_timeout", "undecided")]
)
def test_first_bytes_that_nobody_could_see_are_unknown_unless_none_came(outcome: str, verdict: str) -> None:
    first = Question(Objective("mine", SETTING, ObjectiveMeasure("first_mb_s", 1), 3.0, True), KEY)
    unseen = [
        fake_run.change(one, first_mb_s=[], measured_from="client") for one in trials(KEY, [outcome] * 7)
    ]
    assert judge(first, by_cell(unseen), RIGOUR).outcome == verdict


def test_a_program_that_breaks_the_contract_has_failed() -> None:
    """The scheduler starts no trial of one that is of no use from the start."""
    broken = [
        fake_run.change(one, outcome="invalid", detail="noq as client breaks the contract: it exited with 3")
        for one in trials(KEY, [2.0] * 3)
    ]
    judged = judge(question(), by_cell(broken), RIGOUR)
    assert judged.outcome == "fail" and "it exited with 3" in judged.why
    (worse,), _ = changes([question()], by_cell(trials(KEY, [2.0] * 3)), by_cell(broken), RIGOUR, 0.01)
    assert worse.change.outcome == "worse"


def test_a_failure_leads_to_the_trial_that_failed() -> None:
    now = by_cell(trials(KEY, [2.0, 2.5, "crashed"]))
    assert verdict(question(), judge(question(), now, RIGOUR), now).trial == now[KEY][2].trial


@pytest.mark.parametrize(
    ("column", "bound", "at_most", "values", "outcome"),
    [
        ("ttfb_s", 3.0, True, {"ttfb_s": 1.2}, "pass"),
        ("completion_s", 3.0, False, {"completion_s": None}, "fail"),
        ("frame_age_p99_s", 0.4, True, {"frame_age_p99_s": None, "frames": 100, "outcome": "ok"}, "fail"),
        ("completion_s", 3.0, True, {"completion_s": None, "measured_from": "client"}, "fail"),
    ],
)
def test_what_came_before_a_timeout_counts_and_what_never_came_meets_nothing(
    column: str, bound: float, at_most: bool, values: dict[str, Any], outcome: str
) -> None:
    asked = Question(Objective("mine", SETTING, ObjectiveMeasure(column), bound, at_most), KEY)
    late = [fake_run.change(one, **values) for one in trials(KEY, ["transfer_timeout"] * 7)]
    assert judge(asked, by_cell(late), RIGOUR).outcome == outcome


def test_what_cannot_be_paired_is_said() -> None:
    now = by_cell(trials(KEY, [2.0] * 3))
    other_seeds = by_cell([fake_run.change(one, seed="f" * 16) for one in trials(KEY, [2.0] * 3)])
    assert changes([question()], {}, now, RIGOUR, 0.01)[1] == [
        "completion, sat noq → quinn: the base has no trial of it"
    ]
    assert (
        "no trial of the base has the same seed"
        in changes([question()], other_seeds, now, RIGOUR, 0.01)[1][0]
    )


def found(*outcomes: str, changed: Sequence[str] = ()) -> Verdicts:
    """Verdicts with these outcomes."""
    now = by_cell(trials(KEY, [2.0] * 3))
    one = verdict(question(), judge(question(), now, RIGOUR), now)
    (change,), _ = changes([question()], now, now, RIGOUR, 0.01)

    def like(outcome: str) -> ObjectiveVerdict:
        return ObjectiveVerdict(
            **{key: getattr(one, key) for key in one.__struct_fields__} | {"outcome": outcome}
        )

    fields = change.change.__struct_fields__
    moved = [
        type(change.change)(**{key: getattr(change.change, key) for key in fields} | {"outcome": word})
        for word in changed
    ]
    return Verdicts(
        format=1, suite="mine", title="", source="", testbed="sim", error=0.01, most=30,
        verdicts=[like(outcome) for outcome in outcomes], against="base" if changed else "", margin=0.01,
        changes=moved, left_out=[],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("outcomes", "changed", "code"),
    [
        (("pass", "skipped"), (), PASSED),
        (("pass", "fail", "undecided"), (), FAILED),
        (("pass", "undecided"), (), UNDECIDED),
        (("skipped",), (), UNDECIDED),
        (("pass",), ("same", "better"), PASSED),
        (("pass",), ("same", "worse"), FAILED),
        (("pass",), ("undecided",), PASSED),
    ],
)
def test_exit_codes(outcomes: tuple[str, ...], changed: tuple[str, ...], code: int) -> None:
    assert exit_code(found(*outcomes, changed=changed)) == code


def test_junit_counts_what_other_programs_read(tmp_path: Path) -> None:
    file = tmp_path / "out.xml"
    junit.write(found("pass", "fail", "undecided", "skipped", changed=("worse", "same")), file)
    root = xml.parse(file).getroot()
    assert {key: root.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "6", "failures": "2", "errors": "1", "skipped": "1",
    }  # fmt: skip
    assert [suite.get("tests") for suite in root] == ["4", "2"]


def test_a_badge_and_a_comment_say_how_many() -> None:
    some = found("pass", "fail", "skipped", changed=("worse",))
    assert tally(some) == "1 pass, 1 fail, 1 skipped"
    picture = xml.fromstring(badge.svg(some))
    assert "1/2" in "".join(picture.itertext())
    text = markdown.text(some, "runs/check")
    assert "1 pass, 1 fail, 1 skipped" in text
    assert "bentpipe trace base/trials/" in text and "bentpipe trace runs/check/trials/" in text


def test_values_that_were_never_reached_are_null() -> None:
    late = by_cell(trials(KEY, ["transfer_timeout"] * 7))
    one = verdict(question(), judge(question(), late, RIGOUR), late)
    assert one.median is None and one.values == [None] * 7
    assert question().objective.measure.text(math.inf) == "never"
