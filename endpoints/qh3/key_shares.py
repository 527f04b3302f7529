"""Key shares of TLS 1.3 from `os.urandom`, in place of the native classes of qh3.

Those have AWS-LC generate keys and encapsulate secrets. Its random number generator is seeded from the
processor itself, by the jitter of RDTSC and by RDRAND, as well as from the system, and takes no seed from
outside. What goes over the wire is the same here: the groups, their encodings, their lengths.

Source: RFC 8446 section 4.2.8 for X25519 and the NIST curves; draft-ietf-tls-ecdhe-mlkem section 4 for
X25519MLKEM768, in which ML-KEM comes first.
"""

from __future__ import annotations

import os

import ml_kem
from cryptography.hazmat.primitives.asymmetric import ec, mlkem, x25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

X25519_BYTES = 32


class X25519:
    """qh3's `X25519KeyExchange`."""

    def __init__(self) -> None:
        self._private = x25519.X25519PrivateKey.from_private_bytes(os.urandom(X25519_BYTES))

    def public_key(self) -> bytes:
        return self._private.public_key().public_bytes_raw()

    def exchange(self, peer_public_key: bytes) -> bytes:
        return self._private.exchange(x25519.X25519PublicKey.from_public_bytes(peer_public_key))


class X25519MlKem768:
    """qh3's `X25519ML768KeyExchange`: `public_key` is of a client, `shared_ciphertext` of a server."""

    def __init__(self) -> None:
        self._x25519 = X25519()
        self._private = mlkem.MLKEM768PrivateKey.from_seed_bytes(os.urandom(ml_kem.SEED_BYTES))
        self._ciphertext = b""

    def public_key(self) -> bytes:
        return self._private.public_key().public_bytes_raw() + self._x25519.public_key()

    def exchange(self, peer_share: bytes) -> bytes:
        """The secret from what a client or a server sent; which of them it was shows in the length."""
        kem, x = peer_share[:-X25519_BYTES], peer_share[-X25519_BYTES:]
        if len(kem) == ml_kem.CIPHERTEXT_BYTES:
            secret = self._private.decapsulate(kem)
        else:
            secret, self._ciphertext = ml_kem.encapsulate(kem, os.urandom(ml_kem.MESSAGE_BYTES))
        return secret + self._x25519.exchange(x)

    def shared_ciphertext(self) -> bytes:
        return self._ciphertext + self._x25519.public_key()


class NistCurve:
    """qh3's `ECDHP256KeyExchange` and its kin: points uncompressed, the secret is the x coordinate."""

    curve: ec.EllipticCurve

    def __init__(self) -> None:
        # One byte less than the curve's order has, so that the number is below it; 0 is no key.
        below_order = int.from_bytes(os.urandom((self.curve.key_size + 7) // 8 - 1), "big")
        self._private = ec.derive_private_key(below_order + 1, self.curve)

    def public_key(self) -> bytes:
        return self._private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    def exchange(self, peer_public_key: bytes) -> bytes:
        peer = ec.EllipticCurvePublicKey.from_encoded_point(self.curve, peer_public_key)
        return self._private.exchange(ec.ECDH(), peer)


class P256(NistCurve):
    curve = ec.SECP256R1()


class P384(NistCurve):
    curve = ec.SECP384R1()


class P521(NistCurve):
    curve = ec.SECP521R1()


# Name in `qh3.tls` → what stands in for it.
REPLACEMENTS = {
    "X25519KeyExchange": X25519,
    "X25519ML768KeyExchange": X25519MlKem768,
    "ECDHP256KeyExchange": P256,
    "ECDHP384KeyExchange": P384,
    "ECDHP521KeyExchange": P521,
}
