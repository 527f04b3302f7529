"""The two ends as nodes of virtual time: given a datagram or a timer, they leave datagrams and a next wake.

Model: as qh3's own asyncio driver does, the stack is asked for what it wants to send, and for its next
timer, after every datagram and after every timer. qh3 counts in seconds of a float; a node counts in
whole nanoseconds and rounds a timer up, so that it is never called before its time.

Where qh3 raises `QuicConnectionError` instead of saying what it wants to send, asyncio logs it and goes on,
and so does a node: what the call had gathered is lost, and the timer stays as it was (README, "The server").
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import frames
import stack
from determinism import NANOS, WallClock
from hq import Client, Server, Session
from job import Job
from qh3._hazmat import Buffer
from qh3.quic.configuration import QuicConfiguration
from qh3.quic.connection import QuicConnection, QuicConnectionError
from qh3.quic.events import ConnectionIdIssued, ConnectionIdRetired, QuicEvent
from qh3.quic.packet import (
    SMALLEST_MAX_DATAGRAM_SIZE,
    QuicPacketType,
    encode_quic_version_negotiation,
    pull_quic_header,
)

# qh3's clock at time 0 of a trial, in seconds: that of a machine which has been up for a while. Some of the
# core's times start at zero and mean "long ago".
UPTIME_S = 1000.0
# A timer that is still due after it has fired fires again no sooner, as in real time, where some time always
# passes in between: so no timer can stop the clock.
REFIRE_NS = 1_000
LONG_HEADER = 0x80  # RFC 8999 section 5.1


def seconds(now_ns: int) -> float:
    """qh3's time for a time of the trial."""
    return UPTIME_S + now_ns / NANOS


def nanos(timer: float | None) -> int:
    """The first nanosecond of the trial at which qh3's clock has reached `timer`."""
    if timer is None:
        return frames.NEVER
    at = max(0, int((timer - UPTIME_S) * NANOS))
    while seconds(at) < timer:
        at += 1
    return at


@dataclass(frozen=True)
class Setting:
    """What a node is put into."""

    configuration: QuicConfiguration
    clock: WallClock  # to be kept at the time of the trial
    remote: tuple[str, int]  # where every datagram comes from and goes to


class Peer:
    """One connection and what is spoken over it, with its datagrams and its timer."""

    def __init__(self, session: Session, address: tuple[str, int], node: Node) -> None:
        self.session = session
        self.connection = session.connection
        self.address = address
        self.wake_ns = frames.NEVER
        self.ended = False
        self.reason: str | None = None  # why it ended early
        self._node = node

    def connect(self, now_ns: int) -> None:
        """A client's first step."""
        now = self._node.set_clock(now_ns)
        self.connection.connect(self.address, now)
        self._turn(now_ns, now)

    def receive(self, payload: bytes, now_ns: int) -> None:
        now = self._node.set_clock(now_ns)
        self.connection.receive_datagram(payload, self.address, now)
        self._turn(now_ns, now)

    def fire(self, now_ns: int) -> None:
        now = self._node.set_clock(now_ns)
        self.wake_ns = frames.NEVER
        self.connection.handle_timer(now)
        self._turn(now_ns, now)
        self.wake_ns = max(self.wake_ns, now_ns + REFIRE_NS)

    def _turn(self, now_ns: int, now: float) -> None:
        connection = self.connection
        self._hand_over_events(now_ns)
        try:
            datagrams = connection.datagrams_to_send(now)
        except QuicConnectionError as error:
            print(f"qh3: {now_ns / NANOS:.6f} s: sending failed: {error}", file=sys.stderr)
            return
        for payload, _ in datagrams:
            self._node.departures.append(frames.datagram(now_ns, payload))
        self.wake_ns = nanos(connection.get_timer())
        if not self.ended and stack.has_ended(connection):
            self.ended, self.reason = True, stack.reason(connection)

    def _hand_over_events(self, now_ns: int) -> None:
        while (event := self.connection.next_event()) is not None:
            self._node.handle(self, event, now_ns)


