"""`bentpipe run` around the simulator: records, resuming, traces, errors. The simulator is `fake_sim.py`
here.
"""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from conftest import STACKS, TOY_RUN, Command

from bentpipe import run as running
from bentpipe.errors import UsageError
from bentpipe.pause import Pause
from bentpipe.records import Record, read_jsonl
from bentpipe.run_folder import RunFolder
from bentpipe.workload import www_file

pytestmark = pytest.mark.usefixtures("fake_sim")


def hashes(records: list[dict[str, object]]) -> list[object]:
    return [record["packet_log_sha256"] for record in records]


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def stored(folder: Path) -> list[Record]:
    return list(read_jsonl(folder / "records.jsonl"))


def test_json_prints_the_records_in_order_and_nothing_else(bentpipe: Command, tmp_path: Path) -> None:
    done = bentpipe(
        *TOY_RUN, "--iterations", "5", "--jobs", "3", "--shuffle", "--out", tmp_path / "A", "--json"
    )
    assert done.code == 0, done.err
    assert [record["iteration"] for record in done.records()] == [1, 2, 3, 4, 5]
    assert "5 trials, 5 ok" in done.err
    assert sorted(record.iteration for record in stored(tmp_path / "A")) == [1, 2, 3, 4, 5]
    assert pq.read_table(tmp_path / "A" / "records.parquet").num_rows == 5


def test_order_and_parallelism_change_no_seed(bentpipe: Command) -> None:
    one = bentpipe(*TOY_RUN, "--iterations", "4", "--jobs", "1", "--out", "A", "--json")
    two = bentpipe(*TOY_RUN, "--iterations", "4", "--jobs", "4", "--shuffle", "--out", "B", "--json")
    other = bentpipe(*TOY_RUN, "--iterations", "4", "--seed", "8", "--out", "C", "--json")
    assert hashes(one.records()) == hashes(two.records())
    assert not set(hashes(one.records())) & set(hashes(other.records()))


def test_the_summary_is_readable_without_colour(bentpipe: Command) -> None:
    done = bentpipe(*TOY_RUN, "--iterations", "2", "--out", "A")
    assert "sat: " in done.out and " ±" in done.out and "2 trials, 2 ok" in done.out
    assert "\x1b" not in done.out + done.err
    assert max(map(len, done.out.splitlines())) <= 80


def test_one_trial_has_no_deviation(bentpipe: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    done = bentpipe(*TOY_RUN, "--iterations", "1", "--set", "forward.queue=1BDP", "--out", "A")
    assert "±" not in done.out and "\n1 trial, 1 ok" in done.out and "\n1/1 trial," in done.err
    assert "sat,forward.queue=1BDP: changed from " in done.out
    monkeypatch.setenv("FAKE_SIM", "one-flight")
    done = bentpipe(*TOY_RUN, "--iterations", "2", "--out", "B")
    assert "\ntoy                -\n" in done.out and "2 trials, 2 ok" in done.out


def test_the_manifest_says_what_was_run(bentpipe: Command) -> None:
    bentpipe(*TOY_RUN, "--iterations", "1", "--set", "forward.queue = 1 BDP", "--out", "A")
    manifest = json.loads(Path("A/manifest.json").read_text())
    assert manifest["options"]["iterations"] == 1
    assert list(manifest["scenarios"]) == ["sat,forward.queue=1BDP"]
    assert manifest["scenarios"]["sat,forward.queue=1BDP"]["summary"]["rtt_ms"] == 600.0
    assert manifest["stacks"]["toy"]["deterministic"] is True
    assert manifest["versions"]["stacks"] == {"toy": "toy 1"}
    assert manifest["started"] <= manifest["finished"]
    assert manifest["contract_breaches"] == {}


def test_a_folder_that_is_not_empty_is_left_alone(bentpipe: Command, tmp_path: Path) -> None:
    (tmp_path / "A").mkdir()
    (tmp_path / "A" / "mine.txt").write_text("keep")
    done = bentpipe(*TOY_RUN, "--out", "A")
    assert done.code == 2
    assert "error: --out: A exists already and is not empty" in done.err
    assert "--resume A" in done.err
    assert names(tmp_path / "A") == ["mine.txt"]


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        (["--scenario", "satt"], 'unknown scenario "satt"', 'did you mean "sat'),
        (["--scenario", "none.toml"], "none.toml: there is no such scenario file", ""),
        (["--client", "quin"], 'unknown stack "quin"', "--stacks"),
        (["--scenario", ""], '--scenario: "" has an empty name', "NAME,NAME"),
        (["--client", ""], '--client: "" has an empty name', "NAME,NAME"),
        (["--server", "toy,,toy"], '--server: "toy,,toy" has an empty name', "NAME,NAME"),
        (["--out", ""], "Invalid value for '--out'", ""),
        (["--pause-between", ""], "--pause-between", "HH:MM-HH:MM"),
        (["--bytes", "99999999999999999999"], "--bytes: a file of 93132257461.5 GiB", "TMPDIR"),
        (["--qlog", "--trace", "none"], "--qlog: there is no trace", "--trace median"),
        (["--resume", "nowhere"], "nowhere: there is no such folder", ""),
        (["--out", "/dev/null"], "--out: /dev/null is not a folder", ""),
        ([""], 'unknown campaign ""', "demo"),
        (["--client", "toy:cc=cubic"], 'toy has no option "cc"', "options of toy: speed"),
        (["--set", "bad=1"], "bad: no such key", ""),
        (["--set", "queue"], '"queue" is no setting', "--set KEY=VALUE"),
        (["--bytes", "10 Mbit"], '--bytes: "10 Mbit" is no size', ""),
        (["--iterations", "0"], "Invalid value for '--iterations'", "bentpipe run --help"),
        (["--trace", "some"], "Invalid value for '--trace'", ""),
        (["--pause-between", "25:00-26:00"], "--pause-between", "HH:MM-HH:MM"),
        (["--retry-failed"], "--retry-failed", "--resume"),
        (["--nonsense"], "No such option", ""),
        (["none.toml"], "none.toml: there is no such file", ""),
        (["demmo"], 'unknown campaign "demmo"', 'did you mean "demo"?'),
    ],
)
def test_usage_errors_start_nothing(
    bentpipe: Command, tmp_path: Path, arguments: list[str], error: str, hint: str
) -> None:
    done = bentpipe(*TOY_RUN, *arguments)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("error: ") and error in done.err and hint in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "runs").exists()


