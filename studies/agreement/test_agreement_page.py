"""`bentpipe study agreement`: real time against virtual time, from made-up runs of both."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import fake_run
import pytest
import study_marks
from agreement import page as agreement
from conftest import Command

from bentpipe.analysis.trial_marks import RunCell
from bentpipe.errors import BentpipeError
from bentpipe.runs.records import Record
from bentpipe.study import catalogue

EXACT = {
    "release_error_p50_ms": 0.02,
    "release_error_p99_ms": 0.07,
    "release_error_p999_ms": 0.13,
    "release_error_max_ms": 0.4,
    "release_error_limit_ms": 1.0,
    "kernel_drops": 0,
    "cpu_pressure": 0.25,
}


def trials(scenario: str, stack: str, mbit: float, **values: Any) -> list[Record]:
    made = [fake_run.record(scenario, stack, stack, number) for number in (1, 2, 3)]
    good = {"outcome": "ok", "detail": "", "completion_s": 80 / mbit, "share_of_limit": mbit / 20}
    return [
        fake_run.change(one, **(good | {"goodput_bps": mbit * 1e6 * part} | values))
        for one, part in zip(made, (0.999, 1, 1.001), strict=True)
    ]


def write(name: str, *cells: list[Record]) -> None:
    fake_run.write(Path(name))
    lines = [f"{record.to_json()}\n" for cell in cells for record in cell]
    Path(name, "records.jsonl").write_text("".join(lines))


def emu(scenario: str, stack: str, mbit: float, **values: Any) -> list[Record]:
    return trials(scenario, stack, mbit, **({"testbed": "emu"} | EXACT | values))


def both() -> None:
    """Over sat quinn is slower in real time, and over satloss much slower; aioquic fails there."""
    write(
        "sim",
        trials("goodput", "noq", 9),
        trials("sat", "noq", 10),
        trials("sat", "quinn", 10),
        trials("satloss", "quinn", 4),
        trials("sat", "aioquic", 3),
    )
    crashed = {"outcome": "crashed", "detail": "exit code 1", "goodput_bps": None}
    write(
        "emu",
        emu("goodput", "noq", 9.02, release_error_max_ms=0.9),
        emu("sat", "noq", 9.96),
        emu("sat", "quinn", 9, alpn="h3"),
        emu("satloss", "quinn", 2),
        emu("sat", "aioquic", 3, **(crashed | {"completion_s": None, "share_of_limit": None})),
    )


def page(bentpipe: Command) -> str:
    done = bentpipe("study", "agreement", "--run", "sim", "--run", "emu", "-o", "out")
    assert (done.code, done.out) == (0, "out/agreement.md\nout/agreement.svg\n"), done.err
    return Path("out/agreement.md").read_text()


def section(text: str, title: str) -> str:
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.fixture
def on_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file of explanations in place of the one that is included."""
    file = tmp_path / "explanations.toml"
    file.write_text("")
    loaded = sys.modules[catalogue.find("agreement").page().__module__]  # as the command line has it
    monkeypatch.setattr(loaded.explanations, "__defaults__", (file,))
    return file


def test_each_path_has_both_goodputs_and_their_ratio(bentpipe: Command, on_file: Path) -> None:
    both()
    text = page(bentpipe)
    assert "3 stacks over 3 paths" in text
    said = " ".join(text.split())
    assert text.startswith(
        "# Real time equals virtual time within 5 % in 2 of 5 comparisons; 0 cannot be told\n"
    )
    assert (
        "Goodput is equal within 5 % in 1 of 1 comparison over goodput, 1 of 3 comparisons over sat and 0 of"
        in said
    )
    assert (
        "It differs by more, or one side fails more often, in aioquic over sat, quinn over sat (0.90" in said
    )
    (row,) = [line for line in section(text, "goodput").splitlines() if "noq" in line]
    assert row.startswith("| noq → noq | 9.00 | 9.02 | 1.002 | 1.000 to 1.004 | agrees | 8.889 / 8.869 |")
    assert row.endswith("| 45 % / 45 % | 3 of 3 / 3 of 3 |")
    assert "| quinn → quinn | 4.00 | 2.00 | 0.500 |" in section(text, "satloss")
    assert "| quinn → quinn (h3 in real time) | 10.00 | 9.00 | 0.900 |" in section(text, "sat")
    assert "- 1 cell with different application protocols" in text


