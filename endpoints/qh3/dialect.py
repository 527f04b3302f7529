"""qh3 for `endpoints/aioquic-family`: its names, its options, and where aioquic differs from it."""

from __future__ import annotations

import sys

from options import LARGEST_MTU, LARGEST_WINDOW, SMALLEST_MTU, Kind, Options, Time, WholeNumber, Words
from qh3 import __version__ as VERSION
from qh3._hazmat import Buffer
from qh3.quic.configuration import QuicConfiguration
from qh3.quic.connection import NetworkAddress, QuicConnection, QuicConnectionError
from qh3.quic.events import (
    ConnectionIdIssued,
    ConnectionIdRetired,
    ConnectionTerminated,
    HandshakeCompleted,
    QuicEvent,
    StreamDataReceived,
    StreamReset,
)
from qh3.quic.logger import QLOG_VERSION, QuicFileLogger, QuicLoggerTrace
from qh3.quic.packet import (
    SMALLEST_MAX_DATAGRAM_SIZE,
    QuicPacketType,
    encode_quic_version_negotiation,
    pull_quic_header,
)
from qh3.tls import SessionTicket, SignatureAlgorithm

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
NAME = "qh3"
ALPN = ("hq-interop",)
OPTIONS: dict[str, Kind] = {
    "cc": Words(("cubic",)),  # the native core has no other
    "window": WholeNumber("bytes", 1, LARGEST_WINDOW),
    "mtu": WholeNumber("bytes", SMALLEST_MTU, LARGEST_MTU),  # qh3's own discovery ends at the largest
    "migrate": Time(),
}
# The defaults of qh3 2.1.0 (`tls.Context`), and Ed25519: the contract's certificate has such a key.
SIGNATURES: list[int] = [
    SignatureAlgorithm.ECDSA_SECP256R1_SHA256,
    SignatureAlgorithm.RSA_PSS_RSAE_SHA256,
    SignatureAlgorithm.RSA_PKCS1_SHA256,
    SignatureAlgorithm.ECDSA_SECP384R1_SHA384,
    SignatureAlgorithm.RSA_PSS_RSAE_SHA384,
    SignatureAlgorithm.RSA_PKCS1_SHA384,
    SignatureAlgorithm.RSA_PSS_RSAE_SHA512,
    SignatureAlgorithm.RSA_PKCS1_SHA512,
    SignatureAlgorithm.RSA_PKCS1_SHA1,
    SignatureAlgorithm.ED25519,
]


def configure(configuration: QuicConfiguration, options: Options) -> None:
    """Sets what qh3's own options are about, and what it needs for the contract's certificate."""
    configuration.signature_algorithms = SIGNATURES
    if "mtu" in options:
        configuration.max_datagram_size, configuration.probe_datagram_size = int(options["mtu"]), False


def datagrams_to_send(connection: QuicConnection, now: float) -> list[tuple[bytes, NetworkAddress]] | None:
    """Datagrams to send; None where qh3 raises `QuicConnectionError` instead of saying it.

    asyncio logs that and goes on, and so does an endpoint: what the call had gathered is lost, and the timer
    stays as it was (README, "The server").
    """
    try:
        return connection.datagrams_to_send(now)
    except QuicConnectionError as error:
        print(f"{NAME}: {now:.6f} s on its clock: sending failed: {error}", file=sys.stderr)
        return None


def may_open_stream(connection: QuicConnection) -> bool:
    """True if MAX_STREAMS allows a stream that the client opens now."""
    return connection.get_next_available_stream_id() // 4 < connection.max_concurrent_bidi_streams


def has_ended(connection: QuicConnection) -> bool:
    """True from the CONNECTION_CLOSE on, sent or received, and after an idle timeout.

    qh3 tells of it by event only after the closing or draining period (RFC 9000 section 10.2), which nobody
    waits for.
    """
    return connection._close_event is not None


def is_draining(connection: QuicConnection) -> bool:
    """True if it was the peer who closed."""
    core = connection._core
    return core is not None and core.state == "draining"
