"""Workloads that are pages: `page:kosek:h3`, `page:visit.toml:h2`, `page:kosek:h3:early-cached`.

The canonical form of one that is a file has a digest of it behind the path, `page:visit.toml#1a2b3c4d:h2`:
what was loaded is known by it, and a run does not go on with another. The file itself is read when that is
asked for what is in it, so that records can be read where it is no more.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from bentpipe.errors import UsageError, one_of
from bentpipe.schema.bundle import BundleResource
from bentpipe.workload.http import DEFAULT_VERSION, TITLES, UPGRADE, VERSIONS, HttpWorkload
from bentpipe.workload.model import Kind
from bentpipe.workload.page import catalogue
from bentpipe.workload.page.content import NAMING, PageContent, empty_document
from bentpipe.workload.page.model import Page, Resource, ResourceType
from bentpipe.workload.testcase import TestCase

TESTCASE = "page"


@dataclass(frozen=True)
class VisitKind:
    """The state that an earlier visit leaves when a page is loaded."""

    testcase: str
    is_cached: bool  # what a browser keeps is not asked for
    title: str


FIRST = "first"
VISITS = {
    FIRST: VisitKind(TESTCASE, False, ""),
    "resumed": VisitKind("page-resumption", False, "with a session ticket"),
    "early": VisitKind("page-zerortt", False, "with early data"),
    "resumed-cached": VisitKind("page-resumption", True, "with a session ticket and a cache"),
    "early-cached": VisitKind("page-zerortt", True, "with early data and a cache"),
}
# The request of that visit that matters here: the ticket arrives with its reply.
_EARLIER = "earlier-visit.html"
_EARLIER_BYTES = 1000
_ENDING: dict[ResourceType, str] = {
    "document": "html", "stylesheet": "css", "script": "js", "font": "woff2", "image": "png", "media": "mp4",
    "fetch": "json", "other": "bin",
}  # fmt: skip
# Types that are of use before all of the resource is there.
_INCREMENTAL: tuple[ResourceType, ...] = ("document", "image", "media")


@dataclass(frozen=True)
class PageVisit(HttpWorkload):
    """A page that is loaded over a version of HTTP, on a first visit or a later one. UsageError for an
    unknown one.
    """

    name: str  # of the page, or the path of its file
    digest: str = ""  # of the file
    visit: str = FIRST  # a key of VISITS

    def __post_init__(self) -> None:
        if self.http == UPGRADE and self.is_later:
            raise UsageError(
                f"{self.own}: pages have an upgrade on a first visit alone", "leave out what the visit is"
            )
        if self.http != "h3" and self.testcase == "page-zerortt":
            raise UsageError(
                f"{self.own}: pages have early data over HTTP/3 alone",
                "write h3, or resumed in place of early",
            )

    @cached_property
    def page(self) -> Page:
        """The resources that are requested of it. UsageError if its file is gone, or has changed."""
        if self.digest and (now := _digest(self.name)) != self.digest:
            raise UsageError(
                f"{self.name} is not what it was: its digest is {now}, not {self.digest}",
                "start a new run, or restore it",
            )
        whole = catalogue.load(self.name)
        return whole.without_cached if VISITS[self.visit].is_cached else whole

    @property
    def own(self) -> str:
        digest = self.digest and f"#{self.digest}"
        visit = "" if self.visit == FIRST else f":{self.visit}"
        return f"{TESTCASE}:{self.name}{digest}:{self.http}{visit}"

    @property
    def own_title(self) -> str:
        visit = VISITS[self.visit].title
        return f"page {self.name} over {TITLES[self.http]}{visit and f', {visit}'}"

    @property
    def testcase(self) -> str:
        return VISITS[self.visit].testcase

    @property
    def is_later(self) -> bool:
        """Whether something remains of an earlier visit."""
        return self.testcase != TESTCASE

    @property
    def _earlier(self) -> Mapping[str, int]:
        """The files of the earlier visit."""
        return {_EARLIER: _EARLIER_BYTES} if self.is_later else {}

    @cached_property
    def _names(self) -> list[str]:
        """The names of its resources' files: by what decides their bytes, in some all that the page
        is. Paths as they were may name none.
        """
        page = hashlib.sha256(msgspec.json.encode(self.resources)).hexdigest()[:6]
        return [
            f"{number}-{one.bytes}{f'-{page}' if one.type in NAMING else ''}.{_ENDING[one.type]}"
            for number, one in enumerate(self.page.resource)
        ]

    @cached_property
    def content(self) -> PageContent:
        """The contents of its files."""
        return PageContent(self._names, self.resources)

    @property
    def contents(self) -> Mapping[str, bytes]:
        earlier = {name: empty_document(size) for name, size in self._earlier.items()}
        return {**earlier, **self.content.files}

    @property
    def misfit(self) -> str | None:
        return self.content.misfit

    @property
    def requests(self) -> tuple[str, ...]:
        return tuple(f"/{name}" for name in (*self._earlier, *self._names))

    @property
    def files(self) -> Mapping[str, int]:
        own = zip(self._names, (one.bytes for one in self.page.resource), strict=True)
        return {**self._earlier, **dict(own)}

    @property
    def measured_bytes(self) -> int:
        return self.page.size_bytes

    def measured_of(self, size_bytes: int) -> int:
        return size_bytes - sum(self._earlier.values())

    @cached_property
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
    page, http, visit = _split(value, where)
    if canonical := re.fullmatch(r"(.+\.toml)#([0-9a-f]{8})", page):
        return PageVisit(http, canonical[1], canonical[2], visit, flows=flows)
    catalogue.load(page)
    return PageVisit(http, page, _digest(page) if page.endswith(".toml") else "", visit, flows=flows)


def _split(value: str, where: str) -> tuple[str, str, str]:
    """Page, version of HTTP, and visit. Paths may have a colon in them."""
    page = value.strip()
    words: list[str] = []
    while (colon := page.rpartition(":"))[1] and not set("./") & set(colon[2]):
        page, words = colon[0].strip(), [colon[2].strip(), *words]
    if not page:
        raise UsageError(
            f"{where} names no page", f"write {TESTCASE}:{catalogue.names()[0]}:{DEFAULT_VERSION}"
        )
    visits = [word for word in words if word in VISITS]
    versions = [word for word in words if word not in VISITS] or [DEFAULT_VERSION]
    for http in versions:
        if http not in VERSIONS:
            known = one_of(http, (*VERSIONS, *VISITS), "versions and visits")
            raise UsageError(f'{where}: "{http}" is neither a version of HTTP nor a visit', known)
    if len(visits) > 1 or len(versions) > 1:
        raise UsageError(
            f"{where} has more than a page, a version and a visit", f"write {TESTCASE}:kosek:h3:resumed"
        )
    return page, versions[0], visits[0] if visits else FIRST


def _digest(file: str) -> str:
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:8]
    except OSError as error:
        raise UsageError(
            f"{file}: {error.strerror}", "the page of this run was there when it began"
        ) from None


def from_folder(folder: Path, text: str) -> str:
    """A workload as a file in `folder` names it: the path of a page is relative to that folder."""
    name, colon, value = text.partition(":")
    if name.strip() != TESTCASE or ".toml" not in value:
        return text
    return f"{name}{colon}{folder / value.strip()}"


_PROTOCOLS = tuple(VERSIONS.values())
KIND = Kind(
    (TESTCASE,),
    parse,
    {
        TESTCASE: TestCase(protocols=_PROTOCOLS),
        # Of several connections at one time the first has the ticket.
        "page-resumption": TestCase(
            least=2, connections=2, protocols=tuple(alpn for alpn in _PROTOCOLS if alpn != UPGRADE)
        ),
        "page-zerortt": TestCase(least=2, connections=2, before=1.0, protocols=(VERSIONS["h3"],)),
    },
)
