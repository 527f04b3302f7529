"""Which trials of two cells are pairs, in runs as the program makes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Command

from bentpipe.analysis.cell_ratio import are_paired, cell_ratio
from bentpipe.analysis.cells import Cell, cells
from bentpipe.analysis.inference import paired_ratio, ratio
from bentpipe.runs import run_folder

SERVERS = ("noq:cc=cubic", "noq:cc=newreno")


def over_losses(bentpipe: Command, out: Path, *options: str) -> tuple[Cell, Cell]:
    """The cells of two servers over a path with random losses."""
    bentpipe(
        "run", "--scenario", "satloss", "--client", "noq", "--server", ",".join(SERVERS), "--bytes", "1MB",
        "--iterations", "8", "--trace", "none", "--out", str(out), *options,
    )  # fmt: skip
    by_server = {one.key.server: one for one in cells(run_folder.read(out, courses=False)[1])}
    return by_server[SERVERS[0]], by_server[SERVERS[1]]


def test_iterations_of_all_cells_have_the_same_draws(bentpipe: Command, tmp_path: Path) -> None:
    first, second = over_losses(bentpipe, tmp_path / "common")
    assert [one.seed for one in first.records] == [one.seed for one in second.records]
    assert len({one.trial for cell in (first, second) for one in cell.records}) == 16
    times = [cell.values("completion_s") for cell in (first, second)]
    found, apart = cell_ratio(first, second, "completion_s"), ratio(times[0], times[1])
    assert found == paired_ratio(times[0], times[1])
    assert found and apart and found.low and found.high and apart.low and apart.high
    assert found.high / found.low < apart.high / apart.low


def test_independent_draws_are_no_pairs(bentpipe: Command, tmp_path: Path) -> None:
    first, second = over_losses(bentpipe, tmp_path / "apart", "--draws", "independent")
    assert {one.seed for one in first.records}.isdisjoint(one.seed for one in second.records)
    times = [cell.values("completion_s") for cell in (first, second)]
    assert cell_ratio(first, second, "completion_s") == ratio(times[0], times[1])


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("abcde", "edabc", True),
        ("abcde", "abcdf", False),  # a trial failed, or has another seed
        ("abcde", "abcdef", False),
        ("aabcde", "aabcde", False),  # which belongs to which is not known
        ("abcd", "abcd", False),  # too few
        ("", "", False),
    ],
)
def test_pairs_have_the_same_seeds_each_once(first: str, second: str, expected: bool) -> None:
    assert are_paired([first, second]) is expected
