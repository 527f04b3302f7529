"""The client's end of a page over HTTP/3, without socket or clock.

Each resource is asked for when it is found, the most urgent first, and as many as the server allows.
Source: `endpoints/contract/pages.md`.
"""

from __future__ import annotations

from client import Request
from dialect import QuicConfiguration
from discovery import Discovery
from h3 import H3ClientSession
from h3_layer import HeadersReceived, may_open_stream
from job import Job

# Headers that a browser sends with every request.
BROWSER_HEADERS = [
    (b"user-agent", b"Mozilla/5.0 (X11; Linux x86_64) Bentpipe/1.0"),
    (b"accept", b"*/*"),
    (b"accept-encoding", b"identity"),
    (b"accept-language", b"en-US,en;q=0.9"),
]


class PageSession(H3ClientSession):
    """The connection of a page."""

    def __init__(
        self, job: Job, configuration: QuicConfiguration, requests: list[Request], wants_ticket: bool
    ) -> None:
        super().__init__(job, configuration, requests, wants_ticket)
        self._page = job.page
        self._discovery = Discovery(job.page)
        self._is_started = False

    @property
    def wake_ns(self) -> int | None:
        return self._discovery.next_wake

    @property
    def _is_answered(self) -> bool:
        return self._is_started and self._discovery.is_done

    def proceed(self, now_ns: int) -> None:
        if not self._is_started:
            self._is_started = True
            self._discovery.start(now_ns)
        self._discovery.advance(now_ns)
        if self._may_ask:
            self._ask(now_ns)

    def _ask(self, now_ns: int) -> None:
        while may_open_stream(self.connection) and (number := self._discovery.ask()) is not None:
            request = self._requests[number]
            request.asked_ns = now_ns
            self._ask_for(request, now_ns)

    def _headers(self, request: Request) -> list[tuple[bytes, bytes]]:
        return [*BROWSER_HEADERS, (b"priority", self._page[request.number].priority.encode())]

    def _receive_headers(self, said: HeadersReceived, now_ns: int) -> None:
        request = self._by_stream[said.stream_id]
        if request.first_byte_ns is None:
            request.first_byte_ns = now_ns
        super()._receive_headers(said, now_ns)

    def _arrived(self, request: Request, now_ns: int) -> None:
        self._discovery.arrived(now_ns, request.number, request.size)

    def _finish(self, request: Request, now_ns: int, *, is_whole: bool) -> None:
        if is_whole and request.last_byte_ns is None:
            request.last_byte_ns = now_ns
        self._discovery.ended(now_ns, request.number, is_whole=is_whole)
        super()._finish(request, now_ns, is_whole=is_whole)
