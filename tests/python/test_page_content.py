"""What is in the files of a page: that it leads to the page's resources, each where the page says."""

from __future__ import annotations

import io
import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image

from bentpipe import workload
from bentpipe.schema.bundle import BundleResource
from bentpipe.workload.page import catalogue, picture, visit
from bentpipe.workload.page.content import PageContent
from bentpipe.workload.served import write_files


def page(name: str) -> visit.PageVisit:
    found = workload.parse(f"page:{name}", "here")
    assert isinstance(found, visit.PageVisit)
    return found


class Markup(HTMLParser):
    """The resources that a document's markup names, and where it stands when it does, in bytes."""

    def __init__(self, document: bytes) -> None:
        super().__init__()
        self._lines = document.decode().splitlines(keepends=True)
        self.named: dict[str, int] = {}
        self.feed("".join(self._lines))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        line, column = self.getpos()
        end = sum(map(len, self._lines[: line - 1])) + column + len(self.get_starttag_text() or "")
        said = dict(attrs)
        for name in (said.get("src"), said.get("href")):
            if name:
                self.named[name] = end


@pytest.mark.parametrize("name", catalogue.names())
def test_pages_that_come_along_lead_browsers_through_them(name: str, tmp_path: Path) -> None:
    one = page(name)
    assert one.misfit is None
    write_files(tmp_path, one)
    for number, (path, expected) in enumerate(zip(one.requests, one.resources, strict=True)):
        body = (tmp_path / path[1:]).read_bytes()
        assert len(body) == expected.bytes
        if expected.type == "image":
            Image.open(io.BytesIO(body)).load()
        if expected.type == "fetch":
            json.loads(body)
        if number:
            leader = one.resources[expected.initiator or 0]
            whole = {one.contents[file] for file in one.contents if file.startswith(f"{expected.initiator}-")}
            assert leader.type not in ("document", "stylesheet", "script") or any(
                path[1:].encode() in text for text in whole
            )


def test_markup_names_resources_where_the_page_says() -> None:
    one = page("kosek")
    named = Markup(one.contents[one.requests[0][1:]]).named
    checked = 0
    for path, expected in zip(one.requests[1:], one.resources[1:], strict=True):
        if path[1:] in named and expected.found_after_bytes is not None:
            # No sooner than the page has it but for an end tag, and later by what else is named there.
            assert -len("</script>") <= named[path[1:]] - expected.found_after_bytes < 1500, path
            checked += 1
    assert checked > 40


def test_what_has_no_room_for_its_names_is_said() -> None:
    def resource(kind: str, size: int, initiator: int | None = 0) -> BundleResource:
        return BundleResource(
            type=kind, bytes=size, initiator=initiator, found_after_bytes=None, wait_ms=0, urgency=0,
            incremental=False,
        )  # fmt: skip

    def misfit(*page: BundleResource) -> str | None:
        return PageContent([f"{number}-x" for number in range(len(page))], page).misfit

    document = resource("document", 5000, None)
    assert misfit(document, resource("image", 10)) is None
    small = misfit(resource("document", 50, None), resource("image", 10))
    assert small == "resource 1, a document of 50 bytes, is too small to name the 1 that it leads to"
    style = misfit(document, resource("stylesheet", 500), resource("script", 10, 1))
    assert style == "resource 2, a stylesheet of 500 bytes, leads to a script, which styles cannot name"


def test_pictures_have_any_size_that_has_room() -> None:
    for size in [*range(86, 700), 65_535, 65_620, 1_000_003]:
        made = picture.png(size)
        assert made is not None and len(made) == size
        with Image.open(io.BytesIO(made)) as image:
            image.load()
    assert picture.png(71) is None


def test_files_of_other_pages_have_other_names() -> None:
    first, second = page("httparchive-median"), page("httparchive-p90")
    both = first.contents.keys() & second.contents.keys()
    assert all(first.contents[name] == second.contents[name] for name in both)
    assert first.requests[0] != second.requests[0]
