"""`hq-interop`, HTTP/0.9 over QUIC, on top of one qh3 connection: both ends, without socket or clock.

The client sends `GET /path\\r\\n` and FIN on a stream for each request, all at once when the handshake is
complete; the server answers with the bytes of the file and FIN, or with RESET_STREAM. Source:
`endpoints/CONTRACT.md`, section 2.
"""

# No pathlib: its import is a noticeable part of a short process.
# ruff: noqa: PTH103, PTH118, PTH120, PTH123

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from qh3.quic.connection import QuicConnection
from qh3.quic.events import (
    ConnectionTerminated,
    HandshakeCompleted,
    QuicEvent,
    StreamDataReceived,
    StreamReset,
)

ALPN = "hq-interop"
# hq-interop has no error codes of its own; this is HTTP/3's H3_REQUEST_CANCELLED, which qlog viewers know by
# name.
REQUEST_CANCELLED = 0x10C
STORE_BUFFER = 1 << 20  # bytes; the reply comes in pieces of a packet


class Session(Protocol):
    """One end of one connection."""

    connection: QuicConnection

    def handle(self, event: QuicEvent, now_ns: int) -> None:
        """Takes an event that the connection gave out at `now_ns`."""


@dataclass
class Request:
    """A request of the client and what came of it; times in ns, None: never."""

    path: str
    size: int = 0
    first_byte_ns: int | None = None
    last_byte_ns: int | None = None
    finished: bool = False
    store: BinaryIO | None = None

    def report(self) -> dict[str, object]:
        """What BYE says of it."""
        return {
            "path": self.path,
            "bytes": self.size,
            "first_byte_ns": self.first_byte_ns,
            "last_byte_ns": self.last_byte_ns,
        }


class Client:
    """Asks for every path and stores the replies."""

    def __init__(self, connection: QuicConnection, paths: tuple[str, ...], downloads: str) -> None:
        self.connection = connection
        self.requests = [Request(path) for path in paths]
        self.handshake_ns: int | None = None
        self.error: str | None = None
        self._downloads = downloads
        self._by_stream: dict[int, Request] = {}

    def handle(self, event: QuicEvent, now_ns: int) -> None:
        if isinstance(event, StreamDataReceived):
            self._store(event, now_ns)
        elif isinstance(event, HandshakeCompleted):
            self.handshake_ns = now_ns
            self._ask()
        elif isinstance(event, StreamReset):
            request = self._by_stream[event.stream_id]
            self.error = self.error or f"{request.path}: reset by peer: code {event.error_code}"
            self._finish(request)
        elif isinstance(event, ConnectionTerminated):
            self.close_files()

    @property
    def complete(self) -> bool:
        """True if every request has its whole reply."""
        return self.error is None and all(request.finished for request in self.requests)

    def explain(self, reason: str | None) -> str | None:
        """Why an ended connection has not brought every reply; None: it has. `reason` is what itself says."""
        if reason or self.complete:
            return reason
        return self.error or "closed by peer before every reply was complete"

    def close_files(self) -> None:
        """Writes out what has been received of replies that will never be whole."""
        for request in self.requests:
            if request.store is not None:
                request.store.close()
                request.store = None

    def _ask(self) -> None:
        for request in self.requests:
            stream = self.connection.get_next_available_stream_id()
            self._by_stream[stream] = request
            self.connection.send_stream_data(stream, f"GET {request.path}\r\n".encode(), end_stream=True)
        if not self.requests:
            self.connection.close()

    def _store(self, event: StreamDataReceived, now_ns: int) -> None:
        request = self._by_stream[event.stream_id]
        if request.store is None:
            request.store = self._create(request.path)
        if event.data:
            if request.first_byte_ns is None:
                request.first_byte_ns = now_ns
            request.last_byte_ns = now_ns
            request.size += len(event.data)
            request.store.write(event.data)
        if event.end_stream:
            self._finish(request)

    def _finish(self, request: Request) -> None:
        request.finished = True
        if request.store is not None:
            request.store.close()
            request.store = None
        if all(each.finished for each in self.requests):
            self.connection.close()

    def _create(self, path: str) -> BinaryIO:
        file = _inside(self._downloads, path)
        if file is None:
            raise ValueError(f"REQUESTS: {path}: leads out of the folder for downloads")
        os.makedirs(os.path.dirname(file), exist_ok=True)
        return open(file, "wb", buffering=STORE_BUFFER)


class Server:
    """Answers requests from a folder."""

    def __init__(self, connection: QuicConnection, www: str) -> None:
        self.connection = connection
        self._www = www
        self._partial: dict[int, bytes] = {}

    def handle(self, event: QuicEvent, now_ns: int) -> None:
        if not isinstance(event, StreamDataReceived):
            return
        request = self._partial.pop(event.stream_id, b"") + event.data
        if event.end_stream:
            self._answer(event.stream_id, request)
        else:
            self._partial[event.stream_id] = request

    def _answer(self, stream: int, request: bytes) -> None:
        content = self._load(request)
        if content is None:
            self.connection.reset_stream(stream, REQUEST_CANCELLED)
        else:
            # All at once: qh3's send buffer has no limit, and pieces cost the same CPU.
            self.connection.send_stream_data(stream, content, end_stream=True)

    def _load(self, request: bytes) -> bytes | None:
        method, _, path = request.partition(b" ")
        if method != b"GET":
            return None
        try:
            file = _inside(self._www, path.decode().rstrip("\r\n"))
            if file is None:
                return None
            with open(file, "rb") as content:
                return content.read()
        except (OSError, ValueError):
            return None


def _inside(folder: str, path: str) -> str | None:
    """The file `path` below `folder`; None if it leads out of it, also by a symbolic link."""
    root = os.path.realpath(folder)
    file = os.path.realpath(os.path.join(root, path.lstrip("/")))
    return file if file.startswith(root + os.sep) else None
