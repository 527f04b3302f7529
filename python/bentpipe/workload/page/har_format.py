"""HTTP Archives (HAR 1.2), as far as a page is made of them.

Keys that begin with `_` are those of Chromium's developer tools.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

Aware = Annotated[datetime, msgspec.Meta(tz=True)]


class Part(msgspec.Struct, rename="camel"):
    """A part of a HAR; keys that are not used are skipped."""


class Header(Part):
    name: str
    value: str


class Request(Part):
    url: str
    headers: list[Header] = []


class Content(Part):
    size: int = 0
    mime_type: str = ""
    compression: int = 0


class Response(Part):
    status: int
    content: Content = msgspec.field(default_factory=Content)
    headers_size: int = -1
    body_size: int = -1
    transfer_size: int | None = msgspec.field(default=None, name="_transferSize")


class Timings(Part):
    """In milliseconds; below 0: not known."""

    blocked: float | None = None
    dns: float | None = None
    connect: float | None = None
    send: float | None = None
    wait: float | None = None


class CallFrame(Part):
    url: str = ""


class CallStack(Part):
    call_frames: list[CallFrame] = []


class Initiator(Part):
    url: str = ""
    stack: CallStack | None = None


class Entry(Part):
    started_date_time: Aware
    request: Request
    response: Response
    time: float = 0.0
    timings: Timings = msgspec.field(default_factory=Timings)
    initiator: Initiator | None = msgspec.field(default=None, name="_initiator")
    resource_type: str = msgspec.field(default="", name="_resourceType")


class Log(Part):
    entries: list[Entry]


class Har(Part):
    log: Log
