"""The page of the sender's constants against the sources: whoever changes one has to sweep it again."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "sender"))

import sender_page  # noqa: E402
from sender_constants import FOLDERS, NOT_SWEPT, SOURCES, constants, rows  # noqa: E402

PAGE = (ROOT / "docs" / "design" / "sender-constants.md").read_text()
MEASURED = json.loads((ROOT / "tools" / "sender" / "measured.json").read_text())


def test_the_page_lists_each_constant_with_its_value() -> None:
    table = PAGE.partition("\n## All\n")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| `(\w+)`[^|]* \| `([\w./]+)` \| ([^|]+) \|", table, re.MULTILINE)
    there = [(one.name, one.place, one.shown) for one in constants() if one.key not in NOT_SWEPT]
    assert len(there) > 50
    assert {*listed} == {*there}


def test_none_is_missed_in_the_sources() -> None:
    files = [file for folder in FOLDERS for file in (ROOT / SOURCES / folder).glob("*.rs")]
    texts = [file.read_text().partition("#[cfg(test)]")[0] for file in files]
    assert sum(len(re.findall(r"\bconst [A-Z]", text)) for text in texts) == len(constants())


def test_each_constant_says_what_it_is() -> None:
    assert [one.key for one in constants() if len(one.comment) < 20] == []


def test_the_page_is_as_it_is_made_of_the_measurements() -> None:
    command = [sys.executable, "tools/sender/sweep.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_constant_that_is_changed_added_or_removed_has_to_be_swept() -> None:
    there = constants()
    first = there[0]
    assert sender_page.stale(there, MEASURED) == []
    changed = sender_page.stale([replace(first, value="77"), *there[1:]], MEASURED)
    assert changed == [f"{first.key} is 77 now, and was swept as {first.value}"]
    added = sender_page.stale([*there, replace(first, name="NEW")], MEASURED)
    assert added == [f"NEW in {first.place} was never swept"]
    assert sender_page.stale(there[1:], MEASURED) == [f"{first.key} was swept and is no constant now"]


def test_values_are_halves_to_doubles_and_not_todays() -> None:
    by_key = {row.key: row for one in constants() for row in rows(one)}
    settings = [(row, setting) for row in by_key.values() for setting in row.settings.values()]
    assert all(setting.text != row.constant.value for row, setting in settings)
    first = next(one for one in constants() if one.type == "u64")
    (whole,) = rows(replace(first, name="N", value="1_000", comment="Bytes."))
    assert [it.text for it in whole.settings.values()] == ["500", "700", "1_400", "2_000"]
    (small,) = rows(replace(first, name="N", value="1", comment="Packets."))
    assert [it.text for it in small.settings.values()] == ["2"]
