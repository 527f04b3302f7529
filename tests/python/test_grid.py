"""Grids of variants against settings, from made-up records."""

from __future__ import annotations

import fake_run
from fake_grid import COMES_TO, GOOD, RASH, REFERENCE, fail, trial

from bentpipe.analysis.cells import cells
from bentpipe.analysis.trial_marks import without
from bentpipe.runs.records import Record
from bentpipe.study.grid import Grid, GridCell, dropped


def grid(records: list[Record]) -> Grid:
    found = {(one.key.server, "here"): one for one in cells(records)}
    return Grid({label: label for label in COMES_TO}, ["here"], found)


def test_drops_are_told_as_a_share_of_the_file() -> None:
    assert dropped(trial(RASH, 1)) == 0.4
    assert dropped(fake_run.change(trial(RASH, 1), forward_packets=0)) is None
    assert dropped(fake_run.change(trial(RASH, 1), forward_queue_drops=None)) is None


def test_the_best_is_sought_among_those_that_lose_no_more_than_the_reference() -> None:
    assert grid([trial(one, 1) for one in COMES_TO]).best("here") == {GOOD}
    assert grid([trial(one, 1) for one in COMES_TO if one != GOOD]).best("here") == {REFERENCE}


def test_without_the_reference_the_fastest_is_the_best() -> None:
    assert grid([trial(one, 1) for one in COMES_TO if one != REFERENCE]).best("here") == {RASH}


def test_who_fails_is_not_the_best() -> None:
    records = [trial(one, 1) for one in COMES_TO] + [fail(trial(GOOD, 2))]
    assert grid(records).best("here") == {REFERENCE}
    assert "85 % (1)" in grid(records).markdown("server")


def test_the_best_is_bold_where_intervals_do_not_overlap() -> None:
    sure = [trial(one, number) for one in COMES_TO for number in (1, 2)]
    assert grid(sure).rivals("here") == set() and grid(sure).bold("here") == {GOOD}
    varied = [
        trial(one, number, share_of_limit=0.8 + 0.1 * number * (one == GOOD))
        for one in COMES_TO
        for number in (0, 1)
    ]
    assert grid(varied).best("here") == {GOOD} and grid(varied).bold("here") == set()
    assert grid(varied).rivals("here") == {REFERENCE}


def test_a_single_trial_tells_nothing_from_others() -> None:
    assert grid([trial(one, 1) for one in COMES_TO]).bold("here") == set()


def test_only_what_intervals_show_leads() -> None:
    def led(shares: dict[str, tuple[float, ...]]) -> set[str]:
        return grid(
            [
                trial(one, number, share_of_limit=share, forward_queue_drops=0)
                for one, each in shares.items()
                for number, share in enumerate(each, start=1)
            ]
        ).leaders("here")

    narrow, near, far, wide = (0.9, 0.901, 0.902), (0.88, 0.881), (0.8, 0.801), (0.95, 0.5, 0.9)
    assert led({GOOD: narrow, REFERENCE: near}) == {GOOD, REFERENCE}
    assert led({GOOD: narrow, REFERENCE: far}) == {GOOD}
    assert led({GOOD: narrow, REFERENCE: wide}) == {GOOD}, "a wide interval is no tie"
    assert led({GOOD: (0.95, 0.9, 0.8), REFERENCE: (0.85, 0.9, 0.8)}) == set()
    assert led({GOOD: (0.9,), REFERENCE: (0.5,)}) == set(), "a single trial has no interval"
    assert led({GOOD: (0.9,)}) == set()
    # What does not vary has an interval without width.
    assert led({GOOD: (0.9, 0.9), REFERENCE: (0.9, 0.9)}) == {GOOD, REFERENCE}


def test_variants_are_ranked_by_the_mean_that_is_shown() -> None:
    shares = {GOOD: (0.8, 0.8, 0.2), REFERENCE: (0.7, 0.7, 0.7)}  # by medians the other way round
    records = [
        trial(one, number, share_of_limit=share, forward_queue_drops=0)
        for one, each in shares.items()
        for number, share in enumerate(each, start=1)
    ]
    assert grid(records).best("here") == {REFERENCE}
    assert "| 50 % |" in without(grid(records).markdown("server"))


def test_a_cell_of_the_grid_is_the_mean_of_what_succeeded() -> None:
    records = [trial(GOOD, number, share_of_limit=share) for number, share in ((1, 0.1), (2, 0.2), (9, 0.4))]
    (cell,) = cells([*records, fail(trial(GOOD, 10))])
    assert round(GridCell(cell).share or 0.0, 9) == 0.2 and GridCell(cell).failed == 1
    assert [without(text) for text in GridCell(cell).written(best=True)] == ["**20 %** (1)", "0 %"]
    (cell,) = cells([fail(trial(GOOD, 1))])
    assert [without(text) for text in GridCell(cell).written(best=False)] == ["transfer timeout", "-"]
