"""A start for the adapter of your own QUIC library: copy this folder, and import yours in place of aioquic.

All else, from the coordinator's messages to files and sockets, is in endpoints/aioquic-family, which imports
what is here as `dialect`, `determinism` and `asyncio_layer`. It calls a library as aioquic has it, a fork of
aioquic or one with the same classes; for another, give yours classes of these names around its own.
"""

# ruff: noqa: E402, F401, F403
import os
import random
import sys

sys.path.insert(1, sys.argv.pop(1))
for module in ("dialect", "determinism", "asyncio_layer"):
    sys.modules[module] = sys.modules[__name__]

import aioquic.quic.logger
import aioquic.tls
from aioquic import __version__ as VERSION
from aioquic._buffer import Buffer
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve
from aioquic.quic.configuration import SMALLEST_MAX_DATAGRAM_SIZE, QuicConfiguration
from aioquic.quic.connection import QuicConnection, QuicConnectionState
from aioquic.quic.events import *
from aioquic.quic.logger import QLOG_VERSION, QuicFileLogger, QuicLoggerTrace
from aioquic.quic.packet import QuicPacketType, encode_quic_version_negotiation, pull_quic_header
from aioquic.quic.stream import QuicStream
from aioquic.tls import SessionTicket
from cryptography.hazmat.primitives.asymmetric import ec, x448, x25519

NAME = "template-python"  # as in stack.toml
ALPN = ("hq-interop",)
OPTIONS = {}  # name → what it may be, as options.py of the family has it: {"iw": Whole("packets", 1, 1000)}


def configure(configuration, options):
    """Sets what the options are about, before the first connection is made."""


def datagrams_to_send(connection, now):
    return connection.datagrams_to_send(now)


def may_open_stream(connection):
    return True  # aioquic itself holds back what MAX_STREAMS does not allow yet


def has_ended(connection):
    """True from the CONNECTION_CLOSE on, sent or received, and after an idle timeout."""
    before_end = (QuicConnectionState.FIRSTFLIGHT, QuicConnectionState.CONNECTED)
    return connection._close_event is not None and connection._state not in before_end


def is_draining(connection):
    return connection._state is QuicConnectionState.DRAINING


def replace_clocks(clock):
    """Has the library read virtual time where it is not told it."""
    aioquic.tls.utcnow, aioquic.quic.logger.time = clock.utcnow, clock


def replace_randomness(seed, role):
    """Has all that the library draws follow from the seed, key shares too; and no order from addresses."""
    draw = random.Random(f"{role} {seed}").randbytes
    os.urandom = draw
    for key, size in ((x25519.X25519PrivateKey, 32), (x448.X448PrivateKey, 56)):
        key.generate = staticmethod(lambda key=key, size=size: key.from_private_bytes(draw(size)))
    ec.generate_private_key = lambda curve: ec.derive_private_key(
        int.from_bytes(draw(curve.key_size // 8 - 1), "big") + 1, curve
    )
    QuicStream.__hash__ = lambda stream: stream.stream_id


if __name__ == "__main__":
    import program

    sys.exit(program.main(NAME, sys.argv[1:]))