class Node:
    """What both ends have in common: peers, a clock, departures."""

    def __init__(self, setting: Setting) -> None:
        self.departures: list[bytes] = []
        self.peers: list[Peer] = []
        self.setting = setting

    @property
    def next_wake(self) -> int:
        """When the first timer is due, in ns."""
        peers = self.peers
        return peers[0].wake_ns if len(peers) == 1 else min((p.wake_ns for p in peers), default=frames.NEVER)

    @property
    def done(self) -> bool:
        """True if there has been a connection and every one has ended."""
        return bool(self.peers) and all(peer.ended for peer in self.peers)

    @property
    def error(self) -> str | None:
        """Why the first connection that ended early did so."""
        return next(filter(None, (peer.reason for peer in self.peers)), None)

    def set_clock(self, now_ns: int) -> float:
        self.setting.clock.now_ns = now_ns
        return seconds(now_ns)

    def run(self, start_ns: int, body: bytes) -> int:
        """Lives from `start_ns` until the time that a RUN says, and returns it."""
        until, arrivals = frames.arrivals(body, start_ns)
        for now_ns, payload in arrivals:
            if self.next_wake < now_ns:
                self._fire(start_ns, now_ns)
            start_ns = now_ns
            self.arrive(payload, now_ns)
        self._fire(start_ns, until)
        return until

    def _fire(self, start_ns: int, until_ns: int) -> None:
        """Fires every timer that is due before `until_ns`, in order of time."""
        while self.next_wake < until_ns:
            peer = min(self.peers, key=lambda each: each.wake_ns)
            start_ns = max(start_ns, peer.wake_ns)
            peer.fire(start_ns)

    def arrive(self, payload: bytes, now_ns: int) -> None:
        raise NotImplementedError

    def handle(self, peer: Peer, event: QuicEvent, now_ns: int) -> None:
        peer.session.handle(event, now_ns)


class ClientNode(Node):
    """A client: one connection, which starts at time 0."""

    def __init__(self, setting: Setting, job: Job) -> None:
        super().__init__(setting)
        assert job.downloads is not None
        connection = QuicConnection(configuration=setting.configuration)
        self.session = Client(connection, job.requests, job.downloads)
        self._connected = False

    @property
    def next_wake(self) -> int:
        return super().next_wake if self._connected else 0

    @property
    def error(self) -> str | None:
        return self.session.explain(self.peers[0].reason) if self.done else None

    def run(self, start_ns: int, body: bytes) -> int:
        if not self._connected:
            self._connected = True
            self.peers.append(Peer(self.session, self.setting.remote, self))
            self.peers[0].connect(start_ns)
        return super().run(start_ns, body)

    def arrive(self, payload: bytes, now_ns: int) -> None:
        self.peers[0].receive(payload, now_ns)


class ServerNode(Node):
    """A server: a connection for every Initial packet that belongs to none, found again by connection id."""

    def __init__(self, setting: Setting, job: Job) -> None:
        super().__init__(setting)
        assert job.www is not None
        self._www = job.www
        self._routes: dict[bytes, Peer] = {}

    def arrive(self, payload: bytes, now_ns: int) -> None:
        if not payload:
            return
        if payload[0] & LONG_HEADER:
            peer = self._route_long_header(payload, now_ns)
        else:
            peer = self._routes.get(payload[1 : 1 + self.setting.configuration.connection_id_length])
        if peer is not None:
            peer.receive(payload, now_ns)

    def handle(self, peer: Peer, event: QuicEvent, now_ns: int) -> None:
        if isinstance(event, ConnectionIdIssued):
            self._routes[event.connection_id] = peer
        elif isinstance(event, ConnectionIdRetired):
            self._routes.pop(event.connection_id, None)
        else:
            peer.session.handle(event, now_ns)

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
            self.departures.append(frames.datagram(now_ns, offer))
            return None
        known = self._routes.get(header.destination_cid)
        is_first = header.packet_type == QuicPacketType.INITIAL and len(payload) >= SMALLEST_MAX_DATAGRAM_SIZE
        if known is not None or not is_first:
            return known
        return self._accept(header.destination_cid)

    def _accept(self, original_destination: bytes) -> Peer:
        connection = QuicConnection(
            configuration=self.setting.configuration, original_destination_connection_id=original_destination
        )
        peer = Peer(Server(connection, self._www), self.setting.remote, self)
        self.peers.append(peer)
        self._routes[original_destination] = self._routes[connection.host_cid] = peer
        return peer