def test_a_missing_simulator_is_named(bentpipe: Command, fake_sim: Path) -> None:
    (fake_sim / "bentpipe-sim").unlink()
    done = bentpipe(*TOY_RUN)
    assert done.code == 1
    assert "bentpipe-sim is not built" in done.err and "make setup" in done.err


def test_a_stack_that_is_not_there_is_left_out_of_a_campaign_file(bentpipe: Command, tmp_path: Path) -> None:
    ghost = tmp_path / "ghost"
    ghost.mkdir()
    text = Path(os.environ["BENTPIPE_STACKS"], "toy", "stack.toml").read_text()
    text = text.replace('"toy"', '"ghost"', 1).replace('"{python}"', '"{folder}/ghost"')
    (ghost / "stack.toml").write_text(text)
    plan = (
        'iterations = 1\nbytes = 1000\nscenarios = ["sat"]\nclients = ["ghost", "toy"]\nservers = ["toy"]\n'
    )
    (tmp_path / "plan.toml").write_text(plan)
    done = bentpipe("run", "plan.toml", "--stacks", ghost, "--out", "A", "--no-report", "--json")
    assert [record["client"] for record in done.records()] == ["toy"]
    assert "left out: ghost cannot be started" in done.err
    assert "ghost" in json.loads(Path("A/manifest.json").read_text())["left_out"]
    resumed = bentpipe("run", "--resume", "A", "--no-report", "--json")
    assert resumed.records() == done.records()
    named = bentpipe(*TOY_RUN, "--client", "ghost", "--stacks", ghost)
    assert named.code == 2 and "ghost is not built" in named.err


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
        (["--bytes", "2kB"], "bytes: the run has 1000, now it is 2000"),
        (["demo"], "scenarios: the run has ['sat'], now it is ['goodput', 'sat', 'satloss']"),
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


def test_resuming_what_is_no_run_is_an_error(bentpipe: Command, tmp_path: Path) -> None:
    done = bentpipe("run", "--resume", tmp_path)
    assert done.code == 1 and "is no run" in done.err
    (tmp_path / "manifest.json").write_text('{"campaign": 1}')
    done = bentpipe("run", "--resume", tmp_path)
    assert done.code == 1 and "manifest.json: campaign: 1 is not valid" in done.err and "hint: " in done.err


def test_a_run_in_progress_cannot_be_resumed(bentpipe: Command) -> None:
    bentpipe(*TOY_RUN, "--iterations", "1", "--out", "A")
    folder, _, _ = RunFolder.reopen(Path("A"))
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


