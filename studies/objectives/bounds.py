"""How soon physics allows the first bytes of a file to be there.

A full packet has 1500 bytes at IP: 20 of IPv4, 8 of UDP, 3 of a short header without a connection ID and with
a packet number of two bytes, 16 of the AEAD's tag (RFC 9001 section 5.3), 6 of a STREAM frame's type, stream
and offset (RFC 9000 section 19.8), and the rest is the file's. Losses are not counted: they only add.
"""

from __future__ import annotations

from bentpipe.objectives.suite import Objective
from bentpipe.schema.manifest import ScenarioState

PACKET = 1500
HEADERS = 20 + 8 + 3 + 16 + 6
# Of a reply: the handshake, then the request's way and the reply's. An upload needs no answer to arrive.
ROUND_TRIPS = {"transfer": 2.0, "upload": 1.5}


def bound_s(objective: Objective, path: ScenarioState) -> float:
    """The time until these bytes may be there, from the client's first packet on."""
    moved = objective.setting.workload.partition(":")[0]
    direction = "return" if moved == "upload" else "forward"
    bits = 8 * (objective.measure.bytes or 0) * PACKET / (PACKET - HEADERS)
    waiting_s = ROUND_TRIPS[moved] * path.summary["rtt_ms"] / 1e3
    return float(waiting_s + bits / path.summary[f"{direction}_rate_bps"])
