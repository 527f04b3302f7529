"""The series of each plot on a cell's page.

They are those of `bentpipe.analysis.plots.series`, so that the page and `bentpipe plot` show the same. The
trace is drawn where the data's sender was captured, else at the receiver; what the path allows is drawn for
the same place. An ideal sender is heard of after two round trips at the client, so half a round trip
earlier at the server. `report-ui/src/trace/model.ts` declares the shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from bentpipe.analysis import ideal_sender
from bentpipe.analysis.link_facts import LinkFacts
from bentpipe.analysis.plots import queueing, series
from bentpipe.analysis.plots.series import OffsetSeries
from bentpipe.analysis.plots.table import OTHER, SENDER, Direction, Floats, Ints, Side
from bentpipe.analysis.traces import logged_window
from bentpipe.report.columns import Columns
from bentpipe.schema.analysis import Connection

# `rate_back` is of the way that the ACKs take, which `bentpipe plot` draws below the rate of the data.
KINDS = (
    "offset",
    "queue",
    "sojourn",
    "number",
    "size",
    "rate",
    "rate_back",
    "in_flight",
    "rtt",
    "acks",
    "delay",
)

_SECONDS = 1e-6  # what times are rounded to
_COLOURS = {"forward": "accent", "return": "series-4"}
_INITIAL = {"forward": "series-6", "return": "series-7"}
_HANDSHAKE = {"forward": "series-1", "return": "series-5"}
_PATHS = ("accent", "series-4", "series-6", "series-1")  # of data over each path
_PAYLOAD = {"forward": "series-3", "return": "series-5"}


@dataclass
class Plots:
    """The series of each kind of plot; methods have the names of KINDS."""

    packets: pa.Table  # of the connection
    connection: Connection
    link: LinkFacts
    columns: Columns = field(default_factory=Columns)

    def __post_init__(self) -> None:
        metrics = self.connection.metrics
        upload = (metrics.upload_bytes or 0) > (metrics.stream_bytes or 0)
        self.data: Direction = "return" if upload else "forward"
        measured_ms = metrics.rtt_min_ms or 0.0
        self.rtt_s = (self.link.rtt_ms or measured_ms) / 1e3  # 0 if it is not known
        self.side = series.best_side(self.packets, self.data)

    @property
    def end_s(self) -> float:
        """The time at which the last packet passed, in seconds."""
        times = (self.packets["sent_s"].to_numpy(), self.packets["received_s"].to_numpy())
        return float(max(np.nanmax(np.append(one, 0.0)) for one in times))

    @property
    def before_client_s(self) -> float:
        """The time by which data passes the place of the offset plot earlier than the client."""
        return self.rtt_s / 2 if self.side == "server" else 0.0

    def offset(self) -> list[dict[str, Any]]:
        sent = series.offset(self.packets, self.data)
        got, known = series.received(self.packets, self.data), series.acknowledged(self.packets, self.data)
        again, lost = sent.retransmitted, sent.lost
        return self._some(
            self._credit("max_stream_data", "series-5"),
            self._credit("max_data", "series-7"),
            self._line("acknowledged", "series-8", known.time_s, known.bytes, mark="steps"),
            self._line("received, distinct bytes", "series-3", got.time_s, got.bytes, mark="steps"),
            *self._first_sent(sent),
            self._dots("retransmitted", "series-2", sent.time_s[again], sent.start[again], "retransmission"),
            self._dots("lost", "failure", sent.time_s[lost], sent.start[lost], "loss"),
            self._ideal(),
        )

    def _first_sent(self, sent: OffsetSeries) -> Iterator[dict[str, Any] | None]:
        """What was sent for the first time, by path where there are several."""
        for path in sorted({0, *sent.path.tolist()}):
            fresh = ~sent.retransmitted & (sent.path == path)
            name = "sent" if path == 0 else f"sent, path {path}"
            yield self._dots(name, _PATHS[path % len(_PATHS)], sent.time_s[fresh], sent.start[fresh])

    def _credit(self, frame: Literal["max_data", "max_stream_data"], colour: str) -> dict[str, Any] | None:
        limit = series.credit(self.packets, self.data, frame)
        name = "receive window" if self.connection.protocol == "tcp" else frame.upper()
        return self._line(name, colour, limit.time_s, limit.bytes, mark="limit")

    def _ideal(self) -> dict[str, Any] | None:
        """All of the file at full rate from the second round trip on."""
        rate, size = self._rate_bps(self.data), self.link.size_bytes
        if rate is None or size is None or not self.rtt_s:
            return None
        before, _ = ideal_sender.round_trips(
            "transfer", self.connection.protocol, self.link.saved_round_trips
        )
        begin = before * self.rtt_s - self.before_client_s
        times = np.array([0, begin, begin + size * ideal_sender.HEADERS * 8 / rate])
        return self._line("ideal sender", "signal", times, np.array([0, 0, size]), mark="guide")

    def queue(self) -> list[dict[str, Any]]:
        found = queueing.queue(self.packets, self.data, self.side)
        size = self.link.forward_queue_bytes if self.data == "forward" else self.link.return_queue_bytes
        waiting = self._line("waiting", "accent", found.waiting.time_s, found.waiting.bytes, mark="steps")
        if waiting is None:
            return []
        return self._some(
            waiting,
            self._level("queue size", "ink", size),
            self._dots("marked (CE)", "signal", found.marked.time_s, found.marked.bytes, "tick"),
            self._dots("dropped", "failure", found.dropped.time_s, found.dropped.bytes, "loss"),
            self._dots("not received", "failure", found.missing.time_s, found.missing.bytes, "loss"),
        )

    def sojourn(self) -> list[dict[str, Any]]:
        found = queueing.sojourns(self.packets, self.data, self.side)
        if not len(found.time_s):
            return []
        gone = queueing.queue(self.packets, self.data, self.side)
        time_s, waited_ms, marked = found.time_s, found.sojourn_ms, found.marked
        return self._some(
            self._dots("packet", "accent", time_s[~marked], waited_ms[~marked], unit=1e-3),
            self._dots("marked (CE)", "signal", time_s[marked], waited_ms[marked], "tick", unit=1e-3),
            *(
                self._dots(name, "failure", one.time_s, np.zeros(len(one.time_s)), "loss")
                for name, one in (("dropped", gone.dropped), ("not received", gone.missing))
            ),
        )

    def number(self) -> list[dict[str, Any]]:
        made = []
        for direction in (self.data, OTHER[self.data]):
            who = SENDER[direction]
            for space, name, mark, colours in (
                ("initial", "Initial, of the", "early", _INITIAL),
                ("handshake", "Handshake, of the", "early", _HANDSHAKE),
                ("application", "of the", "dots", _COLOURS),
            ):
                one = series.numbers(self.packets, direction, space=space)
                lost = one.lost
                made += [
                    self._dots(f"{name} {who}", colours[direction], one.time_s, one.number, mark),
                    self._dots(f"lost, of the {who}", "failure", one.time_s[lost], one.number[lost], "loss"),
                ]
        return self._some(*made)

    def size(self) -> list[dict[str, Any]]:
        made = []
        for direction in (self.data, OTHER[self.data]):
            one = series.sizes(self.packets, direction)
            lost = one.lost
            made += [
                self._dots(direction, _COLOURS[direction], one.time_s, one.bytes),
                self._dots(f"lost, {direction}", "failure", one.time_s[lost], one.bytes[lost], "loss"),
            ]
        return self._some(*made)

    def rate(self) -> list[dict[str, Any]]:
        return self._rate(self.data)

    def rate_back(self) -> list[dict[str, Any]]:
        return self._rate(OTHER[self.data])

    def _rate(self, direction: Direction) -> list[dict[str, Any]]:
        one = series.rate(self.packets, direction, series.bin_for(self.rtt_s), self.rate_side())
        if not one.raw.any():
            return []
        middle = one.start_s + one.bin_s / 2
        return self._some(
            self._line(f"{direction}, raw", _COLOURS[direction], middle, one.bps("raw")),
            self._line(f"{direction}, payload", _PAYLOAD[direction], middle, one.bps("payload")),
            self._level(f"bottleneck, {direction}", "signal", self._rate_bps(direction)),
        )

    def _rate_bps(self, direction: Direction) -> int | None:
        return self.link.forward_rate_bps if direction == "forward" else self.link.return_rate_bps

    def rate_side(self) -> Side:
        """The side where data arrives, behind the bottleneck; its sender if nothing was captured there."""
        receiver = SENDER[OTHER[self.data]]
        return receiver if np.isfinite(series.seen(self.packets, receiver)).any() else SENDER[self.data]

    def in_flight(self) -> list[dict[str, Any]]:
        one = series.in_flight(self.packets, self.data)
        made = [self._line("bytes in flight", "accent", one.time_s, one.bytes, mark="steps")]
        if window := logged_window(self.connection, SENDER[self.data]):
            times, cwnd = (np.asarray(one, dtype=np.float64) for one in (window.time_s, window.bytes))
            made.append(self._line("cwnd (qlog)", "series-2", times, cwnd, mark="steps"))
        bdp, queue = self.link.bdp_bytes, self.link.forward_queue_bytes
        if self.data == "forward" and bdp is not None:
            made.append(self._level("BDP", "series-8", bdp))
            made.append(self._level("BDP + queue", "ink", None if queue is None else bdp + queue))
        return self._some(*made)

    def rtt(self) -> list[dict[str, Any]]:
        found = series.rtt(self.packets, self.data)
        who = SENDER[self.data]
        return self._some(
            self._dots(f"samples of the {who}", "accent", found.time_s, found.rtt_ms, unit=1e-3)
        )

    def acks(self) -> list[dict[str, Any]]:
        found = series.acks(self.packets, self.data)
        missing = series.gaps(found)
        return self._some(
            self._ranges("acknowledged", "accent", found.time_s, found.first, found.last),
            self._ranges("missing", "series-2", missing.time_s, missing.first, missing.last),
        )

    def delay(self) -> list[dict[str, Any]]:
        made = []
        for direction in (self.data, OTHER[self.data]):
            one = series.delays(self.packets, direction)
            made.append(self._dots(direction, _COLOURS[direction], one.time_s, one.delay_ms, unit=1e-3))
        return self._some(*made)

    def _dots(
        self, name: str, colour: str, times: Floats, values: Any, mark: str = "dots", unit: float = 1
    ) -> dict[str, Any] | None:
        return self._series(name, mark, colour, times, (values, None), unit)

    def _line(
        self, name: str, colour: str, times: Floats, values: Any, mark: str = "line"
    ) -> dict[str, Any] | None:
        return self._series(name, mark, colour, times, (values, None), 1)

    def _level(self, name: str, colour: str, value: float | None) -> dict[str, Any] | None:
        """A value that holds all the time; None where it is not known."""
        if value is None:
            return None
        return self._line(name, colour, np.array([0, 2 * self.end_s]), np.array([value, value]), mark="level")

    def _ranges(self, name: str, colour: str, times: Floats, low: Ints, high: Ints) -> dict[str, Any] | None:
        return self._series(name, "ranges", colour, times, (low, high), 1)

    def _series(
        self, name: str, mark: str, colour: str, times: Floats, values: tuple[Any, Any], unit: float
    ) -> dict[str, Any] | None:
        """None where there is nothing to draw."""
        if len(times) == 0:
            return None
        low, high = values
        return {
            "name": name,
            "mark": mark,
            "colour": colour,
            "times": self.columns.add(times, _SECONDS),
            "values": self.columns.add(low, unit),
            "tops": None if high is None else self.columns.add(high, unit),
        }

    @staticmethod
    def _some(*made: dict[str, Any] | None) -> list[dict[str, Any]]:
        return [one for one in made if one is not None]
