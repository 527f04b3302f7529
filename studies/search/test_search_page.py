"""`bentpipe study search`: the page on SEARCH, from runs that are made up here with known answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import fake_run
import pytest
import study_marks
from conftest import Command
from search import answer, published
from search.saving import MostSaved

from bentpipe.analysis.trial_marks import RunCell
from bentpipe.runs.records import Record
from bentpipe.study.claims import Claim, MeasuredValue, Published
from bentpipe.study.quantiles import median, quantile, share_of
from bentpipe.study.slow_starts import SlowStartTrial, groups
from bentpipe.study.variants import short_names

MB = 1_000_000
SIZE = 200 * MB
OVERHEAD = 1.02
STEP_S = 0.2
LOGS, KEEPS, LOWERS = (
    f"noq:cc=cubic:ss={name}:pacing=off" for name in ("search-log", "search-keep", "search")
)
RUNS = 20


def run(server: str, iteration: int, delay_s: float, reach: int = SIZE, **said: Any) -> Record:
    """A transfer at 20 MB/s from `delay_s` on, which ends after `reach` bytes."""
    made = fake_run.record("sat", "noq", server, iteration)
    arrived = [int(min(max(20 * MB * (step * STEP_S - delay_s), 0), reach)) for step in range(1, 101)]
    curve = [int(OVERHEAD * one) for one in arrived]
    done = {"outcome": "ok", "detail": "", "completion_s": delay_s + SIZE / (20 * MB)}
    cut = {
        "outcome": "transfer_timeout",
        "detail": f"{reach} of {SIZE} bytes after 60 s",
        "completion_s": None,
    }
    values: dict[str, Any] = {
        "in_order_bytes": arrived,
        "size_bytes": SIZE,
        "workload": f"transfer:{SIZE}",
        "received_step_s": STEP_S,
        "received_bytes": curve,
        "forward_losses": 0,
        "server_statistics": said,
        **(done if reach == SIZE else cut),
    }
    return fake_run.change(made, **values)


def loss(second: float, **more: Any) -> dict[str, Any]:
    return {
        "slow_start_left_from_bytes": 40 * MB,
        "slow_start_left_s": second,
        "slow_start_left_by": "loss",
        "first_loss_s": second,
        **more,
    }


def exits(before: int, after: int) -> dict[str, Any]:
    return {
        "slow_start_left_from_bytes": before,
        "slow_start_left_s": 7.0,
        "slow_start_left_by": "search",
        "search_exit_s": 7.0,
        "search_exit_from_bytes": before,
        "search_exit_to_bytes": after,
    }


def records() -> list[Record]:
    """Of the baseline's twenty runs one loses on the medium, and in half of the others SEARCH speaks one and
    a half round trips before the loss. Those with SEARCH are two seconds sooner; one of them stops at 120 MB.
    """
    made = []
    for number in range(1, RUNS + 1):
        speaks = {"search_exit_s": 8.5, "search_exit_rtt_s": 1.0} if number % 2 == 0 else {}
        baseline = run(LOGS, number, 4.0, **loss(10.0, **speaks))
        if number == 1:
            baseline = fake_run.change(run(LOGS, number, 30.0, **loss(3.0)), forward_losses=2)
        made.append(baseline)
        made.append(run(KEEPS, number, 2.0, SIZE if number > 1 else 120 * MB, **exits(10 * MB, 10 * MB)))
        taken = 4 if number <= 5 else 2
        made.append(run(LOWERS, number, 2.0, **exits(10 * MB, (10 - taken) * MB)))
    return sorted(made, key=lambda one: (one.server, one.iteration))


def write(change: Callable[[list[Record]], list[Record]] = lambda found: found) -> None:
    fake_run.write(Path("run"))
    with fake_run.changed_manifest(Path("run")) as manifest:
        manifest["options"] |= {"scenarios": ["sat"], "clients": ["noq"], "servers": [LOGS, KEEPS, LOWERS]}
    fake_run.write_records(Path("run"), change(records()))


def page(bentpipe: Command) -> str:
    return bentpipe.page("search", "--run", "run")


def test_quantiles_reach_what_is_never_reached() -> None:
    values = [1.0, math.inf, 3.0, 2.0]
    assert [quantile(values, share) for share in (0.25, 0.5, 0.75, 0.76)] == [1.0, 2.0, 3.0, math.inf]
    assert median(values) == 2.5 and median([]) is None and quantile([], 0.5) is None
    assert share_of([1.0, 2.0, math.inf], 1) == 2 / 3


def test_bytes_are_reached_between_the_points_of_the_curve() -> None:
    one = SlowStartTrial(run(LOGS, 1, 4.03))
    assert math.isclose(one.reached_s(100 * MB), 9.03, abs_tol=1e-3)
    assert math.isclose(one.arrived_s(100 * MB, OVERHEAD), 9.03, abs_tol=1e-3)
    assert math.isclose(one.reached_s(SIZE), 14.03)  # by its completion
    assert SlowStartTrial(run(LOGS, 1, 4.0, 120 * MB)).reached_s(121 * MB) == math.inf


def test_what_waits_for_lost_bytes_has_arrived_and_cannot_be_read() -> None:
    made = run(LOGS, 1, 4.0)
    held = [min(one, 60 * MB) if place < 60 else one for place, one in enumerate(made.in_order_bytes)]
    one = SlowStartTrial(fake_run.change(made, in_order_bytes=held))
    assert math.isclose(one.arrived_s(100 * MB, OVERHEAD), 9.0, abs_tol=1e-3)
    assert 12.0 < one.reached_s(100 * MB) < 12.2  # when the missing bytes are there, after 12 s


def test_a_loss_before_the_link_is_full_is_one_of_the_medium() -> None:
    found = {one.server: one for one in groups(records())}
    assert found[LOGS].earliest_s == 10.0
    assert (len(found[LOGS].runs), len(found[LOGS].clean)) == (RUNS, RUNS - 1)
    assert len(found[KEEPS].clean) == RUNS  # SEARCH ended slow start before that, and by itself
    assert math.isclose(found[LOGS].overhead, OVERHEAD, rel_tol=1e-6)


def test_each_slow_start_draws_its_own_line() -> None:
    """One that jumps loses early by its own doing; the baseline's losses then are still the medium's."""
    jumps = LOGS.replace("search-log", "search-jump")
    early = [run(jumps, number, 2.0, **loss(1.5, slow_start_left_by="jump_lost")) for number in (1, 2)]
    found = {one.server: one for one in groups([*records(), *early])}
    assert (found[LOGS].earliest_s, len(found[LOGS].clean)) == (10.0, RUNS - 1)
    assert (found[jumps].earliest_s, len(found[jumps].clean)) == (1.5, 2)
    assert found[KEEPS].earliest_s == 10.0  # as the baseline's: none of its own runs shows when it is full
    assert not any(one.acted for one in found[jumps].runs)


def test_the_lead_is_counted_in_round_trips() -> None:
    assert (
        SlowStartTrial(
            run(LOGS, 1, 4.0, **loss(10.0, search_exit_s=8.5, search_exit_rtt_s=1.0))
        ).lead_round_trips
        == 1.5
    )
    assert SlowStartTrial(run(LOGS, 1, 4.0, **loss(10.0))).lead_round_trips == -math.inf
    assert SlowStartTrial(run(LOGS, 1, 4.0)).lead_round_trips is None


@pytest.mark.parametrize(
    ("said", "acts"),
    [
        ({}, False),
        (loss(3.0), False),
        (loss(3.0, css_entered_s=2.0), True),
        ({"slow_start_left_s": 3.0, "slow_start_left_by": "search"}, True),
        ({"slow_start_left_s": 3.0, "slow_start_left_by": "search", "first_loss_s": 3.5}, True),
        ({"slow_start_left_s": 3.0, "slow_start_left_by": "recovered", "first_loss_s": 2.5}, False),
    ],
)
def test_a_slow_start_acts_before_the_first_loss(said: dict[str, Any], acts: bool) -> None:
    assert SlowStartTrial(run(LOGS, 1, 4.0, **said)).acted == acts


def test_the_page_has_what_the_runs_came_to(bentpipe: Command) -> None:
    write()
    text = page(bentpipe)
    said = " ".join(text.split())
    # Of 19 clean runs of the baseline, 10 have an even number.
    assert "Of 19 clean runs of `search-log` the exit comes first in 10, 53 %; published: 55 %." in said
    assert "the median lead is 1.50 round trips" in said
    assert "| Of these runs, by more than a round trip | 35 % | 100 % (72 to 100) | contradicts |" in text
    assert "| search-keep | 20 of 20 | 83 % | 20 of 20 | 78 % | 19 of 20 | 71 % | 19 of 20 | 60 % |" in text
    assert "| by medians, at best of all sizes: search-keep | 2.0 s sooner, at " in text
    assert "| by medians, at worst: search-keep | 2.0 s sooner, at " in text
    assert "| by medians, at 200 MB: search | 2.0 s sooner | - |" in text
    assert "| search-keep | 0 % | 95 % | 5 % | 45 % / 40 % / 15 % |" in text
    assert "`search`, 20 runs: it takes off 20 % in the median, quartiles 20 % and 20 %; " in said
    assert "more than CUBIC's 30 % in 25 % of the runs." in said
    assert "| noq:cc=cubic:ss=search-log:pacing=off | 20 | 1 | 19 | 659 | 103 | 12 | 544 |" in text
    for name in ("ends", "scatter", "times", "saved", "distributions", "window"):
        texts = " ".join(ElementTree.parse(f"out/search-{name}.svg").getroot().itertext())
        assert "search-keep, 20 runs" in texts or (name == "window" and "search, 20 runs" in texts)
    assert "SEARCH's exit, 19 runs" in " ".join(ElementTree.parse("out/search-exit.svg").getroot().itertext())
    assert "twice that" in " ".join(ElementTree.parse("out/search-course.svg").getroot().itertext())
    assert "| baselines of data set 2 (table 2) |  |  |  | 360 | 106 | 22 | 232 |" in text
    assert "| baselines of both data sets (table 3) |  |  |  | 1019 | 209 | 34 | 776 |" in text
    assert "The source has 360 or 659 runs of a kind, here there are 20." in said


def test_without_a_look_at_search_that_is_said(bentpipe: Command) -> None:
    write(
        lambda found: [
            fake_run.change(one, server=one.server.replace("search-log", "standard")) for one in found
        ]
    )
    text = page(bentpipe)
    assert "No variant of this run has `ss=search-log`" in text
    assert not Path("out/search-exit.svg").exists() and "search-exit.svg" not in text
    assert "The baseline is `ss=standard`" in text


@pytest.mark.parametrize("keep", [LOGS, KEEPS])
def test_one_slow_start_alone_makes_no_page(bentpipe: Command, keep: str) -> None:
    write(lambda found: [one for one in found if one.server == keep])
    done = bentpipe("study", "search", "--run", "run", "-o", "out")
    assert done.code != 0
    assert "others beside it" in done.err and "bentpipe run search" in done.err
    assert not Path("out").exists()


def test_published_counts_agree_with_each_other() -> None:
    """Tables 1 and 2 add up, and so do figure 8's shares and figure 12's."""
    known = published.load()
    for one in known.runs.values():
        assert one.first_round_trip + one.medium + one.clean == one.all
        assert all(count <= one.clean for count in one.reaching.values())
    assert known.loss_first + known.exit_first == known.equal + known.sooner + known.later == 100


def test_short_names_tell_variants_apart() -> None:
    assert list(short_names([LOGS, KEEPS]).values()) == ["search-log", "search-keep"]
    labels = ["noq:cc=cubic:ss=trains", "noq:cc=pico:ss=trains:ack=10", "noq:cc=bbr3"]
    assert list(short_names(labels).values()) == ["trains + cubic", "trains + pico, ack=10", "noq's own bbr3"]
    variants = ["noq:cc=bbr3", "noq:cc=bbr3:ss=standard:iw=10", "noq:iw=10:ss=standard:cc=bbr3"]
    assert list(short_names(variants).values()) == ["noq's own bbr3", *variants[1:]]


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (2.8, 3.2, "is repeated"),
        (0.5, 3.5, "is repeated in direction, and its size is not shown"),
        (0.5, 1.5, "is not repeated, as SEARCH saves less"),
        (-1.0, 2.6, "is not repeated, as SEARCH saves less, if anything"),
        (-1.5, -0.5, "is not repeated, as SEARCH is later"),
        (0.0, 0.0, "is not repeated, as SEARCH is neither earlier nor later"),
        (-1.0, 4.0, "is repeated cannot be told"),
        (None, None, "is repeated is not known, without an interval"),
    ],
)
def test_the_words_are_those_of_the_interval(low: float | None, high: float | None, words: str) -> None:
    value = 0.0 if low is None or high is None else (low + high) / 2
    said = Published.difference(3.0, 0.1, 0.1)
    assert answer.gained(Claim("", "", said, MeasuredValue(value, low, high), "")).endswith(words)


NONE = "No gain of 3 s by SEARCH over GEO: at best "
ASKED = "Whether SEARCH saves time over GEO cannot be told: at best "
READ = "SEARCH delivers 126 MB over GEO "


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.5, 1.5, f"{READ}1.0 s (0.5 to 1.5) earlier, not 3 s"),
        (2.0, 4.0, f"{READ}3.0 s (2.0 to 4.0) earlier"),
        (-0.5, 1.5, f"{NONE}0.5 s (-0.5 to 1.5) at 126 MB"),
        (0.05, 0.4, f"{NONE}0.2 s (0.1 to 0.4) at 126 MB"),
        (-1.5, -0.5, f"{NONE}-1.0 s (-1.5 to -0.5) at 126 MB"),
        (-1.0, 4.0, f"{ASKED}1.5 s (-1.0 to 4.0) at 126 MB"),
        (None, None, f"{ASKED}3.0 s at 126 MB"),
    ],
)
def test_the_title_is_that_of_the_interval(low: float | None, high: float | None, words: str) -> None:
    value = 3.0 if low is None or high is None else (low + high) / 2
    assert answer.title(MostSaved(126, MeasuredValue(value, low, high)), 3.0) == words


@pytest.mark.parametrize(
    ("cut", "words"),
    [
        (
            MeasuredValue(3.0, 2.8, 3.1),
            "1.0 s (0.5 to 1.5) earlier, 3.0 s (2.8 to 3.1) cutting the window",
        ),
        (MeasuredValue(0.5, 0.0, 1.0), "1.0 s (0.5 to 1.5) earlier, not 3 s"),
    ],
)
def test_the_title_has_the_gain_of_a_window_that_is_cut(cut: MeasuredValue, words: str) -> None:
    most = MostSaved(126, MeasuredValue(1.0, 0.5, 1.5))
    found = answer.title(most, 3.0, cut)
    assert found == f"{READ}{words}" and len(found) <= 98


@pytest.mark.parametrize(("later_s", "is_less"), [(0.0, True), (1.0, False)])
def test_three_seconds_are_denied_only_by_the_interval(
    bentpipe: Command, later_s: float, *, is_less: bool
) -> None:
    """SEARCH saves 2 s in every run; or in half of them 2 s and in the others 4 s, which holds 3 s."""

    def change(found: list[Record]) -> list[Record]:
        slow = [one for one in found if one.server == LOGS and one.iteration % 2]
        moved = {one.iteration: run(LOGS, one.iteration, 4.0 + 2 * later_s, **loss(10.0)) for one in slow}
        return [
            moved[one.iteration] if one.server == LOGS and one.iteration in moved else one for one in found
        ]

    write(change)
    text = page(bentpipe)
    assert ("A whole file of 200 MB is at most 2.0 s earlier." in " ".join(text.split())) == is_less


def test_counts_of_runs_lead_to_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write()
    found = study_marks.leading("search", ["--run", "run"])
    wanted = [RunCell(Path("run"), run(server, 1, 0.0).cell_key) for server in (LOGS, KEEPS, LOWERS)]
    assert found["20"] == [wanted[0], wanted[1], wanted[1], wanted[2], wanted[2]]  # all, and the clean
