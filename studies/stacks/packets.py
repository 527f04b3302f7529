"""Packets of each stack besides the data (the thesis's section 5.6.9): acknowledgements, packet
numbers, sizes of packets.

Rates are of IP packets in bins of 1 s from the connection's first packet on. Packet numbers are those of
1-RTT packets, sizes those of QUIC packets with STREAM frames, header and tag in them.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from bentpipe.analysis.plots import series
from bentpipe.analysis.plots.table import Floats, Ints, ints, texts
from bentpipe.analysis.traces import Analysis
from bentpipe.analysis.trial_marks import marked
from bentpipe.runs.records import Record
from bentpipe.study.intervals import span, with_ends
from bentpipe.study.markdown import literal, several, table

from .published import Published
from .runs import PACKETS, StackRuns, in_order

SIZES_FIGURE = "stacks-sizes.svg"
BIN_S = 1.0
_COMMON = 0.01  # of the packets with data: a size that fewer have is not listed
_SMALL = 0.5  # of the largest: packets with data that are smaller are counted apart
_LISTED = 4

_NUMBERS = """Of 1-RTT packets, over a stack's partners. *First*: the number of the first; RFC 9000, section
12.3, has each packet number space begin at 0. *Left out*: numbers below the last that no packet had; a
sender may leave some out to find out peers that acknowledge what they cannot have received (section 21.4).
*Twice*: numbers that more than one packet had, which section 12.3 forbids."""
_SIZES = """QUIC packets with STREAM frames of each server, over its clients, bytes. *First*: the most
frequent size of the first ten; *largest*: of a trial. *Sizes*: those of at least 1 % of the packets, in the
trial with the median goodput, the most frequent first. *Small*: packets with less than half of the largest,
of all with data, in percent. The path has no MTU ([the contract](../../endpoints/CONTRACT.md)), so path MTU
discovery goes as far as the stack wants."""


@dataclass(frozen=True)
class TracedTransfer:
    """The packets of a trial, as far as they are told here."""

    record: Record
    return_bps: Floats  # by bin
    forward_bps: Floats
    return_bytes: float  # mean of the client's IP packets
    client_numbers: NumbersUsed
    server_numbers: NumbersUsed
    data_sizes: tuple[int, ...]  # of the server's packets with stream data, in order of time
    data_times_s: Floats

    @classmethod
    def of(cls, record: Record, analysis: Analysis) -> TracedTransfer | None:
        """None of a trial that did not succeed, or of which nothing could be measured."""
        if not record.ok or record.return_rate_bps is None:
            return None
        packets = series.of_connection(analysis.packets, analysis.connection().connection)
        back = series.rate(packets, "return", BIN_S, "client")
        there = series.rate(packets, "forward", BIN_S, "server")
        own = series.sizes(packets, "return", "client").bytes
        sizes, times_s = _data(packets)
        return cls(
            record,
            back.bps("raw"),
            there.bps("raw"),
            float(own.mean()),
            NumbersUsed.of(packets, "return"),
            NumbersUsed.of(packets, "forward"),
            tuple(sizes.tolist()),
            times_s,
        )

    @property
    def largest_return_bps(self) -> float:
        return float(self.return_bps.max())

    @property
    def largest_at(self) -> float:
        """The time of the busiest second of the return link, as a share of the time to completion."""
        middle_s = (int(self.return_bps.argmax()) + 0.5) * BIN_S
        return min(middle_s / (self.record.completion_s or middle_s), 1.0)

    @property
    def follows(self) -> float | None:
        """The correlation of the rates of both links; None where one does not vary."""
        bins = min(len(self.return_bps), len(self.forward_bps))  # each ends with what passed its side
        back, there = self.return_bps[:bins], self.forward_bps[:bins]
        if bins < 3 or not back.std() or not there.std():
            return None
        return float(np.corrcoef(back, there)[0, 1])

    @cached_property
    def small_share(self) -> float:
        sizes = np.asarray(self.data_sizes)
        return float(np.mean(sizes < _SMALL * sizes.max()))

    @property
    def common_sizes(self) -> list[int]:
        """The most frequent first."""
        counted = Counter(self.data_sizes).most_common()
        return [size for size, count in counted if count >= _COMMON * len(self.data_sizes)]


@dataclass(frozen=True)
class NumbersUsed:
    """The packet numbers of an end's 1-RTT packets."""

    first: int
    left_out: int  # below the last
    twice: int
    in_one: bool  # all spaces have one sequence: no number is in two of them, nor the first of this one 0

    @classmethod
    def of(cls, packets: pa.Table, direction: series.Direction) -> NumbersUsed:
        numbers = series.numbers(packets, direction).number
        known = np.unique(numbers)
        others = [series.numbers(packets, direction, space=one).number for one in ("initial", "handshake")]
        every = np.concatenate([known, *map(np.unique, others)])
        return cls(
            int(known[0]),
            int(known[-1] - known[0] + 1 - len(known)),
            len(numbers) - len(known),
            bool(known[0] > 0 and len(every) == len(np.unique(every))),
        )


