"""A run that is continued: what is kept, what is run again, which traces are there.

The simulator is `fake_sim.py`.
"""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import fake_run
import pytest
from children import PATIENCE_S, wait_for
from conftest import STACKS, TOY_RUN, Command

from bentpipe.execution.executor import BundleRunner
from bentpipe.execution.jobs import Answer, TrialProcesses
from bentpipe.runs.records import Record, read_jsonl
from bentpipe.runs.run_folder import RunFolder
from bentpipe.schema.bundle import Bundle

pytestmark = pytest.mark.usefixtures("fake_sim")


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def stored(folder: Path) -> list[Record]:
    return list(read_jsonl(folder / "records.jsonl"))


def test_a_resumed_run_keeps_what_is_finished(
    bentpipe: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = bentpipe(*TOY_RUN, "--iterations", "6", "--trace", "none", "--out", "A", "--json").records()
    lines = Path("A/records.jsonl").read_text().splitlines(keepends=True)
    # As if the process had died while it wrote the fourth record.
    Path("A/records.jsonl").write_text("".join(lines[:3]) + lines[3][:40])
    log = tmp_path / "log"
    monkeypatch.setenv("FAKE_SIM", "log")
    monkeypatch.setenv("FAKE_SIM_LOG", str(log))
    done = bentpipe("run", "--resume", "A", "--no-report", "--json")
    assert done.code == 0, done.err
    assert done.records() == whole
    assert len(log.read_text().splitlines()) == 3
    assert Path("A/records.jsonl").read_text().startswith("".join(lines[:3]))
    assert len(stored(Path("A"))) == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seed", "8"], "seed: the run has 20260401, now it is 8"),
        (["--iterations", "3"], "iterations: the run has 2, now it is 3"),
        (["--scenario", "satloss"], "scenarios: the run has ['sat'], now it is ['satloss']"),
        (["--bytes", "2kB"], "workloads: the run has ['transfer:1000'], now it is ['transfer:2000']"),
        (["demo"], "scenarios: the run has ['sat'], now it is ['goodput', 'leo-tum', 'sat']"),
    ],
)
def test_resuming_with_another_campaign_is_an_error(
    bentpipe: Command, arguments: list[str], message: str
) -> None:
    bentpipe(*TOY_RUN, "--iterations", "2", "--out", "A")
    before = Path("A/records.jsonl").read_text()
    done = bentpipe("run", "--resume", "A", *arguments)
    assert done.code == 2
    assert message in done.err
    assert Path("A/records.jsonl").read_text() == before


def test_resuming_with_the_same_campaign_is_none(bentpipe: Command) -> None:
    bentpipe(*TOY_RUN, "--iterations", "2", "--out", "A")
    done = bentpipe(*TOY_RUN, "--iterations", "2", "--resume", "A")
    assert done.code == 0, done.err


def test_a_run_from_before_there_was_a_choice_keeps_its_draws(bentpipe: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        'scenarios = ["sat"]\nclients = ["toy"]\nservers = ["toy"]\nworkloads = ["transfer:1kB"]\n'
        "iterations = 2\n"
    )
    again = ("run", str(tmp_path / "mine.toml"), "--stacks", str(STACKS))

    def seeds(run: str) -> list[str]:
        return sorted(
            json.loads(line)["seed"] for line in Path(run, "records.jsonl").read_text().splitlines()
        )

    for run in ("A", "B"):
        assert bentpipe(*again, "--draws", "independent", "--out", run).code == 0
    with fake_run.changed_manifest(Path("A")) as values:
        del values["options"]["draws"]
    first, _ = Path("A/records.jsonl").read_text().splitlines()
    Path("A/records.jsonl").write_text(f"{first}\n")
    done = bentpipe(*again, "--resume", "A")
    assert done.code == 0, done.err
    assert seeds("A") == seeds("B")


def test_resuming_what_is_no_run_is_an_error(bentpipe: Command, tmp_path: Path) -> None:
    done = bentpipe("run", "--resume", tmp_path)
    assert done.code == 1 and "is no run" in done.err
    (tmp_path / "manifest.json").write_text('{"campaign": 1}')
    done = bentpipe("run", "--resume", tmp_path)
    assert done.code == 1 and "manifest.json: campaign: 1 is not valid" in done.err and "hint: " in done.err


