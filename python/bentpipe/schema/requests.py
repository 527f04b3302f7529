"""Requests of a page: generated from schemas/requests.toml by `make schemas`."""

from __future__ import annotations

import msgspec

FORMAT = 2


class FilmFrame(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A picture of the page from a moment on."""

    # When it was drawn; less than 0 of what was there before the client's first packet.
    at_s: float
    # The picture: JPEG, in base64.
    jpeg: str


class PageRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The request of a resource."""

    # Its path: a number, the size and the type, as in `/3-12000.css`.
    path: str
    # Its type: a word of [pages](pages.md).
    type: str
    # The size of its body, when all of it is there, bytes.
    bytes: int
    # The path of the resource that led to it; null the page begins with it.
    initiator: str | None
    # 0 to 7, the lowest first (RFC 9218, section 4.1).
    urgency: int
    # The application protocol that it came over, by its ALPN, where a browser says; null not reported: that
    # of the trial.
    protocol: str | None = None
    # When a connection accepted the request; null none did.
    asked_s: float | None
    # When the response began, its head included; null it never did.
    first_byte_s: float | None
    # When the response ended, all of the body being there; null not all of it came.
    last_byte_s: float | None


class PageRequests(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The requests of a page in a trial."""

    # The number of this file's format, as at the top of this page.
    format: int
    # An entry for each resource, in the order of the page, its document first; of a live stream one for each
    # segment that was requested, of type `media`.
    requests: list[PageRequest]
    # Pictures of the page as it was loaded, where its browser reports them: the picture before it, and up to
    # 23 others, the last one as it stayed.
    film: list[FilmFrame] = []
