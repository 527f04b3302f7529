"""Pairs that fail or are late over the long round trip, and why: their first flights, and experiments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bentpipe.analysis.plots import series
from bentpipe.analysis.plots.table import floats, ints
from bentpipe.analysis.traces import Analysis
from bentpipe.analysis.trial_marks import marked
from bentpipe.runs.records import Record
from bentpipe.study.intervals import span
from bentpipe.study.markdown import literal, several, table

from .handshakes import LATE, Handshakes
from .runs import HANDSHAKES, HANDSHAKES_CAUSES, in_order

_HEADERS = 28  # bytes of IPv4 and UDP
_TEXT = """Handshakes that fail, or take more than {:g} of a round trip longer than one. *Hello*: bytes of
the client's first QUIC packet, and of the UDP datagram that it is in. *Flight*: bytes that the server sends
before a second datagram of the client reaches it, and how many times the hello that is: RFC 9000, section
8.1, allows three times the *datagram*, until the client's address is validated."""
_CHANGED = """Answers that are late where the handshake was not, of servers of which one thing is changed:
round trips until the file is there, a client a column."""
# Server → what its trace shows, the library's code, and the experiments.
_WHY = {
    "qh3": """**qh3** counts the bytes of packets, and not of datagrams, against the limit. Clients
  that pad the datagram behind the packet leave it too little for its flight; the Initial packet
  that it then sends is in a datagram of less than 1200 bytes, which RFC 9000, section 14.1,
  forbids. picoquic drops that (`Server initial too short`) and never gets through; others wait for
  probe timeouts, which bring more bytes.""",
}
_LATE_ANSWERS = (
    """- **noq** is paced by the 12 kB of its initial window over the round trip: the end of the answer waits
  for what else it sends first, tokens and a path MTU probe. A wider window makes it wait less; Bentpipe's own
  slow start, whose bucket holds more, lets it go at once.""",
    "- **ngtcp2** likewise: without path MTU discovery, and so without a probe, the answer is in time.",
)


@dataclass(frozen=True)
class FirstFlight:
    """The server's answer to the client's first datagram; sizes in bytes."""

    record: Record
    hello: int  # the first QUIC packet
    datagram: int  # its UDP payload
    flight: int  # UDP payload

    @classmethod
    def of(cls, record: Record, analysis: Analysis) -> FirstFlight | None:
        """None without two datagrams of the client."""
        packets = series.of_connection(analysis.packets, analysis.connection().connection)
        mine, theirs = series.in_direction(packets, "return"), series.in_direction(packets, "forward")
        whole = ints(mine, "ip_bytes")
        arrived = np.sort(floats(mine, "received_s")[whole > 0])
        if len(arrived) < 2 or np.isnan(arrived[1]):
            return None
        first = int(np.nanargmin(floats(mine, "sent_s")))
        sizes = ints(theirs, "ip_bytes")
        early = (sizes > 0) & (floats(theirs, "sent_s") < arrived[1])
        return cls(
            record,
            int(ints(mine, "size_bytes")[first]),
            int(whole[first]) - _HEADERS,
            int((sizes[early] - _HEADERS).sum()),
        )


def section(found: Handshakes) -> list[str]:
    """The section on late pairs; empty if there are none, or no traces."""
    flights = [
        flight
        for record, analysis in found.runs.traces(HANDSHAKES)
        if _is_late(found, record) and (flight := FirstFlight.of(record, analysis))
    ]
    parts = [*_handshakes(found, flights), *_experiments(found)]
    return ["### What is late, and why", *parts] if parts else []


def _is_late(found: Handshakes, record: Record) -> bool:
    return record.handshake_s is None or record.handshake_s / found.rtt_s > 1 + LATE


def _handshakes(found: Handshakes, flights: list[FirstFlight]) -> list[str]:
    if not flights:
        return []
    servers = in_order([one.record.server for one in flights])
    known = [f"- {_WHY[one]}" for one in servers if one in _WHY]
    if other := [one for one in servers if one not in _WHY]:
        known.append(f"- Why is not known of: {literal(', '.join(other))}.")
    return [_TEXT.format(LATE), table(_HEAD, _rows(found, flights), left=3), "\n".join(known)]


_HEAD = ["server", "client", "handshake, round trips", "hello", "its datagram", "flight", "times the hello"]


def _rows(found: Handshakes, flights: list[FirstFlight]) -> Iterator[list[str]]:
    by_key = {one.key: one for one in found.cells}
    for one in sorted(flights, key=lambda flight: (flight.record.server, flight.record.client)):
        done_s = one.record.handshake_s
        text = one.record.outcome.replace("_", " ") if done_s is None else f"{done_s / found.rtt_s:.2f}"
        yield [
            literal(one.record.server),
            literal(one.record.client),
            marked(text, by_key.get(one.record.cell_key)),
            str(one.hello),
            str(one.datagram),
            str(one.flight),
            f"{one.flight / one.hello:.2f}",
        ]


def _experiments(found: Handshakes) -> list[str]:
    cells = found.runs.cells(HANDSHAKES_CAUSES)
    if not cells:
        return []
    clients = in_order([one.key.client for one in cells])
    known = {(one.key.client, one.key.server): one for one in cells}
    rows = []
    for server in dict.fromkeys(one.key.server for one in cells):
        row = [literal(server)]
        for client in clients:
            cell = known.get((client, server))
            trips = [one / found.rtt_s for one in cell.values("completion_s")] if cell else []
            row.append(marked(span(trips, 2), cell) if cell else "-")
        rows.append(row)
    count = sum(len(one.records) for one in cells)
    head = ["server", *map(literal, clients)]
    return [_CHANGED, table(head, rows), f"{several(count, 'trial')}.", "\n".join(_LATE_ANSWERS)]
