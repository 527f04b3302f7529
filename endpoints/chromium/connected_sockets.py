"""Sockets of this network namespace that are connected to a server, as Linux lists them in `/proc/net`."""

from __future__ import annotations

import ipaddress
import sys
from pathlib import Path

# Of the kernel's `include/net/tcp_states.h`. A UDP socket that is connected, as those of QUIC are in
# Chromium, has the state of an established TCP connection.
_ESTABLISHED, _SYN_SENT = "01", "02"
_WORD = 4  # bytes: the kernel writes an address as numbers of so many, in the machine's order


def connected_sockets(address: str, port: int) -> int:
    """How many sockets are connected to a server, or, over TCP, are being connected."""
    wanted, found = f"{_hex(address)}:{port:04X}", 0
    for table in ("tcp", "tcp6", "udp", "udp6"):
        path = Path("/proc/self/net") / table
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            _, _, remote, state, *_ = line.split()
            found += state in (_ESTABLISHED, _SYN_SENT) and remote == wanted
    return found


def _hex(address: str) -> str:
    """An address as in these tables."""
    packed = ipaddress.ip_address(address).packed
    words = [packed[at : at + _WORD] for at in range(0, len(packed), _WORD)]
    return "".join(f"{int.from_bytes(one, sys.byteorder):08X}" for one in words)
