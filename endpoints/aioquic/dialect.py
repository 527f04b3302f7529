"""aioquic for `endpoints/aioquic-family`: its names, its options, and where qh3 differs from it."""

from __future__ import annotations

import probe_timeouts
import quick_hashes
import quick_ranges
from aioquic import __version__ as VERSION
from aioquic._buffer import Buffer
from aioquic.quic.configuration import SMALLEST_MAX_DATAGRAM_SIZE, QuicConfiguration
from aioquic.quic.congestion import base, cubic
from aioquic.quic.connection import NetworkAddress, QuicConnection, QuicConnectionState
from aioquic.quic.events import (
    ConnectionIdIssued,
    ConnectionIdRetired,
    ConnectionTerminated,
    HandshakeCompleted,
    QuicEvent,
    StreamDataReceived,
    StreamReset,
)
from aioquic.quic.logger import QLOG_VERSION, QuicFileLogger, QuicLoggerTrace
from aioquic.quic.packet import QuicPacketType, encode_quic_version_negotiation, pull_quic_header
from aioquic.tls import SessionTicket
from options import LARGEST_MTU, LARGEST_WINDOW, SMALLEST_MTU, Kind, Options, Time, WholeNumber, Words
from shortcut import nothing_to_send

__all__ = [
    "ALPN",
    "NAME",
    "OPTIONS",
    "QLOG_VERSION",
    "SMALLEST_MAX_DATAGRAM_SIZE",
    "VERSION",
    "Buffer",
    "ConnectionIdIssued",
    "ConnectionIdRetired",
    "ConnectionTerminated",
    "HandshakeCompleted",
    "QuicConfiguration",
    "QuicConnection",
    "QuicEvent",
    "QuicFileLogger",
    "QuicLoggerTrace",
    "QuicPacketType",
    "SessionTicket",
    "StreamDataReceived",
    "StreamReset",
    "configure",
    "datagrams_to_send",
    "encode_quic_version_negotiation",
    "has_ended",
    "is_draining",
    "may_open_stream",
    "pull_quic_header",
]
NAME = "aioquic"
ALPN = ("hq-interop", "h3")
BEFORE_END = (QuicConnectionState.FIRSTFLIGHT, QuicConnectionState.CONNECTED)
# The contract's words for congestion control, and aioquic's.
CONGESTION_CONTROLS = {"newreno": "reno", "cubic": "cubic"}
OPTIONS: dict[str, Kind] = {
    "cc": Words(tuple(CONGESTION_CONTROLS)),
    # The connection works with integers of any size; this keeps a typing error from being a memory problem.
    "iw": WholeNumber("packets", 1, 1_000_000),
    "window": WholeNumber("bytes", 1, LARGEST_WINDOW),
    "mtu": WholeNumber("bytes", SMALLEST_MTU, LARGEST_MTU),
    "pto": Words(("probe", "loss")),
    "migrate": Time(),
}


def configure(configuration: QuicConfiguration, options: Options) -> None:
    """Sets what aioquic's own options are about, before the first connection is made.

    `iw` sets `K_INITIAL_WINDOW`, the constant (in packets) from which both of its congestion controllers
    compute their first window and, for CUBIC, the window after 2 s of silence: the one place where it is.
    """
    quick_hashes.install()
    quick_ranges.install()
    if "cc" in options:
        configuration.congestion_control_algorithm = CONGESTION_CONTROLS[str(options["cc"])]
    if "iw" in options:
        base.K_INITIAL_WINDOW = cubic.K_INITIAL_WINDOW = int(options["iw"])  # type: ignore[attr-defined]
    if "mtu" in options:
        configuration.max_datagram_size = int(options["mtu"])
    if options.get("pto") == "loss":
        probe_timeouts.count_as_losses()


def datagrams_to_send(connection: QuicConnection, now: float) -> list[tuple[bytes, NetworkAddress]] | None:
    """Datagrams to send; never None, which would mean that the library does not say."""
    return [] if nothing_to_send(connection, now) else connection.datagrams_to_send(now)


def may_open_stream(connection: QuicConnection) -> bool:
    """True: aioquic itself holds back what MAX_STREAMS does not allow yet."""
    return True


def has_ended(connection: QuicConnection) -> bool:
    """True from the CONNECTION_CLOSE on, sent or received, and after an idle timeout.

    aioquic tells of it by event only after the closing or draining period (RFC 9000 section 10.2), which
    nobody waits for.
    """
    return connection._close_event is not None and connection._state not in BEFORE_END


def is_draining(connection: QuicConnection) -> bool:
    """True if it was the peer who closed."""
    return connection._state is QuicConnectionState.DRAINING
