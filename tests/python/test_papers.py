"""docs/papers.md: a row for every figure and table of the papers, a page and a command where it is done."""

from __future__ import annotations

import re
import tomllib

import pytest
from conftest import ROOT

from bentpipe.cli.commands import cli

PAGE = ROOT / "docs" / "papers.md"
PAPERS = tomllib.loads((ROOT / "docs" / "papers.toml").read_text())["paper"]
ANSWERS = ("done: ", "done differently, because ", "not done, because ")


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading."""
    text = PAGE.read_text().partition(f"\n## {heading}\n")[2]
    table = re.search(r"\| item \| shows \| here \|\n\|[-|]+\n((?:\|.*\n)+)", text)
    assert table, f"no table of {heading}"
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table[1].splitlines()]


@pytest.mark.parametrize("paper", PAPERS, ids=lambda one: one["heading"])
def test_every_item_has_one_row(paper: dict[str, list[str]]) -> None:
    assert [row[0] for row in rows(str(paper["heading"]))] == paper["items"]


@pytest.mark.parametrize("paper", PAPERS, ids=lambda one: one["heading"])
def test_what_is_done_is_a_page_and_a_command_away(paper: dict[str, list[str]]) -> None:
    for item, _, here in rows(str(paper["heading"])):
        assert here.startswith(ANSWERS), item
        if here.startswith("not done"):
            continue
        command = re.search(r"; `bentpipe ([a-z]+)[^`]*`$", here)
        assert command and command[1] in cli.commands, item
        files = [(PAGE.parent / target).resolve() for target in re.findall(r"\]\(([^)#]+)\)", here)]
        assert files and all(file.exists() for file in files), item
        for page in files:
            if "studies" in page.parts:
                pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text())
                assert all((page.parent / name).exists() for name in pictures), page
                if "[picture]" in here:
                    assert pictures, f"{item}: {page} has no picture"


def test_studies_that_are_named_exist() -> None:
    named = set(re.findall(r"`bentpipe study ([a-z-]+)`", PAGE.read_text()))
    studies = cli.commands["study"]
    known = set(studies.list_commands(None)) | {"pep"}  # type: ignore[attr-defined]
    assert named <= known
