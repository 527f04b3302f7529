"""`bentpipe study sender`, from made-up runs."""

from __future__ import annotations

import csv
from pathlib import Path

import fake_run
import pytest
import study_marks
from conftest import Command

from bentpipe.analysis.trial_marks import RunCell
from bentpipe.runs.records import Record


def trials(server: str, *seconds: float | None, scenario: str = "sat") -> list[Record]:
    """Trials of 1 MB that took so long; None: the trial failed."""
    return [
        fake_run.change(
            fake_run.record("sat", "noq", "noq", number),
            trial=f"{scenario}-{server}-{number}",
            scenario=scenario,
            workload="transfer:1000000",
            size_bytes=10**6,
            server=server,
            outcome="ok" if took else "transfer_timeout",
            detail="" if took else "nothing came",
            completion_s=took,
        )
        for number, took in enumerate(seconds, 1)
    ]


def page(bentpipe: Command, *records: list[Record]) -> str:
    fake_run.write(Path("run"))
    fake_run.write_records(Path("run"), [one for some in records for one in some])
    done = bentpipe("study", "sender", "--run", "run", "--run", "run", "-o", "out")
    assert done.code == 0, done.err
    return Path("out/sender.md").read_text()


def front(text: str) -> str:
    return " ".join(text.partition("## What was run")[0].split())


@pytest.fixture
def ours() -> list[Record]:
    return trials("noq:cc=bentpipe", 2.0, 2.02, 1.98)


def test_who_is_faster_beyond_chance(bentpipe: Command, ours: list[Record]) -> None:
    text = page(
        bentpipe,
        ours,
        trials("quinn", 4.0, 4.04, 3.96),
        trials("picoquic:cc=c4", 1.0, 1.01, 0.99),
        trials("noq", 1.5, 3.0, 2.2),
    )
    begin = front(text)
    assert "every other sender in 0 of 1 setting of path and size and another one takes less in 1." in begin
    assert "takes 0.50 (0.49 to 0.51) times (picoquic:cc=c4, 1 MB over sat) its time." in begin
    assert "| quinn | 1 | 0 | 0 | 0 |" in text and "| noq | 0 | 0 | 1 | 0 |" in text
    assert "| sat | 1 MB | picoquic:cc=c4 | 0.50 (0.49 to 0.51) | 2.00 | 1.00 |" in text
    assert "| 1.07 (0.45 to 2.54) | **2.00 (1.96 to 2.05)** | **0.50 (0.49 to 0.51)** |" in text


SHORT = "goodput"  # with an RTT of 30 ms


def test_title_and_advice_are_by_rtt(bentpipe: Command, ours: list[Record]) -> None:
    text = page(
        bentpipe,
        ours,
        trials("quinn", 4.0, 4.04, 3.96),
        trials("noq:cc=bentpipe", 2.0, 2.02, 1.98, scenario=SHORT),
        trials("quinn", 1.0, 1.01, 0.99, scenario=SHORT),
    )
    title = "# Bentpipe's sender is fastest in 1 of 1 setting with RTTs from 100 ms on, in 0 of 1 below\n"
    assert text.startswith(title)
    begin = front(text)
    assert "- Over paths with an RTT of 100 ms or more use `noq:cc=bentpipe` where it is alone" in begin
    assert "below 100 ms compare other senders: one is faster in 1 of 1 setting, most often quinn." in begin
    assert "| RTT below 100 ms | 1 MB | 0 | 0 | 0 | 1 | 0 |" in text
    assert "![The time of the fastest other sender / Bentpipe's, by path and size" in begin


def test_less_than_2_percent_is_equal_and_leads_nowhere(bentpipe: Command, ours: list[Record]) -> None:
    """Whatever chance says of the difference, as where nothing varies."""
    text = page(bentpipe, trials("noq:cc=bentpipe", 2.0, 2.0, 2.0), trials("quinn", 2.02, 2.02, 2.02))
    assert "| quinn | 0 | 1 | 0 | 0 |" in text and "| sat | 2.00 | 1.01 |" in text
    begin = front(text)
    assert begin.startswith("# Bentpipe's sender is fastest in 0 of 1 setting with an RTT of 100 ms or more ")
    assert "What to do with it" not in begin
    # A difference of 3 % in the mean is none if the interval reaches into these 2 %.
    assert "| quinn | 0 | 0 | 1 | 0 |" in page(bentpipe, ours, trials("quinn", 2.02, 2.06, 2.1))


