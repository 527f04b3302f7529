"""Replies to a page, as they are sent."""

from __future__ import annotations

from typing import Any

import msgspec

from bentpipe.schema.explore import FORMAT, Reply, ReplyKind

_NOTHING: dict[str, Any] = dict.fromkeys(Reply.__struct_fields__)


def reply(number: int, kind: ReplyKind, **parts: Any) -> Reply:
    """A reply to a request, with the parts that belong to its kind."""
    return Reply(**{**_NOTHING, **parts, "format": FORMAT, "number": number, "kind": kind})


def encoded(one: Reply) -> str:
    """A reply as JSON; numbers that JSON does not have are null."""
    return msgspec.json.encode(one).decode()
