"""Pages made of recorded visits.

The three files in `hars` are of one visit each to a small site on loopback, over HTTP/1.1 and TLS: a
redirected document, a stylesheet with a font, a library and a script that calls it, a redirected image, a
frame, two POSTs to one URL, a fetch with a preflight. The developer tools of Chromium 156 and of Firefox 153
saved them, and Playwright 1.65, which went on to a second page. Keys that are not read were taken out.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from hypothesis import example, given
from hypothesis import strategies as st
from visits import HARS, SITE, document, entry, read

from bentpipe.errors import UsageError
from bentpipe.workload import page as pages
from bentpipe.workload.page import Page, Resource, har, toml

REQUESTED = {
    "": ("document", 27438, ""), "s.css": ("stylesheet", 1180, ""), "jq.js": ("script", 5036, ""),
    "app.js": ("script", 197, ""), "e.png": ("image", 3067, ""), "new.png": ("image", 3067, ""),
    "graphql": ("fetch", 60, "app.js"), "graphql 2": ("fetch", 60, "app.js"), "cross": ("fetch", 7, "app.js"),
    "frame.html": ("document", 19, ""), "f.woff2": ("font", 4000, "s.css"), "v1": ("fetch", 7, "app.js"),
    "infr.png": ("image", 3067, "frame.html"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("browser", "left_out"),
    [("chromium", {"redirected": 2, "preflights": 1}), ("firefox", {"redirected": 2, "preflights": 1}),
     ("playwright", {"redirected": 2, "of another page": 2})],
)  # fmt: skip
def test_a_visit_is_the_same_page_whoever_saved_it(browser: str, left_out: dict[str, int]) -> None:
    """But Chromium alone says which script asked."""
    found = har.read(HARS / f"{browser}.har")
    assert found.left_out == left_out
    assert found.page.source.startswith("a visit of https://localhost:4433/, recorded on 2026-11-25")
    requested: dict[str, tuple[str, int, str]] = {}
    for one in found.page.resource:
        name = _name(one.path) if _name(one.path) not in requested else f"{_name(one.path)} 2"
        requested[name] = (one.type, one.bytes, _name(one.initiator))
    requested.pop("favicon.ico", None)
    if browser != "chromium":
        requested |= {
            name: (*REQUESTED[name][:2], "app.js")
            for name, one in requested.items()
            if REQUESTED[name][2] == "app.js" and one[2] == ""
        }
    assert requested == REQUESTED


def _name(path: str) -> str:
    return path.partition("-")[2]


def of(name: str) -> dict[str, Any]:
    """The keys of a log that say who wrote it: `Playwright/firefox` did so of another's browser."""
    creator, _, browser = name.partition("/")
    return {"creator": {"name": creator}} | ({"browser": {"name": browser}} if browser else {})


def test_a_visit_becomes_a_page(tmp_path: Path) -> None:
    """Of a writer that keeps to HAR 1.2: types by what servers say, initiators by Referer."""
    found = read(
        tmp_path,
        document(mime="text/html; charset=utf-8", size=5000),
        entry(f"{SITE}/s.css", 80, mime="text/css"),
        entry("https://cdn.example.net/f?x=1", 200, mime="font/woff2", headers={"Referer": f"{SITE}/s.css"}),
        entry(f"{SITE}/app.js", 60, mime="text/javascript"),
    ).page
    assert found == Page(
        "example.org, 4 resources",
        "a visit of https://example.org/, recorded on 2026-11-24",
        (
            Resource("/0", "document", 5000),
            Resource("/1-app.js", "script", 1000, "/0", 0.0),
            # 20 of the 40 ms in which the document came had passed.
            Resource("/2-s.css", "stylesheet", 1000, "/0", 0.5),
            Resource("/3-f", "font", 1000, "/2-s.css", 1.0, 20),
        ),
    )


FIREFOX = {"blocked": 33, "dns": 0, "connect": 15, "ssl": 19, "send": 0, "wait": 81, "receive": 40}
SPECIFIED = {"blocked": 33, "dns": 0, "connect": 34, "ssl": 19, "send": 0, "wait": 81, "receive": 40}
WITHOUT_RECEIVE = {"connect": 30, "ssl": 20, "wait": 50}


