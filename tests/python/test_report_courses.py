"""The records that pages of cells show, with their courses: read when a page is made."""

from __future__ import annotations

import json
from pathlib import Path

import fake_run
import pytest
from test_report import read_data, write_records

from bentpipe.errors import BentpipeError
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


def test_a_record_that_cannot_be_read_leaves_the_older_site(tmp_path: Path) -> None:
    """It is found when the page of its cell is made, as late as that."""
    fake_run.write(tmp_path, stacks=("noq", "quinn"), iterations=2)
    index = build(tmp_path)
    index.write_text("the older one")
    file = tmp_path / "records.jsonl"
    *others, last = file.read_text().splitlines()
    file.write_text("\n".join((*others, json.dumps(json.loads(last) | {"wall_s": "long"}), "")))
    with pytest.raises(BentpipeError, match=rf"records\.jsonl:{len(others) + 1}: not a record: .*wall_s"):
        build(tmp_path)
    assert index.read_text() == "the older one"
    assert not (tmp_path / "report.partial").exists()
