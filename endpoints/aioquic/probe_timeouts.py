"""Probe timeouts as aioquic's congestion control took them up to 0.9.17: as a loss, which halves the window.

`QuicPacketRecovery.on_loss_detection_timeout` of 0.9.17 hands the CRYPTO packets that it sends again to
`on_packets_lost` of the congestion control. RFC 9002 section 6.2 says that a probe timeout marks no packet as
lost; aioquic 1.7.2 tells its congestion control nothing.
"""

from __future__ import annotations

import functools
from typing import Any

from aioquic.quic.recovery import QuicPacketRecovery


def count_as_losses() -> None:
    """To be called before the first connection is made."""
    on_packets_lost = QuicPacketRecovery._on_packets_lost

    @functools.wraps(on_packets_lost)
    def lost(recovery: QuicPacketRecovery, **given: Any) -> None:
        crypto = all(packet.is_crypto_packet for packet in given["packets"])
        given["congestion_event"] = given.get("congestion_event", True) or crypto
        on_packets_lost(recovery, **given)

    QuicPacketRecovery._on_packets_lost = lost  # type: ignore[method-assign, assignment]