@pytest.mark.parametrize(
    ("writer", "timings", "time", "found"),
    [
        # The first byte after 148 ms, the last after 188: at 178 three quarters had come.
        ("Firefox", FIREFOX, 188, (0.75, 0)),
        ("Browsertime/firefox", FIREFOX, 188, (0.75, 0)),
        ("WebInspector", SPECIFIED, 188, (0.75, 0)),
        ("Playwright/firefox", SPECIFIED, 207, (0.75, 0)),
        ("", SPECIFIED, None, (0.75, 0)),
        # The first byte after 80 ms, the last after 178, or at once.
        ("", WITHOUT_RECEIVE, 178, (1.0, 0)),
        ("", WITHOUT_RECEIVE | {"receive": -1}, 276, (0.5, 0)),
        ("", WITHOUT_RECEIVE | {"receive": 0}, 276, (1.0, 98)),
        ("", WITHOUT_RECEIVE, None, (1.0, 98)),
        ("", None, 178, (1.0, 0)),
    ],
)
def test_when_bytes_came(
    tmp_path: Path, writer: str, timings: Any, time: Any, found: tuple[float, int]
) -> None:
    first = document(timings=timings, time=time)
    asked = read(tmp_path, first, entry(f"{SITE}/a.png", 178), **of(writer)).page.resource[1]
    assert (asked.found_after, asked.wait_ms) == found


UNKNOWN = {"bodySize": -1, "content": {"size": -1}}


@pytest.mark.parametrize(
    ("writer", "values", "size"),
    [
        ("", {"bodySize": 403, "headersSize": 401}, 403),
        ("Firefox", {"bodySize": 403, "headersSize": 401}, 2),
        ("Firefox", {"bodySize": 403, "headersSize": -1}, 403),
        ("Firefox", {"bodySize": 401, "headersSize": 401}, 4000),
        ("Playwright/firefox", {"bodySize": 403, "headersSize": 401}, 403),
        ("", {"bodySize": -1, "_transferSize": 1500}, 1200),
        ("", {"bodySize": -1, "headersSize": -1, "_transferSize": 1500}, 1500),
        ("", {"bodySize": 0, "_transferSize": 0}, 4000),
        ("", {"bodySize": -1, "content": {"size": 4000, "compression": 3000}}, 1000),
        ("", {"bodySize": 1000.0, "content": {"size": None, "mimeType": None}}, 1000),
        ("", {"bodySize": None, "headersSize": None, "_transferSize": None}, 4000),
        ("", {"bodySize": 0, "content": {"size": 0}}, 0),
        ("", {"status": 204} | UNKNOWN, 0),
        ("", {"method": "HEAD"} | UNKNOWN, 0),
        ("", {"status": 304, "bodySize": 0, "_transferSize": 180}, 4000),
        ("Firefox", {"status": 304, "bodySize": 700}, 4000),
        ("", {"status": 304, "bodySize": 180, "content": {"size": 0}}, None),
        ("", UNKNOWN, None),
        ("Playwright", UNKNOWN | {"_transferSize": -1}, None),
        ("", {"bodySize": None, "content": None}, None),
    ],
)
def test_how_large_a_body_was(tmp_path: Path, writer: str, values: dict[str, Any], size: int | None) -> None:
    method = values.get("method", "GET")
    found = read(tmp_path, document(), entry(f"{SITE}/a", 200, response=values, method=method), **of(writer))
    assert [one.bytes for one in found.page.resource[1:]] == ([] if size is None else [size])
    assert found.left_out == ({"of unknown size": 1} if size is None else {})


@pytest.mark.parametrize("response", [UNKNOWN, {"status": 304, "content": {"size": 0}}])
def test_a_document_needs_a_size(bentpipe: Command, response: dict[str, Any]) -> None:
    """Also where a frame's is known, which does not become the page."""
    frame = entry("https://ads.example.net/", 200, mime="text/html")
    entries = [
        entry(f"{SITE}/a"),
        document(response={"content": {}} | response) | {"_resourceType": "document"},
    ]
    Path("visit.har").write_text(json.dumps({"log": {"entries": [*entries, frame]}}))
    done = bentpipe("page", "import", "visit.har")
    assert done.code == 2 and "visit.har: log.entries[1].response: the size of the document" in done.err
    assert 'mode "full"' in done.err


