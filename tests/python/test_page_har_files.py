"""HARs as people have them: packed, of several pages, damaged."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from hypothesis import given
from hypothesis import strategies as st
from visits import HARS, SITE, document, entry, read

from bentpipe.errors import BentpipeError, UsageError
from bentpipe.packed import zstd
from bentpipe.workload import page as pages
from bentpipe.workload.page import har, toml


@pytest.mark.parametrize("pack", [lambda data: gzip.compress(data, mtime=0), zstd.compress])
def test_a_packed_visit_is_the_page_of_the_unpacked_one(bentpipe: Command, pack: Any) -> None:
    Path("example.org.har.gz").write_bytes(pack((HARS / "chromium.har").read_bytes()))
    done = bentpipe("page", "import", "example.org.har.gz")
    assert done.code == 0, done.err
    assert pages.load("example.org.toml") == har.read(HARS / "chromium.har").page


def test_an_entry_that_cannot_be_read_costs_no_other(bentpipe: Command) -> None:
    broken = [{"startedDateTime": "noon"}, entry(f"{SITE}/b", 20) | {"response": None}, 7]
    Path("visit.har").write_text(
        json.dumps({"log": {"entries": [document(), *broken, entry(f"{SITE}/a", 30)]}})
    )
    done = bentpipe("page", "import", "visit.har")
    assert done.code == 0 and "visit.toml: 2 resources" in done.out
    assert "left out, cannot be read: 3, the first: " in done.err and "log.entries[1]" in done.err


# Logs of several pages.


def merged(*names: str) -> dict[str, Any]:
    """As Browsertime merges those of its runs: what would stand there twice has `-1` appended."""
    whole: dict[str, Any] = {"creator": {"name": "Browsertime"}, "pages": [], "entries": []}
    for day, name in enumerate(names, start=1):
        ids = {one["id"] for one in whole["pages"]}
        entries = json.loads((HARS / f"{name}.har").read_text())["log"]["entries"]
        own = f"page_1{'-1' * len(ids)}"
        whole["pages"].append({"id": own, "title": f"run {day}", "_url": "https://localhost:4433/"})
        for one in entries:
            started = one["startedDateTime"].replace("2026-11", f"2026-{day:02}")
            whole["entries"].append(one | {"pageref": own, "startedDateTime": started})
    return {"log": whole}


def test_each_page_of_a_log_can_be_chosen(bentpipe: Command) -> None:
    Path("runs.har").write_text(json.dumps(merged("chromium", "chromium", "chromium")))
    resources = har.read(HARS / "chromium.har").page.resource
    for number in (1, 2, 3):
        done = bentpipe("page", "import", "runs.har", "--page", str(number), "-o", f"{number}.toml")
        assert done.code == 0 and f"  page {number} of 3: run {number}\n" in done.err, done.err
        assert f"2026-{number:02}-25" in pages.load(f"{number}.toml").source
        assert pages.load(f"{number}.toml").resource == resources
    done = bentpipe("page", "import", "runs.har")
    assert done.code == 0 and "  page 1 of 3 (others: --page): run 1\n" in done.err
    assert pages.load("runs.toml") == pages.load("1.toml")
    done = bentpipe("page", "import", "runs.har", "--page", "4", "-o", "4.toml")
    assert done.code == 2 and "there is no page 4: it has 3\nhint: 1: run 1, 2: run 2, 3: run 3" in done.err


def test_pages_that_entries_alone_name_can_be_chosen(tmp_path: Path) -> None:
    entries = [document(pageref="b"), entry(f"{SITE}/other/", 500, mime="text/html", pageref="a")]
    read(tmp_path, *entries)
    assert har.read(tmp_path / "visit.har").number == 1
    second = har.read(tmp_path / "visit.har", 2)
    assert second.titles == ("b", "a") and second.page.source.startswith(
        "a visit of https://example.org/other/"
    )


def test_a_log_without_pages_has_none_to_choose(tmp_path: Path) -> None:
    assert read(tmp_path, document()).number is None
    with pytest.raises(UsageError, match=r"visit.har: there is no page 1: it names none"):
        har.read(tmp_path / "visit.har", 1)


def test_views_of_webpagetest_are_pages(tmp_path: Path) -> None:
    """Its keys as its generator writes them: `connect` with `ssl` in it, the initiator as a URL, no type."""
    said = [
        {"id": f"page_1_{cached}_1", "title": f"Run 1, {view} View for {SITE}/"}
        for cached, view in ((0, "First"), (1, "Repeat"))
    ]
    more = {"_initiator": f"{SITE}/app.js", "_type": 3, "_request_type": "Script", "_run": 1}
    entries = [
        one | {"pageref": f"page_1_{cached}_1", "_cached": cached}
        for cached in (0, 1)
        for one in (
            document(at_ms=2000 * cached, size=5000) | {"_initiator": "", "_type": 3},
            entry(f"{SITE}/app.js", 2000 * cached + 60, mime="text/javascript", size=0 if cached else 900),
            entry(f"{SITE}/failed", 2000 * cached + 70, status=12999),
            *([] if cached else [entry(f"{SITE}/v.json", 200, mime="application/json") | more]),
        )
    ]
    log = {"pages": said, "creator": {"name": "WebPagetest"}, "browser": {"name": "Firefox"}}
    first = read(tmp_path, *entries, **log)
    assert (first.number, len(first.page.resource)) == (1, 3)
    assert first.page.resource[2].initiator == "/1-app.js"
    assert first.left_out == {"of another page": 2, "without an answer": 2}
    repeat = har.read(tmp_path / "visit.har", 2)
    assert repeat.titles[1] == f"Run 1, Repeat View for {SITE}/" and len(repeat.page.resource) == 2


WHOLE = [(HARS / f"{name}.har").read_bytes() for name in ("chromium", "firefox", "playwright")]


@given(st.sampled_from([*WHOLE, json.dumps(merged("firefox", "playwright")).encode()]), st.data())
def test_damage_ends_in_a_page_or_in_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, whole: bytes, data: st.DataObject
) -> None:
    """A prefix of a good file, or one with a byte changed."""
    content = bytearray(whole)
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        del content[place:]
    else:
        content[place] = data.draw(st.integers(0, 255))
    file = tmp_path_factory.mktemp("damaged") / "visit.har"
    file.write_bytes(content)
    try:
        made = har.read(file, data.draw(st.sampled_from([None, 1, 2]))).page
    except BentpipeError as error:
        assert str(file) in str(error) and error.hint
        return
    (file.parent / "visit.toml").write_text(toml.text(made))
    assert pages.load(str(file.parent / "visit.toml")) == made