def test_a_run_in_progress_cannot_be_resumed(bentpipe: Command) -> None:
    bentpipe(*TOY_RUN, "--iterations", "1", "--out", "A")
    folder, _ = RunFolder.reopen(Path("A"))
    done = bentpipe("run", "--resume", "A")
    folder.close()
    assert done.code == 1 and "A is in use by another bentpipe" in done.err


def test_a_resumed_run_knows_its_stacks(
    bentpipe: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    text = (STACKS / "toy" / "stack.toml").read_text().replace('"toy"', '"mine"', 1)
    (own / "stack.toml").write_text(text.replace("{folder}", str(STACKS / "toy")))
    first = bentpipe(
        *TOY_RUN, "--client", "mine", "--stacks", "own", "--iterations", "2", "--out", "A", "--json"
    )
    assert first.code == 0, first.err
    assert json.loads(Path("A/manifest.json").read_text())["stack_folders"] == [str(STACKS), str(own)]
    Path("A/records.jsonl").write_text(Path("A/records.jsonl").read_text().splitlines()[0] + "\n")
    monkeypatch.delenv("BENTPIPE_STACKS")
    resumed = bentpipe("run", "--resume", "A", "--no-report", "--json")
    assert resumed.records() == first.records(), resumed.err


@pytest.mark.parametrize("how", ["unsupported", "broken"])
def test_a_finished_run_has_nothing_left_to_resume(
    bentpipe: Command, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setenv("FAKE_SIM", how)
    bentpipe(*TOY_RUN, "--iterations", "3", "--trace", "median", "--out", "A")
    before = Path("A/records.jsonl").read_text()
    done = bentpipe("run", "--resume", "A", "--no-report")
    assert "0 trials to run" in done.err
    assert Path("A/records.jsonl").read_text() == before


def test_a_trial_that_is_queued_late_is_counted(
    bentpipe: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A retried trial makes another the median, whose trace is gone: both are shown as work."""
    monkeypatch.setenv("FAKE_SIM", "flaky")
    monkeypatch.setenv("FAKE_SIM_HEALED", str(tmp_path / "healed"))
    first = bentpipe(*TOY_RUN, "--iterations", "8", "--out", "A", "--trace", "median", "--json").records()
    bad = sum(record["outcome"] == "crashed" for record in first)
    (traced,) = Path("A/trials").iterdir()
    traced.rename(tmp_path / "gone")
    (tmp_path / "healed").touch()
    monkeypatch.setenv("FAKE_SIM", "log flaky")
    monkeypatch.setenv("FAKE_SIM_LOG", str(tmp_path / "log"))
    done = bentpipe("run", "--resume", "A", "--retry-failed", "--no-report")
    executed = len((tmp_path / "log").read_text().splitlines())
    assert f"{bad} trials to run" in done.err
    assert f"\n{executed}/{executed} trials, " in done.err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"campaign": None}, 'the key "campaign" is missing'),
        ({"scenarios": []}, "scenarios: [] is not valid"),
        ({"scenarios": {}}, 'scenarios: the scenario "sat" is missing'),
        ({"options": {}}, 'the key "options.name" is missing'),
        ({"left_out": 1}, "left_out: 1 is not valid"),
        ({"surplus": 1}, 'unknown key "surplus"'),
    ],
)
def test_a_damaged_manifest_is_said(bentpipe: Command, change: dict[str, object], message: str) -> None:
    bentpipe(*TOY_RUN, "--iterations", "1", "--out", "A")
    values = json.loads(Path("A/manifest.json").read_text()) | change
    Path("A/manifest.json").write_text(json.dumps({k: v for k, v in values.items() if v is not None}))
    done = bentpipe("run", "--resume", "A")
    assert done.code == 1 and f"error: A/manifest.json: {message}" in done.err and "hint: " in done.err


def test_a_broken_record_is_said(bentpipe: Command) -> None:
    bentpipe(*TOY_RUN, "--iterations", "2", "--out", "A")
    lines = Path("A/records.jsonl").read_text().splitlines()
    Path("A/records.jsonl").write_text(f"{lines[0][:30]}\n{lines[1]}\n")
    done = bentpipe("run", "--resume", "A")
    assert (
        done.code == 1 and "records.jsonl:1: not a record" in done.err and "hint: remove the line" in done.err
    )


def test_failed_trials_are_run_again_when_asked_for(
    bentpipe: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAKE_SIM", "flaky")
    monkeypatch.setenv("FAKE_SIM_HEALED", str(tmp_path / "healed"))
    first = bentpipe(*TOY_RUN, "--iterations", "8", "--out", "A", "--json").records()
    bad = [record["trial"] for record in first if record["outcome"] == "crashed"]
    assert 0 < len(bad) < 8  # a failed iteration hides no other
    (tmp_path / "healed").touch()
    resumed = bentpipe("run", "--resume", "A", "--no-report", "--json")
    assert "0 trials to run" in resumed.err
    still = resumed.records()
    assert [record["outcome"] for record in still] == [record["outcome"] for record in first]
    healed = bentpipe("run", "--resume", "A", "--retry-failed", "--no-report", "--json")
    assert {record["outcome"] for record in healed.records()} == {"ok"}
    assert len(stored(Path("A"))) == 8


def test_the_median_of_a_cell_gets_a_trace(bentpipe: Command) -> None:
    records = bentpipe(*TOY_RUN, "--iterations", "3", "--trace", "median", "--out", "A", "--json").records()
    median = sorted(records, key=lambda record: record["goodput_bps"])[1]
    assert names(Path("A/trials")) == [median["trial"]]


def test_a_trace_lost_with_the_process_is_made_when_resumed(bentpipe: Command) -> None:
    bentpipe(*TOY_RUN, "--iterations", "3", "--trace", "median", "--out", "A")
    (traced,) = Path("A/trials").iterdir()
    traced.rename(traced.with_name(f"{traced.name}.partial"))
    assert bentpipe("run", "--resume", "A", "--no-report").code == 0
    assert list(Path("A/trials").iterdir()) == [traced]


def test_the_median_has_a_trace_after_others_were_retried(
    bentpipe: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAKE_SIM", "flaky")
    monkeypatch.setenv("FAKE_SIM_HEALED", str(tmp_path / "healed"))
    bentpipe(*TOY_RUN, "--iterations", "5", "--trace", "median", "--out", "A")
    (tmp_path / "healed").touch()
    done = bentpipe("run", "--resume", "A", "--retry-failed", "--no-report", "--json")
    goodputs = sorted((record["goodput_bps"], record["trial"]) for record in done.records())
    assert names(Path("A/trials")) == [goodputs[2][1]]


def test_every_trial_can_leave_a_trace(bentpipe: Command) -> None:
    bentpipe(*TOY_RUN, "--iterations", "3", "--trace", "all", "--out", "A")
    assert len(names(Path("A/trials"))) == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_can_be_resumed(
    bentpipe: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: signal.Signals
) -> None:
    monkeypatch.setenv("FAKE_SIM", "slow log")
    monkeypatch.setenv("FAKE_SIM_LOG", str(tmp_path / "log"))
    arguments = [*TOY_RUN, "--server", "toy,toy:speed=slow", "--iterations", "2", "--jobs", "1", "--out", "A"]
    process = subprocess.Popen(
        [sys.executable, "-m", "bentpipe", *arguments], stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    wait_for("a slow trial", lambda: "speed-slow" in _text(tmp_path / "log").replace("=", "-"))
    process.send_signal(number)
    process.send_signal(number)  # a second one does no harm
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "interrupted: 2 of 4 trials are done" in err
    assert "resume with: bentpipe run --resume A" in err and "Traceback" not in err
    finished = stored(tmp_path / "A")
    assert [record.server for record in finished] == ["toy", "toy"]
    monkeypatch.setenv("FAKE_SIM", "log")
    done = bentpipe("run", "--resume", "A", "--no-report", "--json")
    assert [record["server"] for record in done.records()] == ["toy"] * 2 + ["toy:speed=slow"] * 2
    assert stored(tmp_path / "A")[:2] == finished


def test_a_trial_that_a_stop_overtakes_has_no_record(
    bentpipe: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It was handed out, and is not to be begun any more."""
    begin, begun, main = BundleRunner.run, [], threading.get_ident()

    def overtaken(self: BundleRunner, bundle: Bundle, folder: Path, processes: TrialProcesses) -> Answer:
        begun.append(folder)
        if len(begun) == 2:
            signal.pthread_kill(main, signal.SIGINT)
            wait_for("the stop", self._stopped)
        return begin(self, bundle, folder, processes)

    monkeypatch.setattr(BundleRunner, "run", overtaken)
    done = bentpipe(*TOY_RUN, "--iterations", "4", "--jobs", "1", "--out", "A")
    assert done.code == 130 and "interrupted: 1 of 4 trials are done" in done.err
    assert "note:" not in done.err
    assert [record.outcome for record in stored(tmp_path / "A")] == ["ok"]


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