@pytest.mark.parametrize(
    ("values", "left_out"),
    [
        ({}, "asked for again"),
        ({"url": f"{SITE}/a#part"}, "asked for again"),
        ({"url": f"{SITE}/a?b"}, None),
        ({"method": "POST"}, None),
        ({"method": "post", "url": f"{SITE}/posted"}, None),
        ({"headers": {"range": "bytes=0-9"}}, None),
        ({"status": 206}, None),
        ({"status": 304}, "asked for again"),
        ({"method": "OPTIONS", "url": f"{SITE}/b"}, "preflights"),
        ({"url": "data:image/png;base64,AA"}, "not of HTTP"),
        ({"url": "https://[::1"}, "not a URL"),
        ({"url": f"{SITE}/b", "status": 0}, "without an answer"),
        ({"url": f"{SITE}/b", "status": None}, "without an answer"),
        ({"url": f"{SITE}/b", "status": 404}, None),
        ({"url": f"{SITE}/b", "status": 302}, "redirected"),
        ({"url": f"{SITE}/b", "status": 300}, None),
        ({"url": f"{SITE}/b", "status": 304}, None),
        ({"url": f"{SITE}/b", "pageref": "page_1"}, None),
        ({"url": f"{SITE}/b", "pageref": "page_2"}, "of another page"),
        ({"url": f"{SITE}/b", "pageref": None}, None),
    ],
)
def test_what_is_left_out_is_said(bentpipe: Command, values: dict[str, Any], left_out: str | None) -> None:
    again: dict[str, Any] = {"url": f"{SITE}/a", "at_ms": 20} | values
    first = document(pageref="page_1")
    before = [first, entry(f"{SITE}/a", 10), entry(f"{SITE}/posted", 10, method="POST")]
    Path("visit.har").write_text(json.dumps({"log": {"entries": [*before, entry(**again)]}}))
    done = bentpipe("page", "import", "visit.har")
    assert done.code == 0
    said = [line for line in done.err.splitlines() if not line.startswith("  page 1 of 2")]
    assert said == ([f"  left out, {left_out}: 1"] if left_out else [])
    assert len(pages.load("visit.toml").resource) == (3 if left_out else 4)


def test_a_document_from_the_cache_is_the_page(tmp_path: Path) -> None:
    """It, not an advertisement's frame; and what the earlier page still asked for is not of it."""
    found = read(
        tmp_path,
        entry("https://earlier.example/late.png", 0, pageref="page_1"),
        entry(f"{SITE}/", 10, status=304, mime="text/html", pageref="page_2"),
        entry("https://ads.example.net/", 90, mime="text/html", pageref="page_2"),
    )
    assert found.page.title == "example.org, 2 resources" and found.page.resource[0].bytes == 4000
    assert found.left_out == {"before the document": 1}


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ({}, 2),
        ({"headers": {"sec-fetch-dest": "iframe"}}, 4),
        ({"headers": {"sec-fetch-dest": "document", "sec-purpose": "prefetch;prerender"}}, 4),
        ({"pageref": "page_2"}, 3),
        ({"url": f"{SITE}/"}, 2),
    ],
)
def test_a_page_ends_with_the_next_document(tmp_path: Path, values: dict[str, Any], kept: int) -> None:
    """Firefox gives all documents of a tab one `pageref`."""
    going: dict[str, Any] = {"url": f"{SITE}/next", "at_ms": 200, "headers": {"sec-fetch-dest": "document"}}
    entries = [
        entry(f"{SITE}/a", 100),
        entry(**{"pageref": "page_1"} | going | values),
        entry(f"{SITE}/b", 300),
    ]
    found = read(tmp_path, document(pageref="page_1"), *entries)
    assert len(found.page.resource) == kept
    assert found.left_out == ({"of another page": 4 - kept} if kept < 4 else {})


def called(*frames: str, parent: Any = None) -> dict[str, Any]:
    """The stack of a request: names of scripts, the innermost first."""
    return {"callFrames": [{"url": f"{SITE}/{frame}"} for frame in frames], "parent": parent}


