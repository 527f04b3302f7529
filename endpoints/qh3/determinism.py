"""The same bytes for the same seed: randomness and clocks of this process, replaced for virtual time.

qh3 takes `now` as an argument, and draws from, or reads, only what is replaced here:

- the system's random numbers, for `os.urandom` (first connection ids, TLS randoms, GREASE values, a reset
  token) and for Rust's `rand::thread_rng` (further connection ids and their reset tokens, path challenges):
  by `interposer.c`, which must have come before the C library;
- key shares, which AWS-LC generates from the processor: by `key_shares`, which says more;
- the wall clock: `tls.utcnow` for tickets, `time.time` for qlog.

A signature needs nothing: the contract's certificate is Ed25519, which signs without randomness (RFC 8032
section 5.1.6).
"""

from __future__ import annotations

import ctypes
import datetime
import hashlib

import key_shares
import qh3.quic.logger
import qh3.tls
from failures import Failed
from wall_clock import WallClock

SEED_BYTES = 8


class NotInterposed(Failed):
    """The process was started without `interposer.c`, so that its randomness cannot be replaced."""


def replace_randomness(seed: str, role: str) -> None:
    """Makes everything that this process draws follow from seed and role."""
    digest = hashlib.blake2b(f"{role} {seed}".encode(), digest_size=SEED_BYTES).digest()
    try:
        interposer = ctypes.CDLL(None).bentpipe_seed
    except AttributeError:
        raise NotInterposed("no interposer in LD_PRELOAD; start it by bentpipe-endpoint-qh3") from None
    interposer(ctypes.c_uint64(int.from_bytes(digest, "little")))
    for name, replacement in key_shares.REPLACEMENTS.items():
        setattr(qh3.tls, name, replacement)


def replace_clocks(clock: WallClock) -> None:
    """Makes the wall clock that qh3 reads be `clock`, for the rest of the process."""

    def utcnow(remove_tz: bool = True) -> datetime.datetime:
        now = clock.utcnow()
        return now.replace(tzinfo=None) if remove_tz else now

    qh3.tls.utcnow = utcnow
    qh3.quic.logger.time = clock  # type: ignore[assignment,attr-defined]
