"""TCP connections of this network namespace, as Linux lists them in `/proc/net/tcp` and `tcp6`."""

from __future__ import annotations

from pathlib import Path

# Of the kernel's `include/net/tcp_states.h`.
_ESTABLISHED, _SYN_SENT = "01", "02"


def open_connections(port: int) -> int:
    """How many connections to a server's port this host opens or has open."""
    found = 0
    for table in ("tcp", "tcp6"):
        path = Path("/proc/self/net") / table
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            _, _, remote, state, *_ = line.split()
            found += state in (_ESTABLISHED, _SYN_SENT) and int(remote.rpartition(":")[2], 16) == port
    return found