@pytest.mark.parametrize(
    ("values", "initiator"),
    [
        ({"_initiator": {"url": f"{SITE}/app.js"}}, "app.js"),
        ({"_initiator": {"url": f"{SITE}/app.js#fragment"}}, "app.js"),
        ({"_initiator": f"{SITE}/app.js"}, "app.js"),
        ({"_initiator": "not known"}, ""),
        ({"_initiator": {"url": None, "stack": None}}, ""),
        ({"_initiator": None}, ""),
        # A library that came long before is not what it waited for.
        ({"_initiator": {"stack": called("jquery.js", "app.js")}}, "app.js"),
        ({"_initiator": {"stack": called("app.js", "jquery.js")}}, "app.js"),
        ({"_initiator": {"stack": called("jquery.js", parent=called("app.js"))}}, "app.js"),
        ({"_initiator": {"stack": called(parent=called(parent=called("app.js")))}}, "app.js"),
        # What came later, or never, had not run.
        ({"_initiator": {"stack": called("late.js", "jquery.js")}}, "jquery.js"),
        ({"_initiator": {"stack": called("unknown.js", "later.js", "jquery.js")}}, "jquery.js"),
        ({"_initiator": {"stack": called("late.js")}}, "late.js"),
        ({"_initiator": {"stack": {"callFrames": None}}, "headers": {"referer": f"{SITE}/app.js"}}, "app.js"),
        ({"headers": {"Referer": f"{SITE}/app.js"}}, "app.js"),
        ({"headers": {"Referer": f"{SITE}/unknown"}}, ""),
        # Other origins are told the origin alone: that is not the frame at its root.
        ({"headers": {"Referer": "https://frame.example/"}}, ""),
        ({"headers": {"Referer": "https://frame.example"}}, ""),
        ({"headers": {"Referer": "https://frame.example/"}, "url": "https://frame.example/v"}, "frame"),
        ({"headers": {"Referer": "https://[::1"}}, ""),
    ],
)
def test_what_led_to_a_resource(tmp_path: Path, values: dict[str, Any], initiator: str) -> None:
    """A library came at 110 ms, a frame at 160, the page's script at 200, another at 380; it is of 300 ms."""
    own: dict[str, Any] = {"url": "https://example.net/v", "at_ms": 300} | values
    found = read(
        tmp_path,
        document(),
        entry(f"{SITE}/jquery.js", 10),
        entry("https://frame.example/", 60),
        entry(f"{SITE}/app.js", 100),
        entry(f"{SITE}/late.js", 280),
        entry(**own),
        entry(f"{SITE}/later.js", 310),
    ).page
    frame, asked = found.resource[2], found.resource[5]
    assert _name(asked.initiator) == ("" if initiator == "frame" else initiator)
    assert (asked.initiator == frame.path) == (initiator == "frame")


def test_a_script_that_ran_in_the_same_millisecond_had_come(tmp_path: Path) -> None:
    asked = {"_initiator": {"stack": called("jquery.js", "app.js")}}
    scripts = [entry(f"{SITE}/jquery.js", 10), entry(f"{SITE}/app.js", 100)]
    scripts[1]["timings"]["receive"] = 40.7
    found = read(tmp_path, document(), *scripts, entry(f"{SITE}/v", 200, **asked)).page.resource[3]
    assert _name(found.initiator) == "app.js"


