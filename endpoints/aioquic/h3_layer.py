"""HTTP/3 of aioquic for `endpoints/aioquic-family`; apart from `dialect`, because most trials do
without it.
"""

from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.connection import QuicConnection

__all__ = ["DataReceived", "H3Connection", "HeadersReceived", "may_open_stream"]


def may_open_stream(connection: QuicConnection) -> bool:
    """True if MAX_STREAMS allows a stream that the client opens now; aioquic would hold back its data."""
    return connection.get_next_available_stream_id() // 4 < connection._remote_max_streams_bidi