def test_differences_without_loss_stand_apart_and_want_a_reason(bentpipe: Command, on_file: Path) -> None:
    both()
    apart = section(page(bentpipe), "Differences beyond 5 % where nothing is lost at random")
    rows = [line for line in apart.splitlines() if "→" in line][1:]
    assert rows == [
        "| sat | aioquic → aioquic | - | - | contradicts | 3 of 3 / 0 of 3 | not explained yet |",
        "| sat | quinn → quinn (h3 in real time) | 0.900 | 0.898 to 0.902 | contradicts | 3 of 3 / 3 of 3 "
        "| not explained yet |",
    ]


def test_a_reason_on_file_stands_beside_its_difference(bentpipe: Command, on_file: Path) -> None:
    both()
    entry = (
        '[[explanation]]\nstack = "{}"\nscenarios = ["sat"]\nreal_time_is = "{}"\nshown = true\n'
        'reason = "It _waits_."\n'
    )
    on_file.write_text(entry.format("quinn", "slower") + entry.format("quinn", "faster"))
    text = page(bentpipe)
    advice = " ".join(text.partition("## What to do with it")[2].partition("\n## ")[0].split())
    assert "Of these 1 of 2 has a cause that an experiment showed, in the table below." in advice
    assert "| contradicts | 3 of 3 / 3 of 3 | It \\_waits\\_. |" in text
    assert "| - | - | contradicts | 3 of 3 / 0 of 3 | not explained yet |" in text
    assert "that these runs do not show: quinn, faster, sat." in text
    on_file.write_text(entry.format("quinn", "slower").replace("true", "false"))
    text = page(bentpipe)
    assert "| contradicts | 3 of 3 / 3 of 3 | Open: It \\_waits\\_. |" in text
    assert "Of these 0 of 2 have a cause" in " ".join(text.split())
    on_file.write_text(entry.format("quinn", "either"))
    assert "| contradicts | 3 of 3 / 3 of 3 | It \\_waits\\_. |" in page(bentpipe)


def test_runs_of_tcp_alone_have_a_page_of_their_own(bentpipe: Command, on_file: Path) -> None:
    """And what is said of one variant over one queue is not said of others."""
    cubic, other = (
        {"transport": "tcp", "server": "linux:cc=cubic"},
        {"transport": "tcp", "server": "linux:cc=bbr"},
    )
    for name, make, mbit in (("sim", trials, 10), ("emu", emu, 8)):
        write(name, make("sat", "linux", mbit, **cubic), make("sat", "linux", mbit, **other))
    on_file.write_text(
        '[[explanation]]\nstack = "linux:cc=cubic"\nscenarios = ["sat"]\n'
        'real_time_is = "slower"\nshown = true\nreason = "It."\n'
        '[[explanation]]\nstack = "quinn"\nscenarios = ["sat"]\nreal_time_is = "slower"\nshown = true\n'
        'reason = "No."\n'
    )
    done = bentpipe("study", "agreement", "--run", "sim", "--run", "emu", "-o", "out")
    assert (done.code, done.out) == (0, "out/agreement-tcp.md\nout/agreement-tcp.svg\n"), done.err
    text = Path("out/agreement-tcp.md").read_text()
    assert (
        "| sat | linux → linux:cc=cubic | 0.800 | 0.799 to 0.801 | contradicts | 3 of 3 / 3 of 3 | It. |"
        in text
    )
    assert (
        "| sat | linux → linux:cc=bbr | 0.800 | 0.799 to 0.801 | contradicts | 3 of 3 / 3 of 3 "
        "| not explained yet |" in text
    )
    assert "quinn" not in text.partition("\n## sat")[0]


def test_runs_with_losses_alone_have_a_page_of_their_own(bentpipe: Command, on_file: Path) -> None:
    """Whatever they are of: chance makes differences, so none is asked to be explained."""
    linux = {"transport": "tcp", "server": "linux:cc=cubic"}
    for name, make, mbit in (("sim", trials, 4), ("emu", emu, 2)):
        write(name, make("satloss", "quinn", mbit), make("satloss", "linux", 4, **linux))
    done = bentpipe("study", "agreement", "--run", "sim", "--run", "emu", "-o", "out")
    assert (done.code, done.out) == (0, "out/agreement-losses.md\nout/agreement-losses.svg\n"), done.err
    text = Path("out/agreement-losses.md").read_text()
    assert text.startswith("# With losses, real time equals virtual time within 5 % in 1 of 2 comparisons; 0")
    said = " ".join(text.split())
    assert "The median ratio of goodputs is 0.750. Losses are at random" in said
    assert "Differences beyond 5 %" not in text
    assert "| quinn → quinn | 4.00 | 2.00 | 0.500 |" in section(text, "satloss")


