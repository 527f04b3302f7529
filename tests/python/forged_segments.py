"""Segments of TCP that nobody's kernel sends, by raw sockets, inside a network namespace of a test.

    forged_segments.py flood ADDRESS PORT COUNT     so many SYNs from addresses where nobody is
    forged_segments.py reset ADDRESS PORT           resets of a connection of its own, all wrong but the last

`reset` asks `tcp_load.py server` for bytes by a connection, sends resets whose numbers lie outside of the
window, and inside it but not at its edge (RFC 5961, section 3.2), gets its bytes all the same, and then sends
one that is right. It prints what came of each.
"""

from __future__ import annotations

import ipaddress
import random
import socket
import struct
import sys

SYN, RST, ACK = 0x02, 0x04, 0x10
SOME = 100_000


def checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def segment(ends: tuple[tuple[str, int], tuple[str, int]], flags: int, sequence: int) -> bytes:
    """A whole IPv4 packet; the kernel completes its header."""
    (source, port), (target, to) = ends
    addresses = ipaddress.ip_address(source).packed + ipaddress.ip_address(target).packed
    header = struct.pack("!HHIIBBHHH", port, to, sequence % 2**32, 0, 0x50, flags, 65_535, 0, 0)
    pseudo = addresses + struct.pack("!BBH", 0, socket.IPPROTO_TCP, len(header))
    header = header[:16] + struct.pack("!H", checksum(pseudo + header)) + header[18:]
    return struct.pack("!BBHHHBBH", 0x45, 0, 0, 0, 0, 64, socket.IPPROTO_TCP, 0) + addresses + header


def raw() -> socket.socket:
    return socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)


def flood(address: str, port: int, count: int) -> None:
    draw = random.Random(19)
    with raw() as sender:
        for _ in range(count):
            source = (f"192.0.2.{draw.randrange(100, 250)}", draw.randrange(1024, 65_536))
            packet = segment((source, (address, port)), SYN, draw.getrandbits(32))
            try:
                sender.sendto(packet, (address, 0))
            except BlockingIOError:  # no room on the way: one less
                continue


def reset(address: str, port: int) -> None:
    with (
        socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3)) as wire,  # all, also what leaves
        socket.create_connection((address, port), 60) as own,
        raw() as sender,
    ):
        ends = (own.getsockname(), (address, port))
        own.sendall(SOME.to_bytes(8))
        following = last_sent(wire, ends[0][1]) + 8
        for wrong in (following - 100_000, following + 2**30, following + 1, following + 1000):
            sender.sendto(segment(ends, RST, wrong), (address, 0))
        got = 0
        while got < SOME:
            came = own.recv(SOME)
            assert came, "the connection has ended"
            got += len(came)
        print("survived", flush=True)
        sender.sendto(segment(ends, RST, following), (address, 0))
        # What comes now is for nobody: the proxy's kernel says so, and the next is not even sent.
        try:
            while True:
                own.sendall(b"x" * SOME)
        except (ConnectionResetError, BrokenPipeError):
            print("reset")


def last_sent(wire: socket.socket, port: int) -> int:
    """The number of the segment with data that left from the port."""
    while True:
        packet = wire.recv(65_536)
        if packet[0] >> 4 != 4 or packet[9] != socket.IPPROTO_TCP:
            continue
        header = packet[20:]
        source, _, sequence = struct.unpack("!HHI", header[:8])
        if source == port and len(header) - (header[12] >> 4) * 4 == 8:
            return int(sequence)


if __name__ == "__main__":
    task, *words = sys.argv[1:]
    if task == "flood":
        flood(words[0], int(words[1]), int(words[2]))
    else:
        reset(words[0], int(words[1]))
