"""`bentpipe study sender`, from made-up runs."""

from __future__ import annotations

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
    assert "less time than another sender in 1 of 3 comparisons, more in 1;" in text
    assert "In 0 of 1 settings" in text
    assert "| quinn | 1 | 0 | 0 |" in text and "| noq | 0 | 1 | 0 |" in text
    assert "| sat | 1 MB | picoquic:cc=c4 | 0.50 (0.49 to 0.51) | 2.00 | 1.00 |" in text
    assert "| 1.07 (0.45 to 2.54) | **2.00 (1.96 to 2.05)** | **0.50 (0.49 to 0.51)** |" in text


def test_a_cell_with_failures_is_not_compared_and_says_so(bentpipe: Command, ours: list[Record]) -> None:
    text = page(bentpipe, ours, trials("quinn", 4.0, 4.0, None), trials("noq", 2.0, 2.0, 2.0))
    assert "| sat | 2.00 | 1.00 (0.98 to 1.03) | 1 failed |" in text
    assert "in 0 of 1 comparison," in text


def test_trials_that_do_not_differ_have_no_interval(bentpipe: Command) -> None:
    text = page(bentpipe, trials("noq:cc=bentpipe", 2.0, 2.0), trials("quinn", 3.0, 3.0))
    assert "| sat | 2.00 | **1.50** |" in text and "## Where it is slower" in text


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