def test_runs_behind_queue_disciplines_have_a_page_of_their_own(bentpipe: Command, on_file: Path) -> None:
    """Drop-tail among them; what differs by more than 5 % wants an explanation."""
    for name, make, mbit in (("sim", trials, 10), ("emu", emu, 8)):
        write(name, make("sat", "quinn", 10), make("goodput", "quinn", mbit))
        with fake_run.changed_manifest(Path(name)) as manifest:
            goodput = manifest["scenarios"]["goodput"]
            goodput["summary"] = goodput["summary"] | {"forward_queue": "size 1 BDP, aqm codel"}
    done = bentpipe("study", "agreement", "--run", "sim", "--run", "emu", "-o", "out")
    assert (done.code, done.out) == (0, "out/agreement-queues.md\nout/agreement-queues.svg\n"), done.err
    text = Path("out/agreement-queues.md").read_text()
    assert text.startswith(
        "# Behind queue disciplines, real time equals virtual time within 5 % in 1 of 2 comparisons"
    )
    assert (
        "| goodput | quinn → quinn | 0.800 | 0.799 to 0.801 | contradicts | 3 of 3 / 3 of 3 "
        "| not explained yet |" in text
    )
    assert "| quinn → quinn | 10.00 | 10.00 |" in section(text, "sat")


def test_carriers_and_handovers_have_a_page_of_their_own(bentpipe: Command, on_file: Path) -> None:
    both()
    for run in (Path("sim"), Path("emu")):
        with fake_run.changed_manifest(run) as manifest:
            ways = manifest["scenarios"]["goodput"]["scenario"]["satellite"]
            del ways["forward"]["rate"]  # as in full, where a direction has none
            ways["return"]["rate"] = {"standard": "rcs2"}
    done = bentpipe("study", "agreement", "--run", "sim", "--run", "emu", "-o", "out")
    assert (done.code, done.out) == (0, "out/agreement-satellites.md\nout/agreement-satellites.svg\n"), (
        done.err
    )


def test_the_links_of_real_time_are_judged(bentpipe: Command, on_file: Path) -> None:
    both()
    kept = section(page(bentpipe), "How exact real time was")
    assert "| goodput | 3 | 0 | 0.020 | 0.070 | 0.130 | 0.900 | 0 | 25 % |" in kept
    write("emu", emu("sat", "noq", 10, outcome="invalid", kernel_drops=2), emu("sat", "quinn", 10))
    text = page(bentpipe)
    assert "| sat | 6 | 3 | 0.020 | 0.070 | 0.130 | 0.400 | 6 | 25 % |" in text
    assert "## Failed trials in real time\n\n3 of 6 trials failed." in text


def test_both_runs_are_said(bentpipe: Command, on_file: Path) -> None:
    both()
    text = page(bentpipe)
    assert "## How this page was made: virtual time" in text
    assert "## How this page was made: real time" in text
    assert "bentpipe study agreement --run sim --run emu" in text


def test_the_runs_must_be_one_of_each(bentpipe: Command) -> None:
    both()
    done = bentpipe("study", "agreement", "--run", "emu", "--run", "sim", "-o", "out")
    assert done.code == 1 and 'emu: wanted is a run on the testbed "sim", not on emu' in done.err
    assert not Path("out").exists()
    done = bentpipe("study", "agreement", "--run", "sim", "-o", "out")
    assert done.code == 2 and "is written from 2 runs" in done.err
    assert bentpipe("study", "reno", "--run", "sim", "--run", "emu").code == 2


