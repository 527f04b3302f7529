"""The client's end of `hq-interop`, without socket or clock.

Once a connection's handshake is complete, or before it in 0-RTT packets, the client opens a stream for each
request, all at once as far as the library lets it. It sends `GET /path\\r\\n` and FIN and stores the reply;
in `upload` it sends `PUT /path\\r\\n`, the file and FIN. Source: `endpoints/contract/test-cases.md`.
"""

from __future__ import annotations

from collections import deque
from typing import BinaryIO

import dialect
import files
from dialect import (
    ConnectionTerminated,
    HandshakeCompleted,
    QuicConfiguration,
    QuicConnection,
    QuicEvent,
    SessionTicket,
    StreamDataReceived,
    StreamReset,
)
from failures import Failed
from job import HQ, PAGE, ZERORTT, Job


class Request:
    """A request and what came of it; times in ns, None: never."""

    def __init__(self, number: int, path: str) -> None:
        self.number = number
        self.path = path
        self.asked_ns: int | None = None  # of a page
        self.size = 0  # bytes received; in an upload: handed to the stack
        self.first_byte_ns: int | None = None
        self.last_byte_ns: int | None = None
        self.finished = False
        self.store: BinaryIO | None = None

    def report(self) -> dict[str, object]:
        """Its entry in BYE."""
        asked = {} if self.asked_ns is None else {"asked_ns": self.asked_ns}
        return {
            "path": self.path,
            **asked,
            "bytes": self.size,
            "first_byte_ns": self.first_byte_ns,
            "last_byte_ns": self.last_byte_ns,
        }


class Client:
    """The client of a trial: one connection, or one that gets a ticket and one that uses it."""

    def __init__(self, job: Job, configuration: QuicConfiguration) -> None:
        self.requests = [Request(number, path) for number, path in enumerate(job.requests)]
        self.sessions: list[ClientSession] = []
        self._job = job
        self._configuration = configuration
        self._parts = [self.requests[:1], self.requests[1:]] if job.tickets else [self.requests]

    @property
    def handshake_ns(self) -> int | None:
        """When the handshake of the first connection was complete."""
        return self.sessions[0].handshake_ns if self.sessions else None

    def next_session(self) -> ClientSession | None:
        """The connection to open now that the last one has ended; None: there is none."""
        opened = len(self.sessions)
        if opened == len(self._parts) or (opened and not self.sessions[-1].ended):
            return None
        if opened:
            self._configuration.session_ticket = self.sessions[-1].ticket
        wants_ticket = opened + 1 < len(self._parts)
        session = _session_class(self._job)
        self.sessions.append(session(self._job, self._configuration, self._parts[opened], wants_ticket))
        return self.sessions[-1]

    def explain(self) -> str | None:
        """Why the connections, which have ended, have not brought every reply; None: they have."""
        return next(filter(None, (session.explain() for session in self.sessions)), None)

    def close_files(self) -> None:
        """Writes out what has been received of replies that will never be whole."""
        for session in self.sessions:
            session.close_files()


def _session_class(job: Job) -> type[ClientSession]:
    if job.alpn == HQ:
        return ClientSession
    if job.testcase == PAGE:
        import page

        return page.PageSession
    import h3

    return h3.H3ClientSession


