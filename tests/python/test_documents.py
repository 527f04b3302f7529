"""The pages of this project: lines are short, links lead somewhere, and what they name exists. What they tell
people to type is `test_document_commands.py`'s.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from documents import PAGES, ROOT, name_of, prose, tracked

WIDTH = 100
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
# A path of this project, as pages and sources name it.
FOLDERS = (
    "benches|campaigns|crates|docs|endpoints|examples|guest|middleboxes|pages|products|scenarios|schemas|studies"
    "|suites|tests|tools"
)
NAMED = re.compile(rf"`((?:{FOLDERS})/[\w./-]*[\w/])`")
PAGE_NAMED = re.compile(r"(?<![\w/.-])(?:docs|endpoints)/[\w/-]+\.md")
SOURCES = (".c", ".go", ".h", ".html", ".java", ".mjs", ".py", ".rs", ".sh", ".toml", ".ts", ".txt")


def anchors(page: Path) -> set[str]:
    """What can stand behind # in a link to the page, by GitHub's rule."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", one).lower() for one in headings]
    return {re.sub(r"[^\w\- ]", "", one).replace(" ", "-") for one in plain}


def cannot_be_broken(line: str) -> bool:
    last = line.split()[-1]
    return "](" in last or "://" in last or len(last) > WIDTH // 2


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_lines_are_short(page: Path) -> None:
    """But for rows of tables, and lines that end in a link, or in a word that is half of them."""
    long = [
        f"{number}: {line}"
        for number, line in enumerate(page.read_text().splitlines(), 1)
        if len(line) > WIDTH and not line.lstrip().startswith("|") and not cannot_be_broken(line)
    ]
    assert not long


def test_the_contract_is_read_in_one_sitting() -> None:
    """It suffices for a first trial; what is beyond that has a page of its own."""
    assert len((ROOT / "endpoints/CONTRACT.md").read_text().splitlines()) <= 200


# JSON as a program writes it, in a raw string.
RAW_STRING = re.compile(r'\br(#+)".*?"\1', re.DOTALL)


def test_lines_of_rust_are_short() -> None:
    """rustfmt leaves comments and strings as they are. But for rows of tables, raw strings and what is
    generated.
    """
    long = [
        f"{file.relative_to(ROOT)}:{number}"
        for folder in ("crates", "products", "middleboxes", "endpoints", "benches")
        for file in (ROOT / folder).rglob("*.rs")
        if "target" not in file.parts
        if "generated from schemas/" not in (text := file.read_text())[:200]
        for number, line in enumerate(RAW_STRING.sub(newlines_alone, text).splitlines(), 1)
        if len(line) > WIDTH and not line.lstrip(" /!").startswith("|")
    ]
    assert not long


def newlines_alone(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    lost = []
    for link in LINK.findall(prose(page)):
        if "://" in link or link.startswith("mailto:"):
            continue
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            lost.append(link)
    assert not lost


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_paths_that_are_named_exist(page: Path) -> None:
    """From the root, or from a folder on the way to the page."""
    places = [place for place in page.parents if place.is_relative_to(ROOT)]
    named = NAMED.findall(prose(page))
    assert [path for path in named if not any((place / path).exists() for place in places)] == []


def test_sources_name_pages_that_exist() -> None:
    """Help texts, errors and comments send people to pages."""
    lost = [
        f"{name_of(file)}: {page}"
        for file in tracked(*(f"*{kind}" for kind in SOURCES))
        for page in PAGE_NAMED.findall(file.read_text())
        if not (ROOT / page).exists()
    ]
    assert not lost


def test_the_index_leads_to_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    listed = {(ROOT / "docs" / link.partition("#")[0]).resolve() for link in LINK.findall(index)}
    pages = [page for page in PAGES if page.is_relative_to(ROOT / "docs") and page.name != "README.md"]
    assert [name_of(page) for page in pages if page not in listed] == []


def test_the_architecture_has_a_paragraph_for_each_room() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    crates = {
        file.parent.name for place in ("crates", "products") for file in ROOT.glob(f"{place}/*/Cargo.toml")
    }
    rooms = {file.parent.name for file in (ROOT / "python" / "bentpipe").glob("*/__init__.py")}
    assert {name for name in crates | rooms if f"**{name}**" not in page} == set()
    assert 8_000 <= len(page) <= 10_000


def test_generated_parts_of_the_reference_are_as_their_sources_say() -> None:
    command: list[str | Path] = [sys.executable, ROOT / "tools" / "reference" / "pages.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
