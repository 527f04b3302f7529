"""The same bytes for the same seed: randomness and clocks of this process, replaced for virtual time.

aioquic takes `now` as an argument, and draws from, or reads, only what is replaced here:

- `os.urandom`: connection ids, TLS randoms, reset tokens, tickets;
- key shares that OpenSSL would generate from its own random number generator (RFC 8446 section 4.2.8):
  x25519, x448 and the NIST curves, each here from bytes of the same stream;
- the wall clock: `tls.utcnow` for tickets and certificates, `time.time` for qlog;
- `hash(QuicStream)`: its default is a memory address, and the streams that shared a packet are put back in
  the order of a set.

A signature needs nothing: the contract's certificate is Ed25519, which signs without randomness (RFC 8032
section 5.1.6).
"""

from __future__ import annotations

import os
from _blake2 import blake2b
from collections.abc import Callable

import aioquic.quic.logger
import aioquic.tls
from aioquic.quic.stream import QuicStream
from cryptography.hazmat.primitives.asymmetric import ec, x448, x25519
from wall_clock import WallClock

X25519_BYTES, X448_BYTES = 32, 56


class RandomStream:
    """Bytes from a seed: BLAKE2b of a counter, keyed by seed and role."""

    def __init__(self, seed: str, role: str) -> None:
        self._key = f"{role} {seed}".encode()
        self._blocks = 0
        self._rest = b""

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        while len(self._rest) < count:
            block = blake2b(self._blocks.to_bytes(8, "little"), key=self._key)
            self._blocks += 1
            self._rest += block.digest()
        taken, self._rest = self._rest[:count], self._rest[count:]
        return taken


def replace_randomness(seed: str, role: str) -> None:
    """Makes everything that aioquic draws follow from seed and role, for the rest of the process."""
    stream = RandomStream(seed, role)
    os.urandom = stream.take
    _replace(
        x25519.X25519PrivateKey,
        "generate",
        lambda: x25519.X25519PrivateKey.from_private_bytes(stream.take(X25519_BYTES)),
    )
    _replace(
        x448.X448PrivateKey,
        "generate",
        lambda: x448.X448PrivateKey.from_private_bytes(stream.take(X448_BYTES)),
    )

    def generate_ec_key(curve: ec.EllipticCurve) -> ec.EllipticCurvePrivateKey:
        # One byte less than the curve's order has, so that the number is below it; 0 is no key.
        below_order = int.from_bytes(stream.take(curve.key_size // 8 - 1), "big")
        return ec.derive_private_key(below_order + 1, curve)

    ec.generate_private_key = generate_ec_key  # type: ignore[assignment]

    def hash_of_stream(stream: QuicStream) -> int:
        return hash(stream.stream_id)

    QuicStream.__hash__ = hash_of_stream  # type: ignore[assignment, method-assign]


def replace_clocks(clock: WallClock) -> None:
    """Makes the wall clock that aioquic reads be `clock`, for the rest of the process."""
    aioquic.tls.utcnow = clock.utcnow
    aioquic.quic.logger.time = clock  # type: ignore[assignment,attr-defined]


def _replace(owner: type, name: str, function: Callable[[], object]) -> None:
    setattr(owner, name, staticmethod(function))
