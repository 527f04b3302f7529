"""`bentpipe study visits`: the page on visits, from made-up runs."""

from __future__ import annotations

from pathlib import Path

import fake_run
import pytest
import study_marks
from conftest import Command

from bentpipe.analysis.trial_marks import RunCell
from bentpipe.runs.records import Record

CAMPAIGNS = ("visits-quic", "visits-tcp")


def trial(workload: str, plt_s: float | None, client: str = "noq") -> Record:
    made = fake_run.record("sat", client, client, 1)
    outcome = "transfer_timeout" if plt_s is None else "ok"
    return fake_run.change(
        made, workload=workload, treatment="direct", outcome=outcome, detail="", trial=f"{workload}{client}",
        rs_s=1.0, plt_s=plt_s,
    )  # fmt: skip


def runs(records: list[Record]) -> list[str]:
    """Words for the study's two runs, of which the first has the records."""
    quic, tcp = CAMPAIGNS
    return [
        *fake_run.write_campaign(quic, records),
        *fake_run.write_campaign(tcp, [trial("page:kuhn-b:h2", 2.0)]),
    ]


def test_later_visits_stand_beside_the_first(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    records = [
        trial("page:kosek:h3", 5.0),
        trial("page:kosek:h3:early", 4.25),
        trial("page:kosek:h3:early-cached", 1.5),
        trial("page:kosek:h3:resumed", None),
        trial("page:kosek:h3", 9.0, client="quinn"),
    ]
    text = bentpipe.page("visits", *runs(records))
    row = "| kosek | 75 / 1 | 3 | noq → noq | 1.00 / 5.00 | - / - (1) | 1.00 / 4.25 |  | 1.00 / 1.50 |"
    assert row in text
    assert "| kosek | 75 | 3 | quinn → quinn | 1.00 / 9.00 |  |  |  |  |" in text
    assert "transfer_timeout" in text


def front(text: str) -> str:
    """What stands above the first section on what was run, on one line."""
    return " ".join(text.partition("## What was run")[0].split())


SAVING = [
    trial("page:kosek:h3", 5.0),
    trial("page:kosek:h3:resumed", 4.95),
    trial("page:kosek:h3:early", 4.45),
    trial("page:kosek:h3:resumed-cached", 1.95),
    trial("page:kosek:h3:early-cached", 1.45),
]


def test_title_and_answer_have_what_each_step_saves(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    other = [trial("page:kosek:h3", 9.0, "quinn"), trial("page:kosek:h3:resumed", 8.9, "quinn")]
    text = bentpipe.page("visits", *runs([*SAVING, *other]))
    title = "# Over sat a ticket saves HTTP/3 pages 0.05 to 0.10 s, early data 0.50 s, a cache 3.00 s\n"
    assert text.startswith(title)
    begin = front(text)
    assert "where pages take 5.00 to 9.00 s on a first visit, a ticket saves 0.05 to 0.10 s, early" in begin
    assert "HTTP/2" not in begin, "it has no later visit"
    assert "![Page load time on later visits, by page and pair](visits.svg)" in begin
    assert "early data shortens a page by more than 5 % in 1 of 1 setting, and lengthens" in begin
    assert "- Do not count on a ticket alone: it keeps a page's time within 5 % in all 2 settings." in begin
    row = "| sat | kosek | HTTP/3 | noq → noq | 1 trial | 0.99; 0.05 s | 0.90; 0.50 s | 0.39; 3.00 s |"
    assert row in text


def test_a_setting_of_which_every_trial_failed_is_counted_and_shown(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    failing = {"page:kosek:h3:resumed", "page:kosek:h3:early"}
    others = [
        fake_run.change(
            trial(one.workload, None if one.workload in failing else one.plt_s, "quinn"), rs_s=None
        )
        for one in SAVING
    ]
    text = bentpipe.page("visits", *runs([*SAVING, *others]))
    begin = front(text)
    assert "early data shortens a page by more than 5 % in 1 of 2 settings, and lengthens" in begin
    assert "- Do not count on a ticket alone: it keeps a page's time within 5 % in 1 of 2 settings." in begin
    row = next(one for one in text.splitlines() if one.startswith("| kosek | 75 / 1 | 3 | quinn → quinn |"))
    assert row.count("- / - (1)") == 2


def test_advice_follows_the_rule_of_5_percent(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    changed = {"page:kosek:h3:resumed": 4.7, "page:kosek:h3:early": 4.5, "page:kosek:h3:resumed-cached": 5.0}
    records = [fake_run.change(one, plt_s=changed.get(one.workload, one.plt_s)) for one in SAVING]
    begin = front(bentpipe.page("visits", *runs(records)))
    # A ticket saves 6 %, early data 4 %, and the cache costs 6 %.
    assert "## What to do with it" not in begin


def test_a_single_trial_over_a_path_with_loss_shows_nothing(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lossy = [fake_run.change(one, scenario="satloss") for one in SAVING]
    text = bentpipe.page("visits", *runs(lossy))
    assert "## What to do with it" not in text
    assert text.startswith(
        "# Pages on first and later visits: too few trials succeeded to tell what they save"
    )


def test_several_trials_have_an_interval(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    each = [("page:kosek:h3", (5.0, 5.2)), ("page:kosek:h3:resumed", (4.0, 6.0))]
    records = [
        fake_run.change(trial(workload, time), iteration=number, seed=f"{number}")
        for workload, times in each
        for number, time in enumerate(times, start=1)
    ]
    text = bentpipe.page("visits", *runs(records))
    assert "| 2 trials | 0.96 (0.08 to 11.45); 0.10 (-12.09 to 12.29) s |" in text
    assert text.startswith("# Over sat a ticket saves HTTP/3 pages 0.10 (-12.09 to 12.29) s\n")
    assert "Do not count on a ticket" not in text


def test_a_path_with_a_long_label_has_a_title(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = "sat,forward.delay=300ms,return.delay=300ms,forward.rate=20Mbit/s,return.rate=2Mbit/s"
    records = [
        fake_run.change(one, scenario=path, iteration=number, seed=f"{number}", trial=f"{number}{one.trial}")
        for one in SAVING
        for number in (1, 2)
    ]
    text = bentpipe.page("visits", *runs(records))
    assert text.startswith("# Later visits save HTTP/3 pages at most 3.00 s over the longest of the paths\n")


def test_browsers_in_real_time_are_in_no_sentence(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    real = [fake_run.change(one, testbed="emu", client="firefox", plt_s=9.0) for one in SAVING]
    failed = fake_run.change(
        real[1], iteration=2, trial="failed", seed="2", outcome="unproven", plt_s=None, rs_s=None
    )
    text = bentpipe.page("visits", *runs([*SAVING, *real, failed]))
    begin = front(text)
    assert "where pages take 5.00 s on a first visit, a ticket saves 0.05 s" in begin
    assert "firefox are in real time, with intervals." not in begin.partition("![")[0]
    assert "in virtual time 1 trial with noq as the client; in real time 1 to 2 trials with firefox" in (
        " ".join(text.split())
    )
    assert "| 1.00 / 9.00 (1) |" in text, "one of its trials failed"
    assert "| sat | kosek | HTTP/3 | firefox → noq | 1 to 2 trials |  |  | 1.00; 0.00 s |" in text


def test_runs_without_later_visits_are_refused(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = bentpipe("study", "visits", *runs([trial("page:kosek:h3", 5.0)]), "-o", "out")
    assert done.code != 0 and "no pages on later visits" in done.err


def test_times_lead_to_their_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    records = [trial("page:kosek:h3", 5.0), trial("page:kosek:h3:early", 4.25)]
    found = study_marks.leading("visits", runs(records))
    first, early = (RunCell(Path("visits-quic"), one.cell_key) for one in records)
    assert found["1.00 / 5.00"] == [first] and found["1.00 / 4.25"] == [early]
