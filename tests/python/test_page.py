"""Pages: what files of them may say, those that come along, and those made of recorded visits."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conftest import ROOT, Command
from hypothesis import example, given
from hypothesis import strategies as st

from bentpipe.errors import UsageError
from bentpipe.workload import page as pages
from bentpipe.workload.page import Page, Resource, har, toml

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


@pytest.mark.parametrize(
    ("resources", "wrong", "hint"),
    [
        ("resource = []\n", "a page has none", "begin with its document"),
        (STYLE, "resource 1: the first is not the page's document", "no initiator"),
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


@given(RESOURCES, TEXT, st.sampled_from(["", "two words", 'a "quoted" \\ word ' * 20]))
def test_what_is_written_is_read_again(resources: list[Resource], title: str, notes: str) -> None:
    numbered = (msgspec.structs.replace(one, path=f"/{n}") for n, one in enumerate(resources))
    made = Page(title, "s", (Resource("/", "document", 1), *numbered), notes)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "p.toml")
        file.write_text(toml.text(made))
        found = pages.load(str(file))
    assert (found.title, found.resource) == (made.title, made.resource)
    assert found.notes.split() == made.notes.split()


def entry(url: str, at_ms: int, **values: Any) -> dict[str, Any]:
    """As HAR 1.2 has it, and no more: it came within 100 ms, its first byte after 60."""
    response = {"status": values.pop("status", 200), "bodySize": values.pop("size", 1000), "headersSize": 300,
                "content": {"size": 4000, "mimeType": values.pop("mime", "image/png")}}  # fmt: skip
    return {
        "startedDateTime": f"2026-11-24T10:00:{at_ms // 1000:02}.{at_ms % 1000:03}+01:00",
        "time": 100,
        "request": {"url": url, "headers": values.pop("headers", [])},
        "response": response | values.pop("response", {}),
        "timings": {"blocked": -1, "dns": 10, "connect": 20, "send": 0, "wait": 30, "receive": 40},
    } | values


def imported(bentpipe: Command, *entries: dict[str, Any]) -> tuple[Page, str]:
    Path("visit.har").write_text(json.dumps({"log": {"version": "1.2", "entries": entries}}))
    done = bentpipe("page", "import", "visit.har", "-o", "visit.toml", "--force")
    assert done.code == 0, done.err
    return pages.load("visit.toml"), done.err


def test_a_visit_becomes_a_page(bentpipe: Command) -> None:
    """As Firefox saves it: types by what servers say, initiators by Referer."""
    referer = {"name": "Referer", "value": "https://example.org/s.css"}
    found, _ = imported(
        bentpipe,
        entry("https://example.org/", 0, mime="text/html; charset=utf-8", size=5000),
        entry("https://example.org/s.css", 80, mime="text/css"),
        entry("https://cdn.example.net/f?x=1", 200, mime="font/woff2", headers=[referer]),
        entry("https://example.org/app.js", 60, mime="text/javascript"),
    )
    assert [(one.path, one.type) for one in found.resource] == [
        ("/0", "document"), ("/1-app.js", "script"), ("/2-s.css", "stylesheet"), ("/3-f", "font"),
    ]  # fmt: skip
    style, font = found.resource[2:]
    # 20 of the 40 ms in which the document came had passed.
    assert (style.initiator, style.found_after, style.wait_ms) == ("/0", 0.5, 0)
    assert (font.initiator, font.found_after, font.wait_ms) == ("/2-s.css", 1.0, 20)
    assert found.resource[0].bytes == 5000 and found.title == "example.org, 4 resources"


def test_chromium_says_who_asked(bentpipe: Command) -> None:
    stack = {"type": "script", "stack": {"callFrames": [{"url": "https://example.org/app.js"}]}}
    sizes = {"bodySize": -1, "_transferSize": 1500}
    found, _ = imported(
        bentpipe,
        entry("https://example.org/", 0, _resourceType="document"),
        entry("https://example.org/app.js", 50, _resourceType="script", _initiator={"url": "https://example.org/"}),
        entry("https://example.org/v1", 300, _resourceType="xhr", _initiator=stack, response=sizes),
    )  # fmt: skip
    asked = found.resource[2]
    assert (asked.type, asked.initiator, asked.wait_ms, asked.bytes) == ("fetch", "/1-app.js", 150, 1200)


def test_what_is_left_out_is_said(bentpipe: Command) -> None:
    found, said = imported(
        bentpipe,
        entry("http://example.org/", 0, status=301, mime="text/html"),
        entry("https://example.org/", 50, mime="text/html"),
        entry("data:image/png;base64,AA", 60),
        entry("https://example.org/a.png", 70),
        entry("https://example.org/a.png", 80),
        entry("https://ads.example.net/", 90, status=0),
    )
    assert [one.path for one in found.resource] == ["/0", "/1-a.png"]
    for reason in ("redirected, or not modified: 1", "not of HTTP: 1", "asked for again: 1",
                   "without an answer: 1"):  # fmt: skip
        assert reason in said


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("{}", "missing required field `log`"),
        ('{"log": {"entries": [{}]}}', "$.log.entries[0]"),
        ("[", "not a HAR"),
        ('{"log": {"entries": []}}', "no document came in this visit"),
        (json.dumps({"log": {"entries": [entry("https://example.org/a.png", 0)]}}), "no document came"),
    ],
)
def test_what_is_no_visit_is_said(bentpipe: Command, text: str, wrong: str) -> None:
    Path("visit.har").write_text(text)
    done = bentpipe("page", "import", "visit.har")
    assert done.code == 2 and "visit.har" in done.err and wrong in done.err
    assert not Path("visit.toml").exists()


def test_a_name_keeps_its_dots(bentpipe: Command) -> None:
    Path("example.org.har").write_text(
        json.dumps({"log": {"entries": [entry("https://a/", 0, mime="text/html")]}})
    )
    assert bentpipe("page", "import", "example.org.har").code == 0 and Path("example.org.toml").exists()


def test_nothing_is_replaced_unasked(bentpipe: Command) -> None:
    Path("visit.har").write_text(json.dumps({"log": {"entries": [entry("https://a/", 0, mime="text/html")]}}))
    assert bentpipe("page", "import", "visit.har").code == 0
    again = bentpipe("page", "import", "visit.har")
    assert again.code == 2 and "visit.toml: is there already" in again.err
    assert bentpipe("page", "import", "visit.har", "-o", "visit.json").code == 2


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
PLACES = st.sampled_from(
    [("startedDateTime",), ("time",), ("request", "url"), ("request", "headers"), ("response", "status"),
     ("response", "bodySize"), ("response", "_transferSize"), ("response", "content"), ("timings",),
     ("timings", "wait"), ("_initiator",), ("_resourceType",)]
)  # fmt: skip
TIMES = st.sampled_from(
    ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59.999999-12:00", "1970-01-01T00:00:00Z"]
)
URLS = st.sampled_from(
    ["https://[::1", "https:///", "http://a/%00\u202e\ud800", "https://a/b\n", "https://b:x/"]
)


@given(st.lists(st.tuples(st.integers(0, 2), PLACES, JSON | TIMES | URLS), min_size=1, max_size=4))
@example([(0, ("time",), 1e308), (0, ("timings", "wait"), 1e308)])
@example([(1, ("startedDateTime",), "0001-01-01T00:00:00+01:00")])
def test_no_file_makes_it_stumble(changes: list[tuple[int, tuple[str, ...], Any]]) -> None:
    """It is a page that can be read again, or an error of the user's."""
    entries = [
        entry("https://a/", 0, mime="text/html"),
        entry("https://a/b.css", 50, mime="text/css"),
        entry("https://a/c", 70),
    ]
    for number, place, value in changes:
        table: Any = entries[number]
        for key in place[:-1]:
            table = table[key] if isinstance(table.get(key), dict) else {}
        table[place[-1]] = value
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder, "visit.har"), Path(folder, "visit.toml")
        file.write_text(json.dumps({"log": {"entries": entries}}))
        try:
            made = har.read(file).page
        except UsageError:
            return
        out.write_text(toml.text(made))
        assert pages.load(str(out)) == made
