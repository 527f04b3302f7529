"""Pages from recorded visits: HTTP Archives (HAR 1.2), as browsers' developer tools save them.

A HAR says when each resource was requested, when it arrived and how large it was; `har_initiator` says what
led to it. The moment at which it was found is put as a share of the initiator's bytes, or as a time after the
last of them, so that it moves with the network as it would in life. Urgency comes from the type: what
browsers note as `_priority` is of their own scale.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bentpipe.errors import UsageError
from bentpipe.workload.page.har_entries import Kept, kept_of
from bentpipe.workload.page.har_format import Log, log_of
from bentpipe.workload.page.har_initiator import found, initiators
from bentpipe.workload.page.model import MOST_RESOURCES, Page, Resource

_NOT_OF_A_NAME = re.compile(r"[^A-Za-z0-9._~-]+")
_MOST_LISTED = 12  # pages in a hint


@dataclass(frozen=True)
class Imported:
    """A page, and what was left out of it: reasons, and how many entries each."""

    page: Page
    left_out: Counter[str]
    unread: str  # what is wrong with the first entry that cannot be read; empty: all can be
    number: int | None  # of the page among those of the log, from 1; none: the log names none
    titles: tuple[str, ...]  # of the log's pages


def read(file: Path, number: int | None = None) -> Imported:
    """The page of a recorded visit: of the first document, or of the log's page with this number, from 1.
    BentpipeError, naming the file and what is wrong, if it is none.
    """
    log = log_of(file)
    pages = _pages(log)
    titles = tuple(pages.values())
    if number is not None and not 1 <= number <= len(pages):
        has = f"it has {len(pages)}" if pages else "it names none"
        raise UsageError(f"{file}: there is no page {number}: {has}", _listed(titles))
    kept, left_out = kept_of(log, file, None if number is None else list(pages)[number - 1])
    if len(kept) > MOST_RESOURCES:
        raise UsageError(f"{file}: {len(kept)} resources", f"a page has {MOST_RESOURCES} at most")
    found = list(pages).index(kept[0].entry.pageref) + 1 if kept[0].entry.pageref in pages else None
    unread = log.unread[0] if log.unread else ""
    return Imported(_page(kept), left_out, unread, found if number is None else number, titles)


def _pages(log: Log) -> dict[str, str]:
    """The log's pages in its order, by what entries name them, and their titles. Those that entries alone
    name come behind.
    """
    found = {one.id: _printable(one.title or one.id) for one in log.pages if one.id}
    for entry in sorted(log.entries, key=lambda one: one.started):
        if entry.pageref:
            found.setdefault(entry.pageref, _printable(entry.pageref))
    return found


def _listed(titles: tuple[str, ...]) -> str:
    if not titles:
        return "leave --page out"
    more = ", …" if len(titles) > _MOST_LISTED else ""
    return ", ".join(f"{n}: {title}" for n, title in enumerate(titles[:_MOST_LISTED], start=1)) + more


def _page(kept: list[Kept]) -> Page:
    document = kept[0]
    url = urlsplit(document.url)
    # The parts before the host or behind the path may be secret.
    source = f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"
    return Page(
        title=f"{_printable(url.hostname or source)}, {len(kept)} resources",
        source=f"a visit of {_printable(source)}, recorded on {document.entry.started:%Y-%m-%d}",
        resource=tuple(_resources(kept)),
    )


def _resources(kept: list[Kept]) -> Iterator[Resource]:
    paths = [_path(number, one.url) for number, one in enumerate(kept)]
    for path, one, initiator in zip(paths, kept, initiators(kept), strict=True):
        if initiator is None:
            yield Resource(path, one.type, one.bytes)
        else:
            share, wait_ms = found(one, kept[initiator])
            yield Resource(path, one.type, one.bytes, paths[initiator], share, wait_ms)


def _path(number: int, url: str) -> str:
    """A path of its own: the number, and the end of the URL's name."""
    name = _NOT_OF_A_NAME.sub("-", urlsplit(url).path.rpartition("/")[2]).strip("-")[-40:]
    return f"/{number}-{name}" if name else f"/{number}"


def _printable(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable())[:200]
