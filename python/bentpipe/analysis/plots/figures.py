"""The kinds of figures: packets on the wire, over time.

| kind      | shows                                                                              |
|-----------|------------------------------------------------------------------------------------|
| offset    | offset of each STREAM frame; retransmissions, losses, acknowledgement, flow control |
| number    | packet numbers of all three spaces, losses                                         |
| size      | sizes of IP packets                                                                |
| rate      | IP and new stream bytes per bin of max(RTT / 4, 50 ms), both directions            |
| in_flight | bytes in flight; congestion window where a qlog has it; what the path holds        |
| rtt       | RTT samples; without secrets those of the spin bit                                 |
| acks      | ACK ranges and the gaps between them, against the arrival of packets               |
| delay     | one-way delays of packets, both directions                                         |
| queue     | bytes that wait, and times in queues; marks (CE) and drops                         |

Times are those of one side (`Subject.side`). Offset over time with the ideal sender's line is the figure of
Endres et al. (Performance of QUIC Implementations Over Geostationary Satellite Links, 2022).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

from bentpipe.analysis import ideal_sender
from bentpipe.analysis.link_facts import LinkFacts
from bentpipe.analysis.plots import canvas, queueing, series
from bentpipe.analysis.plots.canvas import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PALE,
    PURPLE,
    SKY,
    VERMILLION,
    FigureStyle,
    Mark,
    Panel,
)
from bentpipe.analysis.plots.series import ByteCurve
from bentpipe.analysis.plots.table import SENDER, Direction, Side
from bentpipe.analysis.traces import logged_window
from bentpipe.errors import BentpipeError, UsageError
from bentpipe.schema.analysis import Connection

_EVENTS = {"handshake_complete": "handshake", "first_byte": "first byte", "last_byte": "last byte"}
_ROOM = 1.01  # behind the last packet
_WORTH_A_LINE = 0.05  # of the bottleneck's rate: below, its line would press the rest to the ground
_NEAR = 0.25  # of a queue's size: where less waits, its line would do the same
_AT_SENDER = ("in_flight", "rtt")  # kinds that need its side
_WITHOUT_SECRETS = ("size", "rate", "rtt", "delay", "queue")
_CLOSE = 0.04  # of the width: an event nearer than this to the axis or to another has no text


@dataclass(frozen=True)
class FigureSubject:
    """The subject of a figure: a connection seen in one direction, at one side."""

    packets: pa.Table  # of one connection
    connection: Connection
    link: LinkFacts
    direction: Direction  # of the data
    side: Side  # where times are read
    title: str
    others: Sequence[ByteCurve] = ()  # bytes over time in other iterations of the cell

    @cached_property
    def first_s(self) -> float:
        """The first time: 0, or less if the clocks of two captures differ."""
        return float(np.nanmin(series.seen(self.packets, self.side), initial=0.0))

    @cached_property
    def last_s(self) -> float:
        return float(np.nanmax(series.seen(self.packets, self.side), initial=0.0))

    @property
    def is_tcp(self) -> bool:
        """Whether it is TCP: segments then replace packets, and the sequence space replaces stream 0."""
        return self.connection.protocol == "tcp"

    @property
    def at_sender(self) -> bool:
        return SENDER[self.direction] == self.side

    @property
    def sender_captured(self) -> bool:
        """Whether packets were captured where the data was sent."""
        return series.best_side(self.packets, self.direction) == SENDER[self.direction]

    @property
    def is_sealed(self) -> bool:
        """Whether it is QUIC whose 1-RTT packets could not be decrypted."""
        return bool(self.connection.sealed)

    @property
    def rtt_s(self) -> float | None:
        """The round-trip time without queues: that of the path if known, else the least measured one."""
        ms = self.link.rtt_ms or self.connection.metrics.rtt_min_ms
        if ms is None and (passive := self.connection.passive) is not None:
            ms = passive.matched_rtt.min_ms or passive.spin_rtt.min_ms or passive.handshake_rtt_ms
        return None if ms is None else ms / 1e3

    @property
    def rate_bps(self) -> int | None:
        """The rate of the bottleneck that the data crosses."""
        return self.link.forward_rate_bps if self.direction == "forward" else self.link.return_rate_bps

    @property
    def queue_bytes(self) -> int | None:
        """The size of the queue before that bottleneck."""
        return self.link.forward_queue_bytes if self.direction == "forward" else self.link.return_queue_bytes


Drawing = tuple[Figure, Sequence[Panel]]


def draw(kind: str, subject: FigureSubject, look: FigureStyle) -> Figure:
    """A figure of a kind of KINDS. To be called, and the figure saved, in the context `canvas.style()`.
    BentpipeError if there is nothing to draw.
    """
    by_spin = kind == "rtt" and subject.is_sealed
    if kind in _AT_SENDER and not subject.sender_captured and not by_spin:
        raise BentpipeError(
            f"{kind}: the side of the {SENDER[subject.direction]}, which sent the data, was not captured",
            f"other kinds can be drawn: {', '.join(one for one in KINDS if one not in _AT_SENDER)}",
        )
    if subject.is_sealed and kind not in _WITHOUT_SECRETS:
        raise BentpipeError(f"{kind}: there is nothing to draw", _why_nothing(kind, subject))
    made, panels = KINDS[kind](subject, look)
    if all(panel.empty for panel in panels):
        raise BentpipeError(f"{kind}: there is nothing to draw", _why_nothing(kind, subject))
    canvas.legend(made, panels)
    panels[-1].axes.set_xlabel("Time (s)")
    if look.title:
        panels[0].axes.set_title(subject.title)
    return made


def _why_nothing(kind: str, subject: FigureSubject) -> str:
    if kind in ("delay", "queue"):
        return "it needs packets that were captured at both sides: give both captures"
    if not subject.is_sealed:
        return "what is not decrypted cannot be drawn (--keylog), nor what lies outside --from and --to"
    if kind == "rtt":
        return "without secrets it needs a spin bit that spins; with them: --keylog KEYS"
    others = ", ".join(_WITHOUT_SECRETS)
    return f"it needs the TLS secrets: --keylog KEYS; without them can be drawn: --kind {others}"


def _panels(
    subject: FigureSubject, look: FigureStyle, heights: Sequence[float] = (1,)
) -> tuple[Figure, list[Panel]]:
    made, axes = canvas.figure(look, heights)
    last_s = subject.last_s
    start_s = subject.first_s if look.from_s is None else look.from_s
    if start_s and start_s >= last_s:
        raise UsageError(f"--from: {start_s:g} s is behind the last packet", f"it is at {last_s:.3f} s")
    end_s = look.to_s or last_s * _ROOM or 1.0  # a single packet is at 0
    return made, [Panel(one, start_s, end_s) for one in axes]


def _offset(subject: FigureSubject, look: FigureStyle) -> Drawing:
    made, (panel,) = _panels(subject, look)
    sent = series.offset(subject.packets, subject.direction, subject.side)
    for other in subject.others:
        mark = Mark("other iterations", PALE, "", width=0.5, above=1)
        panel.steps(other.time_s, other.bytes, mark, fit=False, holds=False)
    again, start = sent.retransmitted, sent.start
    # Packets in a capture of the receiver's side alone may have been sent before.
    name = "first transmission" if subject.sender_captured else "STREAM frame"
    for path in sorted({0, *sent.path.tolist()}):
        fresh = ~again & (sent.path == path)
        words = name if path == 0 else f"{name}, path {path}"
        panel.dots(sent.time_s[fresh], start[fresh], Mark(words, _PATHS[path % len(_PATHS)], size=0.9))
    panel.dots(sent.time_s[again], start[again], Mark("retransmission", VERMILLION, "^", size=1.8, above=5))
    panel.dots(sent.time_s[sent.lost], start[sent.lost], Mark("lost", BLACK, "x", 2.2, width=0.4, above=4))
    if subject.at_sender:
        known = series.acknowledged(subject.packets, subject.direction)
        panel.steps(known.time_s, known.bytes, Mark("acknowledged", SKY, "", above=2))
    else:
        known = series.received(subject.packets, subject.direction)
        panel.steps(known.time_s, known.bytes, Mark("received", SKY, "", above=2))
    _credit(subject, panel, int(start.max(initial=0)))
    _limit(subject, panel)
    _events(subject, panel)
    panel.finish_bytes("Stream offset")
    return made, [panel]


_PATHS = (BLUE, GREEN, ORANGE, PURPLE)  # of data over each path


def _credit(subject: FigureSubject, panel: Panel, highest: int) -> None:
    """The flow control limits, where they come near the data."""
    for frame, dashes in (("max_stream_data", "--"), ("max_data", ":")):
        limit = series.credit(subject.packets, subject.direction, frame, subject.side)  # type: ignore[arg-type]
        if len(limit.bytes) and limit.bytes[0] <= highest:
            name = "receive window" if subject.is_tcp else frame.upper()
            mark = Mark(name, PURPLE, "", dashes=dashes, above=2)
            panel.steps(limit.time_s, limit.bytes, mark, fit=False)


def _limit(subject: FigureSubject, panel: Panel) -> None:
    """The ideal sender: at full rate from the second round trip on."""
    rate, rtt_s = subject.rate_bps, subject.rtt_s
    if rate is None or rtt_s is None:
        return
    transport = "tcp" if subject.is_tcp else "quic"
    before, _ = ideal_sender.round_trips("transfer", transport, subject.link.saved_round_trips)
    begin = before * rtt_s - (rtt_s / 2 if subject.at_sender else 0)
    reach = max(panel.end_s, begin)
    sent = (reach - begin) * rate / 8 / ideal_sender.HEADERS
    panel.line([begin, reach], [0, sent], Mark("ideal sender", GREY, "", dashes="-.", width=0.6, above=1))


def _events(subject: FigureSubject, panel: Panel) -> None:
    close = _CLOSE * (panel.end_s - panel.start_s)
    last = panel.start_s
    for event in sorted(subject.connection.events, key=lambda one: one.at_s):
        name = _EVENTS.get(event.name)
        if name is not None:
            panel.event(event.at_s, name if event.at_s - last >= close else "", name == "last byte")
            last = event.at_s


def _number(subject: FigureSubject, look: FigureStyle) -> Drawing:
    made, (panel,) = _panels(subject, look)
    for direction, mark in _BOTH.items():
        one = series.numbers(subject.packets, direction, subject.side)
        panel.dots(one.time_s, one.number, mark)
        panel.dots(one.time_s[one.lost], one.number[one.lost], _LOST)
        for space, (shape, label) in _HANDSHAKE.items():
            one = series.numbers(subject.packets, direction, subject.side, space)
            panel.dots(one.time_s, one.number, Mark("", mark.colour, shape, size=2.2, above=5))
            panel.dots(one.time_s[one.lost], one.number[one.lost], replace(_LOST, above=6))
            if len(one.number):
                panel.marks[label] = Mark(label, GREY, shape)
    panel.finish("Segment" if subject.is_tcp else "Packet number", from_zero=False, counts=True)
    return made, [panel]


def _size(subject: FigureSubject, look: FigureStyle) -> Drawing:
    made, (panel,) = _panels(subject, look)
    for direction, mark in _BOTH.items():
        one = series.sizes(subject.packets, direction, subject.side)
        panel.dots(one.time_s, one.bytes, mark)
        panel.dots(one.time_s[one.lost], one.bytes[one.lost], _LOST)
    panel.finish("IP packet (bytes)")
    return made, [panel]


def _rate(subject: FigureSubject, look: FigureStyle) -> Drawing:
    made, panels = _panels(subject, look, (3, 2))
    bin_s = series.bin_for(subject.rtt_s or 0)
    rates = {"forward": subject.link.forward_rate_bps, "return": subject.link.return_rate_bps}
    for panel, direction in zip(panels, _BOTH, strict=True):
        one = series.rate(subject.packets, direction, bin_s, subject.side)
        panel.empty = not one.raw.any()
        panel.steps(one.start_s, one.bps("raw") / 1e6, Mark("IP packets", BLUE, "", above=4))
        if one.payload.any():
            mark = Mark("new stream bytes", ORANGE, "", dashes="--", above=5)
            panel.steps(one.start_s, one.bps("payload") / 1e6, mark)
        link = rates[direction]
        if link is not None and one.bps("raw").max() > link * _WORTH_A_LINE:
            panel.level(link / 1e6, Mark("bottleneck", GREY, "", dashes="-.", width=0.6))
        panel.finish(f"{direction.capitalize()}\n(Mbit/s)")
    return made, panels


def _in_flight(subject: FigureSubject, look: FigureStyle) -> Drawing:
    made, (panel,) = _panels(subject, look)
    flying = series.in_flight(subject.packets, subject.direction)
    panel.empty = not len(flying.time_s) or flying.time_s[0] > panel.end_s
    panel.steps(flying.time_s, flying.bytes, Mark("in flight", BLUE, "", width=0.6))
    window = logged_window(subject.connection, SENDER[subject.direction])
    if window:
        mark = Mark("congestion window", VERMILLION, "", dashes="--", above=4)
        panel.steps(np.asarray(window.time_s, float), np.asarray(window.bytes, float), mark)
    bdp, queue = subject.link.bdp_bytes, subject.link.forward_queue_bytes
    if subject.direction == "forward" and bdp is not None:
        panel.level(bdp, Mark("BDP", GREY, "", dashes="-.", width=0.6))
        if queue is not None:
            panel.level(bdp + queue, Mark("BDP + queue", BLACK, "", dashes=":", width=0.6))
    panel.finish_bytes("Bytes in flight")
    return made, [panel]


def _rtt(subject: FigureSubject, look: FigureStyle) -> Drawing:
    made, (panel,) = _panels(subject, look)
    one, name = series.rtt(subject.packets, subject.direction), "RTT sample"
    if subject.is_sealed:
        one, name = series.spin_rtt(subject.packets), "by the spin bit"
    panel.dots(one.time_s, one.rtt_ms, Mark(name, BLUE))
    if len(one.rtt_ms):
        panel.level(float(one.rtt_ms.min()), Mark("least RTT", BLACK, "", dashes="--", width=0.5))
    panel.finish("RTT (ms)", from_zero=False)
    return made, [panel]


def _acks(subject: FigureSubject, look: FigureStyle) -> Drawing:
    made, (panel,) = _panels(subject, look)
    # Both at the data's receiver, or both at its sender.
    ranges = series.acks(subject.packets, subject.direction, subject.side)
    packets = series.numbers(subject.packets, subject.direction, subject.side)
    panel.columns(
        ranges.time_s, ranges.first, ranges.last, Mark("acknowledged", PALE, "", width=0.3, above=1)
    )
    gaps = series.gaps(ranges)
    panel.columns(gaps.time_s, gaps.first, gaps.last, Mark("gap", VERMILLION, "", width=0.6, above=4))
    verb = "sent" if subject.at_sender else "received"
    panel.dots(packets.time_s, packets.number, Mark(f"packet {verb}", BLUE, size=0.9))
    panel.finish("Segment" if subject.is_tcp else "Packet number", from_zero=False, counts=True)
    return made, [panel]


def _delay(subject: FigureSubject, look: FigureStyle) -> Drawing:
    made, (panel,) = _panels(subject, look)
    for direction, mark in _BOTH.items():
        one = series.delays(subject.packets, direction, subject.side)
        panel.dots(one.time_s, one.delay_ms, mark)
    panel.finish("One-way delay (ms)", from_zero=False)
    return made, [panel]


def _queue(subject: FigureSubject, look: FigureStyle) -> Drawing:
    made, panels = _panels(subject, look, (1, 1))
    queued = queueing.queue(subject.packets, subject.direction, subject.side)
    waited = queueing.sojourns(subject.packets, subject.direction, subject.side)
    length, sojourn = panels
    waiting, marked = queued.waiting, waited.marked
    length.empty = not len(waiting.time_s) or waiting.time_s[0] > length.end_s
    length.steps(waiting.time_s, waiting.bytes, Mark("waiting", BLUE, "", width=0.6))
    size = subject.queue_bytes
    if size is not None and size * _NEAR < waiting.bytes.max(initial=0):
        length.level(size, Mark("queue size", GREY, "", dashes="-.", width=0.6))
    sojourn.dots(waited.time_s[~marked], waited.sojourn_ms[~marked], Mark("packet", BLUE, size=0.9))
    sojourn.dots(waited.time_s[marked], waited.sojourn_ms[marked], _MARKED)
    length.dots(queued.marked.time_s, queued.marked.bytes, _MARKED)
    for gone, label in ((queued.dropped, "dropped"), (queued.missing, "not received")):
        mark = replace(_LOST, label=label, above=6)
        length.dots(gone.time_s, gone.bytes, mark)
        sojourn.dots(gone.time_s, np.zeros(len(gone.time_s)), mark)  # nobody saw how long they waited
    length.finish_bytes("Waiting")
    sojourn.finish("In queues (ms)")
    return made, panels


_BOTH: dict[Direction, Mark] = {
    "forward": Mark("forward", BLUE, size=0.9),
    "return": Mark("return", GREEN, "+", 1.8, width=0.35, above=2),
}
# Number spaces beside that of the data, with shapes of their own.
_HANDSHAKE = {"initial": ("s", "Initial, own numbers"), "handshake": ("D", "Handshake, own numbers")}
_LOST = Mark("lost", BLACK, "x", 2.2, width=0.4, above=4)
_MARKED = Mark("marked (CE)", VERMILLION, "|", 2.6, width=0.4, above=5)

KINDS: dict[str, Callable[[FigureSubject, FigureStyle], Drawing]] = {
    "offset": _offset,
    "number": _number,
    "size": _size,
    "rate": _rate,
    "in_flight": _in_flight,
    "rtt": _rtt,
    "acks": _acks,
    "delay": _delay,
    "queue": _queue,
}


def data_direction(packets: pa.Table, sealed: bool) -> Direction:
    """The direction in which more stream bytes went; of packets without secrets, more IP bytes."""
    directions: tuple[Direction, Direction] = ("forward", "return")

    def bytes_(way: Direction) -> int:
        mine = series.in_direction(packets, way)
        return int((series.ints(mine, "ip_bytes") if sealed else series.stream_bytes(mine)).sum())

    return max(directions, key=bytes_)
