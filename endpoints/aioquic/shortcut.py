"""A shortcut: is there anything that `QuicConnection.datagrams_to_send` would send?

Like aioquic's own driver, the node asks a connection after every datagram that arrives. A client that
downloads has an answer to one datagram in three; for the others aioquic sets up a packet and walks through
everything that could go into it, which is a seventh to a fifth of a client's CPU. This module looks at the
same things first. A server that waits for its pacer gains a little, too.

Model: it says "nothing" only where the call would leave no packet, and then leaves behind what the call would
leave: the pacer's bucket and `_pacing_at`. Whatever is rare (a handshake, a close, a second path, a limit to
be raised) counts as something, so that aioquic decides. It mirrors `_write_application` of aioquic 1.7.2, the
version that the project pins; `--no-shortcut` does without, and a test holds both to the same packets.
"""

from __future__ import annotations

from aioquic.quic.connection import QuicConnection, QuicConnectionState
from aioquic.quic.stream import QuicStream
from aioquic.tls import Epoch

is_taken = True  # `--no-shortcut` says False
CONNECTED, ONE_RTT = QuicConnectionState.CONNECTED, Epoch.ONE_RTT


def nothing_to_send(connection: QuicConnection, now: float) -> bool:
    """True if `datagrams_to_send(now)` would give an empty list; it need not be called then."""
    if (
        not is_taken
        or connection._state is not CONNECTED
        or not connection._handshake_confirmed
        or connection._close_pending
        or len(connection._network_paths) != 1
        or connection._remote_preferred_address is not None
    ):
        return False
    ack_at = connection._spaces[ONE_RTT].ack_at
    if ack_at is not None and ack_at <= now:
        return False
    pacing_at = connection._loss._pacer.next_send_time(now)
    if pacing_at is None and (_connection_has_frames(connection) or _streams_have_frames(connection)):
        return False
    connection._pacing_at = pacing_at
    return True


def _connection_has_frames(connection: QuicConnection) -> bool:
    """Frames of the connection as a whole."""
    path, data = connection._network_paths[0], connection._local_max_data
    bidi, uni = connection._local_max_streams_bidi, connection._local_max_streams_uni
    return bool(
        not path.is_validated
        or path.remote_challenges
        or data.used * 2 > data.value
        or data.value != data.sent
        or bidi.value != bidi.sent
        or uni.value != uni.sent
        or connection._handshake_done_pending
        or connection._retire_connection_ids
        or connection._streams_blocked_pending
        or connection._ping_pending
        or connection._probe_pending
        or connection._datagrams_pending
        or not connection._crypto_streams[ONE_RTT].sender.buffer_is_empty
    )


def _streams_have_frames(connection: QuicConnection) -> bool:
    """Frames of streams, NEW_CONNECTION_ID, and streams that are to be discarded."""
    # Loops, not any(): a generator costs half of what the shortcut saves.
    for connection_id in connection._host_cids:
        if not connection_id.was_sent:
            return True
    for stream in connection._streams.values():  # noqa: SIM110
        if _has_frames(stream):
            return True
    return False


def _has_frames(stream: QuicStream) -> bool:
    receiver, sender, limit = stream.receiver, stream.sender, stream.max_stream_data_local
    return (
        not sender.buffer_is_empty
        or sender.reset_pending
        or receiver.stop_pending
        or (receiver.is_finished and sender.is_finished)
        or stream.max_stream_data_local_sent != limit
        or (limit != 0 and receiver.highest_offset * 2 > limit)
    )
