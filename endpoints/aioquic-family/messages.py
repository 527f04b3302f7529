"""Messages of virtual time on file descriptors 3 and 4: `length: u32 | type: u8 | body`, little-endian.

Source: `endpoints/CONTRACT.md`. A datagram is `time: u64 | ecn: u8 | length: u16 | bytes`.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator

from failures import Failed

FROM_COORDINATOR, TO_COORDINATOR = 3, 4
HELLO, READY, RUN, RAN, FINISH, BYE = 1, 2, 3, 4, 5, 6
BODY_LIMIT = 1 << 28  # bytes of a message's body
NEVER = 2**64 - 1  # a next wake of a program that waits for arrivals only

_HEADER = struct.Struct("<IB")
_RUN = struct.Struct("<QI")
_RAN = struct.Struct("<IBQBI")
_DATAGRAM = struct.Struct("<QBH")
_PATH_BITS, _PATH_SHIFT = 0x30, 4  # of the byte with the ECN bits


class ContractBroken(Failed):
    """The coordinator sent what is not in the contract."""


class CoordinatorGone(Exception):
    """End of file where a message should begin: nobody is there to answer to."""


def read() -> tuple[int, bytes]:
    """The next message, as type and body; CoordinatorGone at the end of the pipe."""
    length, kind = _HEADER.unpack(_read_exactly(_HEADER.size))
    if length > BODY_LIMIT:
        raise ContractBroken(f"a message of {length} bytes, where at most {BODY_LIMIT} are allowed")
    return kind, _read_exactly(length)


def write_json(kind: int, content: object) -> None:
    body = json.dumps(content).encode()
    _write(_HEADER.pack(len(body), kind) + body)


def arrivals(body: bytes, now: int, paths: int) -> tuple[int, Iterator[tuple[int, int, bytes]]]:
    """The `until` of a RUN that begins at `now`, and its datagrams as (time, number of the path, payload);
    without ECN, of which neither library takes notice.
    """
    if len(body) < _RUN.size:
        raise ContractBroken(f"RUN of {len(body)} bytes, where at least {_RUN.size} are due")
    until, count = _RUN.unpack_from(body)
    if until < now:
        raise ContractBroken(f"RUN until {until} ns, but it is {now} ns already")
    return until, _datagrams(body, count, (now, until), paths)


def _datagrams(body: bytes, count: int, run: tuple[int, int], paths: int) -> Iterator[tuple[int, int, bytes]]:
    now, until = run
    at, size = _RUN.size, len(body)
    for _ in range(count):
        if at + _DATAGRAM.size > size:
            raise ContractBroken("RUN ends within a datagram")
        time, mark, length = _DATAGRAM.unpack_from(body, at)
        at += _DATAGRAM.size + length
        if at > size:
            raise ContractBroken("RUN ends within a datagram")
        if not now <= time < until:
            raise ContractBroken(f"an arrival at {time} ns, which is not within [{now}, {until})")
        now, path = time, (mark & _PATH_BITS) >> _PATH_SHIFT
        if path >= paths:
            raise ContractBroken(f"a datagram on path {path}, of {paths}")
        yield time, path, body[at - length : at]
    if at != size:
        raise ContractBroken(f"RUN has {size - at} bytes behind its datagrams")


def datagram(time: int, payload: bytes, path: int = 0) -> bytes:
    """A datagram that departs over the path with that number, Not-ECT: neither library sets ECN bits."""
    return _DATAGRAM.pack(time, path << _PATH_SHIFT, len(payload)) + payload


def write_ran(next_wake: int, done: bool, departures: list[bytes]) -> None:
    """RAN, with departures as `datagram` makes them, in one write."""
    body = b"".join(departures)
    length = _RAN.size - _HEADER.size + len(body)
    _write(_RAN.pack(length, RAN, next_wake, done, len(departures)) + body)


def _read_exactly(count: int) -> bytes:
    data = os.read(FROM_COORDINATOR, count) if count else b""
    if len(data) == count:
        return data
    parts, missing = [data], count - len(data)
    while missing:
        if not parts[-1]:
            raise CoordinatorGone
        parts.append(os.read(FROM_COORDINATOR, missing))
        missing -= len(parts[-1])
    return b"".join(parts)


def _write(message: bytes) -> None:
    rest = memoryview(message)
    while rest:
        rest = rest[os.write(TO_COORDINATOR, rest) :]