def test_what_comes_along_can_be_read() -> None:
    for one in agreement.explanations():
        assert one.reason.endswith(".") and one.scenarios


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('stack = "quinn"', "", 'the key "explanation 1: stack" is missing'),
        ('"slower"', '"slow"', 'real_time_is: "slow" is not valid'),
        ("reason", "why", 'unknown key "explanation 1: why"'),
        ('["sat"]', '"sat"', "scenarios: 'sat' is not valid"),
        ("[[explanation]]", "[[reason]]", 'unknown key "reason"'),
    ],
)
def test_mistakes_in_explanations_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    file = tmp_path / "explanations.toml"
    text = '[[explanation]]\nstack = "quinn"\nscenarios = ["sat"]\nreal_time_is = "slower"\n'
    text += 'shown = true\nreason = "It."\n'
    assert [one.stack for one in _read(file, text)] == ["quinn"]
    with pytest.raises(BentpipeError) as error:
        _read(file, text.replace(old, new))
    assert message in str(error.value) and error.value.hint


def _read(file: Path, text: str) -> tuple[agreement.Explanation, ...]:
    file.write_text(text)
    return agreement.explanations(file)


def test_a_run_is_compared_with_what_its_manifest_says(bentpipe: Command, on_file: Path) -> None:
    both()
    path = Path("emu/manifest.json")
    values = json.loads(path.read_text())
    values["versions"]["stacks"]["noq"] = "2.0"
    path.write_text(json.dumps(values))
    assert "- noq is 1.2.3 in A, 2.0 in B" in page(bentpipe)


def test_what_varies_too_much_cannot_be_told(bentpipe: Command, on_file: Path) -> None:
    """Two courses, as of a program that chance decides: the means are equal, and the interval is wide."""
    both = [fake_run.change(one, goodput_bps=one.iteration * 5e6) for one in emu("sat", "noq", 10)]
    write("sim", trials("sat", "noq", 10))
    write("emu", both)
    text = page(bentpipe)
    assert text.startswith(
        "# Real time equals virtual time within 5 % in 0 of 1 comparison; 1 cannot be told\n"
    )
    assert "It cannot be told in the others, whose trials differ too much: noq over sat" in " ".join(
        text.split()
    )
    assert "| cannot tell |" in section(text, "sat")


@pytest.mark.parametrize(
    ("mbit", "kept", "verdict", "why"),
    [
        (10.0, 3, "agrees", ""),
        (10.0, 2, "cannot tell", "of which trials failed: noq over sat"),
        (10.0, 1, "cannot tell", "of single trials: noq over sat"),
        (10.5, 3, "cannot tell", "whose interval lies on the margin: noq over sat"),
    ],
)
def test_why_nothing_can_be_told(
    bentpipe: Command, on_file: Path, mbit: float, kept: int, verdict: str, why: str
) -> None:
    failed = {"outcome": "transfer_timeout", "detail": "120 s passed", "goodput_bps": None}
    real = emu("sat", "noq", mbit)
    write("sim", trials("sat", "noq", 10))
    write("emu", [one if place < kept else fake_run.change(one, **failed) for place, one in enumerate(real)])
    text = page(bentpipe)
    assert f"| {verdict} |" in section(text, "sat")
    assert why in " ".join(text.split())


def test_shares_of_success_that_differ_contradict(bentpipe: Command, on_file: Path) -> None:
    """Though those that succeed are as fast: 9 of 9 and 2 of 9."""
    failed = {"outcome": "transfer_timeout", "detail": "120 s passed", "goodput_bps": None}

    def nine(made: list[Record]) -> list[Record]:
        many = [(one, 3 * turn + one.iteration) for turn in range(3) for one in made]
        return [fake_run.change(one, iteration=n, trial=f"{one.trial}{n}", seed=str(n)) for one, n in many]

    real = nine(emu("sat", "noq", 10))
    write("sim", nine(trials("sat", "noq", 10)))
    write("emu", [one if place < 2 else fake_run.change(one, **failed) for place, one in enumerate(real)])
    text = page(bentpipe)
    assert "| contradicts | 8.000 / 8.000 | 50 % / 50 % | 9 of 9 / 2 of 9 |" in section(text, "sat")


def test_each_side_leads_to_its_own_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    virtual, real = trials("goodput", "noq", 9.5), emu("goodput", "noq", 8.5)
    write("sim", virtual)
    write("emu", real)
    found = study_marks.leading("agreement", ["--run", "sim", "--run", "emu"])
    assert found["9.50"] == [RunCell(Path("sim"), virtual[0].cell_key)]
    assert found["8.50"] == [RunCell(Path("emu"), real[0].cell_key)]
