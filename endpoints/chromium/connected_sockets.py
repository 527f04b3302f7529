"""Sockets of this network namespace that are connected to a server, as Linux lists them in `/proc/net`."""

from __future__ import annotations

from pathlib import Path

# Of the kernel's `include/net/tcp_states.h`. A UDP socket that is connected, as those of QUIC are in
# Chromium, has the state of an established TCP connection.
_ESTABLISHED, _SYN_SENT = "01", "02"


def connected_sockets(port: int) -> int:
    """How many sockets are connected to a server's port, or, over TCP, are being connected."""
    found = 0
    for table in ("tcp", "tcp6", "udp", "udp6"):
        path = Path("/proc/self/net") / table
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            _, _, remote, state, *_ = line.split()
            found += state in (_ESTABLISHED, _SYN_SENT) and int(remote.rpartition(":")[2], 16) == port
    return found
