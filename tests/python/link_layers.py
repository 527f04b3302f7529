"""The same IP packets behind other link layers, and inside tunnels, as other programs capture them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path

Packets = Sequence[tuple[int, bytes]]  # microseconds since the epoch, and an IP packet

ETHERNET, RAW, PPP = 1, 101, 9
_MAC = bytes(range(2, 14))


def read(capture: Path) -> list[tuple[int, bytes]]:
    """The packets of a pcap file of raw IP with microseconds, in either byte order."""
    data = capture.read_bytes()
    order = ">" if data[:4] == b"\xa1\xb2\xc3\xd4" else "<"
    found, at = [], 24
    while at < len(data):
        seconds, micros, length, _ = struct.unpack_from(order + "IIII", data, at)
        found.append((seconds * 1_000_000 + micros, data[at + 16 : at + 16 + length]))
        at += 16 + length
    return found


def write(capture: Path, link_type: int, packets: Packets, order: str = ">") -> None:
    """A pcap file with microseconds, in the byte order of `struct`."""
    parts = [struct.pack(order + "IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, link_type)]
    for time, packet in packets:
        record = (time // 1_000_000, time % 1_000_000, len(packet), len(packet))
        parts += [struct.pack(order + "IIII", *record), packet]
    capture.write_bytes(b"".join(parts))


def _is_4(ip: bytes) -> bool:
    return ip[0] >> 4 == 4


def ether_type(ip: bytes) -> bytes:
    return b"\x08\x00" if _is_4(ip) else b"\x86\xdd"


def ethernet(ip: bytes, tags: bytes = b"") -> bytes:
    return _MAC + tags + ether_type(ip) + ip


def ppp(ip: bytes) -> bytes:
    return (b"\x00\x21" if _is_4(ip) else b"\x00\x57") + ip


def pppoe(ip: bytes) -> bytes:
    frame = ppp(ip)
    return struct.pack(">BBHH", 0x11, 0, 1, len(frame)) + frame


def outer(protocol: int, content: bytes) -> bytes:
    """An IPv4 packet between the ends of a tunnel."""
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(content), 1, 0, 64, protocol, 0)
    head += bytes((203, 0, 113, 1, 203, 0, 113, 2))
    total = sum(struct.unpack(">10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    return head[:10] + struct.pack(">H", ~(total + (total >> 16)) & 0xFFFF) + head[12:] + content


def gre(fields: bytes, content: bytes) -> bytes:
    return outer(47, fields + content)


def vxlan(ip: bytes) -> bytes:
    frame = b"\x08\0\0\0\0\0\x2a\0" + ethernet(ip)
    return outer(17, struct.pack(">HHHH", 61_000, 4789, 8 + len(frame), 0) + frame)


# Name → link type, and how a packet of it is made of an IP packet.
LAYERS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "null": (0, lambda ip: struct.pack("<I", 2 if _is_4(ip) else 24) + ip),
    "null-big-endian": (0, lambda ip: struct.pack(">I", 2 if _is_4(ip) else 30) + ip),
    "loop": (108, lambda ip: struct.pack(">I", 2 if _is_4(ip) else 24) + ip),
    "ethernet": (ETHERNET, ethernet),
    "vlan": (ETHERNET, lambda ip: ethernet(ip, b"\x81\0\0\x05")),
    "qinq": (ETHERNET, lambda ip: ethernet(ip, b"\x88\xa8\0\x05\x81\0\0\x06")),
    "pppoe": (ETHERNET, lambda ip: _MAC + b"\x88\x64" + pppoe(ip)),
    "mpls": (ETHERNET, lambda ip: _MAC + b"\x88\x47" + b"\0\x01\0\x40\0\x02\x01\x40" + ip),
    "ppp": (PPP, ppp),
    "ppp-addressed": (PPP, lambda ip: b"\xff\x03" + ppp(ip)),
    "ppp-compressed": (PPP, lambda ip: ppp(ip)[1:]),
    "ppp-hdlc": (50, lambda ip: b"\xff\x03" + ppp(ip)),
    "ppp-with-direction": (204, lambda ip: b"\x01\xff\x03" + ppp(ip)),
    "cisco-hdlc": (104, lambda ip: b"\x0f\0" + ether_type(ip) + ip),
    "raw": (RAW, bytes),
    "sll": (113, lambda ip: struct.pack(">HHH8s", 0, 1, 6, _MAC[:8]) + ether_type(ip) + ip),
    "sll2": (276, lambda ip: ether_type(ip) + struct.pack(">HIHBB8s", 0, 1, 1, 0, 6, _MAC[:8]) + ip),
    "ip-in-ip": (RAW, lambda ip: outer(4 if _is_4(ip) else 41, ip)),
    "gre": (RAW, lambda ip: gre(b"\0\0" + ether_type(ip), ip)),
    "gre-keyed": (RAW, lambda ip: gre(b"\x30\0" + ether_type(ip) + b"\0\0\0\x07\0\0\0\x09", ip)),
    "gre-ethernet": (RAW, lambda ip: gre(b"\0\0\x65\x58", ethernet(ip))),
    "vxlan": (RAW, vxlan),
}
