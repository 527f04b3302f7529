"""Pages from recorded visits: HTTP Archives (HAR 1.2), as browsers' developer tools save them.

A HAR says when each resource was asked for and how large it was. Which one led to it is there if Chromium
wrote the file; elsewhere the request's Referer tells what a stylesheet asked for, and all else counts as the
document's. The moment at which it was found is put as a share of the initiator's bytes, or as a time after
the last of them, so that it moves with the network as it would in life.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from bentpipe.errors import UsageError
from bentpipe.workload.page.har_format import Entry, Har, Response
from bentpipe.workload.page.model import MOST_BYTES, MOST_RESOURCES, Page, Resource, ResourceType

MOST_FILE_BYTES = 2**28
_LONGEST_MS = 3_600_000
_NOT_OF_A_NAME = re.compile(r"[^A-Za-z0-9._~-]+")
_BY_CHROMIUM: dict[str, ResourceType] = {
    "document": "document", "stylesheet": "stylesheet", "script": "script", "font": "font",
    "image": "image", "media": "media", "xhr": "fetch", "fetch": "fetch",
}  # fmt: skip
_BY_MEDIA_TYPE: dict[str, ResourceType] = {
    "text/html": "document", "application/xhtml+xml": "document", "text/css": "stylesheet",
    "application/json": "fetch", "application/vnd.apple.mpegurl": "fetch", "application/dash+xml": "fetch",
}  # fmt: skip
_BY_WORD: dict[str, ResourceType] = {
    "javascript": "script", "ecmascript": "script", "font": "font",
    "image/": "image", "video/": "media", "audio/": "media",
}  # fmt: skip


@dataclass(frozen=True)
class Imported:
    """A page, and what of the file is not in it: reasons, and how many entries each."""

    page: Page
    left_out: Counter[str]


def read(file: Path) -> Imported:
    """The page of a recorded visit. UsageError, naming the file and what is wrong, if it is none."""
    try:
        if file.stat().st_size > MOST_FILE_BYTES:
            raise UsageError(f"{file}: larger than 256 MiB", "save it without the contents of responses")
        har = msgspec.json.decode(file.read_bytes(), type=Har)
    except FileNotFoundError:
        raise UsageError(f"{file}: there is no such file") from None
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        hint = "a HAR is what the network panel of a browser's developer tools saves"
        raise UsageError(f"{file}: not a HAR: {error}", hint) from None
    visit = _visit(file, har.log.entries)
    return Imported(visit.page, visit.left_out)


def _visit(file: Path, entries: list[Entry]) -> _Visit:
    left_out: Counter[str] = Counter()
    kept: dict[str, Entry] = {}
    document = None
    for entry in sorted(entries, key=lambda one: one.started_date_time):
        url, reason = entry.request.url, _reason(entry)
        if not reason and url in kept:
            reason = "asked for again"
        if not reason and document is None:
            document = url if _type(entry) == "document" else None
            reason = "" if document else "before the document"
        if reason:
            left_out[reason] += 1
        else:
            kept[url] = entry
    if document is None:
        raise UsageError(f"{file}: no document came in this visit", "record it from the page's start")
    if len(kept) > MOST_RESOURCES:
        raise UsageError(f"{file}: {len(kept)} resources", f"a page has {MOST_RESOURCES} at most")
    return _Visit(document, kept, left_out)


@dataclass(frozen=True)
class _Visit:
    """What came, by URL and in the order in which it was asked for: the document first."""

    document: str
    kept: dict[str, Entry]
    left_out: Counter[str]

    @property
    def page(self) -> Page:
        began = self.kept[self.document].started_date_time
        host = _printable(urlsplit(self.document).hostname or self.document)
        return Page(
            title=f"{host}, {len(self.kept)} resources",
            source=f"a visit of {_printable(self.document)}, recorded on {began:%Y-%m-%d}",
            resource=tuple(self._resource(entry) for entry in self.kept.values()),
        )

    @cached_property
    def number(self) -> dict[str, int]:
        """The place of each URL in the order."""
        return {url: number for number, url in enumerate(self.kept)}

    def path(self, url: str) -> str:
        """A path of its own: the number, and the end of the URL's name."""
        name = _NOT_OF_A_NAME.sub("-", urlsplit(url).path.rpartition("/")[2]).strip("-")[-40:]
        return f"/{self.number[url]}-{name}" if name else f"/{self.number[url]}"

    def _resource(self, entry: Entry) -> Resource:
        own = Resource(self.path(entry.request.url), _type(entry), _bytes(entry.response))
        if entry.request.url == self.document:
            return own
        initiator = self._initiator(entry)
        share, wait_ms = _found(entry, self.kept[initiator])
        return msgspec.structs.replace(
            own, initiator=self.path(initiator), found_after=share, wait_ms=wait_ms
        )

    def _initiator(self, entry: Entry) -> str:
        """The URL of what led to it: the first that is named and was asked for before it."""
        named = [header.value for header in entry.request.headers if header.name.lower() == "referer"]
        if entry.initiator is not None:
            frames = entry.initiator.stack.call_frames if entry.initiator.stack else []
            named = [entry.initiator.url, *(frame.url for frame in frames), *named]
        own = self.number[entry.request.url]
        earlier = (url for url in named if self.number.get(url, own) < own)
        return next(earlier, self.document)


def _reason(entry: Entry) -> str:
    """Why an entry is no resource of a page; empty: it may be one."""
    try:
        scheme = urlsplit(entry.request.url).scheme
    except ValueError:
        return "not a URL"
    if scheme not in ("http", "https"):
        return "not of HTTP"
    if entry.response.status in range(300, 400):
        return "redirected, or not modified"
    if entry.response.status not in range(200, 600):
        return "without an answer"
    return ""


def _type(entry: Entry) -> ResourceType:
    """As Chromium says; otherwise by the media type."""
    if entry.resource_type:
        return _BY_CHROMIUM.get(entry.resource_type, "other")
    media = entry.response.content.mime_type.partition(";")[0].strip().lower()
    if media in _BY_MEDIA_TYPE:
        return _BY_MEDIA_TYPE[media]
    return next((kind for word, kind in _BY_WORD.items() if word in media), "other")


def _bytes(response: Response) -> int:
    """Of the body as it was transferred; of one from the cache, of its content."""
    if response.body_size > 0:
        size = response.body_size
    elif response.transfer_size:
        size = response.transfer_size - max(response.headers_size, 0)
    else:
        size = response.content.size - max(response.content.compression, 0)
    return min(max(size, 0), MOST_BYTES)


def _found(entry: Entry, initiator: Entry) -> tuple[float, int]:
    """The share of the initiator's bytes that had come, and the milliseconds after the last of them."""
    since = entry.started_date_time - initiator.started_date_time
    since_ms = since.total_seconds() * 1000
    timings = initiator.timings
    steps = (timings.blocked, timings.dns, timings.connect, timings.send, timings.wait)
    first_ms = sum(min(max(step or 0.0, 0.0), _LONGEST_MS) for step in steps)
    last_ms = max(min(initiator.time, _LONGEST_MS), first_ms)
    if since_ms >= last_ms:
        return 1.0, min(round(since_ms - last_ms), _LONGEST_MS)
    return round(max(since_ms - first_ms, 0.0) / (last_ms - first_ms), 3) if last_ms > first_ms else 0.0, 0


def _printable(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable())[:200]
