"""What pages tell people to type works.

Every block marked `sh` is run, those of a page one after the other in one folder, which looks like a
checkout. A block whose mark names a file, as "python mine/endpoint.py", is what the reader is to save there.
What is not run has a comment above it that says why, `<!-- not run: … -->`; what it asks of our programs must
still be there: commands, options, targets, and of `bentpipe run` all that a plan names.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import command_lines
import pytest
from conftest import Command, present
from documents import PAGES, ROOT, Block, blocks, name_of, prose

from bentpipe.stacks import catalogue

FOR_EVER_S = 900  # what takes longer waits for what never comes
# Their commands are those that wrote them: `make docs`, which takes hours.
WRITTEN_BY_STUDIES = ROOT / "studies"
HISTORY = ROOT / "CHANGELOG.md"  # names what is gone
TYPED = [page for page in PAGES if not page.is_relative_to(WRITTEN_BY_STUDIES)]
RUN = [page for page in TYPED if any(block.language == "sh" and not block.not_run for block in blocks(page))]
HELP = sorted(ROOT.glob("products/*/src/**/help.txt"))  # of programs that are commands
# What belongs to who works in the checkout, and is of no use to somebody who reads a page.
PRIVATE = {"dist", "runs", "site", "target"}
IN_A_SENTENCE = re.compile(r"`((?:\S*/)?(?:bentpipe|make|cargo|benches/\S+\.py)\s[^`]+)`")
# An example in a help text, which may go on in further lines, with what it is for behind it.
EXAMPLE = re.compile(r"^ +(bentpipe (?:.*\\\n)*.*?)(?:   *\S.*)?$", re.MULTILINE)
# What a stack or program that is missing here says of itself.
ABSENT = re.compile(r"not installed|not on the PATH|needs .* or newer|there is no .*/dev/")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder that looks like a checkout, in which nothing that is written gets into it."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for entry in ROOT.iterdir():
        if entry.name == ".venv" or not (entry.name.startswith(".") or entry.name in PRIVATE):
            (folder / entry.name).symlink_to(entry)
    return folder


@pytest.mark.virtual_time
@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_what_a_page_tells_people_to_type_works(page: Path, checkout: Path) -> None:
    present()  # the stacks of `make setup`
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for block in blocks(page):
        if block.file:
            file = checkout / block.file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text)
        elif block.language == "sh" and block.not_run is None:
            if absent := stacks_of(block.text) - {*present(*stacks_of(block.text))}:
                pytest.skip(f"not installed: {', '.join(sorted(absent))}")
            done = subprocess.run(
                typed(block.text),
                cwd=checkout,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=FOR_EVER_S,
            )
            assert done.returncode == 0, f"{block.text}\n{done.stdout}\n{done.stderr}"


def stacks_of(text: str) -> set[str]:
    """The stacks that a block plays with; a kernel of its own comes with the stack `linux`."""
    named = set(
        re.findall(r"[a-z][\w-]+", " ".join(re.findall(r"--(?:client|server|flow|stack) (\S+)", text)))
    )
    if "--testbed sim" in text or "objectives derive" in text:
        named.add("linux")
    return named & set(catalogue.discover())


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
    tutorials = [ROOT / "README.md", *(ROOT / "docs" / "tutorials").glob("*.md")]
    assert [name_of(page) for page in tutorials if page not in RUN] == []


@pytest.mark.parametrize("page", [*(page for page in PAGES if page != HISTORY), *HELP], ids=name_of)
def test_programs_know_what_a_page_tells_people_to_type(page: Path) -> None:
    """Also what it names in its sentences, and examples in help texts."""
    said = [block.text for block in blocks(page) if block.language == "sh"]
    said += [re.sub(r"\s+", " ", found) for found in IN_A_SENTENCE.findall(prose(page))]
    helps = (
        [page.read_text()] if page in HELP else [one.text for one in blocks(page) if one.language == "text"]
    )
    said += [example for text in helps for example in EXAMPLE.findall(text)]
    faults = map(command_lines.fault, (words for text in said for words in command_lines.commands(text)))
    assert not [why for why in faults if why is not None]


def not_run(page: Path) -> Iterator[Block]:
    return (block for block in blocks(page) if block.language == "sh" and block.not_run)


@pytest.mark.parametrize("page", [page for page in TYPED if any(not_run(page))], ids=name_of)
def test_a_run_that_is_left_out_could_begin(page: Path, bentpipe: Command) -> None:
    lines = [words for block in not_run(page) for words in command_lines.commands(block.text)]
    for number, words in enumerate(lines):
        if words[:2] == ["bentpipe", "run"] and can_be_planned(words):
            done = bentpipe(*words[1:], "--iterations", "1", "--bundles", f"{number}")
            assert done.code == 0 or ABSENT.search(done.err), f"{words}\n{done.err}"


def can_be_planned(words: list[str]) -> bool:
    """Whether it names no file or folder of the reader's, and no link."""
    open_ends = any(command_lines.OPEN.search(word) for word in words)
    own = [word for word in words if ".toml" in word or word.startswith("my-")]
    return not (open_ends or own or {"--resume", "--out", "--link", "--executor"} & {*words})


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("bentpipe run --scenaro sat", "run: No such option '--scenaro'"),
        ("bentpipe rum", "there is no command rum"),
        ("bentpipe run --trace some", "--trace: some is none of"),
        ("bentpipe scenarios show sat more", "too many arguments: more"),
        ("sudo bentpipe tcp-pep --clientz lan0", "tcp-pep: it has no --clientz"),
        ("X=1 make tests", "the Makefile has no tests"),
        ("make test ORDR=7", "the Makefile has no ORDR"),
        ("(cd x && cargo test -p bentpipe-lnk)", "there is no crate bentpipe-lnk"),
        ("benches/pep.py --parts latency", "benches/pep.py has no --parts"),
        ("bentpipe lab -- bentpipe run --linc x > out 2> err", "run: No such option '--linc'"),
    ],
)
def test_what_programs_do_not_know_is_found(line: str, why: str) -> None:
    (found,) = filter(None, map(command_lines.fault, command_lines.commands(line)))
    assert why in found
