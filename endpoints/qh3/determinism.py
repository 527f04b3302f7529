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

NANOS = 1_000_000_000
SEED_BYTES = 8


class NotInterposed(Exception):
    """The process was started without `interposer.c`, so that its randomness cannot be replaced."""


class WallClock:
    """What `time.time` and `utcnow` say: the time of the trial, as its driver last set it."""

    def __init__(self, epoch_unix_s: int) -> None:
        self._epoch_unix_s = epoch_unix_s
        self.now_ns = 0

    def time(self) -> float:
        """Seconds since 1970."""
        return self._epoch_unix_s + self.now_ns / NANOS

    def utcnow(self, remove_tz: bool = True) -> datetime.datetime:
        now = datetime.datetime.fromtimestamp(self.time(), datetime.UTC)
        return now.replace(tzinfo=None) if remove_tz else now


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
    qh3.tls.utcnow = clock.utcnow
    qh3.quic.logger.time = clock  # type: ignore[assignment,attr-defined]