def _data(packets: pa.Table) -> tuple[Ints, Floats]:
    """Sizes and times of the server's 1-RTT packets with stream data."""
    mine = series.in_direction(packets, "forward")
    keep = (series.stream_bytes(mine) > 0) & (texts(mine, "type") == "1rtt")
    times_s = series.seen(mine, "server")
    order = np.argsort(times_s[keep], kind="stable")
    return ints(mine, "size_bytes")[keep][order], times_s[keep][order]


@dataclass(frozen=True)
class Transfers:
    """All pairs whose packets are told."""

    runs: StackRuns

    @cached_property
    def all(self) -> list[TracedTransfer]:
        found = (TracedTransfer.of(*one) for one in self.runs.traces(PACKETS))
        return [one for one in found if one is not None]

    @property
    def scenarios(self) -> list[str]:
        return list(dict.fromkeys(one.record.scenario for one in self.all))

    def by(self, role: str) -> dict[str, list[TracedTransfer]]:
        """Client, or server → its trials."""
        found: dict[str, list[TracedTransfer]] = {}
        for one in self.all:
            found.setdefault(getattr(one.record, role), []).append(one)
        return {name: found[name] for name in in_order(list(found))}

    def middle(self, role: str) -> dict[str, TracedTransfer]:
        """Of each client, or server, the trial with the (lower) median goodput."""
        found = {}
        for name, mine in self.by(role).items():
            ranked = sorted(mine, key=lambda one: (one.record.goodput_bps or 0.0, one.record.trial))
            found[name] = ranked[(len(ranked) - 1) // 2]
        return found


def section(found: Transfers, known: Published, return_link: list[str]) -> list[str]:
    """The part of the page; `return_link` is what is said of that."""
    pairs = {(one.record.client, one.record.server) for one in found.all}
    return [
        "## Return link, packet numbers, packet sizes",
        f"All pairs over {literal(', '.join(found.scenarios))}, a file of 10 MiB: "
        f"{several(len(found.all), 'trial')} of {several(len(pairs), 'pair')} that succeeded, with their "
        "packets (section 5.6.9).",
        *return_link,
        "### Packet numbers",
        _NUMBERS,
        _numbers(found),
        f"Published: {known.packet_numbers.text} ({known.packet_numbers.source}). {_verdict(found)}",
        "### Packet sizes",
        f"![Sizes of packets with data over time, a server each]({SIZES_FIGURE})",
        f"The trial with the median goodput of each server, {len(found.by('server'))} of "
        f"{several(len(found.all), 'trial')}; a dot for each packet with data.",
        _SIZES,
        _server_sizes(found, known),
        f"Published: {known.packet_sizes_source}. {_small(found)}",
    ]


def over(mine: Sequence[TracedTransfer], value: Callable[[TracedTransfer], float | None], digits: int) -> str:
    """Median, least and most."""
    known = [one for each in mine if (one := value(each)) is not None]
    if not known:
        return "-"
    return with_ends(statistics.median(known), min(known), max(known), digits, always=False)


def _numbers(found: Transfers) -> str:
    clients, servers = found.by("client"), found.by("server")
    rows = []
    for name in in_order([*clients, *servers]):
        row = [literal(name)]
        ends = [one.client_numbers for one in clients.get(name, [])]
        ends += [one.server_numbers for one in servers.get(name, [])]
        for role in ("client", "server"):
            mine = [getattr(one, f"{role}_numbers") for one in found.by(role).get(name, [])]
            row += [span([one.first for one in mine], 0), span([one.left_out for one in mine], 0)]
        rows.append([*row, str(sum(one.twice for one in ends)), str(len(ends))])
    head = ["", "as client: first", "left out", "as server: first", "left out", "twice", "trials"]
    return table(head, rows)


def _verdict(found: Transfers) -> str:
    twice = sum(one.client_numbers.twice + one.server_numbers.twice for one in found.all)
    ends = [(one.record.client, one.client_numbers) for one in found.all]
    ends += [(one.record.server, one.server_numbers) for one in found.all]
    late = in_order([name for name, one in ends if one.first > 0])
    one_counter = [name for name in late if all(one.in_one for other, one in ends if other == name)]
    out = in_order([name for name, one in ends if one.left_out > 0])
    text = "No packet number is used twice." if not twice else f"{several(twice, 'number')} are used twice."
    return (
        f"{text} Not all are consecutive: numbers are left out by {literal(', '.join(out)) or 'none'}; not "
        f"at 0 begin {literal(', '.join(late)) or 'none'}. One sequence for all packet number spaces have: "
        f"{literal(', '.join(one_counter)) or 'none'}."
    )


def _server_sizes(found: Transfers, known: Published) -> str:
    middle = found.middle("server")
    by_key = {one.key: one for one in found.runs.cells(PACKETS)}
    rows = []
    for name, mine in found.by("server").items():
        sizes = middle[name].common_sizes
        listed = ", ".join(map(str, sizes[:_LISTED])) + (", …" if len(sizes) > _LISTED else "")
        rows.append(
            [
                literal(name),
                span([_first_full(one) for one in mine], 0),
                over(mine, lambda one: float(max(one.data_sizes)), 0),
                marked(listed, by_key.get(middle[name].record.cell_key)),
                over(mine, lambda one: 100 * one.small_share, 1),
                known.packet_sizes.get(name, "-"),
            ]
        )
    return table(["server", "first", "largest", "sizes", "small, %", "published"], rows)


def _small(found: Transfers) -> str:
    """Servers that send small packets in the middle of a transfer, as the source says of nginx and xquic."""
    shares = {
        name: statistics.median(one.small_share for one in mine) for name, mine in found.by("server").items()
    }
    small = [f"{name} ({100 * share:.0f} %)" for name, share in shares.items() if share > _MANY_SMALL]
    text = (
        "Fractions of the MTU, as the source has them of nginx and xquic without a reason, have more than "
        f"{100 * _MANY_SMALL:g} % of the packets with data of: {literal(', '.join(small)) or 'no server'}."
    )
    return text + (f" {_WHY_SMALL}" if any(one.startswith("quiche") for one in small) else "")


_MANY_SMALL = 0.05
_WHY_SMALL = """quiche fills the rest of its window with a packet of whatever size that is ([its
page](../../endpoints/quiche/README.md))."""


def _first_full(one: TracedTransfer) -> int:
    """The size of most packets with data of the first flight."""
    return Counter(one.data_sizes[:_FLIGHT]).most_common(1)[0][0]


_FLIGHT = 10  # packets: an initial window of RFC 9002
