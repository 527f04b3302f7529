"""Says where the time of the last `make test` went: by part, by kind, by file, and the slowest tests.

With `--write`, what it says replaces the last such page in docs/reference/test-times.md.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "target" / "tests"
PARTS = FOLDER / "parts.json"
PAGE = ROOT / "docs" / "reference" / "test-times.md"
BEGIN, END = "<!-- test-times: begin -->", "<!-- test-times: end -->"
SLOWEST = 20
FILES = 25
_RUNNING = re.compile(r"^\s+Running (?:unittests )?(\S+) \(.*?/deps/([\w-]+)-[0-9a-f]+\)")
_RESULT = re.compile(r"^test result: .* finished in ([0-9.]+)s")


@dataclass(frozen=True)
class Case:
    """A test, or the tests of a Rust file, which cargo times as one."""

    kind: str
    file: str
    name: str  # empty: all of the file
    seconds: float


def parts_table(took: Iterable[dict[str, object]]) -> str:
    """How long each part of a run took, as text."""
    rows = [(str(part["part"]), float(str(part["seconds"]))) for part in took]
    rows.append(("in all", sum(seconds for _, seconds in rows)))
    width = max(len(title) for title, _ in rows)
    return "\n".join(["took", *(f"  {title:{width}}  {seconds:7.1f} s" for title, seconds in rows)])


def cases() -> Iterator[Case]:
    """All that the last run timed."""
    for report in sorted(FOLDER.glob("*.xml")):
        for case in ElementTree.parse(report).iter("testcase"):
            kind = case.find("properties/property[@name='kind']")
            file = case.get("classname", "").rpartition(".")[2] or "collection"
            yield Case(
                kind.get("value", "") if kind is not None else "Python",
                f"{file}.py",
                case.get("name", ""),
                float(case.get("time", "0")),
            )
    yield from rust_files(FOLDER / "Rust.log")


def rust_files(log: Path) -> Iterator[Case]:
    """The output of cargo for each file of Rust tests."""
    file = ""
    for line in log.read_text().splitlines() if log.exists() else ():
        if found := _RUNNING.match(line):
            file = f"{found[2]} {found[1]}"
        elif (found := _RESULT.match(line)) and file:
            yield Case("Rust", file, "", float(found[1]))
            file = ""


def page() -> str:
    """The page, in Markdown."""
    took: list[dict[str, Any]] = json.loads(PARTS.read_text())
    found = list(cases())
    kinds: dict[str, float] = defaultdict(float)
    files: defaultdict[tuple[str, str], float] = defaultdict(float)
    for part in took:
        if not part["kind"].startswith("Python") and part["kind"] != "Rust":
            kinds[part["kind"]] += part["seconds"]
    for case in found:
        kinds[case.kind] += case.seconds
        files[case.file, case.kind] += case.seconds
    slowest = sorted((case for case in found if case.name), key=lambda case: -case.seconds)[:SLOWEST]
    largest = sorted(files.items(), key=lambda one: -one[1])[:FILES]
    all_s = sum(part["seconds"] for part in took)
    return "\n\n".join(
        [
            f"The last run took {all_s / 60:.1f} minutes. Parts run one after the other. Within most, tests"
            " run side by side,\nso that these add up to more than their part.",
            table(["part", "s"], ((part["part"], part["seconds"]) for part in took)),
            table(
                ["kind", "s of tests"],
                ((kind, kinds[kind]) for kind in sorted(kinds, key=lambda one: -kinds[one])),
            ),
            f"The {len(largest)} files that take longest:",
            table(["file", "kind", "s"], ((*file, seconds) for file, seconds in largest)),
            f"The {len(slowest)} slowest tests:",
            table(["test", "file", "s"], ((f"`{case.name}`", case.file, case.seconds) for case in slowest)),
        ]
    )


def table(heads: list[str], rows: Iterable[tuple[object, ...]]) -> str:
    def cell(value: object) -> str:
        return f"{value:.1f}" if isinstance(value, float) else str(value).replace("|", "\\|")

    lines = [heads, ["---"] * (len(heads) - 1) + ["---:"], *([cell(value) for value in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"put the page into {PAGE.name}")
    write = parser.parse_args().write
    if not PARTS.exists():
        print("error: nothing was timed yet\nhint: make test", file=sys.stderr)
        return 1
    text = page()
    print(text)
    if write:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
