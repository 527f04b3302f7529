"""Writing HTTP Archives (HAR 1.2): the requests of a page in a trial, with their times.

Source: the HAR 1.2 specification (softwareishard.com/blog/har-12-spec). Types and initiators stand where
Chromium puts them, in `_resourceType` and `_initiator`, so that `har` reads them back. What is not known is
-1, as the format has it: how long a request waited for a connection, sizes of headers. Of the first request
all that was before it is `connect`. What did not come whole has the status 0, as browsers write it; what was
never asked for has no entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import bentpipe
from bentpipe.schema.requests import PageRequest
from bentpipe.workload.http import TITLES, VERSIONS

_ORIGIN = "https://server"
_PAGE = "page_1"
_UNKNOWN = -1
_HTTP = {alpn: TITLES[version] for version, alpn in VERSIONS.items()}
_MEDIA_TYPES = {
    "document": "text/html", "stylesheet": "text/css", "script": "text/javascript", "font": "font/woff2",
    "image": "image/png", "media": "video/mp4", "fetch": "application/json",
    "other": "application/octet-stream",
}  # fmt: skip


@dataclass(frozen=True)
class LoadedPage:
    """A page that was loaded. Times are in seconds since `started`; None: never."""

    title: str
    client: str  # what loaded it
    version: str  # of that
    alpn: str
    started: datetime  # UTC
    dcl_s: float | None
    plt_s: float | None
    requests: tuple[PageRequest, ...]  # in the order of asking

    @cached_property
    def types(self) -> dict[str, str]:
        """By their paths."""
        return {one.path: one.type for one in self.requests}


def har(loaded: LoadedPage) -> dict[str, Any]:
    """The archive, as JSON has it."""
    page = {
        "startedDateTime": _instant(loaded, 0.0),
        "id": _PAGE,
        "title": loaded.title,
        "pageTimings": {
            "onContentLoad": _ms_or_unknown(loaded.dcl_s),
            "onLoad": _ms_or_unknown(loaded.plt_s),
        },
    }
    log = {
        "version": "1.2",
        "creator": {"name": "Bentpipe", "version": bentpipe.__version__},
        "browser": {"name": loaded.client, "version": loaded.version},
        "pages": [page],
        "entries": list(_entries(loaded)),
    }
    return {"log": log}


def _entries(loaded: LoadedPage) -> Iterator[dict[str, Any]]:
    is_first = True
    for one in loaded.requests:
        if one.asked_s is not None:
            yield _entry(loaded, one, one.asked_s, is_first)
            is_first = False


def _entry(loaded: LoadedPage, one: PageRequest, asked_s: float, is_first: bool) -> dict[str, Any]:
    begun_s = asked_s if one.first_byte_s is None else one.first_byte_s
    ended_s = begun_s if one.last_byte_s is None else one.last_byte_s
    timings = {
        "blocked": _UNKNOWN,
        "dns": _UNKNOWN,
        "connect": _ms(asked_s) if is_first else _UNKNOWN,
        "ssl": _UNKNOWN,
        "send": 0,
        "wait": _ms(begun_s - asked_s),
        "receive": _ms(ended_s - begun_s),
    }
    return {
        "pageref": _PAGE,
        "startedDateTime": _instant(loaded, 0.0 if is_first else asked_s),
        "time": round(sum(step for step in timings.values() if step != _UNKNOWN), 3),
        "request": _request(loaded, one),
        "response": _response(loaded, one),
        "cache": {},
        "timings": timings,
        "_initiator": _initiator(loaded, one),
        "_resourceType": one.type,
    }


def _http(loaded: LoadedPage, one: PageRequest) -> str:
    """The version of HTTP that a resource came over."""
    alpn = one.protocol or loaded.alpn
    return _HTTP.get(alpn, alpn)


def _request(loaded: LoadedPage, one: PageRequest) -> dict[str, Any]:
    return {
        "method": "GET",
        "url": _url(one.path),
        "httpVersion": _http(loaded, one),
        "cookies": [],
        "headers": [],
        "queryString": [{"name": name, "value": value} for name, value in _query(one.path)],
        "headersSize": _UNKNOWN,
        "bodySize": 0,
    }


def _response(loaded: LoadedPage, one: PageRequest) -> dict[str, Any]:
    is_whole = one.last_byte_s is not None
    size = one.bytes if is_whole else 0
    answer: dict[str, Any] = {
        "status": 200 if is_whole else 0,
        "statusText": "OK" if is_whole else "",
        "httpVersion": _http(loaded, one),
        "cookies": [],
        "headers": [],
        "content": {"size": size, "mimeType": _MEDIA_TYPES.get(one.type, _MEDIA_TYPES["other"])},
        "redirectURL": "",
        "headersSize": _UNKNOWN,
        "bodySize": size if is_whole else _UNKNOWN,
    }
    return answer if is_whole else answer | {"_error": "not all of it came"}


def _initiator(loaded: LoadedPage, one: PageRequest) -> dict[str, str]:
    """A script leads to others by running, anything else by being parsed."""
    if one.initiator is None:
        return {"type": "other"}
    kind = "script" if loaded.types.get(one.initiator) == "script" else "parser"
    return {"type": kind, "url": _url(one.initiator)}


def _url(path: str) -> str:
    """Paths of pages may have any character in them; behind a # would be a fragment, which is never sent."""
    return _ORIGIN + path.replace("#", "%23")


def _query(path: str) -> list[tuple[str, str]]:
    return parse_qsl(urlsplit(_url(path)).query, keep_blank_values=True)


def _instant(loaded: LoadedPage, since_s: float) -> str:
    return f"{loaded.started + timedelta(seconds=since_s):%Y-%m-%dT%H:%M:%S.%f}Z"


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


def _ms_or_unknown(seconds: float | None) -> float:
    return _UNKNOWN if seconds is None else _ms(seconds)
