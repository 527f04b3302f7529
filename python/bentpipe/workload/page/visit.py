"""Workloads that are pages: `page:kosek:h3`, `page:visit.toml:h2`.

The canonical form of one that is a file has a digest of it behind the path, `page:visit.toml#1a2b3c4d:h2`:
what was loaded is known by it, and a run does not go on with another.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bentpipe.errors import UsageError, one_of
from bentpipe.schema.bundle import BundleResource
from bentpipe.workload.model import Kind, Workload
from bentpipe.workload.page import catalogue
from bentpipe.workload.page.model import Page, Resource, ResourceType
from bentpipe.workload.testcase import TestCase

TESTCASE = "page"
# What users call versions of HTTP, and their ALPN.
HTTP = {"h1": "http/1.1", "h2": "h2", "h3": "h3"}
DEFAULT = "h3"
_ENDING: dict[ResourceType, str] = {
    "document": "html", "stylesheet": "css", "script": "js", "font": "woff2", "image": "png", "media": "mp4",
    "fetch": "json", "other": "bin",
}  # fmt: skip
# What is of use before all of it is there.
_INCREMENTAL: tuple[ResourceType, ...] = ("document", "image", "media")


@dataclass(frozen=True)
class PageVisit(Workload):
    """A page that is loaded once, over a version of HTTP."""

    name: str  # of the page, or the path and digest of its file
    http: str  # a key of HTTP
    page: Page = field(compare=False)

    @property
    def own(self) -> str:
        return f"{TESTCASE}:{self.name}:{self.http}"

    @property
    def own_title(self) -> str:
        return f"page {self.name} over HTTP/{self.http.removeprefix('h')}"

    @property
    def testcase(self) -> str:
        return TESTCASE

    @property
    def alpn(self) -> str:
        return HTTP[self.http]

    @property
    def _names(self) -> list[str]:
        """What the files of its resources are called: paths as they were may name none."""
        stem = Path(self.name.partition("#")[0]).stem
        return [f"{stem}-{n}.{_ENDING[one.type]}" for n, one in enumerate(self.page.resource)]

    @property
    def requests(self) -> tuple[str, ...]:
        return tuple(f"/{name}" for name in self._names)

    @property
    def files(self) -> Mapping[str, int]:
        return dict(zip(self._names, (one.bytes for one in self.page.resource), strict=True))

    @property
    def measured_bytes(self) -> int:
        return self.page.size_bytes

    @property
    def resources(self) -> tuple[BundleResource, ...]:
        numbers = {one.path: number for number, one in enumerate(self.page.resource)}
        return tuple(_resource(one, numbers, self.page) for one in self.page.resource)


def _resource(one: Resource, numbers: Mapping[str, int], page: Page) -> BundleResource:
    initiator = numbers.get(one.initiator)
    is_at_end = initiator is None or one.found_after == 1
    return BundleResource(
        type=one.type,
        bytes=one.bytes,
        initiator=initiator,
        found_after_bytes=None if is_at_end else _found_after(one, page.resource[numbers[one.initiator]]),
        wait_ms=one.wait_ms,
        urgency=one.asked_with,
        incremental=one.type in _INCREMENTAL,
    )


def _found_after(one: Resource, initiator: Resource) -> int:
    return math.ceil(one.found_after * initiator.bytes)


def parse(name: str, value: str, where: str, flows: tuple[str, ...]) -> PageVisit | None:
    """The workload `name:value`, if it is of this kind."""
    if name != TESTCASE:
        return None
    page, colon, http = (part.strip() for part in value.rpartition(":"))
    if not colon:
        page, http = http, DEFAULT
    if not page:
        raise UsageError(f"{where} names no page", f"write {TESTCASE}:{catalogue.names()[0]}:{DEFAULT}")
    if http not in HTTP:
        raise UsageError(f'{where}: unknown version of HTTP "{http}"', one_of(http, HTTP, "versions"))
    path, _, digest = page.partition("#")
    found = catalogue.load(path)
    if path.endswith(".toml"):
        now = hashlib.sha256(Path(path).read_bytes()).hexdigest()[:8]
        if digest not in ("", now):
            raise UsageError(
                f"{where}: {path} is not what it was: its digest is {now}", "start a new run, or restore it"
            )
        page = f"{path}#{now}"
    return PageVisit(page, http, found, flows=flows)


def with_http(texts: tuple[str, ...], versions: tuple[str, ...], where: str) -> tuple[str, ...]:
    """Workloads, of which the pages are loaded over each of these versions. UsageError, naming `where` they
    were given, for one that there is not, and where no workload is a page that leaves it open."""
    for http in versions:
        if http not in HTTP:
            raise UsageError(f'{where}: unknown version of HTTP "{http}"', one_of(http, HTTP, "versions"))
    is_open = [text.strip().startswith(f"{TESTCASE}:") and text.count(":") == 1 for text in texts]
    if not any(is_open):
        hint = f"add --workload {TESTCASE}:{catalogue.names()[0]}"
        raise UsageError(f"{where}: no workload is a page without a version of its own", hint)
    return tuple(
        one
        for text, opens in zip(texts, is_open, strict=True)
        for one in ([f"{text.strip()}:{http}" for http in versions] if opens else [text])
    )


KIND = Kind((TESTCASE,), parse, {TESTCASE: TestCase(protocols=tuple(HTTP.values()))})
