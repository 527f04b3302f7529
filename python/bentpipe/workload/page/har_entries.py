"""The entries of a HAR that are resources of its page, and those that are left out, with the reason.

A log may hold several visits, preflights, redirections, and what was asked for again. The page is that of the
first document, or of the first of those that a page of the log has. What was redirected counts as asked for
when its first redirection was.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

from bentpipe.errors import UsageError
from bentpipe.workload.page.har_answer import bytes_of, came_ms, type_of
from bentpipe.workload.page.har_format import Entry, Log, without_fragment
from bentpipe.workload.page.model import ResourceType

_PREFLIGHTS = "preflights"
_REDIRECTED = "redirected"
_REDIRECTIONS = (301, 302, 303, 307, 308)
_PARTIAL = 206


class RequestedEntry(NamedTuple):
    """An entry, and when it was requested, which is before it was started if it was redirected."""

    entry: Entry
    when: datetime


@dataclass(frozen=True)
class Kept:
    """An entry that is a resource of the page. Times are in milliseconds since the document was started."""

    entry: Entry
    type: ResourceType
    bytes: int
    asked_ms: float
    first_ms: float
    last_ms: float

    @property
    def url(self) -> str:
        return self.entry.url


def kept_of(log: Log, file: Path, page_id: str | None = None) -> tuple[list[Kept], Counter[str]]:
    """The resources in the order in which they were requested, the document first, and how many entries are
    left out for which reason. With a `page_id`, they are those of this page of the log. UsageError, naming
    `file`, if there is no document or its size is not known.
    """
    entries = [one for one in log.entries if page_id is None or (one.pageref or page_id) == page_id]
    answers, left_out = _answers(entries)
    left_out["cannot be read"] += len(log.unread)
    left_out["of another page"] += len(log.entries) - len(entries)
    visit = _visit(answers, left_out)
    if not visit:
        what = "no document came in this visit" if page_id is None else "no document came in this page"
        redirected = f"; {_REDIRECTED}: {count}" if (count := left_out[_REDIRECTED]) else ""
        raise UsageError(f"{file}: {what}{redirected}", "record it from the page's start")
    document = visit[0].entry
    if bytes_of(document, log.is_of_firefox) is None:
        place = next(place for place, one in zip(log.places, log.entries, strict=True) if one is document)
        where = f"{file}: {place}.response"
        raise UsageError(
            f"{where}: the size of the document is not known: neither bodySize nor content.size says it",
            'record it with sizes (in Playwright with the mode "full") and with an empty cache',
        )
    kept: list[Kept] = []
    whole: set[str] = set()
    for entry, asked in visit:
        size = bytes_of(entry, log.is_of_firefox)
        is_whole = _asks_for_the_whole(entry)
        if size is None:
            left_out["of unknown size"] += 1
        elif is_whole and entry.url in whole:
            left_out["asked for again"] += 1
        else:
            kept.append(_kept(entry, size, asked - document.started, document, log.is_of_firefox))
            if is_whole:
                whole.add(entry.url)
    return [kept[0], *sorted(kept[1:], key=lambda one: one.asked_ms)], +left_out


def _visit(answers: list[RequestedEntry], left_out: Counter[str]) -> list[RequestedEntry]:
    """Those of the first document's page, which ends where the browser goes to another: Firefox gives both
    the same `pageref`. Empty: there is no document.
    """
    is_document = [type_of(entry) == "document" for entry, _ in answers]
    if not any(is_document):
        return []
    before = is_document.index(True)
    first, *rest = answers[before:]
    until = list(takewhile(lambda one: not _goes_on(one.entry, first.entry), rest))
    visit = [first, *(one for one in until if _is_of_one_page(one.entry, first.entry))]
    left_out["before the document"] += before
    left_out["of another page"] += 1 + len(rest) - len(visit)
    return visit


def _is_of_one_page(entry: Entry, document: Entry) -> bool:
    return not (entry.pageref and document.pageref) or entry.pageref == document.pageref


def _goes_on(entry: Entry, document: Entry) -> bool:
    """Whether it is the next document of the page's tab, and not fetched in advance."""
    request = entry.request
    goes = request.header("sec-fetch-dest") == "document" and not request.header("sec-purpose")
    return goes and _is_of_one_page(entry, document)


def _answers(entries: list[Entry]) -> tuple[list[RequestedEntry], Counter[str]]:
    """The responses that arrived, by their start; and how many other entries there are."""
    answers: list[RequestedEntry] = []
    left_out: Counter[str] = Counter()
    first_asked: dict[str, datetime] = {}  # by the URL that was redirected to
    for entry in sorted(entries, key=lambda one: one.started):
        reason = _reason(entry)
        is_preflight = reason == _PREFLIGHTS
        asked = entry.started if is_preflight else first_asked.pop(entry.url, entry.started)
        if reason == _REDIRECTED:
            first_asked.setdefault(_target(entry), asked)
        if reason:
            left_out[reason] += 1
        else:
            answers.append(RequestedEntry(entry, asked))
    return answers, left_out


def _reason(entry: Entry) -> str:
    """Why an entry is no resource of any page; empty: it may be one."""
    try:
        scheme = urlsplit(entry.url).scheme
    except ValueError:
        return "not a URL"
    if scheme not in ("http", "https"):
        return "not of HTTP"
    if entry.method == "OPTIONS":
        return _PREFLIGHTS
    if entry.response.status in _REDIRECTIONS:
        return _REDIRECTED
    return "" if 200 <= (entry.response.status or 0) < 600 else "without an answer"


def _target(entry: Entry) -> str:
    """The URL that it was redirected to; empty: not known."""
    try:
        target = urljoin(entry.url, entry.response.redirect_url or "")
    except ValueError:
        return ""
    return without_fragment(target) if entry.response.redirect_url else ""


def _asks_for_the_whole(entry: Entry) -> bool:
    """Whether it is a plain GET: of another method or of a range, each may get something else."""
    is_of_a_range = entry.response.status == _PARTIAL or entry.request.header("range")
    return entry.method == "GET" and not is_of_a_range


def _kept(entry: Entry, size: int, asked: timedelta, document: Entry, is_of_firefox: bool) -> Kept:
    started_ms = _ms(entry.started - document.started)
    first_ms, last_ms = came_ms(entry, is_of_firefox)
    return Kept(entry, type_of(entry), size, _ms(asked), started_ms + first_ms, started_ms + last_ms)


def _ms(since: timedelta) -> float:
    return since.total_seconds() * 1000
