"""`bentpipe compare`: two made-up runs whose differences are known, and two runs of the simulator."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_run
import pytest
from conftest import Command, Done, installed_or_skip

from bentpipe.analysis.comparison import MEASURES
from bentpipe.runs.records import Record
from bentpipe.runs.table import to_arrow

NOISE = (0.99, 1.0, 1.01)


def trials(scale: float, noise: tuple[float, ...] = NOISE, **values: Any) -> list[Record]:
    """A cell of sat, quinn → quinn around 10 Mbit/s · scale."""
    made = [fake_run.record("sat", "quinn", "quinn", number) for number in range(1, len(noise) + 1)]
    return [
        fake_run.change(one, **({"goodput_bps": 1e7 * scale * part, "completion_s": 9.0 / scale} | values))
        for one, part in zip(made, noise, strict=True)
    ]


def write(name: str, *cells: list[Record]) -> None:
    fake_run.write(Path(name))
    lines = [f"{record.to_json()}\n" for cell in cells for record in cell]
    Path(name, "records.jsonl").write_text("".join(lines))


def change_manifest(name: str, change: Callable[[dict[str, Any]], object]) -> None:
    path = Path(name, "manifest.json")
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))


def found(done: Done) -> dict[str, Any]:
    assert done.code == 0, done.err
    values: dict[str, Any] = json.loads(done.out)
    return values


def test_measures_are_numbers_of_records() -> None:
    columns = to_arrow([fake_run.record("sat", "quinn", "quinn", 1)]).schema
    assert all(str(columns.field(name).type) in ("double", "int64") for name in MEASURES)


def test_the_largest_difference_comes_first_and_the_certain_ones_are_marked(bentpipe: Command) -> None:
    write("a", trials(1), trials(1, client="noq"), trials(1, (0.5, 1, 2), client="aioquic"))
    write(
        "b",
        trials(1.01, NOISE[::-1], testbed="emu"),
        trials(0.8, client="noq", testbed="emu"),
        trials(1.5, (2, 1, 0.5), client="aioquic", testbed="emu"),
    )
    done = bentpipe("compare", "a", "b")
    assert done.code == 0, done.err
    assert "A  a: sim, IPv4, 3 cells" in done.out and "B  b: emu, IPv4, 3 cells" in done.out
    assert "3 cells in both, 1 differ significantly" in done.out
    rows = [line.split() for line in done.out.splitlines() if "→" in line]
    assert [row[1] for row in rows] == ["aioquic", "noq", "quinn"]
    assert rows[1][4:7] == ["10.00", "8.00", "0.800"] and rows[1][8] == "*"
    assert [row[-2:] for row in rows] == [["3/3", "3/3"]] * 3
    done = bentpipe("compare", "a", "b", "--significant")
    assert [line.split()[1] for line in done.out.splitlines() if "→" in line] == ["noq"]


def test_other_measures_are_other_ratios(bentpipe: Command) -> None:
    write("a", trials(1))
    write("b", trials(0.5))
    values = found(bentpipe("compare", "a", "b", "--measure", "completion_s", "--json"))
    (cell,) = values["cells"]
    assert (cell["a"]["mean"], cell["b"]["mean"]) == (pytest.approx(9), pytest.approx(18))
    # Completion does not vary in this run, so that a repetition would give the same.
    assert cell["ratio"] == cell["low"] == cell["high"] == pytest.approx(2) and cell["significant"]


def test_a_run_is_as_itself(bentpipe: Command) -> None:
    fake_run.write(Path("a"))
    values = found(bentpipe("compare", "a", "a", "--json", "--fail-over", "0%"))
    compared = [cell for cell in values["cells"] if cell["ratio"] is not None]
    assert len(compared) > 30 and all(cell["ratio"] == 1 and cell["p"] in (1, None) for cell in compared)
    assert values["beyond"] == [] and not any(cell["significant"] for cell in values["cells"])


def test_failed_trials_are_counted_and_do_not_speed_anything_up(bentpipe: Command) -> None:
    crashed: dict[str, Any] = {"outcome": "crashed", "detail": "exit code 1", "goodput_bps": None}
    some = trials(1)
    write("a", some, trials(1, client="noq"))
    write("b", [*some[:2], fake_run.change(some[2], **crashed)], trials(1, client="noq", **crashed))
    done = bentpipe("compare", "a", "b")
    assert done.code == 0 and "2/3, 1 crashed" in done.out and "0/3, 3 crashed" in done.out
    assert "note: 1 cell that succeeded in A and never in B" in done.out
    failed = bentpipe("compare", "a", "b", "--fail-over", "50%")
    assert failed.code == 1
    assert "error: 1 of 2 cells differ by more than 50%, first of all sat noq → quinn" in failed.err


@pytest.mark.parametrize(
    ("scale", "noise", "code"),
    [
        (0.9, NOISE, 1),
        (1.1, NOISE, 1),
        (0.97, NOISE, 0),  # not by so much
        (0.8, (0.3, 1, 3), 0),  # by chance, for all that is known
        (0.9, (1.0,), 1),  # nobody knows of chance
        (0.97, (1.0,), 0),
    ],
)
def test_a_difference_beyond_the_share_fails(
    bentpipe: Command, scale: float, noise: tuple[float, ...], code: int
) -> None:
    write("a", trials(1, noise))
    write("b", trials(scale, noise[::-1]))
    assert bentpipe("compare", "a", "b", "--fail-over", "5%").code == code


FRAMES: dict[str, Any] = {"workload": "frames:30s:streams:400ms", "goodput_bps": None, "frames": 900}


@pytest.mark.parametrize("column", ["lost_frames", "in_time_share", "frame_age_p99_s"])
@pytest.mark.parametrize("missing", [0, None])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("noise", [NOISE, (1.0,)])
def test_what_one_side_alone_has_is_beyond_any_share(
    bentpipe: Command, column: str, missing: int | None, swapped: bool, noise: tuple[float, ...]
) -> None:
    sides = [trials(1, noise, **FRAMES, **{column: value}) for value in (missing, 1)]
    for name, side in zip("ba" if swapped else "ab", sides, strict=True):
        write(name, side)
    done = bentpipe("compare", "a", "b", "--measure", column, "--fail-over", "50%")
    assert done.code == 1
    assert "error: 1 of 1 cells differ by more than 50%, first of all sat quinn → quinn" in done.err
    row = next(line.split() for line in done.out.splitlines() if "→" in line)
    shown = row[-6:-4] if swapped else row[-5:-7:-1]
    assert float(shown[0]) in (1, 100)
    assert shown[1].strip("0.") == ("" if missing == 0 else "-")
    assert f"note: 1 cell with{'' if missing == 0 else 'out'} " in done.out


def test_a_zero_among_the_values_is_told_and_proves_nothing(bentpipe: Command) -> None:
    lost = [trials(1, **FRAMES, lost_frames=count) for count in (0, 3)]
    write("a", [lost[0][0], *lost[1][1:]])
    write("b", lost[1])
    done = bentpipe("compare", "a", "b", "--measure", "lost_frames", "--fail-over", "0%")
    assert done.code == 0, done.err
    row = next(line.split() for line in done.out.splitlines() if "→" in line)
    assert row[-6:-2] == ["2", "3", "-", "-"]
    assert "note: 1 cell with a lost_frames of 0: no ratio, and arithmetic means" in done.out


def test_trials_without_a_measure_are_told(bentpipe: Command) -> None:
    aged = [trials(1, **FRAMES, frame_age_p99_s=age) for age in (0.3, None)]
    write("a", [*aged[0][:2], aged[1][2]])
    write("b", aged[0])
    done = bentpipe("compare", "a", "b", "--measure", "frame_age_p99_s")
    assert "note: 1 cell without frame_age_p99_s in some trials that succeeded" in done.out


def test_single_trials_have_no_interval_and_that_is_said(bentpipe: Command) -> None:
    write("a", trials(1, (1.0,)))
    write("b", trials(0.9))
    done = bentpipe("compare", "a", "b")
    row = next(line.split() for line in done.out.splitlines() if "→" in line)
    assert row[6:] == ["0.900", "-", "1/1", "3/3"]
    assert "note: 1 cell with a single trial on a side: no interval" in done.out


def test_cells_of_one_run_alone_are_named(bentpipe: Command) -> None:
    write("a", trials(1), trials(1, client="noq"))
    write("b", trials(1), trials(1, server="aioquic"))
    done = bentpipe("compare", "a", "b")
    assert "note: 1 cell only in A: sat noq → quinn" in done.out
    assert "note: 1 cell only in B: sat quinn → aioquic" in done.out
    values = found(bentpipe("compare", "a", "b", "--json"))
    assert [key["client"] for key in values["only_in_a"]] == ["noq"]


def test_runs_without_a_common_cell_say_what_differs(bentpipe: Command) -> None:
    write("a", trials(1))
    write("b", trials(1, workload="transfer:1000", size_bytes=1000))
    done = bentpipe("compare", "a", "b")
    assert done.code == 1
    assert "no workload is: a has transfer:10485760, b has transfer:1000" in done.err
    write("b", trials(1, client="noq"), trials(1, server="noq"))
    write("a", trials(1), trials(1, client="noq", server="noq"))
    assert "combine other things" in bentpipe("compare", "a", "b").err


def test_other_paths_programs_and_protocols_are_told(bentpipe: Command) -> None:
    write("a", trials(1))
    write("b", trials(1, alpn="h3"))
    change_manifest("b", lambda one: one["versions"]["stacks"].update(quinn="1.3"))
    change_manifest("b", lambda one: one.update(finished=None))
    change_manifest("b", lambda one: one["scenarios"]["sat"]["scenario"].update(timeout="60 s"))
    change_manifest("b", lambda one: one["stacks"]["noq"].update(installation={"inputs_sha256": "b"}))
    change_manifest("a", lambda one: one["stacks"]["noq"].update(installation={"inputs_sha256": "a"}))
    done = bentpipe("compare", "a", "b")
    assert "note: B is not finished" in done.out and "A is not finished" not in done.out
    assert "note: sat is not the same path in both runs" in done.out
    assert "note: quinn is 1.2.3 in A, 1.3 in B" in done.out
    assert "note: noq has the same version in both, but was built from other sources" in done.out
    assert "note: 1 cell with different application protocols" in done.out
    assert "!: other application protocols." in " ".join(done.out.split())
    assert next(line.split() for line in done.out.splitlines() if "→" in line)[8] == "!"


def test_csv_has_a_line_per_cell(bentpipe: Command) -> None:
    write("a", trials(1), trials(1, client="noq"))
    write("b", trials(1), trials(0.5, client="noq"))
    rows = list(csv.DictReader(io.StringIO(bentpipe("compare", "a", "b", "--csv").out)))
    assert [row["client"] for row in rows] == ["noq", "quinn"]
    assert float(rows[0]["ratio"]) == pytest.approx(0.5) and rows[0]["significant"] == "True"


def test_what_cannot_be_compared(bentpipe: Command) -> None:
    write("a", trials(1))
    Path("empty").mkdir()
    assert "empty is no run: it has no manifest.json" in bentpipe("compare", "a", "empty").err
    assert bentpipe("compare", "nowhere", "a").code == 2
    write("b")
    assert "no trial of this run has finished" in bentpipe("compare", "a", "b").err
    assert '"5" is no share; write it as in 5%' in bentpipe("compare", "a", "a", "--fail-over", "5").err
    assert bentpipe("compare", "a", "a", "--json", "--csv").code == 2
    assert bentpipe("compare", "a", "a", "--measure", "speed").code == 2


def test_two_runs_of_the_simulator(bentpipe: Command) -> None:
    """The same is the same, trial by trial, and a larger initial window a certain difference."""
    installed_or_skip("noq")
    common = ("--scenario", "sat", "--client", "noq", "--bytes", "1MB", "--iterations", "2", "--no-report")
    for name, servers in (("a", "noq:iw=10,noq"), ("b", "noq:iw=10,noq")):
        assert bentpipe("run", *common, "--server", servers, "--out", name).code == 0
    values = found(bentpipe("compare", "a", "b", "--json"))
    assert [(cell["ratio"], cell["p"]) for cell in values["cells"]] == [(1, 1)] * 2
    records = [json.loads(line) for line in Path("b/records.jsonl").read_text().splitlines()]
    larger = bentpipe("run", *common, "--server", "noq:iw=100", "--out", "c")
    assert larger.code == 0, larger.err
    renamed = Path("c/records.jsonl").read_text().replace("noq:iw=100", "noq:iw=10")
    Path("c/records.jsonl").write_text(renamed)
    values = found(bentpipe("compare", "a", "c", "--measure", "completion_s", "--json"))
    (cell,) = values["cells"]
    assert 0.5 < cell["low"] <= cell["ratio"] <= cell["high"] < 0.8 and cell["significant"]
    assert len(values["only_in_a"]) == 1 and len(records) == 4