class ClientSession:
    """One connection: asks for its requests; closes when they have ended and it has the ticket it wants."""

    no_error = 0  # the code of a connection that has done its work

    def __init__(
        self, job: Job, configuration: QuicConfiguration, requests: list[Request], wants_ticket: bool
    ) -> None:
        self.handshake_ns: int | None = None
        self.ticket: SessionTicket | None = None
        self.reason: str | None = None
        self.connection = QuicConnection(
            configuration=configuration,
            session_ticket_handler=self._keep if wants_ticket else None,
        )
        self._requests = requests
        self._folder, self._upload = job.folder, job.upload
        self._wants_ticket = wants_ticket
        self._may_ask = job.testcase == ZERORTT and configuration.session_ticket is not None
        self._unasked = deque(requests)
        self._tickets_are_early = job.testcase == ZERORTT
        self._error: str | None = None
        self._by_stream: dict[int, Request] = {}

    @property
    def wake_ns(self) -> int | None:
        """When `proceed` is to be called, though nothing comes; None: never."""
        return None

    @property
    def ended(self) -> bool:
        """True if nothing is left for this connection to do."""
        return self._is_answered and not (self._wants_ticket and self.ticket is None)

    @property
    def _is_answered(self) -> bool:
        return all(each.finished for each in self._requests)

    def proceed(self, now_ns: int) -> None:
        """To be called before the connection is asked what it wants to send."""
        if self._may_ask and self._unasked:
            self._ask(now_ns)

    def handle(self, event: QuicEvent, now_ns: int) -> None:
        """Takes an event that the connection gave out at `now_ns`."""
        if isinstance(event, StreamDataReceived):
            self._receive(event.stream_id, event.data, event.end_stream, now_ns)
        elif isinstance(event, HandshakeCompleted):
            self.handshake_ns = now_ns
            self._may_ask = True
            self._close_if_ended()
        elif isinstance(event, StreamReset):
            request = self._by_stream[event.stream_id]
            if not request.finished:
                self._error = self._error or f"{request.path}: reset by peer: code {event.error_code}"
                self._finish(request, now_ns, is_whole=False)
        elif isinstance(event, ConnectionTerminated):
            self.close_files()

    def explain(self) -> str | None:
        """Why this connection, which has ended, has not done everything; None: it has."""
        why = self.reason or self._error
        if why is not None or self.ended:
            return why
        missing = "every reply was complete" if not self._is_answered else "a session ticket came"
        return f"closed by peer before {missing}"

    def close_files(self) -> None:
        for request in self._requests:
            if request.store is not None:
                request.store.close()
                request.store = None

    def _keep(self, ticket: SessionTicket) -> None:
        if self.ticket is None:
            self.ticket = ticket
            if not self._tickets_are_early:
                # Otherwise the library would offer 0-RTT, and have nothing to send in it.
                ticket.max_early_data_size = None
            self._close_if_ended()

    def _ask(self, now_ns: int) -> None:
        while self._unasked and dialect.may_open_stream(self.connection):
            self._ask_for(self._unasked.popleft(), now_ns)

    def _ask_for(self, request: Request, now_ns: int) -> None:
        stream = self.connection.get_next_available_stream_id()
        self._by_stream[stream] = request
        self._question(stream, request, now_ns)

    def _question(self, stream: int, request: Request, now_ns: int) -> None:
        question = f"{'PUT' if self._upload else 'GET'} {request.path}\r\n".encode()
        if self._upload:
            content = files.load(self._folder, request.path)
            if content is None:
                raise Failed(f"REQUESTS: {request.path}: no such file in {self._folder}")
            request.size, request.first_byte_ns = len(content), now_ns
            question += content
        self.connection.send_stream_data(stream, question, end_stream=True)

    def _receive(self, stream: int, data: bytes, is_end: bool, now_ns: int) -> None:
        request = self._by_stream[stream]
        if self._upload:
            if is_end:
                request.last_byte_ns = now_ns
                self._finish(request, now_ns, is_whole=True)
            return
        if request.store is None:
            request.store = files.create(self._folder, request.path)
            if request.store is None:
                raise Failed(f"REQUESTS: {request.path}: leads out of the folder for downloads")
        if data:
            if request.first_byte_ns is None:
                request.first_byte_ns = now_ns
            request.last_byte_ns = now_ns
            request.size += len(data)
            request.store.write(data)
            self._arrived(request, now_ns)
        if is_end:
            self._finish(request, now_ns, is_whole=True)

    def _arrived(self, request: Request, now_ns: int) -> None:
        """Called when bytes of a reply have come."""

    def _finish(self, request: Request, now_ns: int, *, is_whole: bool) -> None:
        request.finished = True
        if request.store is not None:
            request.store.close()
            request.store = None
        self._close_if_ended()

    def _close_if_ended(self) -> None:
        if self.ended:
            self.connection.close(error_code=self.no_error)
