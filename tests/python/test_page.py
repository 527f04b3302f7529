"""Pages: what files of them may say, and those that come along."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest
from conftest import ROOT, Command
from hypothesis import example, given
from hypothesis import strategies as st

from bentpipe.workload import page as pages
from bentpipe.workload.page import Page, Resource, toml

DOCUMENT = '[[resource]]\npath = "/"\ntype = "document"\nbytes = 9000\n'
STYLE = '[[resource]]\npath = "/a.css"\ntype = "stylesheet"\nbytes = 100\ninitiator = "/"\n'


def test_pages_that_come_along_are_as_their_recipes_make_them() -> None:
    check: list[str | Path] = [sys.executable, ROOT / "tools" / "page_recipes.py", "--check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "count", "size"),
    [("kosek", 75, 880_000), ("deutschmann", 70, 2_100_000), ("httparchive-median", 71, 2_652_000),
     ("httparchive-p90", 176, None), ("kuhn-a", 1, 5_300_000), ("kuhn-b", 1, 11_000)],
)  # fmt: skip
def test_pages_have_what_their_sources_state(name: str, count: int, size: int | None) -> None:
    found = pages.load(name)
    assert len(found.resource) == count and size in (None, found.size_bytes)


def test_a_page_says_what_must_come_one_after_the_other(bentpipe: Command) -> None:
    font = '[[resource]]\npath = "/b.woff2"\ntype = "font"\nbytes = 5\ninitiator = "/a.css"\nwait_ms = 20\n'
    Path("p.toml").write_text(f'title = "t"\nsource = "s"\n{DOCUMENT}{STYLE}found_after = 0.25\n{font}')
    done = bentpipe("page", "show", "p.toml")
    assert done.code == 0
    assert "3 requests one after the other: / → /a.css → /b.woff2" in done.out
    assert "at 25 %" in done.out and "at its end + 20 ms" in done.out
    shown = json.loads(bentpipe("page", "show", "p.toml", "--json").out)
    assert [one["path"] for one in shown["resource"]] == ["/", "/a.css", "/b.woff2"]


def test_what_a_browser_has_is_not_asked_for_and_what_it_leads_to_is_found_at_once() -> None:
    page = Page(
        "t", "s",
        (
            Resource("/", "document", 9000),
            Resource("/a.css", "stylesheet", 100, "/", 0.25, 5),
            Resource("/b.woff2", "font", 100, "/a.css", cached=False),
            Resource("/c.js", "script", 100, "/a.css", 0.5, 10),
            Resource("/d", "fetch", 100, "/c.js", 0.75, 20),
            Resource("/e", "image", 100, "/d"),
            Resource("/f", "fetch", 100, "/d", cached=True),
        ),
    )  # fmt: skip
    assert page.without_cached.resource == (
        Resource("/", "document", 9000),
        Resource("/b.woff2", "font", 100, "/", 0.25, 5, cached=False),
        Resource("/d", "fetch", 100, "/", 0.25, 35),
    )


@pytest.mark.parametrize(
    ("resources", "wrong", "hint"),
    [
        ("resource = []\n", "a page has none", "begin with its document"),
        (STYLE, "resource 1: the first is not the page's document", "no initiator"),
        (DOCUMENT + "cached = true\n", "cached: the document is always asked for", "leave cached out"),
        (DOCUMENT + STYLE + STYLE, 'resource 3: path: "/a.css" is there twice', "of its own"),
        (DOCUMENT + STYLE.replace('"/"', '"/b"'), 'initiator: "/b" does not stand before it', "leads to it"),
        (
            DOCUMENT + STYLE.replace('initiator = "/"', ""),
            "resource 2: initiator: it has none",
            "leads to it",
        ),
        (DOCUMENT.replace("9000", "-1"), "resource 1: bytes: -1 is not valid", "at least 0"),
        (DOCUMENT.replace('"/"', '"x"'), "path: 'x' is not valid", "a path from the root"),
        (DOCUMENT.replace('"document"', '"html"'), 'type: "html" is not valid', "document"),
        (DOCUMENT + STYLE + "found_after = 1.5\n", "found_after: 1.5 is not valid", "from 0 to 1"),
        (DOCUMENT + STYLE + "urgency = 8\n", "urgency: 8 is not valid", "from 0 to 7"),
        (DOCUMENT + "size = 3\n", 'unknown key "resource 1: size"', "bytes"),
    ],
)
def test_what_is_wrong_is_named(bentpipe: Command, resources: str, wrong: str, hint: str) -> None:
    Path("p.toml").write_text(f'title = "t"\nsource = "s"\n{resources}')
    done = bentpipe("page", "show", "p.toml")
    assert done.code == 2 and "p.toml" in done.err and wrong in done.err and hint in done.err


def test_a_page_that_is_not_there_is_named_with_those_that_are(bentpipe: Command) -> None:
    done = bentpipe("page", "show", "kosec")
    assert done.code == 2 and 'unknown page "kosec"' in done.err and "kosek" in done.err


RESOURCES = st.lists(
    st.builds(
        Resource,
        path=st.just("/"),
        type=st.sampled_from(["stylesheet", "script", "image"]),
        bytes=st.integers(0, 10**12),
        initiator=st.just("/"),
        found_after=st.floats(0, 1),
        wait_ms=st.integers(0, 3_600_000),
        urgency=st.none() | st.integers(0, 7),
    ),
    max_size=5,
)
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=30)
# What TOML, JSON or the breaking of lines might take for something else.
WORD = st.text(st.sampled_from('\\"nru0-.a\x7f\u2028'), min_size=1, max_size=30)


@given(RESOURCES, TEXT, TEXT | st.lists(WORD, max_size=40).map(" ".join))
@example([], "", r"C:\new")
@example([], "", "a " + " ".join(["well-known"] * 20))
@example([], "", "x" * 300)
def test_what_is_written_is_read_again(resources: list[Resource], title: str, notes: str) -> None:
    numbered = (msgspec.structs.replace(one, path=f"/{n}") for n, one in enumerate(resources))
    made = Page(title, "s", (Resource("/", "document", 1), *numbered), notes)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "p.toml")
        file.write_text(toml.text(made))
        found = pages.load(str(file))
    assert (found.title, found.resource) == (made.title, made.resource)
    assert found.notes.split() == made.notes.split()