def test_a_redirected_resource_was_asked_for_at_the_first(tmp_path: Path) -> None:
    """The page's document came at 100 ms. Starts of hops count for nothing else."""
    found = read(
        tmp_path,
        entry("http://example.org/", 0, status=301, response={"redirectURL": f"{SITE}/#top"}),
        document(at_ms=100),
        entry(f"{SITE}/a", 230, status=302, response={"redirectURL": "/b?c"}),
        entry(f"{SITE}/next", 260),
        entry(f"{SITE}/b?c", 280, status=307, response={"redirectURL": "https://cdn.example/d#e"}),
        entry("https://cdn.example/d", 330, method="OPTIONS"),
        entry("https://cdn.example/d", 340),
        entry(f"{SITE}/style.css", 500, headers={"referer": "https://cdn.example/d"}),
        entry("https://cdn.example/d", 600, method="POST"),
        entry(f"{SITE}/loop", 700, status=302, response={"redirectURL": None}),
        entry(f"{SITE}/loop", 710),
    )
    assert [(one.path, one.initiator, one.wait_ms) for one in found.page.resource[1:]] == [
        ("/1-d", "/0", 30),
        ("/2-next", "/0", 60),
        ("/3-style.css", "/1-d", 60),
        ("/4-d", "/0", 400),
        ("/5-loop", "/0", 510),
    ]
    assert found.left_out == {"redirected": 4, "preflights": 1}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        *[({"_resourceType": name, "headers": {"sec-fetch-dest": "image"}}, kind) for name, kind in
          [("xhr", "fetch"), ("texttrack", "media"), ("ping", "other"), (None, "image"), ("", "image")]],
        *[({"headers": {"Sec-Fetch-Dest": name}}, kind) for name, kind in
          [("iframe", "document"), ("frame", "document"), ("style", "stylesheet"),
           ("script", "script"), ("font", "font"), ("image", "image"), ("video", "media"), ("audio", "media"),
           ("track", "media"), ("empty", "fetch")]],
        ({"headers": {"Sec-Fetch-Dest": "document", "Sec-Purpose": "prefetch"}}, "document"),
        ({"headers": {"Sec-Fetch-Dest": "worker"}, "mime": "text/javascript"}, "script"),
        ({"mime": "application/problem+json; charset=utf-8"}, "fetch"),
        ({"mime": "image/svg+xml"}, "image"),
        ({"mime": "application/vnd.ms-fontobject"}, "font"),
        ({"mime": None}, "other"),
    ],
)  # fmt: skip
def test_of_which_type_a_resource_is(tmp_path: Path, values: dict[str, Any], kind: str) -> None:
    found = read(tmp_path, document(), entry(f"{SITE}/a", 200, **{"mime": "a/b", **values}))
    assert found.page.resource[1].type == kind


def test_what_is_asked_for_at_once_keeps_the_order_of_the_file(tmp_path: Path) -> None:
    names = ["b", "c", "a"]
    found = read(
        tmp_path, entry(f"{SITE}/d", 30), document(), *(entry(f"{SITE}/{name}", 20) for name in names)
    )
    assert [one.path for one in found.page.resource] == ["/0", "/1-b", "/2-c", "/3-a", "/4-d"]


def test_a_page_keeps_no_secrets_of_its_address(tmp_path: Path) -> None:
    found = read(tmp_path, entry("https://me:word@example.org:8443/in?token=1#part", mime="text/html"))
    assert "a visit of https://example.org:8443/in, recorded" in toml.text(found.page)
    assert not any(word in toml.text(found.page) for word in ("me:", "word", "token", "part"))


@pytest.mark.parametrize(
    ("place", "value"),
    [("_resourceType", None), ("_initiator", "https://example.org/"), ("_initiator", {"url": None}),
     ("time", None), ("timings", None), ("timings", {"wait": None}), ("pageref", None),
     ("response", {"status": 200.0, "bodySize": 1000.0}),
     ("response", {"status": 200, "bodySize": None, "content": {"size": 1000.0, "mimeType": None}}),
     ("request", {"url": "https://example.org/a", "headers": None}),
     ("request", {"url": "https://example.org/a", "method": None, "headers": [{"name": "x", "value": None}]}),
     ("startedDateTime", "2026-11-24T09:00:00.200")],
)  # fmt: skip
def test_what_writers_leave_open_is_read(tmp_path: Path, place: str, value: Any) -> None:
    """Also a time without a zone, which is UTC."""
    found = read(tmp_path, document(), entry(f"{SITE}/a", 200) | {place: value}).page.resource[1]
    assert (found.path, found.bytes, found.initiator, found.wait_ms) == ("/1-a", 1000, "/0", 100)


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    file = tmp_path / "visit.har"
    file.write_text(json.dumps({"log": {"entries": [document()]}}), encoding="utf-8-sig")
    assert len(har.read(file).page.resource) == 1


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (b"{}", "missing required field `log`"),
        (b'{"log": {"entries": [{}]}}', "`log.entries[0]`"),
        (b"[", "not a HAR"),
        (b'{"log": {"entries": []}}', "no document came in this visit"),
        (json.dumps({"log": {"entries": [entry(f"{SITE}/a.png")]}}).encode(), "no document came"),
        (
            json.dumps({"log": {"entries": [entry(f"{SITE}/", status=301)]}}).encode(),
            "in this visit; redirected: 1",
        ),
        (gzip.compress(b"{}", mtime=0), "missing required field `log`"),
        (gzip.compress(b"{}", mtime=0)[:-1], "is cut off"),
        (b"PK\x03\x04\x14\x00", "is packed by zip: unpack it first"),
    ],
)
def test_what_is_no_visit_is_said(bentpipe: Command, text: bytes, wrong: str) -> None:
    Path("visit.har").write_bytes(text)
    done = bentpipe("page", "import", "visit.har")
    assert done.code in (1, 2) and "visit.har" in done.err and wrong in done.err and "hint: " in done.err
    assert not Path("visit.toml").exists()


