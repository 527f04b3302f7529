"""`bentpipe study media`: the page on media, from made-up runs."""

from __future__ import annotations

from pathlib import Path

import fake_run
import pytest
import study_marks
from conftest import Command

from bentpipe.analysis.trial_marks import RunCell
from bentpipe.runs.records import Record


def trial(workload: str, iteration: int, **values: object) -> Record:
    made = fake_run.record("sat", "noq", "noq", iteration)
    good = {"workload": workload, "treatment": "direct", "outcome": "ok", "detail": "",
            "trial": f"{workload}{iteration}"}  # fmt: skip
    return fake_run.change(made, **(good | values))


CAMPAIGNS = ("media-live-geo", "media-live-leo", "media-frames-geo", "media-frames-leo")


def runs(records: list[Record]) -> list[str]:
    """Words for the study's four runs, of which the first has the records."""
    first, *others = CAMPAIGNS
    other = [trial("transfer:1000", 1)]
    words = fake_run.write_campaign(first, records)
    return words + [word for name in others for word in fake_run.write_campaign(name, other)]


def page(bentpipe: Command, records: list[Record]) -> str:
    return bentpipe.page("media", *runs(records))


def test_streams_and_frames_have_tables(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    stream = {"startup_s": 2.0, "stalls": 1, "rate_changes": 1, "latency_s": 9.0, "media_rate_bps": 3e6}
    seen = {"frames": 900, "late_frames": 9, "lost_frames": 0, "frame_age_median_s": 0.3101,
            "frame_age_p95_s": 0.32, "frame_age_p99_s": 0.4}  # fmt: skip
    records = [
        trial("live:60s:h3", 1, stalled_s=1.0, **stream),
        trial("live:60s:h3", 2, stalled_s=3.0, **stream),
        trial("live:60s:h3", 3, outcome="transfer_timeout"),
        trial("frames:30s:datagrams:400ms", 1, **seen),
        trial("frames:30s:datagrams:400ms", 2, **seen),
        trial("frames:30s:datagrams:400ms", 3, **seen | {"frame_age_p99_s": None}),
        trial("frames:30s:streams:400ms", 1, **seen),
        trial("frames:30s:streams:400ms", 2, **seen | {"frame_age_p99_s": None}),
    ]
    text = page(bentpipe, records)
    row = "| HTTP/3 | noq → noq, 1 failed | 2.00 | 1 | 2.00 (1.00 to 3.00) | 3.00 | 9.00 |"
    assert row in text
    assert "| datagrams, 400ms | noq → noq | 1.00 | 0.00 | 310 | 320 | 400 |" in text
    assert "| streams, 400ms | noq → noq | 1.00 | 0.00 | 310 | 320 | - |" in text
    assert "transfer_timeout" in text


def live(server: str, treatment: str, stalls_s: tuple[float, ...]) -> list[Record]:
    """Trials of a stream of a minute that stalls for these times."""
    return [
        trial("live:60s:h3", number, server=server, treatment=treatment, stalled_s=stalled,
              trial=f"{server}{treatment}{number}", seed=f"{server}{treatment}{number}")
        for number, stalled in enumerate(stalls_s, start=1)
    ]  # fmt: skip


PROXY = "quic-pep=terminal:cc=cubic,gateway:cc=cubic"
SMOOTH = "noq:cc=bentpipe"


def front(text: str) -> str:
    return " ".join(text.partition("## What was run")[0].split())


def test_title_answer_and_advice_are_of_the_run(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    records = [*live("noq", "direct", (27.0, 28.0, 29.0)), *live("noq", PROXY, (37.0, 38.0, 39.0))]
    records += [*live(SMOOTH, "direct", (0.0, 0.0, 0.0)), *live(SMOOTH, PROXY, (9.0, 30.0, 31.0))]
    text = page(bentpipe, records)
    title = "# Over sat a live stream stalls 28 s (26 to 30) with noq, 0 s with noq:cc=bentpipe\n"
    assert text.startswith(title)
    begin = front(text)
    assert "stalls for 28.0 s (25.5 to 30.5) with noq and 0.0 s with noq:cc=bentpipe." in begin
    assert "- For live streams: noq:cc=bentpipe, which stall in no trial over any path." in begin
    # The other one's interval with proxies, from 0 to 54 s, holds that without.
    assert "- Behind proxies these stall longer than without: noq over sat." in begin
    assert "![What a viewer misses, with intervals](media.svg)" in begin
    assert len(Path("out/media.csv").read_text().splitlines()) == 1 + 4


def test_without_a_difference_there_is_no_advice_and_of_what_failed_no_mean(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    failed = trial("live:60s:h3", 9, server=SMOOTH, outcome="transfer_timeout", seed="f", trial="f")
    records = [*live("noq", "direct", (27.0, 28.0, 29.0)), *live(SMOOTH, "direct", (0.0, 0.0)), failed]
    text = page(bentpipe, records)
    assert text.startswith("# Over sat a live stream stalls 28 s (26 to 30) with noq; 1 of 6 trials failed\n")
    assert "Over sat, where 1 of 6 trials failed, a live stream of 60 s stalls for" in front(text)
    assert "## What to do with it" not in text


def over(scenario: str, records: list[Record]) -> list[Record]:
    return [
        fake_run.change(one, scenario=scenario, trial=f"{scenario}{one.trial}", seed=f"{scenario}{one.seed}")
        for one in records
    ]


def test_a_path_with_failed_trials_is_not_ranked_and_they_are_counted(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lossy, calm = "sat,forward.loss=1%", "sat,forward.loss=0.1%"
    hard = over(lossy, [*live("noq", "direct", (50.0, 51.0)), *live(SMOOTH, "direct", (9.0, 9.0))])
    hard[-1] = fake_run.change(hard[-1], outcome="transfer_timeout", stalled_s=None)
    records = [*live("noq", "direct", (27.0, 28.0, 29.0)), *live(SMOOTH, "direct", (0.0, 1.0, 0.0)), *hard]
    records += over(calm, [*live("noq", "direct", (1.0, 3.0, 0.0)), *live(SMOOTH, "direct", (0.0, 0.0, 0.0))])
    begin = front(page(bentpipe, records))
    assert "Over sat, where it is hardest of the paths without failed trials, a live stream" in begin
    assert "over the other paths without failed trials for 1.3 s (0.0 to 5.1) at most" in begin
    assert "at most; over sat at 1 % of loss 1 of 4 trials failed." in begin


def frames(server: str, label: str, late: tuple[int | None, ...]) -> list[Record]:
    """Trials of 900 frames of which so many come late."""
    return [
        trial(label, number, server=server, frames=900, late_frames=count, lost_frames=0,
              trial=f"{server}{label}{number}", seed=f"{server}{label}{number}")
        for number, count in enumerate(late, start=1)
    ]  # fmt: skip


def test_deadlines_are_not_mixed_and_unknown_frames_are_not_in_time(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    soon, later = "frames:30s:datagrams:400ms", "frames:30s:datagrams:2000ms"
    lossy = "sat,forward.loss=1%"
    records = [*frames("noq", soon, (450, 450)), *frames("noq", later, (0, 0))]
    # Over both deadlines the other path is worse in the mean, and at the short one it is better.
    records += over(lossy, [*frames("noq", soon, (90, 90)), *frames("noq", later, (900, 900))])
    text = page(bentpipe, records)
    assert text.startswith("# Over sat 50 % of frames come within 400 ms with noq\n")
    records = [
        *frames("noq", soon, (0, None)),
        *frames(SMOOTH, soon, (0, 0)),
        *frames("quinn", soon, (90, 90)),
    ]
    begin = front(page(bentpipe, records))
    assert f"- For frames with a deadline: {SMOOTH}, with at least 99 % in time in every" in begin


def test_a_quiet_path_with_failed_trials_is_not_called_quiet(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    quiet = over("sat,forward.loss=0.1%", live("noq", "direct", (0.0, 0.0, 0.0)))
    quiet += over("sat,forward.loss=0.1%", live(SMOOTH, "direct", (0.0, 0.0)))
    quiet[-1] = fake_run.change(quiet[-1], outcome="transfer_timeout", stalled_s=None)
    begin = front(page(bentpipe, [*live("noq", "direct", (27.0, 28.0, 29.0)), *quiet]))
    assert "everywhere" not in begin
    assert "Less where all trials succeeded: sat at 0.1 % of loss: stalled (1 of 5 trials failed)." in begin


def test_runs_of_something_else_are_refused(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = bentpipe("study", "media", *runs([trial("transfer:1000", 1)]), "-o", "out")
    assert done.code != 0
    assert "neither live streams nor frames" in done.err


def test_what_is_seen_leads_to_its_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seen = {"frames": 900, "late_frames": 9, "lost_frames": 0, "frame_age_median_s": 0.3101,
            "frame_age_p95_s": 0.32, "frame_age_p99_s": 0.4}  # fmt: skip
    records = [trial("frames:30s:datagrams:400ms", number, **seen) for number in (1, 2)]
    found = study_marks.leading("media", runs(records))
    assert found["310"] == found["400"] == [RunCell(Path("media-live-geo"), records[0].cell_key)]
    assert not any("noq" in text for text in found)
