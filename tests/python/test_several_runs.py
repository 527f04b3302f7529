"""Several runs at once: what is read, what is left out and why, and the table of all their trials."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import fake_run
import pyarrow.dataset as ds
import pytest

from bentpipe.errors import BentpipeError
from bentpipe.runs import several
from bentpipe.runs.dataset import open_dataset
from bentpipe.runs.records import Record
from bentpipe.runs.table import write_parquet


def write(folder: Path, started: str, *records: Record) -> Path:
    """A run with these records that began at that time."""
    made = fake_run.write(folder, stacks=("noq",), iterations=2)
    told = json.loads((folder / "manifest.json").read_text()) | {"started": started}
    (folder / "manifest.json").write_text(json.dumps(told))
    if records:
        (folder / "records.jsonl").write_text("".join(f"{one.to_json()}\n" for one in records or made))
    return folder


def test_runs_stand_in_the_order_in_which_they_began(tmp_path: Path) -> None:
    late, early = write(tmp_path / "a", "2026-03-02T00:00:00Z"), write(tmp_path / "b", "2026-03-01T00:00:00Z")
    found = several.read([late, early, tmp_path / "a" / ".." / "a"])
    assert [run.name for run in found.runs] == ["b", "a"]
    assert found.skipped == ()


def test_folders_that_are_called_alike_are_told_apart(tmp_path: Path) -> None:
    for place in ("x/run", "y/run", "y/other"):
        write(tmp_path / place, "2026-03-01T00:00:00Z")
    found = several.read([tmp_path / place for place in ("x/run", "y/run", "y/other")])
    assert [run.name for run in found.runs] == ["other", "x/run", "y/run"]


def test_what_cannot_be_read_is_left_out_and_named(tmp_path: Path) -> None:
    good = write(tmp_path / "good", "2026-03-01T00:00:00Z")
    damages = {
        "cut": ("manifest.json", '{"campaign"', "cannot be read"),
        "newer": ("manifest.json", None, "it is of format 99"),
        "odd": ("records.jsonl", '{"trial":"x"}\n', "records.jsonl:1: not a record"),
        "fresh": ("records.jsonl", "", "no trial of this run has finished"),
    }
    for name, (file, text, _why) in damages.items():
        folder = write(tmp_path / name, "2026-03-01T00:00:00Z")
        told = json.loads((folder / "manifest.json").read_text()) | {"format": 99}
        (folder / file).write_text(json.dumps(told) if text is None else text)
    (tmp_path / "file").write_text("")
    folders = [good, *(tmp_path / name for name in damages), tmp_path, tmp_path / "file", tmp_path / "gone"]
    found = several.read(folders)
    assert [run.folder for run in found.runs] == [good]
    said = {one.folder: one.why for one in found.skipped}
    assert list(said) == folders[1:]
    for name, (_file, _text, why) in damages.items():
        assert name in said[tmp_path / name] and why in said[tmp_path / name]
    assert "is no run" in said[tmp_path]


def test_the_table_has_every_trial_as_its_record_does(tmp_path: Path) -> None:
    """What endpoints say has a column in each run that says it; numbers in one and texts in another are
    texts."""
    one, other = fake_run.record("sat", "noq", "noq", 1), fake_run.record("satloss", "noq", "aioquic", 2)
    one = fake_run.change(one, server_statistics={"left_s": 1.5, "cwnd_bytes": 7})
    other = fake_run.change(other, server_statistics={"left_s": "never"})
    write(tmp_path / "a", "2026-03-01T00:00:00Z", one, fake_run.change(one, iteration=2))
    write(tmp_path / "b", "2026-03-02T00:00:00Z", other)
    with pytest.warns(UserWarning, match="is no run"):
        table = several.trials([tmp_path / "a", tmp_path / "b", tmp_path])
    rows = table.to_pylist()
    assert [(row["run"], row["started"][:10]) for row in rows] == [
        ("a", "2026-03-01"), ("a", "2026-03-01"), ("b", "2026-03-02"),
    ]  # fmt: skip
    for row, record in ((rows[0], one), (rows[2], other)):
        for column in ("trial", "goodput_bps", "outcome", "forward_packets", "received_bytes", "seed"):
            assert row[column] == getattr(record, column), column
    assert [row["server_statistics.left_s"] for row in rows] == ["1.5", "1.5", "never"]
    assert [row["server_statistics.cwnd_bytes"] for row in rows] == [7.0, 7.0, None]


def test_a_dataset_has_the_same_trials_and_is_read_by_columns(tmp_path: Path) -> None:
    one, other = fake_run.record("sat", "noq", "noq", 1), fake_run.record("satloss", "noq", "aioquic", 2)
    other = fake_run.change(other, server_statistics={"left_s": 2.5})  # a column that the first run lacks
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder, records in zip(folders, ([one, fake_run.change(one, iteration=2)], [other]), strict=True):
        write(folder, "2026-03-01T00:00:00Z", *records)
        write_parquet(lambda records=records: records, folder / "records.parquet")  # type: ignore[misc]
    found = open_dataset(folders)
    assert found.to_table().to_pylist() == several.trials(folders).to_pylist()
    over_sat = found.to_table(columns=["run", "seed"], filter=ds.field("scenario") == "sat")
    assert over_sat.to_pylist() == [{"run": "a", "seed": one.seed}] * 2


def test_a_dataset_wants_finished_runs_whose_columns_go_together(tmp_path: Path) -> None:
    record = fake_run.record("sat", "noq", "noq", 1)
    for name, said in (("a", 1.5), ("b", "never")):
        changed = fake_run.change(record, server_statistics={"left_s": said})
        write(tmp_path / name, "2026-03-01T00:00:00Z", changed)
        if name == "a":
            write_parquet(lambda: [changed], tmp_path / "a" / "records.parquet")  # noqa: B023
    with pytest.raises(BentpipeError, match=r"b/records\.parquet: cannot be read") as raised:
        open_dataset([tmp_path / "a", tmp_path / "b"])
    assert raised.value.hint
    write_parquet(lambda: [changed], tmp_path / "b" / "records.parquet")
    with pytest.raises(BentpipeError, match=r"server_statistics\.left_s"):
        open_dataset([tmp_path / "a", tmp_path / "b"])
    with pytest.raises(BentpipeError, match="no runs are given"):
        open_dataset([])


def test_without_any_run_there_is_no_table(tmp_path: Path) -> None:
    shutil.rmtree(tmp_path)
    with pytest.warns(UserWarning), pytest.raises(BentpipeError, match="no runs to read") as raised:
        several.trials([tmp_path])
    assert raised.value.hint
    with pytest.raises(BentpipeError, match="no runs are given"):
        several.trials([])
