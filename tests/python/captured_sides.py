"""A trial's trace as captures from elsewhere would have it: one file for each side, without comments on what
became of packets, and without secrets.
"""

from __future__ import annotations

import struct
from pathlib import Path

_INTERFACE, _PACKET, _SECRETS, _SECTION = 1, 6, 0x0A, 0x0A0D0D0A  # types of blocks (draft-ietf-opsawg-pcapng)
_HEAD = 20  # of a packet's block, behind type and length: interface, time, lengths


def sides_of(trace: Path, into: Path) -> tuple[Path, Path]:
    """The capture of the client's side and that of the server's, `client.pcapng` and `server.pcapng`."""
    blocks = list(_blocks(trace.read_bytes()))
    names = [_name(body) for kind, body in blocks if kind == _INTERFACE]
    made = []
    for side in ("client", "server"):
        number = names.index(side)
        kept = [_block(_SECTION, next(body for kind, body in blocks if kind == _SECTION))]
        kept.append(_block(_INTERFACE, [body for kind, body in blocks if kind == _INTERFACE][number]))
        for kind, body in blocks:
            if kind == _PACKET and struct.unpack_from("<I", body)[0] == number:
                length = struct.unpack_from("<I", body, 12)[0]
                end = _HEAD + length + -length % 4  # what follows are options: the comments
                kept.append(_block(_PACKET, struct.pack("<I", 0) + body[4:end]))
        path = into / f"{side}.pcapng"
        path.write_bytes(b"".join(kept))
        made.append(path)
    return made[0], made[1]


def secrets_of(trace: Path) -> bytes:
    """The TLS secrets that stand in a trace, as lines of a key log."""
    found = [body for kind, body in _blocks(trace.read_bytes()) if kind == _SECRETS]
    return b"".join(body[8 : 8 + struct.unpack_from("<I", body, 4)[0]] for body in found)


def begun_midway(side: Path, missing: int, port: int) -> Path:
    """A side's capture over IPv4 without its first packets, where the server has another port than 443."""
    blocks = list(_blocks(side.read_bytes()))
    first = next(number for number, (kind, _) in enumerate(blocks) if kind == _PACKET)
    made = side.with_name(f"midway-{side.name}")
    parts = [_block(*one) for one in blocks[:first]]
    for kind, body in blocks[first + missing :]:
        udp = _HEAD + 20  # behind the IP header
        ports = (port if one == 443 else one for one in struct.unpack_from(">HH", body, udp))
        parts.append(_block(kind, body[:udp] + struct.pack(">HH", *ports) + body[udp + 4 :]))
    made.write_bytes(b"".join(parts))
    return made


def _blocks(data: bytes) -> list[tuple[int, bytes]]:
    found, at = [], 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        found.append((kind, data[at + 8 : at + length - 4]))
        at += length
    return found


def _block(kind: int, body: bytes) -> bytes:
    length = len(body) + 12
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)


def _name(body: bytes) -> str:
    """The option if_name of an interface."""
    at = 8
    while at < len(body):
        code, length = struct.unpack_from("<HH", body, at)
        if code == 2:
            return body[at + 4 : at + 4 + length].decode().partition(" ")[0]
        at += 4 + length + -length % 4
    return ""
