"""The courses of trials that the pages of cells draw: read once more when a page is made."""

from __future__ import annotations

from pathlib import Path

import fake_run
from test_report import read_data, write_records

from bentpipe.report import build


def test_a_cell_shows_each_iterations_course_and_of_a_repeated_one_the_last(tmp_path: Path) -> None:
    records = fake_run.write(tmp_path, stacks=("noq", "quinn"), iterations=2)
    courses = [fake_run.change(one, received_bytes=[number, 9999]) for number, one in enumerate(records)]
    again = fake_run.change(records[1], received_bytes=[5555])
    write_records(tmp_path, [*courses, again])
    build(tmp_path)
    shown = {
        one["trial"]: one["received_bytes"]
        for file in (tmp_path / "report/data/cells").iterdir()
        for one in read_data(file)["iterations"]
    }
    expected = {one.trial: one.received_bytes for one in courses} | {again.trial: [5555]}
    assert shown == expected
