"""HTTP Archives (HAR 1.2), as far as a page is made of them, and reading them.

Sources: the HAR 1.2 specification (softwareishard.com/blog/har-12-spec); what writes them in Chromium's
developer tools (front_end/models/har/Log.ts), in Firefox (devtools/client/netmonitor/src/har/har-builder.js),
in Playwright (server/har/harTracer.ts), in Browsertime (lib/support/har, and chrome-har of sitespeed.io) and
in WebPageTest (www/har/HttpArchiveGenerator.php). Keys that begin with `_` are no part of HAR 1.2. Writers
leave keys out, set them to null or to -1 where they do not know, and write whole numbers with a fraction.

Browsertime has a page for each run of a test, WebPageTest one for each run, first and repeat view, and step:
an entry names its page by `pageref`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bentpipe import packed
from bentpipe.errors import UsageError

MOST_FILE_BYTES = 2**28  # unpacked
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_HINT = "a HAR is what the network panel of a browser's developer tools saves"
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Part(msgspec.Struct, rename="camel"):
    """A part of a HAR; keys that are not used are skipped."""


class Header(Part):
    name: str | None = None
    value: str | None = None


class Request(Part):
    url: str
    method: str | None = None
    headers: list[Header] | None = None

    def header(self, name: str) -> str:
        """The value of the header of that name, in lower case; empty if there is none."""
        found = (one.value for one in self.headers or () if (one.name or "").lower() == name)
        return next(found, None) or ""


class Content(Part):
    size: float | None = None
    mime_type: str | None = None
    compression: float | None = None


class Response(Part):
    status: float | None = None
    content: Content | None = None
    headers_size: float | None = None
    body_size: float | None = None
    transfer_size: float | None = msgspec.field(default=None, name="_transferSize")
    redirect_url: str | None = msgspec.field(default=None, name="redirectURL")


class Timings(Part):
    """Times in milliseconds; below 0: not known."""

    blocked: float | None = None
    dns: float | None = None
    connect: float | None = None
    ssl: float | None = None
    send: float | None = None
    wait: float | None = None
    receive: float | None = None


class CallFrame(Part):
    url: str | None = None


class CallStack(Part):
    """The innermost frame first; `parent`: what the first of these calls was scheduled by."""

    call_frames: list[CallFrame] | None = None
    parent: CallStack | None = None


class Initiator(Part):
    url: str | None = None
    stack: CallStack | None = None

    @property
    def frames(self) -> list[str]:
        """URLs of the scripts that had called each other, the innermost first."""
        stack, urls = self.stack, []
        while stack is not None:
            urls += [frame.url for frame in stack.call_frames or () if frame.url]
            stack = stack.parent
        return urls


class Entry(Part):
    started_date_time: datetime
    request: Request
    response: Response
    time: float | None = None
    timings: Timings | None = None
    pageref: str | None = None
    initiator: Initiator | str | None = msgspec.field(default=None, name="_initiator")
    resource_type: str | None = msgspec.field(default=None, name="_resourceType")

    @property
    def url(self) -> str:
        """Without a fragment, which is never sent."""
        return without_fragment(self.request.url)

    @property
    def method(self) -> str:
        return (self.request.method or "GET").upper()

    @property
    def started(self) -> datetime:
        """Times without a zone are read as UTC."""
        time = self.started_date_time
        return time if time.tzinfo else time.replace(tzinfo=UTC)


class Writer(Part):
    name: str | None = None


class NamedPage(Part):
    id: str | None = None
    title: str | None = None


class _Log(Part):
    """Entries as they stand there: one that cannot be read costs no other."""

    entries: list[msgspec.Raw]
    pages: list[NamedPage] | None = None
    creator: Writer | None = None
    browser: Writer | None = None


class _Har(Part):
    log: _Log


@dataclass(frozen=True)
class Log:
    """The content of a HAR, as far as it can be read."""

    entries: list[Entry]
    places: list[str]  # of the entries in the file, as in `log.entries[3]`
    unread: list[str]  # what is wrong with the other entries, each with its place
    pages: list[NamedPage]
    is_of_firefox: bool


def without_fragment(url: str) -> str:
    return url.partition("#")[0]


def log_of(file: Path) -> Log:
    """The content of the file, which may be compressed by gzip or zstd. BentpipeError, naming the file and
    what is wrong, if it is not a HAR.
    """
    data = packed.read(file, MOST_FILE_BYTES, _HINT)
    try:
        log = msgspec.json.decode(data.removeprefix(_BYTE_ORDER_MARK), type=_Har).log
    except _UNREADABLE as error:
        raise UsageError(f"{file}: not a HAR: {error}", _HINT) from None
    entries, places, unread = [], [], []
    for number, raw in enumerate(log.entries):
        place = f"log.entries[{number}]"
        try:
            entries.append(msgspec.json.decode(raw, type=Entry))
            places.append(place)
        except _UNREADABLE as error:
            unread.append(_with_place(str(error), place))
    if unread and not entries:
        raise UsageError(f"{file}: not a HAR: {unread[0]}", _HINT)
    return Log(entries, places, unread, log.pages or [], _is_of_firefox(log))


def _with_place(said: str, place: str) -> str:
    """The error of msgspec about an entry, with the place in the file."""
    return said.replace("`$", f"`{place}") if "`$" in said else f"{said} - at `{place}`"


def _is_of_firefox(log: _Log) -> bool:
    """Whether Firefox wrote it, or Browsertime let Firefox write it. Playwright writes its own of every
    browser.
    """
    creator, browser = (one.name if one else None for one in (log.creator, log.browser))
    return creator == "Firefox" or (creator == "Browsertime" and (browser or "").lower() == "firefox")
