"""The pages of this project: lines are short, links lead somewhere, and what they tell people to type works.

Blocks marked `sh` in README.md and in the tutorials are run, those of a page one after the other in one
folder. A block whose mark names a file, as "python mine/endpoint.py", is what the reader is to save there.
What is not run has a comment above it that says why: `<!-- not run: … -->`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import present

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 100
FOR_EVER_S = 900  # what takes longer waits for what never comes
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
# A path of this project, as pages and sources name it.
FOLDERS = "campaigns|crates|docs|endpoints|examples|proxies|schemas|studies|tests|tools"
NAMED = re.compile(rf"`((?:{FOLDERS})/[\w./-]*[\w/])`")
PAGE_NAMED = re.compile(r"(?<![\w/.-])docs/[\w/-]+\.md")
FENCED = re.compile(r"^( *)```.*?^\1```$", re.DOTALL | re.MULTILINE)
SOURCES = (".c", ".go", ".h", ".html", ".java", ".mjs", ".py", ".rs", ".sh", ".toml", ".ts", ".txt")
RUN = [ROOT / "README.md", *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
# A block of a page, with the comment above it, if that says why it is not run.
BLOCK = re.compile(
    r"(?:<!-- not run: (?P<why>[^>]+) -->\n+)?^```(?P<language>\w*) ?(?P<file>\S*)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


def tracked(*patterns: str) -> list[Path]:
    """The files of the checkout that match, also those that are not committed yet."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for name in sorted(set(done.stdout.split("\n")) - {""}) if (path := ROOT / name).is_file()]


PAGES = tracked("*.md")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def prose(page: Path) -> str:
    """The page without its blocks of code."""
    return FENCED.sub("", page.read_text())


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
    crates = {file.parent.name for file in (ROOT / "crates").glob("*/Cargo.toml")}
    rooms = {file.parent.name for file in (ROOT / "python" / "bentpipe").glob("*/__init__.py")}
    assert {name for name in crates | rooms if f"**{name}**" not in page} == set()
    assert 8_000 <= len(page) <= 10_000


def test_generated_parts_of_the_reference_are_as_their_sources_say() -> None:
    command: list[str | Path] = [sys.executable, ROOT / "tools" / "reference" / "pages.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@dataclass(frozen=True)
class Block:
    """A block of code of a page."""

    language: str
    file: str  # where the reader is to save it; empty: nowhere
    text: str
    not_run: str | None  # why


def blocks(page: Path) -> Iterator[Block]:
    for found in BLOCK.finditer(page.read_text()):
        yield Block(found["language"], found["file"], found["text"], found["why"])


@pytest.mark.virtual_time
@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_what_a_page_tells_people_to_type_works(page: Path, tmp_path: Path) -> None:
    present()  # the stacks of `make setup`
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for block in blocks(page):
        if block.file:
            file = tmp_path / block.file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text)
        elif block.language == "sh" and block.not_run is None:
            done = subprocess.run(
                typed(block.text),
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=FOR_EVER_S,
            )
            assert done.returncode == 0, f"{block.text}\n{done.stdout}\n{done.stderr}"


def typed(text: str) -> list[str]:
    """The command that runs what people type. Where that names ports of this machine it has them to itself:
    the same page may be tried by somebody else at the same time.
    """
    shell = ["bash", "-eu", "-o", "pipefail", "-c"]
    if "127.0.0.1:" not in text:
        return [*shell, text]
    alone = ["unshare", "--user", "--map-root-user", "--net", "--"]
    if shutil.which("ip") is None or subprocess.run([*alone, "true"], capture_output=True).returncode != 0:
        pytest.skip("no network namespace can be made, or no ip is on the PATH")
    return [*alone, *shell, f"ip link set lo up\n{text}"]


def test_pages_have_blocks_that_are_run() -> None:
    assert [name_of(page) for page in RUN if not any(
        block.language == "sh" and block.not_run is None for block in blocks(page)
    )] == []  # fmt: skip
