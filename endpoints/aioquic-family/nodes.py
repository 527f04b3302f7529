"""The two ends as nodes of virtual time: given a datagram or a timer, they leave datagrams and a next wake.

Model: as the library's own asyncio driver does, a node asks for what is to be sent, and for the next timer,
after every datagram and after every timer. The library counts in seconds of a float; a node counts in whole
nanoseconds and rounds a timer up, so that it is never called before its time.
"""

from __future__ import annotations

from typing import NamedTuple

import dialect
import messages
import stack
from client import Client
from dialect import (
    SMALLEST_MAX_DATAGRAM_SIZE,
    Buffer,
    ConnectionIdIssued,
    ConnectionIdRetired,
    QuicConfiguration,
    QuicEvent,
    QuicPacketType,
    encode_quic_version_negotiation,
    pull_quic_header,
)
from job import Job
from server import Server
from wall_clock import NANOS, WallClock

# The library's clock at time 0 of a trial, in seconds. Some of its times start at 0.0 and mean "long ago"
# (aioquic's `sent_time <= _congestion_recovery_start_time`), as they do on a machine that has been up for a
# while.
UPTIME_S = 1000.0
# A timer that is still due after it has fired fires again no sooner. In real time some time always passes in
# between, and aioquic counts on it: an ACK that is due exactly now waits for the pacer, one that is overdue
# does not.
REFIRE_NS = 1_000
LONG_HEADER = 0x80  # RFC 8999 section 5.1


def seconds(now_ns: int) -> float:
    """The library's time for a time of the trial."""
    return UPTIME_S + now_ns / NANOS


def nanos(timer: float | None) -> int:
    """The first nanosecond of the trial at which the library's clock has reached `timer`."""
    if timer is None:
        return messages.NEVER
    at = max(0, int((timer - UPTIME_S) * NANOS))
    while seconds(at) < timer:
        at += 1
    return at


class Setting(NamedTuple):
    """The surroundings of a node."""

    configuration: QuicConfiguration
    clock: WallClock  # to be kept at the time of the trial
    remotes: list[tuple[str, int]]  # where datagrams come from and go to, on each path


class Peer:
    """One connection and what is spoken over it, with its datagrams and its timer."""

    def __init__(self, session: stack.Session, address: tuple[str, int], node: Node) -> None:
        self.session = session
        self.connection = session.connection
        self.address = address
        self.wake_ns = messages.NEVER
        self.ended = False
        self._node = node

    def connect(self, now_ns: int) -> None:
        """A client's first step."""
        now = self._node.set_clock(now_ns)
        self.connection.connect(self.address, now)
        self._turn(now_ns, now)

    def receive(self, payload: bytes, now_ns: int, address: tuple[str, int]) -> None:
        now = self._node.set_clock(now_ns)
        self.connection.receive_datagram(payload, address, now)
        self._turn(now_ns, now)

    def migrate(self, now_ns: int) -> None:
        """Goes on with another connection ID; whoever has the socket sends from another address."""
        now = self._node.set_clock(now_ns)
        self.connection.change_connection_id()
        self.connection.send_ping(0)
        self._turn(now_ns, now)

    def fire(self, now_ns: int) -> None:
        now = self._node.set_clock(now_ns)
        self.wake_ns = messages.NEVER
        self.connection.handle_timer(now)
        self._turn(now_ns, now)
        self.wake_ns = max(self.wake_ns, now_ns + REFIRE_NS)

    def _turn(self, now_ns: int, now: float) -> None:
        connection, node = self.connection, self._node
        events = (
            connection._events
        )  # next_event() of aioquic raises and catches an exception when there is none
        while events:
            node.handle(self, events.popleft(), now_ns)
        self.session.proceed(now_ns)
        datagrams = dialect.datagrams_to_send(connection, now)
        if datagrams is None:
            return
        for payload, address in datagrams:
            node.departures.append(messages.datagram(now_ns, payload, node.path_to(address)))
        while events:  # connection ids that have just been sent
            node.handle(self, events.popleft(), now_ns)
        self.wake_ns = nanos(connection.get_timer())
        wake_ns = self.session.wake_ns
        if wake_ns is not None and not self.ended:
            self.wake_ns = min(self.wake_ns, wake_ns)
        if not self.ended and dialect.has_ended(connection):
            self.ended, self.session.reason = True, stack.reason(connection)
            node.after_end(now_ns)