def test_a_file_that_is_not_there_is_named(bentpipe: Command) -> None:
    done = bentpipe("page", "import", "none.har")
    assert done.code == 2 and "none.har: there is no such file\nhint: a HAR is" in done.err


def test_a_name_keeps_its_dots(bentpipe: Command) -> None:
    Path("example.org.har").write_text(json.dumps({"log": {"entries": [document()]}}))
    assert bentpipe("page", "import", "example.org.har").code == 0 and Path("example.org.toml").exists()


def test_nothing_is_replaced_unasked(bentpipe: Command) -> None:
    Path("visit.har").write_text(json.dumps({"log": {"entries": [document()]}}))
    assert bentpipe("page", "import", "visit.har").code == 0
    again = bentpipe("page", "import", "visit.har")
    assert again.code == 2 and "visit.toml: is there already" in again.err


@pytest.mark.parametrize(
    ("out", "wrong", "hint"),
    [
        ("visit.json", "does not end with .toml", "-o visit.toml"),
        ("none/visit.toml", "-o: none/visit.toml: there is no folder none", "make it first"),
        ("file/visit.toml", "-o: file/visit.toml: there is no folder file", "make it first"),
        ("link.toml", "-o: link.toml: cannot be written", "name another file"),
    ],
)
def test_where_no_page_can_go_is_said(bentpipe: Command, out: str, wrong: str, hint: str) -> None:
    Path("visit.har").write_text(json.dumps({"log": {"entries": [document()]}}))
    Path("file").touch()
    Path("link.toml").symlink_to("none/visit.toml")
    done = bentpipe("page", "import", "visit.har", "-o", out)
    assert done.code == 2 and wrong in done.err and hint in done.err


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
PLACES = st.sampled_from(
    [("startedDateTime",), ("time",), ("request", "url"), ("request", "method"), ("request", "headers"),
     ("response", "status"), ("response", "bodySize"), ("response", "_transferSize"), ("response", "content"),
     ("response", "redirectURL"), ("timings",), ("timings", "wait"), ("timings", "receive"), ("_initiator",),
     ("_resourceType",), ("pageref",)]
)  # fmt: skip
TIMES = st.sampled_from(
    [
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59.999999-12:00",
        "1970-01-01T00:00:00Z",
        "0001-01-01T00:00",
    ]
)
URLS = st.sampled_from(
    ["https://[::1", "https:///", "http://a/%00\u202e\ud800", "https://a/b\n", "https://b:x/", "//[", "?a#b"]
)


@given(st.lists(st.tuples(st.integers(0, 3), PLACES, JSON | TIMES | URLS), min_size=1, max_size=4))
@example([(0, ("time",), 1e308), (0, ("timings", "wait"), 1e308)])
@example([(1, ("startedDateTime",), "0001-01-01T00:00:00+01:00")])
@example([(3, ("response", "redirectURL"), "//[")])
@example([(2, ("response", "bodySize"), 1e308), (2, ("response", "status"), 1e308)])
def test_no_file_makes_it_stumble(changes: list[tuple[int, tuple[str, ...], Any]]) -> None:
    """It is a page that can be read again, or an error of the user's."""
    entries = [
        entry("https://a/", 0, mime="text/html"),
        entry("https://a/b.css", 50, mime="text/css"),
        entry("https://a/c", 70),
        entry("https://a/d", 10, status=302, response={"redirectURL": "c"}),
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
