"""The formats of a run's files: what is generated from their definitions, and runs of older formats.

`tests/runs/format-N` is a small run as a version of format N left it. Whoever raises a format adds one.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from conftest import Command, installed_or_skip

from bentpipe.errors import BentpipeError
from bentpipe.runs import records, run_folder
from bentpipe.schema.manifest import FORMAT

ROOT = Path(__file__).resolve().parents[2]
OLDER = sorted((ROOT / "tests" / "runs").iterdir())


def test_what_is_generated_is_as_its_definition_says() -> None:
    generate: list[str | Path] = [sys.executable, ROOT / "tools" / "schemas" / "generate.py", "--check"]
    done = subprocess.run(generate, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_older_format_has_a_run() -> None:
    assert [folder.name for folder in OLDER] == [f"format-{number}" for number in range(1, FORMAT)]
    assert records.FORMAT == FORMAT


@pytest.mark.parametrize("older", OLDER, ids=lambda folder: folder.name)
def test_a_run_of_an_older_format_is_read_and_resumed(bentpipe: Command, older: Path) -> None:
    """As if it were of this one: it is shown, sealed, reported, compared, and has nothing left to do."""
    installed_or_skip("noq")
    shutil.copytree(older, "run")
    before = [json.loads(line) for line in (older / "records.jsonl").read_text().splitlines()]
    done = bentpipe("run", "--resume", "run", "--json")
    assert done.code == 0 and "0 trials to run" in done.err, done.err
    for was, now in zip(before, done.records(), strict=True):
        assert now["format"] == FORMAT
        for key, value in was.items():
            assert key == "format" or as_it_was(value, now[key]) == value, key
    table = pq.read_table("run/records.parquet")
    assert table.column_names[0] == "format" and table.num_rows == len(before)
    assert Path("run/report/index.html").is_file()
    assert bentpipe("compare", "run", older).code == 0


def as_it_was(was: Any, now: Any) -> Any:
    """A value of a record without what its format did not have yet, which is null."""
    if isinstance(was, list) and isinstance(now, list):
        return [as_it_was(*pair) for pair in zip(was, now, strict=True)]
    if not (isinstance(was, dict) and isinstance(now, dict)):
        return now
    assert not any(value is not None for key, value in now.items() if key not in was)
    return {key: as_it_was(was[key], now[key]) for key in now if key in was}


def test_a_record_that_lacks_a_column_is_none() -> None:
    """Not one in which nothing was measured."""
    line = (OLDER[0] / "records.jsonl").read_text().splitlines()[0]
    values = json.loads(line)
    for column in ("forward_packets", "client_version", "completion_s"):
        less = {name: value for name, value in values.items() if name != column}
        with pytest.raises(ValueError, match=f'the key "{column}" is missing'):
            records.Record.from_mapping(less)


@pytest.mark.parametrize(
    ("file", "format"), [("manifest.json", 99), ("records.jsonl", 99), ("manifest.json", "x")]
)
def test_a_file_of_a_newer_format_is_refused(bentpipe: Command, file: str, format: object) -> None:
    shutil.copytree(OLDER[-1], "run")
    first, *rest = Path("run", file).read_text().splitlines(keepends=True)
    whole = first if file == "records.jsonl" else first + "".join(rest)
    Path("run", file).write_text(json.dumps(json.loads(whole) | {"format": format}) + "\n")
    with pytest.raises(BentpipeError, match=rf"{file}.*it is of format {format!r}, .* reads 1 to {FORMAT}"):
        run_folder.read(Path("run"))
    done = bentpipe("run", "--resume", "run")
    assert done.code == 1 and "hint: " in done.err
