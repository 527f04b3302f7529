"""The test case LONGRTT, pair by pair: who gets through, and what each end repeats before it has an answer.

Nothing is lost on this path, so every packet that is sent again is sent needlessly: the round trip takes
longer than the first probe timeout, 999 ms by RFC 9002 section 6.2.2.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from bentpipe.analysis.cells import Cell
from bentpipe.analysis.plots import series
from bentpipe.analysis.plots.table import floats, ints, texts
from bentpipe.analysis.traces import Analysis
from bentpipe.runs.records import Record
from bentpipe.study import figures
from bentpipe.study.figures import HeatSquare
from bentpipe.study.intervals import span
from bentpipe.study.markdown import listed, literal, percent, several, table
from bentpipe.study.quantiles import median_of

from .published import LongRtt
from .runs import HANDSHAKES, StackRuns, in_order

FIGURE = "stacks-longrtt.svg"
PROBE_S = 0.999  # the first probe timeout of RFC 9002: three times 333 ms
LEAST = 2.0  # round trips: handshake, then request and answer
LATE = 0.05  # of a round trip: what is later than the others by more is named

_REPEATS = """What each end sends before it hears of the other. *Hellos*: how often the client sends its
ClientHello, *again after* when it does so first, in s. *Datagrams*: of the client until it sends its
Finished, of the server until that arrives; one of the client and one or two of the server would do, as no
packet is lost here. *All there*: round trips until the file is complete; two is the least. Ranges are over
the partners of the column beside; a single number holds with all of them."""


@dataclass(frozen=True)
class TracedHandshake:
    """The packets that both ends of a trial sent until the handshake was complete."""

    record: Record
    client_hellos: int
    repeated_s: float | None  # when the client first sent its ClientHello again
    client_datagrams: int
    server_datagrams: int

    @classmethod
    def of(cls, record: Record, analysis: Analysis) -> TracedHandshake | None:
        """None if the handshake was not completed, or not captured."""
        connection = analysis.connection()
        if connection.establishment is None or connection.metrics.handshake_s is None:
            return None
        packets = series.of_connection(analysis.packets, connection.connection)
        mine = series.in_direction(packets, "return")
        has_crypto = np.array(["CRYPTO" in (frames or []) for frames in mine["frames"].to_pylist()], np.bool_)
        hello = has_crypto & (texts(mine, "type") == "initial")
        sent = np.sort(floats(mine, "sent_s")[hello])
        # A ClientHello may take several packets, which leave one after the other.
        repeats = sent[sent > sent[0] + _SAME_FLIGHT_S] if len(sent) else sent
        end_s = connection.metrics.handshake_s
        finished = (texts(mine, "type") == "handshake") & (floats(mine, "sent_s") >= end_s - _INSTANT_S)
        arrived = floats(mine, "received_s")[finished]
        known_s = float(np.nanmin(arrived)) if np.count_nonzero(~np.isnan(arrived)) else np.inf
        return cls(
            record,
            connection.establishment.client_hellos,
            float(repeats[0]) if len(repeats) else None,
            _datagrams(packets, "return", end_s - _INSTANT_S),
            _datagrams(packets, "forward", known_s),
        )


_SAME_FLIGHT_S, _INSTANT_S = 0.02, 1e-6


def _datagrams(packets: pa.Table, direction: series.Direction, before_s: float) -> int:
    mine = series.in_direction(packets, direction)
    return int(np.count_nonzero((ints(mine, "ip_bytes") > 0) & (floats(mine, "sent_s") < before_s)))


@dataclass(frozen=True)
class Handshakes:
    """All pairs over the long round trip."""

    runs: StackRuns
    rtt_s: float

    @classmethod
    def of(cls, runs: StackRuns) -> Handshakes | None:
        """None without such a run."""
        for source in runs.of(HANDSHAKES):
            state = source.manifest.scenarios[source.records[0].scenario]
            return cls(runs, float(state.summary["rtt_ms"]) / 1e3)
        return None

    @cached_property
    def cells(self) -> list[Cell]:
        return self.runs.cells(HANDSHAKES)

    @cached_property
    def traced(self) -> list[TracedHandshake]:
        found = (TracedHandshake.of(*one) for one in self.runs.traces(HANDSHAKES))
        return [one for one in found if one is not None]

    def names(self, role: str) -> list[str]:
        return in_order([getattr(one.key, role) for one in self.cells])

    def round_trips(self, cell: Cell) -> float | None:
        """Until the file is there, the median."""
        middle_s = median_of(cell, "completion_s")
        return None if middle_s is None else middle_s / self.rtt_s


def draw(found: Handshakes, path: Path) -> None:
    """The matrix: round trips of every pair."""
    by_pair = {(one.key.client, one.key.server): one for one in found.cells}
    clients, servers = found.names("client"), found.names("server")
    squares = [[_square(found, by_pair.get((c, s))) for s in servers] for c in clients]
    title = "round trips until the file is there; clients down, servers across"
    figures.grids([(title, squares)], clients, [servers], path, "pairs over LONGRTT")


def _square(found: Handshakes, cell: Cell | None) -> HeatSquare:
    if cell is None:
        return HeatSquare(float("nan"), "")
    trips = found.round_trips(cell)
    if trips is None:
        return HeatSquare(float("nan"), "x")
    return HeatSquare(min(LEAST / trips, 1), f"{trips:.2f}" + ("!" if cell.failures else ""))


def in_short(found: Handshakes) -> str:
    """The summary in a line."""
    through = sum(bool(one.ok and not one.failures) for one in found.cells)
    text = (
        f"{through} of {several(len(found.cells), 'pair')} get through over a round trip of {found.rtt_s:g} s"
    )
    if not found.traced:
        return f"{text}."
    clients = {one.record.client for one in found.traced}
    again = {one.record.client for one in found.traced if one.client_hellos > 1}
    return f"{text}; {len(again)} of {several(len(clients), 'client')} repeat their first packet, needlessly."


def advice(found: Handshakes) -> list[str]:
    """Which clients to give a longer first probe timeout, where some repeat their first packet."""
    again = sorted({one.record.client for one in found.traced if one.client_hellos > 1})
    if not again:
        return []
    return [
        f"- Give these clients a first probe timeout above the path's round trip, which is {found.rtt_s:g} s "
        f"here, or they send their first packet again: {listed(map(literal, again))}."
    ]


def section(found: Handshakes, known: LongRtt) -> list[str]:
    """The part of the page."""
    parts = ["## Over a long round trip", _opening(found), f"![Round trips of every pair]({FIGURE})"]
    parts += [
        "Numbers are round trips; `!`: some trials failed; `x`: none succeeded; white: no record. "
        f"{several(sum(len(one.records) for one in found.cells), 'trial')} of "
        f"{several(len(found.cells), 'pair')}, figure 5.1a.",
        _beside(found, known),
        f"Published: {known.source}. {_THEIRS.format(known.timeout_s)}",
    ]
    if found.traced:
        parts += ["### What is sent again", _REPEATS, _clients(found), _servers(found), _needless(found)]
    return parts


_THEIRS = """There a pair that is not supported counts as failed, and the test asks for a completed handshake
and the file within {:g} s. The matrix is a picture of marks, of which no text says which are which: the pairs
are those that the thesis names."""


def _opening(found: Handshakes) -> str:
    through = [one for one in found.cells if one.ok and not one.failures]
    trials = [one for one in found.cells if one.ok]
    trips = [value for one in trials if (value := found.round_trips(one)) is not None]
    text = (
        f"{several(len(found.names('client')), 'client')} and {several(len(found.names('server')), 'server')}"
        f" over a round trip of {found.rtt_s:g} s, longer than the first probe timeout of {PROBE_S:g} s; a "
        f"file of 1 kB. {len(through)} of {several(len(found.cells), 'pair')} get through."
    )
    if trips:
        late = sum(one > LEAST + LATE for one in trips)
        text += (
            f" The file is there after {min(trips):.2f} to {max(trips):.2f} round trips, in "
            f"{several(late, 'pair')} more than {LATE:g} of one later than the {LEAST:g} that it takes."
        )
    return text


def _beside(found: Handshakes, known: LongRtt) -> str:
    through = sum(bool(one.ok and not one.failures) for one in found.cells)
    stacks = {*found.names("client"), *found.names("server")}
    both = [one for one in known.failed if set(one.split("-", 1)) <= stacks]
    rows = [
        ["pairs that get through", f"{through} of {len(found.cells)}, {percent(through / len(found.cells))}",
         f"{known.succeed_percent:g} % (almost) always, {known.fail_percent:g} % never, since May 2021, at "
         "the official runner"],
        ["stacks that never do", _listed(found), ", ".join(known.never)],
        ["further pairs that do not", _pairs(found), ", ".join(known.failed)],
        ["of these, pairs that are here", "", ", ".join(both) or "none: no such pair has both stacks here"],
    ]  # fmt: skip
    return table(["", "here", "published"], rows, left=3)


def _failed(found: Handshakes) -> list[Cell]:
    return [one for one in found.cells if one.failures or not one.ok]


def _listed(found: Handshakes) -> str:
    """Stacks with which no pair gets through."""
    good = {name for one in found.cells if one.ok for name in (one.key.client, one.key.server)}
    never = [one for one in in_order([*found.names("client"), *found.names("server")]) if one not in good]
    return literal(", ".join(never)) or "none"


def _pairs(found: Handshakes) -> str:
    named = [f"{one.key.client} → {one.key.server}: {_why(one)}" for one in _failed(found)]
    return literal("; ".join(named)) or "none"


def _why(cell: Cell) -> str:
    first = next(one for one in cell.records if not one.ok)
    return f"{first.outcome.replace('_', ' ')}, {first.detail}"


def _clients(found: Handshakes) -> str:
    rows = []
    for name in found.names("client"):
        mine = [one for one in found.traced if one.record.client == name]
        if mine:
            rows.append(
                [
                    literal(name),
                    span([one.record.handshake_s / found.rtt_s for one in mine if one.record.handshake_s], 2),
                    span([one.client_hellos for one in mine], 0),
                    span([one.repeated_s for one in mine if one.repeated_s is not None], 2),
                    span([one.client_datagrams for one in mine], 0),
                    str(len(mine)),
                ]
            )
    head = ["client", "handshake, round trips", "hellos", "again after", "datagrams", "servers"]
    return table(head, rows)


def _servers(found: Handshakes) -> str:
    rows = []
    for name in found.names("server"):
        mine = [one for one in found.traced if one.record.server == name]
        if mine:
            done = [one.record.completion_s / found.rtt_s for one in mine if one.record.completion_s]
            row = [literal(name), span([one.server_datagrams for one in mine], 0), span(done, 2)]
            rows.append([*row, str(len(mine))])
    return table(["server", "datagrams", "all there, round trips", "clients"], rows)


def _needless(found: Handshakes) -> str:
    """The clients that repeat before the probe timeout of the RFC, and those that never do."""
    early, never = [], []
    for name in found.names("client"):
        mine = [one for one in found.traced if one.record.client == name]
        times = [one.repeated_s for one in mine if one.repeated_s is not None]
        if mine and not times:
            never.append(name)
        if times and statistics.median(times) < PROBE_S - LATE:
            early.append(f"{name} after {statistics.median(times):.2f} s")
    text = (
        f"Every ClientHello but the first is needless. RFC 9002 lets it be repeated after {PROBE_S:g} s at "
        f"the earliest, if it follows its section 6.2.2; sooner do: {literal(', '.join(early)) or 'none'}."
    )
    return text + (f" Never: {literal(', '.join(never))}." if never else "")
