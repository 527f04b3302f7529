"""`bentpipe run` around the simulator: records, resuming, traces, errors. The simulator is `fake_sim.py`
here.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pyarrow.parquet as pq
import pytest
from children import PATIENCE_S
from conftest import STACKS, TOY_RUN, Command

from bentpipe.cli.commands import cli
from bentpipe.runs.records import Record, read_jsonl

pytestmark = pytest.mark.usefixtures("fake_sim")


def hashes(records: list[dict[str, object]]) -> list[object]:
    return [record["packet_log_hash"] for record in records]


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


@pytest.mark.parametrize("name", ["a:b", "file:x", "s3:x", "a%20b"])
def test_a_folder_may_be_called_like_a_url(bentpipe: Command, name: str) -> None:
    done = bentpipe(*TOY_RUN, "--iterations", "2", "--out", name)
    assert done.code == 0, done.err
    with (Path(name) / "records.parquet").open("rb") as file:
        assert pq.read_table(file).num_rows == 2


def test_one_trial_has_no_deviation(bentpipe: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    done = bentpipe(*TOY_RUN, "--iterations", "1", "--set", "forward.queue=1BDP", "--out", "A")
    assert "±" not in done.out and "\n1 trial, 1 ok" in done.out and "\n1/1 trial," in done.err
    assert "sat,forward.queue=1BDP: changed from " in done.out
    monkeypatch.setenv("FAKE_SIM", "one-flight")
    done = bentpipe(*TOY_RUN, "--iterations", "2", "--out", "B")
    assert re.search(r"\ntoy +\d\.\d\ds\n", done.out) and "\nseconds until" in done.out
    assert "2 trials, 2 ok" in done.out


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
        (["--scenario", f"{'n' * 300}.toml"], "n.toml: there is no such scenario file", ""),
        (["--client", "quin"], 'unknown stack "quin"', "--stacks"),
        (["--scenario", ""], '--scenario: "" has an empty name', "NAME,NAME"),
        (["--client", ""], '--client: "" has an empty name', "NAME,NAME"),
        (["--server", "toy,,toy"], '--server: "toy,,toy" has an empty name', "NAME,NAME"),
        (["--out", ""], "Invalid value for '-o' / '--out'", ""),
        (["--pause-between", ""], "--pause-between", "HH:MM-HH:MM"),
        (["--bytes", "999999999999999999"], "--bytes: a file of 931322574.6 GiB", "TMPDIR"),
        (["--qlog", "--trace", "none"], "--qlog: there is no trace", "--trace median"),
        (["--resume", "nowhere"], "nowhere: there is no such folder", ""),
        (["--out", "/dev/null"], "--out: /dev/null is not a folder", ""),
        ([""], 'unknown campaign ""', "campaigns: after-split"),
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


def test_a_list_may_be_longer_than_the_name_of_a_file(bentpipe: Command) -> None:
    workloads = [f"transfer:{1000 + more}" for more in range(40)]
    done = bentpipe(
        *TOY_RUN[:7], "--no-report", "--iterations", "1", "--workload", ",".join(workloads), "--json"
    )
    assert [record["workload"] for record in done.records()] == workloads


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
    plan = 'iterations = 1\nworkloads = ["transfer:1000"]\nscenarios = ["sat"]\n'
    plan += 'clients = ["ghost", "toy"]\nservers = ["toy"]\n'
    (tmp_path / "plan.toml").write_text(plan)
    done = bentpipe("run", "plan.toml", "--stacks", ghost, "--out", "A", "--no-report", "--json")
    assert [record["client"] for record in done.records()] == ["toy"]
    assert "left out: ghost cannot be started" in done.err
    assert "ghost" in json.loads(Path("A/manifest.json").read_text())["left_out"]
    resumed = bentpipe("run", "--resume", "A", "--no-report", "--json")
    assert resumed.records() == done.records()
    named = bentpipe(*TOY_RUN, "--client", "ghost", "--stacks", ghost)
    assert named.code == 2 and "ghost cannot be started" in named.err


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
    def interrupted(*_given: object) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr("bentpipe.report.build", interrupted)
    done = bentpipe(*TOY_RUN[:-1], "--iterations", "1", "--out", "a run")
    assert done.code == 130
    assert "records are complete; make the report with: bentpipe report 'a run'" in done.err


# The command line, interrupted when for the first time `event` comes with words in which `word` is.
INTERRUPTED = """
import atexit, os, signal, sys

event, word = sys.argv.pop(1), sys.argv.pop(1)

def hook(what, arguments):
    global event
    if what == event and word in str(arguments[0]):
        event = None
        os.kill(os.getpid(), signal.SIGINT)

sys.addaudithook(hook)
atexit.register(lambda: print(open("/proc/self/io").read()))
from bentpipe.cli import main
main()
"""


def interrupted(event: str, word: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", INTERRUPTED, event, word, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def test_a_large_file_can_be_interrupted(
    bentpipe: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is not written to its end first."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    done = interrupted("open", "/www/", *TOY_RUN, "--bytes", "2GB", "--out", "A")
    assert done.returncode == 130 and "0 of 3 trials are done" in done.stderr
    (written,) = re.findall(r"^wchar: (\d+)$", done.stdout, re.MULTILINE)
    assert int(written) < 100_000_000
    assert not list(tmp_path.glob("bentpipe-*"))


@pytest.mark.parametrize(
    ("event", "word"),
    [
        ("import", "bentpipe.cli.commands"),  # the first thing that the entry point does
        ("import", "click"),
        ("import", "bentpipe.execution.scheduler"),
        ("import", "rich.progress"),
        ("open", "stack.toml"),
        ("subprocess.Popen", "bentpipe-sim"),
        ("open", "records.jsonl"),
    ],
)
def test_an_early_interrupt_leaves_no_traceback(bentpipe: Command, event: str, word: str) -> None:
    """The program is asked to end while it loads, or just has."""
    done = interrupted(event, word, *TOY_RUN, "--iterations", "1000", "--out", "A")
    assert done.returncode == 130, done.stderr
    assert "interrupted" in done.stderr and "Traceback" not in done.stderr


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


def options(command: click.Command, name: str = "bentpipe") -> Iterator[tuple[str, click.Parameter]]:
    """The options of a command and of those in it, each with the command's name."""
    yield from ((name, one) for one in command.params)
    for word, inner in getattr(command, "commands", {}).items():
        yield from options(inner, f"{name} {word}")


def test_where_results_go_is_said_alike_everywhere() -> None:
    """-o and --out, of runs as of all else."""
    places = {name: one.opts for name, one in options(cli) if "--out" in one.opts}
    assert {"bentpipe run", "bentpipe check", "bentpipe runner import", "bentpipe worker"} <= set(places)
    assert {tuple(sorted(one)) for one in places.values()} == {("--out", "-o")}
