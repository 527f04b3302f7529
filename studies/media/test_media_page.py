"""`bentpipe study media`: the page on media, from made-up runs."""

from __future__ import annotations

from pathlib import Path

import fake_run
import pytest
from conftest import Command

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


def test_runs_of_something_else_are_refused(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = bentpipe("study", "media", *runs([trial("transfer:1000", 1)]), "-o", "out")
    assert done.code != 0
    assert "neither live streams nor frames" in done.err
