"""Records on the disk: what was added is found again, and of a trial the last one counts."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_run
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from bentpipe import paths
from bentpipe.analysis.cells import cells
from bentpipe.errors import BentpipeError
from bentpipe.runs import run_folder
from bentpipe.runs.record_book import RecordBook
from bentpipe.runs.records import Record, read_jsonl
from bentpipe.runs.stored_records import StoredRecords
from bentpipe.runs.table import to_arrow, write_parquet

EXAMPLES = paths.root() / "tests" / "runs"


def records(count: int) -> list[Record]:
    one = fake_run.record("sat", "quinn", "quinn", 1)
    return [replace(one, trial=f"t{number}", iteration=number) for number in range(count)]


@pytest.fixture
def book(tmp_path: Path) -> RecordBook:
    return RecordBook(tmp_path / "records.jsonl")


def test_what_was_added_is_read_back_also_by_another_process(book: RecordBook, tmp_path: Path) -> None:
    for record in records(3):
        book.add(record)
    other = RecordBook(tmp_path / "records.jsonl")
    other.load()
    for one in (book, other):
        assert list(one.values()) == records(3) and "t1" in one and "t3" not in one
        one.close()
        assert one["t2"] == records(3)[2]


def test_stored_records_are_read_from_the_file_that_was_opened(tmp_path: Path) -> None:
    """A run that ends meanwhile replaces it, in another order."""
    fake_run.write(tmp_path, stacks=("noq", "quinn"), iterations=2)
    before = run_folder.read(tmp_path)[1]
    with contextlib.closing(StoredRecords(tmp_path)) as stored:
        other = tmp_path / "other"
        other.write_text("".join(f"{one.to_json()}\n" for one in reversed(before)))
        other.replace(tmp_path / "records.jsonl")
        assert list(stored) == before
        assert [one for key in stored.cells for one in stored.of_cell(key)] == [
            one for cell in cells(before) for one in cell.records
        ]
        assert stored.cells == [cell.key for cell in cells(before)] and len(stored) == len(before)
        assert [stored.of_trial(one.cell_key, one.trial) for one in before] == before


def test_of_a_trial_the_last_line_counts_and_one_that_was_cut_off_none(tmp_path: Path) -> None:
    first, second = fake_run.write(tmp_path, stacks=("noq",), iterations=2)[:2]
    again = replace(first, outcome="crashed")
    lines = "".join(f"{one.to_json()}\n" for one in (first, second, again))
    (tmp_path / "records.jsonl").write_text(lines + second.to_json()[:-9])
    with contextlib.closing(StoredRecords(tmp_path)) as stored:
        assert list(stored) == [second, again]


@pytest.mark.parametrize("version", [1, 2])
def test_stored_records_of_older_formats_are_those_of_their_file(version: int) -> None:
    """The first lack columns that say which trial it is; these came later."""
    example = EXAMPLES / f"format-{version}"
    expected = run_folder.read(example)[1]
    with contextlib.closing(StoredRecords(example)) as stored:
        assert sorted(stored, key=lambda one: one.trial) == sorted(expected, key=lambda one: one.trial)


@pytest.mark.parametrize("damage", [lambda text: "", lambda text: text.replace('"noq"', '"qno"')])
def test_stored_records_that_change_in_place_are_noticed(
    tmp_path: Path, damage: Callable[[str], str]
) -> None:
    fake_run.write(tmp_path, stacks=("noq",), iterations=2)
    file = tmp_path / "records.jsonl"
    with contextlib.closing(StoredRecords(tmp_path)) as stored:
        file.write_text(damage(file.read_text()))
        with pytest.raises(BentpipeError, match=r"records\.jsonl was changed while it was read"):
            list(stored)


def test_a_stored_record_that_is_none_is_named_by_its_line(tmp_path: Path) -> None:
    fake_run.write(tmp_path, stacks=("noq",), iterations=2)
    file = tmp_path / "records.jsonl"
    first, second, *rest = file.read_text().splitlines()
    file.write_text("\n".join((first, json.dumps(json.loads(second) | {"wall_s": "long"}), *rest, "")))
    stored = StoredRecords(tmp_path)
    with contextlib.closing(stored), pytest.raises(BentpipeError, match=r"jsonl:2: not a record: .*wall_s"):
        list(stored)


def test_a_file_of_records_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "records.jsonl").mkdir()
    with pytest.raises(BentpipeError, match=r"records\.jsonl: cannot be read"):
        StoredRecords(tmp_path)


def test_a_record_replaces_that_of_its_trial_and_the_older_line_goes(
    book: RecordBook, tmp_path: Path
) -> None:
    first = records(3)
    again = replace(first[0], outcome="crashed")
    for record in (*first, again):
        book.add(record)
    assert list(book.values()) == [again, *first[1:]]
    path = tmp_path / "records.jsonl"
    assert list(read_jsonl(path)) == [*first, again]
    book.compact(["t2", "t0", "t1"])
    assert list(read_jsonl(path)) == [first[2], again, first[1]]
    book.add(again)  # to the new file
    assert book["t0"] == again and book["t1"] == first[1]


def test_a_line_that_was_cut_off_is_taken_back(book: RecordBook, tmp_path: Path) -> None:
    book.add(records(1)[0])
    path = tmp_path / "records.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:40])
    later = RecordBook(path)
    later.load()
    assert list(later) == ["t0"] and path.read_bytes() == whole


def test_the_table_is_the_same_however_many_rows_are_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Endpoints say other things of themselves in some trials than in others, numbers or texts."""
    said: list[dict[str, Any]]
    said = [{"a": 1}, {}, {"a": "x", "b": 2}, {"b": 3.5}, {"c": "y"}]
    rows = [replace(one, client_statistics=more) for one, more in zip(records(5), said, strict=True)]
    monkeypatch.setattr("bentpipe.runs.table._GROUP", 2)
    write_parquet(lambda: iter(rows), tmp_path / "records.parquet")
    table = pq.read_table(tmp_path / "records.parquet")
    assert table.equals(to_arrow(rows))
    assert table.column("client_statistics.a").to_pylist() == ["1", None, "x", None, None]
    assert json.loads(rows[0].to_json())["trial"] == table.column("trial")[0].as_py()
