"""The response in an entry of a HAR: its type, its size, and when it arrived.

Where writers differ. Firefox's `connect` is that of TCP alone, with `ssl` after it; elsewhere `ssl` is a part
of `connect`, as HAR 1.2 has it. Firefox's `bodySize` is that of body and headers. Playwright's `time` counts
`ssl` twice, so that the last byte is put at the first and `receive`. Chromium knows no `bodySize` over HTTP/2
and HTTP/3: there `_transferSize` counts, which includes the headers.
"""

from __future__ import annotations

from bentpipe.workload.page.har_format import Content, Entry, Timings
from bentpipe.workload.page.model import MOST_BYTES, ResourceType

LONGEST_MS = 3_600_000
_NOT_MODIFIED = 304
_NO_CONTENT = 204
_BY_CHROMIUM: dict[str, ResourceType] = {
    "document": "document", "stylesheet": "stylesheet", "script": "script", "font": "font",
    "image": "image", "media": "media", "texttrack": "media", "xhr": "fetch", "fetch": "fetch",
}  # fmt: skip
# Sec-Fetch-Dest, of the W3C's Fetch Metadata Request Headers: sent over HTTPS.
_BY_DESTINATION: dict[str, ResourceType] = {
    "document": "document", "iframe": "document", "frame": "document", "style": "stylesheet",
    "script": "script", "font": "font", "image": "image", "video": "media", "audio": "media",
    "track": "media", "empty": "fetch",
}  # fmt: skip
_BY_MEDIA_TYPE: dict[str, ResourceType] = {
    "text/html": "document", "application/xhtml+xml": "document", "text/css": "stylesheet",
    "application/json": "fetch", "application/vnd.apple.mpegurl": "fetch", "application/dash+xml": "fetch",
}  # fmt: skip
_BY_WORD: dict[str, ResourceType] = {
    "javascript": "script", "ecmascript": "script", "font": "font", "image/": "image",
    "video/": "media", "audio/": "media", "+json": "fetch",
}  # fmt: skip


def type_of(entry: Entry) -> ResourceType:
    """The resource type by Chromium's field, by the request's Sec-Fetch-Dest, or else by the media type."""
    if entry.resource_type:
        return _BY_CHROMIUM.get(entry.resource_type, "other")
    destination = entry.request.header("sec-fetch-dest").strip().lower()
    if destination in _BY_DESTINATION:
        return _BY_DESTINATION[destination]
    content = entry.response.content or Content()
    media = (content.mime_type or "").partition(";")[0].strip().lower()
    if media in _BY_MEDIA_TYPE:
        return _BY_MEDIA_TYPE[media]
    return next((kind for word, kind in _BY_WORD.items() if word in media), "other")


def bytes_of(entry: Entry, is_of_firefox: bool) -> int | None:
    """The size of the body as transferred; from the cache, the size of its content. None: not known."""
    status = entry.response.status
    if status == _NO_CONTENT or entry.method == "HEAD":
        return 0
    content = _of_content(entry)
    if status == _NOT_MODIFIED:
        return content or None  # one from the cache was not empty
    transferred = _transferred(entry, is_of_firefox)
    return content if transferred is None else transferred


def _transferred(entry: Entry, is_of_firefox: bool) -> int | None:
    """None: not known, or nothing was, as from the cache."""
    response = entry.response
    headers = max(response.headers_size or 0.0, 0.0)
    body = (response.body_size or 0.0) - (headers if is_of_firefox else 0.0)
    if body > 0:
        return _whole(body)
    if (response.transfer_size or 0.0) > 0:
        return _whole((response.transfer_size or 0.0) - headers)
    return None


def _of_content(entry: Entry) -> int | None:
    content = entry.response.content
    if content is None or content.size is None or content.size < 0:
        return None
    return _whole(content.size - max(content.compression or 0.0, 0.0))


def _whole(size: float) -> int:
    return int(min(max(size, 0.0), MOST_BYTES))


def came_ms(entry: Entry, is_of_firefox: bool) -> tuple[float, float]:
    """The times at which its first and its last byte arrived, since it was started."""
    timings = entry.timings or Timings()
    steps = [timings.blocked, timings.dns, timings.connect, timings.send, timings.wait]
    first = sum(map(_known, [*steps, timings.ssl] if is_of_firefox else steps))
    if timings.receive is not None and timings.receive >= 0:
        return first, first + _known(timings.receive)
    return first, max(first, _known(entry.time))


def _known(step_ms: float | None) -> float:
    return min(max(step_ms or 0.0, 0.0), LONGEST_MS)
