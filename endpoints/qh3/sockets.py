"""Socket mode: real UDP in real time, on qh3's own asyncio layer (`endpoints/CONTRACT.md`, section 3)."""

# Paths are plain strings in this endpoint.
# ruff: noqa: PTH112

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from functools import partial
from typing import Any

import stack
from determinism import NANOS
from hq import Client, Server, Session
from job import Job, authority_of, from_environment
from qh3.asyncio.protocol import QuicConnectionProtocol
from qh3.asyncio.server import serve
from qh3.quic.connection import QuicConnection
from qh3.quic.events import QuicEvent


class SessionProtocol(QuicConnectionProtocol):
    """Hands events to a session, and says when the connection has ended, before its closing period."""

    def __init__(self, session: Session) -> None:
        super().__init__(session.connection)
        self.ended = asyncio.Event()
        self._session = session

    def quic_event_received(self, event: QuicEvent) -> None:
        self._session.handle(event, int(self._loop.time() * NANOS))

    def transmit(self) -> None:
        super().transmit()
        if stack.has_ended(self._session.connection):
            self.ended.set()


def main() -> int:
    """The exit code of the role that the environment names."""
    job = from_environment()
    role = _client if job.role == "client" else _server
    try:
        return asyncio.run(role(job))
    except (OSError, ValueError) as error:
        print(f"qh3: {error}", file=sys.stderr)
        return 1


async def _client(job: Job) -> int:
    """Fetches every request; 0 if each has its whole reply."""
    url = os.environ.get("REQUESTS", "").split(" ")[0]
    configuration = stack.configure(job)
    session = Client(QuicConnection(configuration=configuration), job.requests, _folder("DOWNLOADS"))
    family, address = await _resolve("REQUESTS", authority_of(url))
    local = ("::" if family == socket.AF_INET6 else "0.0.0.0", 0)
    transport, protocol = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: SessionProtocol(session), local_addr=local
    )
    protocol.connect(address)
    await protocol.ended.wait()
    transport.close()
    session.close_files()
    stack.finish_logs(configuration)
    why = session.explain(stack.reason(session.connection))
    if why is None:
        return 0
    print(f"qh3: {url}: {why}", file=sys.stderr)
    return 1


async def _server(job: Job) -> int:
    """Serves until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    configuration = stack.configure(job)
    _, address = await _resolve("BENTPIPE_LISTEN", os.environ.get("BENTPIPE_LISTEN", ""))
    create = partial(_accept, www=_folder("WWW"))
    try:
        server = await serve(address[0], address[1], configuration=configuration, create_protocol=create)
    except OSError as error:
        raise OSError(f"BENTPIPE_LISTEN: {address[0]}:{address[1]}: {error.strerror}") from error
    print("ready", flush=True)
    await stop.wait()
    server.close()
    stack.finish_logs(configuration)
    return 0


def _accept(connection: QuicConnection, stream_handler: object = None, *, www: str) -> SessionProtocol:
    return SessionProtocol(Server(connection, www))


def _folder(variable: str) -> str:
    path = os.environ.get(variable, "")
    if not os.path.isdir(path):
        raise ValueError(f"{variable}: {path!r} is no folder")
    return path


async def _resolve(variable: str, authority: str) -> tuple[int, Any]:
    """Address family and socket address of `host:port`, IPv6 hosts in brackets."""
    host, _, port = authority.rpartition(":")
    if not host or not port.isdigit():
        raise ValueError(f"{variable}: {authority!r}: write host:port, for example 127.0.0.1:4433")
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)
    return found[0][0], found[0][4]
