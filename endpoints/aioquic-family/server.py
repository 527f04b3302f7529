"""The server's end of `hq-interop`, without socket or clock.

It answers `GET /path\\r\\n` and FIN with the bytes of the file and FIN, and in `upload` stores what follows
`PUT /path\\r\\n` and answers FIN; all else with RESET_STREAM. Source: `endpoints/contract/test-cases.md`.
"""

from __future__ import annotations

from typing import BinaryIO

import files
from dialect import QuicConfiguration, QuicConnection, QuicEvent, StreamDataReceived, StreamReset
from job import HQ, Job
from stack import IssuedTickets

# hq-interop has no error codes of its own; this is HTTP/3's H3_REQUEST_CANCELLED, which qlog viewers know by
# name.
REQUEST_CANCELLED = 0x10C


class Server:
    """The server of a trial: any number of connections, and the tickets that lead to the next one."""

    def __init__(self, job: Job, configuration: QuicConfiguration) -> None:
        self.sessions: list[ServerSession] = []
        self._job = job
        self._configuration = configuration
        self.tickets = IssuedTickets() if job.tickets else None

    def accept(self, original_destination: bytes) -> ServerSession:
        """A new connection, for an Initial packet with this destination connection id."""
        tickets = self.tickets
        connection = QuicConnection(
            configuration=self._configuration,
            original_destination_connection_id=original_destination,
            session_ticket_fetcher=tickets.take if tickets else None,
            session_ticket_handler=tickets.add if tickets else None,
        )
        return self.speak(connection)

    def speak(self, connection: QuicConnection) -> ServerSession:
        """The session over a new connection."""
        self.sessions.append(_session_class(self._job)(self._job, connection))
        return self.sessions[-1]

    def close_files(self) -> None:
        """Writes out what has been received of files that will never be whole."""
        for session in self.sessions:
            session.close_files()


def _session_class(job: Job) -> type[ServerSession]:
    if job.alpn == HQ:
        return ServerSession
    import h3

    return h3.H3ServerSession


class ServerSession:
    """One connection: answers its requests from a folder, or stores in it what is sent."""

    wake_ns: int | None = None  # a server has nothing to say unasked

    def __init__(self, job: Job, connection: QuicConnection) -> None:
        self.connection = connection
        self.reason: str | None = None
        self._folder, self._upload = job.folder, job.upload
        self._method = b"PUT " if job.upload else b"GET "
        self._questions: dict[int, bytes] = {}  # what has come of them so far
        self._stores: dict[int, BinaryIO] = {}
        self._refused: set[int] = set()

    def proceed(self, now_ns: int) -> None:
        """A server has nothing to say unasked."""

    def handle(self, event: QuicEvent, now_ns: int) -> None:
        """Takes an event that the connection gave out at `now_ns`."""
        if isinstance(event, StreamDataReceived):
            if event.stream_id in self._stores:
                self._store(event.stream_id, event.data, event.end_stream)
            elif event.stream_id not in self._refused:
                self._read(event.stream_id, event.data, event.end_stream)
        elif isinstance(event, StreamReset):
            self._questions.pop(event.stream_id, None)
            store = self._stores.pop(event.stream_id, None)
            if store is not None:
                store.close()

    def close_files(self) -> None:
        for store in self._stores.values():
            store.close()
        self._stores.clear()

    def _read(self, stream: int, data: bytes, is_end: bool) -> None:
        """Takes a piece of a question; the first four bytes tell whether it is one."""
        question = self._questions.pop(stream, b"") + data
        line, newline, rest = question.partition(b"\r\n")
        if not self._method.startswith(question[: len(self._method)]):
            self._refuse(stream, is_end)
        elif self._upload and newline:
            self._begin_upload(stream, line, rest, is_end)
        elif is_end:
            self._answer(stream, question.rstrip(b"\r\n"))
        else:
            self._questions[stream] = question

    def _answer(self, stream: int, line: bytes) -> None:
        path = _path(line)
        content = None if self._upload or path is None else files.load(self._folder, path)
        if content is None:
            self._refuse(stream, is_end=True)
        else:
            # All at once: the library's send buffer has no limit, and pieces cost the same CPU.
            self.connection.send_stream_data(stream, content, end_stream=True)

    def _begin_upload(self, stream: int, line: bytes, rest: bytes, is_end: bool) -> None:
        path = _path(line)
        try:
            store = None if path is None else files.create(self._folder, path)
        except (OSError, ValueError):  # a folder has that name, or no file can
            store = None
        if store is None:
            self._refuse(stream, is_end)
        else:
            self._stores[stream] = store
            self._store(stream, rest, is_end)

    def _store(self, stream: int, data: bytes, is_end: bool) -> None:
        self._stores[stream].write(data)
        if is_end:
            self._stores.pop(stream).close()
            self.connection.send_stream_data(stream, b"", end_stream=True)

    def _refuse(self, stream: int, is_end: bool) -> None:
        self._refused.add(stream)
        self.connection.reset_stream(stream, REQUEST_CANCELLED)
        if not is_end:
            self.connection.stop_stream(stream, REQUEST_CANCELLED)


def _path(line: bytes) -> str | None:
    """The path of a question `METHOD /path`; None if it is no text."""
    try:
        return line.partition(b" ")[2].decode()
    except UnicodeDecodeError:
        return None