def test_a_folder_that_a_run_left_before_it_began_is_used(bentpipe: Command) -> None:
    Path("A").mkdir()
    Path("A/records.jsonl").touch()
    assert bentpipe(*TOY_RUN, "--iterations", "1", "--out", "A").code == 0


def test_paths_in_hints_can_be_pasted(bentpipe: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_SIM", "full")
    done = bentpipe(*TOY_RUN, "--iterations", "1", "--out", "a run")
    assert "bentpipe run --resume 'a run'" in done.err


def test_a_standard_output_that_is_full_is_named(bentpipe: Command, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bentpipe", *TOY_RUN, "--iterations", "1", "--out", "A"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith("error: standard output: cannot be written: No space left on device\n")


def test_other_errors_of_the_system_are_no_full_disk(bentpipe: Command, fake_sim: Path) -> None:
    """The simulator answers for the scenario, then it can no longer be started."""
    program = fake_sim / "bentpipe-sim"
    program.write_text(program.read_text().replace("exec", f'mv "{program}" "{program}.gone"; exec'))
    done = bentpipe(*TOY_RUN, "--iterations", "1", "--out", "A")
    assert done.code == 1
    assert "disk" not in done.err and "bentpipe-sim" in done.err


def test_a_report_that_is_interrupted_can_be_made_later(
    bentpipe: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_folder: Path) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr("bentpipe.report.build", interrupted)
    done = bentpipe(*TOY_RUN[:-1], "--iterations", "1", "--out", "a run")
    assert done.code == 130
    assert "records are complete; make the report with: bentpipe report 'a run'" in done.err


def test_a_large_file_can_be_interrupted(bentpipe: Command, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bentpipe", *TOY_RUN, "--bytes", "2GB", "--out", "A"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    deadline = time.monotonic() + 20
    while not list(tmp_path.glob("bentpipe-*/www/*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130 and "0 of 3 trials are done" in err
    assert time.monotonic() - begin < 5
    assert not list(tmp_path.glob("bentpipe-*"))


@pytest.mark.parametrize("delay_s", [0.06, 0.1, 0.15, 0.2, 0.3])
def test_an_early_interrupt_leaves_no_traceback(bentpipe: Command, delay_s: float) -> None:
    """The program is asked to end while it loads; the first lines of its entry point have run by then."""
    script = "import sys; from bentpipe.cli import main; print(flush=True); main()"
    command = [sys.executable, "-c", script, *TOY_RUN, "--iterations", "1000", "--out", "A"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(delay_s - 0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "interrupted" in err and "Traceback" not in err


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


@pytest.mark.parametrize(
    ("how", "detail"),
    [("broken", "something went wrong inside"), ("nonsense", "answered no JSON")],
)
def test_a_failure_of_the_simulator_is_invalid_and_stops_nothing(
    bentpipe: Command, monkeypatch: pytest.MonkeyPatch, how: str, detail: str
) -> None:
    monkeypatch.setenv("FAKE_SIM", how)
    done = bentpipe(*TOY_RUN, "--iterations", "2", "--out", "A", "--json")
    assert done.code == 1
    assert [record["outcome"] for record in done.records()] == ["invalid", "invalid"]
    assert detail in done.records()[0]["detail"] and detail in done.err


@pytest.mark.parametrize("how", ["full", "full-client", "full-go-client"])
def test_a_disk_that_is_full_ends_the_run_and_blames_no_stack(
    bentpipe: Command, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setenv("FAKE_SIM", how)
    done = bentpipe(*TOY_RUN, "--iterations", "2", "--out", "A")
    assert done.code == 1
    assert "no space left on device" in done.err.lower() and "--resume A" in done.err
    assert "the run's folder A or the scratch folder" in done.err and "ended with" not in done.err
    assert stored(Path("A")) == []
    monkeypatch.delenv("FAKE_SIM")
    assert len(bentpipe("run", "--resume", "A", "--no-report", "--json").records()) == 2


def test_a_file_that_can_grow_no_more_keeps_every_finished_record(bentpipe: Command, tmp_path: Path) -> None:
    """A limit on the size of files ends in the same way as a full disk: a write that is cut short, then an
    error.
    """
    limit = 2500  # bytes: between two and three records, and more than the manifest has
    script = (
        "import resource, sys; from bentpipe.cli import invoke; "
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit * 2}, resource.RLIM_INFINITY)); "
        "sys.exit(invoke(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", script, *TOY_RUN, "--iterations", "20", "--jobs", "1", "--out", "A"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 1, done.stderr
    assert "records.jsonl: cannot be written: File too large" in done.stderr
    assert "--resume A" in done.stderr and "Traceback" not in done.stderr
    text = (tmp_path / "A" / "records.jsonl").read_text()
    kept = stored(tmp_path / "A")
    assert 0 < len(kept) < 20 and text.endswith("\n")
    resumed = bentpipe("run", "--resume", "A", "--no-report", "--json")
    assert resumed.code == 0, resumed.err
    assert [record["iteration"] for record in resumed.records()] == list(range(1, 21))
    assert (tmp_path / "A" / "records.jsonl").read_text().startswith(text)


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
    deadline = time.monotonic() + 20
    while "speed-slow" not in _text(tmp_path / "log").replace("=", "-") and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    time.sleep(0.05)
    process.send_signal(number)  # a second one does no harm
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "interrupted: 2 of 4 trials are done" in err
    assert "resume with: bentpipe run --resume A" in err and "Traceback" not in err
    finished = stored(tmp_path / "A")
    assert [record.server for record in finished] == ["toy", "toy"]
    monkeypatch.setenv("FAKE_SIM", "log")
    done = bentpipe("run", "--resume", "A", "--no-report", "--json")
    assert [record["server"] for record in done.records()] == ["toy"] * 2 + ["toy:speed=slow"] * 2
    assert stored(tmp_path / "A")[:2] == finished


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def test_an_endpoint_that_takes_unknown_test_cases_is_found_out(bentpipe: Command) -> None:
    careless = Path("careless")
    careless.mkdir()
    text = (STACKS / "toy" / "stack.toml").read_text().replace('"toy"', '"careless"', 1)
    command = f'["{{python}}", "{STACKS / "hostile" / "endpoint.py"}", "careless"]'
    (careless / "stack.toml").write_text(text.replace('["{python}", "{folder}/endpoint.py"]', command))
    done = bentpipe(
        *TOY_RUN,
        "--client",
        "toy,careless",
        "--stacks",
        careless,
        "--iterations",
        "1",
        "--out",
        "A",
        "--json",
    )
    by_client = {record["client"]: record for record in done.records()}
    assert by_client["toy"]["outcome"] == "ok"
    assert by_client["careless"]["outcome"] == "invalid"
    assert "careless as client breaks the contract" in by_client["careless"]["detail"]
    assert "careless as client breaks the contract" in done.err


@pytest.mark.parametrize(
    ("text", "at", "inside"),
    [
        ("08:00-18:00", "07:59", False),
        ("08:00-18:00", "08:00", True),
        ("08:00-18:00", "17:59", True),
        ("08:00-18:00", "18:00", False),
        ("22:00-06:00", "23:00", True),
        ("22:00-06:00", "05:59", True),
        ("22:00-06:00", "06:00", False),
        ("22:00-06:00", "12:00", False),
    ],
)
def test_a_pause_holds_from_its_start_to_before_its_end(text: str, at: str, inside: bool) -> None:
    moment = datetime.strptime(f"2026-01-01 {at}", "%Y-%m-%d %H:%M")
    assert Pause.parse(text).holds(moment) is inside


@pytest.mark.parametrize("text", ["", "08:00", "8-18", "08:00-08:00", "08:00-24:00", "08:00-09:00-10:00"])
def test_what_is_no_pause(text: str) -> None:
    with pytest.raises(UsageError, match="--pause-between"):
        Pause.parse(text)


def test_no_trial_starts_in_a_pause(
    bentpipe: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The clock jumps over the pause after a while; until then no trial has started."""
    log = tmp_path / "log"
    monkeypatch.setenv("FAKE_SIM", "log")
    monkeypatch.setenv("FAKE_SIM_LOG", str(log))
    asked: list[bool] = []

    class Clock:
        @staticmethod
        def now() -> datetime:
            asked.append(log.exists())
            return datetime(2026, 1, 1, 9 if len(asked) < 4 else 20)

    monkeypatch.setattr(running, "datetime", Clock)
    done = bentpipe(*TOY_RUN, "--iterations", "2", "--trace", "none", "--pause-between", "08:00-18:00")
    assert done.code == 0, done.err
    assert asked[:4] == [False] * 4
    assert done.err.count("paused until 18:00") == 1
    assert len(log.read_text().splitlines()) == 2


def test_the_file_that_is_served_is_always_the_same(tmp_path: Path) -> None:
    size = (1 << 20) + 17
    first = www_file(tmp_path / "a", size).read_bytes()
    assert len(first) == size
    assert www_file(tmp_path / "b", size).read_bytes() == first
    assert not www_file(tmp_path / "d", size, lambda: True).read_bytes()
    assert www_file(tmp_path / "c", size + 1).read_bytes()[:size] != first
