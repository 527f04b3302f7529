"""Both ends of HTTP/3 (RFC 9114) in place of `hq-interop`, without socket or clock.

It is apart from `client` and `server`, because most trials need none of it, and its imports take time.
Source: `endpoints/contract/http.md`.
"""

from __future__ import annotations

import files
from client import ClientSession, Request
from dialect import HandshakeCompleted, QuicEvent, StreamDataReceived
from h3_layer import DataReceived, H3Connection, HeadersReceived
from server import ServerSession
from stack import H3_NO_ERROR, SERVER_NAME

OK, NOT_FOUND, METHOD_NOT_ALLOWED = b"200", b"404", b"405"


class H3ClientSession(ClientSession):
    """A connection whose requests are those of HTTP/3."""

    no_error = H3_NO_ERROR
    _http: H3Connection

    def handle(self, event: QuicEvent, now_ns: int) -> None:
        if isinstance(event, HandshakeCompleted):
            self._http = H3Connection(self.connection)
        if not isinstance(event, StreamDataReceived):
            super().handle(event, now_ns)
            return
        for said in self._http.handle_event(event):
            if isinstance(said, HeadersReceived):
                self._receive_headers(said, now_ns)
            elif isinstance(said, DataReceived) and not self._by_stream[said.stream_id].finished:
                self._receive(said.stream_id, said.data, said.stream_ended, now_ns)

    def _question(self, stream: int, request: Request, now_ns: int) -> None:
        self._http.send_headers(
            stream,
            [
                (b":method", b"GET"),
                (b":scheme", b"https"),
                (b":authority", SERVER_NAME.encode()),
                (b":path", request.path.encode()),
                *self._headers(request),
            ],
            end_stream=True,
        )

    def _headers(self, request: Request) -> list[tuple[bytes, bytes]]:
        """Further headers of a request."""
        return []

    def _receive_headers(self, said: HeadersReceived, now_ns: int) -> None:
        status = dict(said.headers).get(b":status")
        request = self._by_stream[said.stream_id]
        if status == OK:
            self._receive(said.stream_id, b"", said.stream_ended, now_ns)
        # Trailers have no status, and what is informational comes before the answer.
        elif status is not None and not status.startswith(b"1") and not request.finished:
            self._error = self._error or f"{request.path}: status {status.decode()}"
            self._finish(request, now_ns, is_whole=False)


class H3ServerSession(ServerSession):
    """A connection whose requests are those of HTTP/3."""

    _http: H3Connection

    def handle(self, event: QuicEvent, now_ns: int) -> None:
        if isinstance(event, HandshakeCompleted):
            self._http = H3Connection(self.connection)
        elif isinstance(event, StreamDataReceived):
            for said in self._http.handle_event(event):
                if isinstance(said, HeadersReceived):
                    self._reply(said.stream_id, dict(said.headers))

    def _reply(self, stream: int, question: dict[bytes, bytes]) -> None:
        if question.get(b":method") != b"GET":
            self._http.send_headers(stream, [(b":status", METHOD_NOT_ALLOWED)], end_stream=True)
            return
        content = files.load(self._folder, question.get(b":path", b"").decode(errors="replace"))
        if content is None:
            self._http.send_headers(stream, [(b":status", NOT_FOUND)], end_stream=True)
            return
        length = str(len(content)).encode()
        self._http.send_headers(stream, [(b":status", OK), (b"content-length", length)])
        # All at once: the library's send buffer has no limit.
        self._http.send_data(stream, content, end_stream=True)
