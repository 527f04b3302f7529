"""Quick hashes for the enumerations that aioquic looks up for every packet.

`Enum.__hash__` is written in Python and hashes the member's name. A member is equal to itself only, so that
the hash of its address serves as well: it is native, and no set of members is ever walked in its order.
"""

from __future__ import annotations

from aioquic.quic import connection
from aioquic.quic.connection import QuicConnectionState
from aioquic.tls import Epoch


def install() -> None:
    """To be called before the first connection is made."""
    for enumeration in (Epoch, QuicConnectionState):
        enumeration.__hash__ = object.__hash__  # type: ignore[method-assign]
    # The one set of them that exists already was made with the hashes of before.
    connection.END_STATES = frozenset([*connection.END_STATES])