class Node:
    """The common part of both ends: peers, a clock, departures."""

    def __init__(self, setting: Setting) -> None:
        self.departures: list[bytes] = []
        self.peers: list[Peer] = []
        self.routes: dict[bytes, Peer] = {}  # by connection id
        self.setting = setting

    @property
    def next_wake(self) -> int:
        """When the first timer is due, in ns."""
        peers = self.peers
        return (
            peers[0].wake_ns if len(peers) == 1 else min((p.wake_ns for p in peers), default=messages.NEVER)
        )

    @property
    def done(self) -> bool:
        """True if there has been a connection and every one has ended."""
        return bool(self.peers) and all(peer.ended for peer in self.peers)

    @property
    def error(self) -> str | None:
        """Why the first connection that ended early did so."""
        return next(filter(None, (peer.session.reason for peer in self.peers)), None)

    def set_clock(self, now_ns: int) -> float:
        self.setting.clock.now_ns = now_ns
        return seconds(now_ns)

    def path_to(self, address: tuple[str, int]) -> int:
        """The number of the path to an address of the other side."""
        remotes = self.setting.remotes
        return remotes.index(address) if len(remotes) > 1 else 0

    def run(self, start_ns: int, body: bytes) -> int:
        """Lives from `start_ns` until the time that a RUN says, and returns it."""
        remotes = self.setting.remotes
        until, arrivals = messages.arrivals(body, start_ns, len(remotes))
        for now_ns, path, payload in arrivals:
            if self.next_wake < now_ns:
                self._fire(start_ns, now_ns)
            start_ns = now_ns
            self.arrive(payload, now_ns, remotes[path])
        self._fire(start_ns, until)
        return until

    def _fire(self, start_ns: int, until_ns: int) -> None:
        """Fires every timer that is due before `until_ns`, in order of time."""
        while (wake_ns := self.next_wake) < until_ns:
            start_ns = max(start_ns, wake_ns)
            self.fire(start_ns)

    def fire(self, now_ns: int) -> None:
        """Fires the first timer, which is due."""
        min(self.peers, key=lambda each: each.wake_ns).fire(now_ns)

    def arrive(self, payload: bytes, now_ns: int, address: tuple[str, int]) -> None:
        raise NotImplementedError

    def after_end(self, now_ns: int) -> None:
        """Called when a connection has just ended."""

    def close_files(self) -> None:
        raise NotImplementedError

    def add(self, session: stack.Session) -> Peer:
        peer = Peer(session, self.setting.remotes[0], self)
        self.peers.append(peer)
        self.routes[session.connection.host_cid] = peer
        return peer

    def handle(self, peer: Peer, event: QuicEvent, now_ns: int) -> None:
        if isinstance(event, ConnectionIdIssued):
            self.routes[event.connection_id] = peer
        elif isinstance(event, ConnectionIdRetired):
            self.routes.pop(event.connection_id, None)
        else:
            peer.session.handle(event, now_ns)


class ClientNode(Node):
    """A client: one connection, which starts at time 0, or a second one when it has ended."""

    def __init__(self, setting: Setting, job: Job) -> None:
        super().__init__(setting)
        self.client = Client(job, setting.configuration)
        self._connected = False
        self._path = 0  # that it is on
        at_ns = job.migrates_ns
        self._migrates_ns = messages.NEVER if at_ns is None else at_ns
        self._may_migrate = False  # the time has come

    @property
    def next_wake(self) -> int:
        return min(super().next_wake, self._migrates_ns) if self._connected else 0

    def path_to(self, address: tuple[str, int]) -> int:
        return self._path

    def fire(self, now_ns: int) -> None:
        if self._migrates_ns > now_ns:
            super().fire(now_ns)
            return
        self._migrates_ns, self._may_migrate = messages.NEVER, True
        self._migrate(now_ns)

    def _migrate(self, now_ns: int) -> None:
        """Migrates if the time has come and the handshake is confirmed (RFC 9000 section 9)."""
        peer = self.peers[-1]
        if self._may_migrate and peer.connection._handshake_confirmed:
            self._may_migrate, self._path = False, 1
            peer.migrate(now_ns)

    @property
    def error(self) -> str | None:
        return self.client.explain() if self.done else None

    def run(self, start_ns: int, body: bytes) -> int:
        if not self._connected:
            self._connected = True
            self._connect(start_ns)
        return super().run(start_ns, body)

    def arrive(self, payload: bytes, now_ns: int, address: tuple[str, int]) -> None:
        peers = self.peers
        peer = peers[0] if len(peers) == 1 else self.routes.get(self._destination(payload))
        if peer is not None:
            peer.receive(payload, now_ns, address)
        if self._may_migrate:
            self._migrate(now_ns)

    def after_end(self, now_ns: int) -> None:
        self._connect(now_ns)

    def close_files(self) -> None:
        self.client.close_files()

    def _connect(self, now_ns: int) -> None:
        session = self.client.next_session()
        if session is not None:
            self.add(session).connect(now_ns)

    def _destination(self, payload: bytes) -> bytes:
        """The destination connection id of a datagram's first packet (RFC 8999 sections 5.1 and 5.2)."""
        if payload and payload[0] & LONG_HEADER:
            return payload[6 : 6 + payload[5]] if len(payload) > 5 else b""
        return payload[1 : 1 + self.setting.configuration.connection_id_length]


class ServerNode(Node):
    """A server: a connection for every Initial packet that belongs to none, found again by connection id."""

    def __init__(self, setting: Setting, job: Job) -> None:
        super().__init__(setting)
        self.server = Server(job, setting.configuration)

    def arrive(self, payload: bytes, now_ns: int, address: tuple[str, int]) -> None:
        if not payload:
            return
        if payload[0] & LONG_HEADER:
            peer = self._route_long_header(payload, now_ns)
        else:
            peer = self.routes.get(payload[1 : 1 + self.setting.configuration.connection_id_length])
        if peer is not None:
            peer.receive(payload, now_ns, address)

    def close_files(self) -> None:
        self.server.close_files()

    def _route_long_header(self, payload: bytes, now_ns: int) -> Peer | None:
        """The connection of a handshake packet, perhaps a new one; None if the datagram is to be dropped."""
        try:
            header = pull_quic_header(
                Buffer(data=payload), host_cid_length=self.setting.configuration.connection_id_length
            )
        except ValueError:
            return None
        if header.packet_type == QuicPacketType.VERSION_NEGOTIATION:
            return None
        versions = self.setting.configuration.supported_versions
        if header.version not in versions:
            offer = encode_quic_version_negotiation(header.destination_cid, header.source_cid, versions)
            self.departures.append(messages.datagram(now_ns, offer))
            return None
        known = self.routes.get(header.destination_cid)
        is_first = header.packet_type == QuicPacketType.INITIAL and len(payload) >= SMALLEST_MAX_DATAGRAM_SIZE
        if known is not None or not is_first:
            return known
        peer = self.add(self.server.accept(header.destination_cid))
        self.routes[header.destination_cid] = peer
        return peer
