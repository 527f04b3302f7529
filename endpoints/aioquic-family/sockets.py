"""Socket mode: real UDP in real time, by the library's asyncio (`endpoints/contract/socket-mode.md`)."""

# Paths are plain strings in this endpoint.
# ruff: noqa: PTH112, PTH123

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import time
from functools import partial
from typing import Any

import dialect
import stack
from asyncio_layer import QuicConnectionProtocol, serve
from client import Client, ClientSession
from dialect import QuicConnection, QuicEvent
from failures import Failed
from job import Job, authority_of, folder_name, from_environment
from server import Server
from wall_clock import NANOS

BEGAN = time.monotonic()  # the clock of asyncio's loop


class SessionProtocol(QuicConnectionProtocol):
    """Hands events to a session, and says when the connection has ended, before its closing period."""

    def __init__(self, session: stack.Session) -> None:
        super().__init__(session.connection)
        self.ended = asyncio.Event()
        self._session = session
        self._waking: asyncio.TimerHandle | None = None

    def quic_event_received(self, event: QuicEvent) -> None:
        self._session.handle(event, int(self._loop.time() * NANOS))

    def transmit(self) -> None:
        self._session.proceed(int(self._loop.time() * NANOS))
        super().transmit()
        self._wake()
        if not self.ended.is_set() and dialect.has_ended(self._session.connection):
            self._session.reason = stack.reason(self._session.connection)
            self.ended.set()

    def _wake(self) -> None:
        """Has the session proceed when it wants to, though nothing comes."""
        if self._waking is not None:
            self._waking.cancel()
            self._waking = None
        if self._session.wake_ns is not None:
            self._waking = self._loop.call_at(self._session.wake_ns / NANOS, self.transmit)

    async def migrate(self, job: Job) -> None:
        """Goes on from the client's address on the second path when it is time, as aioquic's program for the
        interop runner does: with another socket and another connection ID.
        """
        assert job.migrates_ns is not None
        await self.wait_connected()
        await asyncio.sleep(max(0.0, BEGAN + job.migrates_ns / NANOS - self._loop.time()))
        self.close_socket()
        await self._loop.create_datagram_endpoint(lambda: self, local_addr=(job.paths[1].local[0], 0))
        self._session.connection.change_connection_id()
        await self.ping()

    def close_socket(self) -> None:
        assert self._transport is not None
        self._transport.close()


def main() -> int:
    """The exit code of the role that the environment names."""
    job = from_environment()
    if not os.path.isdir(job.folder):
        raise Failed(f"{folder_name(job.role, job.testcase).upper()}: {job.folder!r} is no folder")
    role = _client if job.role == "client" else _server
    asyncio.run(role(job))
    return 0


async def _client(job: Job) -> None:
    """Sends every request; Failed if one has not its whole reply."""
    url = os.environ.get("REQUESTS", "").split(" ")[0]
    configuration = stack.configure(job)
    client = Client(job, configuration)
    family, address = await _resolve("REQUESTS", authority_of(url))
    while (session := client.next_session()) is not None:
        await _converse(session, job, family, address)
    client.close_files()
    stack.finish_logs(configuration)
    why = client.explain()
    if job.report is not None:
        _write_report(job.report, client, why)
    if why is not None:
        raise Failed(f"{url}: {why}")


def _write_report(name: str, client: Client, error: str | None) -> None:
    """Leaves the BYE of a page in a file, with times since 1970."""
    earlier = time.time_ns() - int(asyncio.get_running_loop().time() * NANOS)
    requests = [_later(each.report(), earlier) for each in client.requests]
    handshake = _later({"handshake_ns": client.handshake_ns}, earlier)
    with open(name, "w") as file:
        json.dump({**handshake, "requests": requests, "error": error}, file)


def _later(report: dict[str, Any], by_ns: int) -> dict[str, Any]:
    """The same with later times."""
    is_time = {key: key.endswith("_ns") and value is not None for key, value in report.items()}
    return {key: value + by_ns if is_time[key] else value for key, value in report.items()}


async def _converse(session: ClientSession, job: Job, family: int, address: Any) -> None:
    """One connection, from a port of its own, until it has ended."""
    local = ("::" if family == socket.AF_INET6 else "0.0.0.0", 0)
    _, protocol = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: SessionProtocol(session), local_addr=local
    )
    protocol.connect(address)
    migration = asyncio.create_task(protocol.migrate(job)) if job.migrates_ns is not None else None
    await protocol.ended.wait()
    if migration is not None:
        migration.cancel()
    protocol.close_socket()


async def _server(job: Job) -> None:
    """Serves until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    configuration = stack.configure(job)
    _, address = await _resolve("BENTPIPE_LISTEN", os.environ.get("BENTPIPE_LISTEN", ""))
    server = Server(job, configuration)
    try:
        listening = await serve(
            address[0],
            address[1],
            configuration=configuration,
            create_protocol=partial(_accept, server=server),
            session_ticket_fetcher=server.tickets.take if server.tickets else None,
            session_ticket_handler=server.tickets.add if server.tickets else None,
        )
    except OSError as error:
        raise Failed(f"BENTPIPE_LISTEN: {address[0]}:{address[1]}: {error.strerror}") from error
    print("ready", flush=True)
    await stop.wait()
    listening.close()
    server.close_files()
    stack.finish_logs(configuration)


def _accept(connection: QuicConnection, stream_handler: object = None, *, server: Server) -> SessionProtocol:
    return SessionProtocol(server.speak(connection))


async def _resolve(variable: str, authority: str) -> tuple[int, Any]:
    """Address family and socket address of `host:port`, IPv6 hosts in brackets."""
    host, _, port = authority.rpartition(":")
    if not host or not port.isdigit():
        raise Failed(f"{variable}: {authority!r}: write host:port, for example 127.0.0.1:4433")
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)
    return found[0][0], found[0][4]