def test_a_cell_with_failures_is_not_compared_and_says_so(bentpipe: Command, ours: list[Record]) -> None:
    text = page(bentpipe, ours, trials("quinn", 4.0, 4.0, None), trials("noq", 2.0, 2.0, 2.0))
    assert "| sat | 2.00 | 1.00 (0.98 to 1.03) | 1 of 3 failed |" in text
    assert "| quinn | 0 | 0 | 0 | 0 |" in text


def test_where_trials_of_ours_fail_the_page_says_who_completes_all(
    bentpipe: Command, ours: list[Record]
) -> None:
    text = page(
        bentpipe,
        ours,
        trials("quinn", 4.0, 4.04, 3.96),
        trials("noq:cc=bentpipe", None, None, 9.0, scenario="satloss"),
        trials("quinn", 8.0, 8.0, 8.0, scenario="satloss"),
    )
    begin = front(text)
    assert begin.startswith(
        "# Bentpipe's sender is fastest in 1 of 2 settings with an RTT of 100 ms or more "
    )
    assert "another one takes less in 0 and in 1 its own trials fail." in begin
    assert "of `noq:cc=bentpipe` 2 of 3 trials fail, and none of quinn." in begin
    assert "Without 1 MB over satloss, where trials of it failed." in begin
    assert "- 1 MB over satloss: 2 of 3 failed; quinn completes all." in text
    assert "| satloss | 2 of 3 failed | 8.00 |" in text


def test_trials_that_do_not_differ_have_no_interval(bentpipe: Command) -> None:
    text = page(bentpipe, trials("noq:cc=bentpipe", 2.0, 2.0), trials("quinn", 3.0, 3.0))
    assert "| sat | 2.00 | **1.50** |" in text and "## Where it is slower" in text


def test_what_it_leaves_to_cubic_stands_beside_its_lead_as_the_linked_page_shows_it(
    bentpipe: Command, ours: list[Record]
) -> None:
    begin = front(page(bentpipe, ours, trials("quinn", 4.0, 4.04, 3.96)))
    assert (
        "Beside `noq:cc=bentpipe` a flow of CUBIC gets little of a link whose queue is short: [the" in begin
    )
    assert "](../fairness/fairness-tcp.md)" in begin
    with (Path(__file__).parents[1] / "fairness" / "fairness-tcp.csv").open() as file:
        rows = [one for one in csv.DictReader(file) if one["scenario"] == "sat,forward.queue=25packets"]
    beside = "server={},start=1s"
    for cubic in ("noq:cc=cubic", "linux:cc=cubic"):
        left = [
            100 - float(one["first_share_percent_low"])
            for one in rows
            if one["server"] == "noq:cc=bentpipe" and one["workload"].endswith(beside.format(cubic))
        ]
        left += [
            float(one["first_share_percent_high"])
            for one in rows
            if one["server"] == cubic and one["workload"].endswith(beside.format("noq:cc=bentpipe"))
        ]
        assert len(left) == 2 and max(left) < 25, cubic


def test_other_runs_are_refused(bentpipe: Command) -> None:
    fake_run.write(Path("run"))
    done = bentpipe("study", "sender", "--run", "run", "--run", "run", "-o", "out")
    assert done.code != 0 and "noq:cc=bentpipe" in done.err


def test_seconds_lead_to_their_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ours: list[Record]
) -> None:
    """A ratio is of two cells, and leads nowhere."""
    monkeypatch.chdir(tmp_path)
    theirs = trials("picoquic:cc=c4", 1.0, 1.01, 0.99)
    fake_run.write(Path("run"))
    fake_run.write_records(Path("run"), [*ours, *theirs])
    found = study_marks.leading("sender", ["--run", "run", "--run", "run"])
    here, other = (RunCell(Path("run"), one[0].cell_key) for one in (ours, theirs))
    assert found["2.00"] == [here, here] and found["1.00"] == [other]
    assert not any("0.50" in text for text in found)
