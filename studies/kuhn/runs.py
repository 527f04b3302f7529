"""The runs of the page: transfers by where losses are, by sender and by size; and goodputs under losses.

Each time is shown twice. From the client's first packet on it has the handshakes of TCP and of TLS in it.
From the request on, which is the end of the handshake, it has not: the source's tool has no TLS, and its
clock starts when its connection is there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bentpipe import labels
from bentpipe.analysis.cells import Cell, cells
from bentpipe.plan.treatments import DIRECT
from bentpipe.runs.records import Record
from bentpipe.study.quantiles import median
from bentpipe.study.source import Source

Floats = npt.NDArray[np.float64]

MB = 1_000_000
CLEAN, ACCESS, SATELLITE = "clean", "access", "satellite"  # where packets are lost
PLACES = (CLEAN, ACCESS, SATELLITE)
SIZES = (2, 10, 100)  # MB
TCP = "linux"
_BASE = "linux:cc=cubic"
_FIRST_BUFFER = re.compile(r":rmem=(\d+)")


@dataclass(frozen=True)
class Sender:
    """A sender: the server, and the treatment between the ends."""

    server: str
    treatment: str

    @property
    def is_tcp(self) -> bool:
        return labels.variant(self.server).stack == TCP

    @property
    def name(self) -> str:
        """`TCP`, `TCP, proxies D`, `QUIC, noq:cc=cubic`: a word for each option that is not the default."""
        options = dict(labels.variant(self.server).options)
        if not self.is_tcp:
            return f"QUIC, {self.server}"
        options.pop("cc", None)
        at_server = "".join(f", server {key}={value}" for key, value in options.items())
        return f"TCP{at_server}{proxies(self.treatment)}"

    @property
    def configuration(self) -> str:
        """A to D, of proxies at both ends with nothing else changed; `none` without proxies."""
        if self.server != _BASE:
            return ""
        if self.treatment == DIRECT:
            return "none"
        word = proxies(self.treatment).removeprefix(", proxies ")
        return word if len(word) == 1 else ""

    @property
    def letter(self) -> str:
        """A to D, whatever else is changed of the proxies; "" without one."""
        return proxies(self.treatment).removeprefix(", proxies ").partition(" ")[0]

    @property
    def first_buffer(self) -> int | None:
        """The bytes with which the proxies' receivers begin, `rmem`; None: as the kernel has it."""
        found = _FIRST_BUFFER.search(self.treatment)
        return None if found is None else int(found[1])


def proxies(treatment: str) -> str:
    """A chain in the words of a table: `, proxies D`, `, gateway alone C iw=20`."""
    if treatment == DIRECT:
        return ""
    places = [one.partition(":") for one in labels.treatment(treatment).chain.split(",")]
    said = [options.replace("config=", "").split(":") for _, _, options in places]
    words = " ".join(sorted(said[0], key=lambda word: "=" in word))  # the configuration's letter first
    return f", {'proxies' if len(places) == 2 else f'{places[0][0]} alone'} {words}"


def from_request_s(record: Record) -> float | None:
    """The time from the end of the handshake to the last byte; None where it did not come so far."""
    if record.completion_s is None or record.handshake_s is None:
        return None
    return record.completion_s - record.handshake_s


@dataclass(frozen=True)
class Transfers:
    """All trials of a sender with a file of one size."""

    cell: Cell

    @cached_property
    def times_s(self) -> list[float]:
        """From the client's first packet on, of those that came to their end."""
        return sorted(self.cell.values("completion_s"))

    @cached_property
    def from_request_s(self) -> list[float]:
        return sorted(time_s for one in self.cell.ok if (time_s := from_request_s(one)) is not None)

    @property
    def middle_s(self) -> float | None:
        return median(self.times_s) if self.is_whole else None

    @property
    def middle_from_request_s(self) -> float | None:
        return median(self.from_request_s) if self.is_whole else None

    @property
    def is_whole(self) -> bool:
        """Whether every trial came to its end."""
        return len(self.times_s) == len(self.cell.records)

    def is_within(self, objective_s: float | None, *, from_request: bool = True) -> bool:
        """Whether every trial is within it: a median of a few might be by chance."""
        times = self.from_request_s if from_request else self.times_s
        return self.is_whole and objective_s is not None and bool(times) and times[-1] <= objective_s

    @property
    def at_least_s(self) -> float | None:
        """The time from the request on that every trial takes at least, where the timeout cut them all."""
        if not self.cell.records or any(one.outcome != "transfer_timeout" for one in self.cell.records):
            return None
        return min(
            len(one.received_bytes) * one.received_step_s - (one.handshake_s or 0.0)
            for one in self.cell.records
        )

    @property
    def reached_mb(self) -> float | None:
        """The median of the MB that had arrived by the end of the trials, where none is complete."""
        known = [one.received_bytes[-1] / MB for one in self.cell.records if one.received_bytes]
        return median(known)

    @property
    def until_s(self) -> float:
        """The timeout of the trials, where none was complete."""
        return max((len(one.received_bytes) * one.received_step_s for one in self.cell.records), default=0.0)

    def curve(self, times: Floats) -> Floats:
        """MB that had arrived at each time from the request on, the mean over the trials."""
        found = [received(one, times) for one in self.cell.records if one.handshake_s is not None]
        result: Floats = np.mean(found, axis=0) if found else np.zeros(len(times))
        return result


def rate(record: Record, times: Floats, window_s: float) -> Floats:
    """Mbit/s of payload over the window that ends at each time since the request."""
    arrived = received(record, times) - received(record, times - window_s)
    result: Floats = arrived * 8 / window_s
    return result


def received(record: Record, times: Floats) -> Floats:
    """MB of payload that had reached the client of one trial at each time from its request on."""
    steps = np.arange(len(record.received_bytes) + 1) * record.received_step_s - (record.handshake_s or 0.0)
    course = np.concatenate(([0.0], np.array(record.received_bytes, dtype=np.float64))) / MB
    result: Floats = np.interp(times, steps, course)
    return result


@dataclass(frozen=True)
class LossyGoodputs:
    """Goodputs of all trials with one sender over one path, which lasted as long as one another."""

    cell: Cell

    @cached_property
    def goodputs(self) -> list[float]:
        """In Mbit/s."""
        return [bps / 1e6 for bps in self.cell.values("goodput_bps")]

    @property
    def values(self) -> dict[str, str]:
        return dict(self.cell.key.scenario_label.values)

    @property
    def loss(self) -> float:
        """The share of packets that are lost towards the client."""
        bad, stays = (
            _share(self.values.get(f"forward.loss.p_bad_given_{state}")) for state in ("good", "bad")
        )
        return bad / (bad + 1 - stays) if bad else _share(self.values.get("forward.loss"))

    @cached_property
    def halves(self) -> tuple[float, float] | None:
        """Mean Mbit/s of payload that arrived in the first half of the time and in the second."""
        known = [one for one in self.cell.ok if len(one.received_bytes) > 1]
        if not known:
            return None
        first, second = [], []
        for one in known:
            half = len(one.received_bytes) // 2
            by_half, by_end = one.received_bytes[half - 1], one.received_bytes[-1]
            first.append(by_half * 8 / (half * one.received_step_s))
            second.append((by_end - by_half) * 8 / ((len(one.received_bytes) - half) * one.received_step_s))
        return float(np.mean(first)) / 1e6, float(np.mean(second)) / 1e6


def _share(percent: str | None) -> float:
    return float((percent or "0%").rstrip("%")) / 100


@dataclass(frozen=True)
class KuhnRuns:
    """The runs that the page is written from."""

    sources: tuple[Source, ...]

    @classmethod
    def of(cls, sources: Sequence[Source]) -> KuhnRuns:
        return cls(tuple(sources))

    @cached_property
    def records(self) -> list[Record]:
        return [one for source in self.sources for one in source.records]

    @cached_property
    def _cells(self) -> list[tuple[str, Cell]]:
        """With the name of its campaign."""
        return [
            (source.manifest.campaign, cell) for source in self.sources for cell in cells(source.in_order)
        ]

    @cached_property
    def transfers(self) -> dict[tuple[str, Sender, int], Transfers]:
        """By where packets are lost, sender, and size in MB; without those of table II."""
        return {
            (place_of(cell), Sender(cell.key.server, cell.key.treatment), cell.records[0].size_bytes // MB):
            Transfers(cell)
            for campaign, cell in self._cells
            if "forward.rate" not in cell.key.scenario_label.values and campaign != "kuhn-stacks"
        }  # fmt: skip

    def senders(self, place: str) -> list[Sender]:
        """In the order of the runs. QUIC is not split: it does not matter to it whether packets are lost on
        the satellite or beside it, and where they are lost on it, it has the trials beside it.
        """
        found = dict.fromkeys(sender for where, sender, _ in self.transfers if where == place)
        if found and place == SATELLITE:
            found |= dict.fromkeys(one for one in self.senders(ACCESS) if not one.is_tcp)
        return list(found)

    def configured(self, place: str) -> dict[str, Sender]:
        """`none` and A to D → the sender."""
        return {one.configuration: one for one in self.senders(place) if one.configuration}

    def transfer(self, place: str, sender: Sender | None, size: int) -> Transfers | None:
        """All trials of it; None if there are none."""
        if sender is None:
            return None
        where = ACCESS if place == SATELLITE and not sender.is_tcp else place
        return self.transfers.get((where, sender, size))

    def rate_bps(self, place: str) -> float:
        """Of the link towards the client."""
        known = {found.cell.key.scenario for (where, _, _), found in self.transfers.items() if where == place}
        rates = [
            entry.summary.get("forward_rate_bps")
            for source in self.sources
            for label, entry in source.manifest.scenarios.items()
            if label in known
        ]
        return float(next((one for one in rates if one), math.inf))

    def cells_of(self, campaign: str) -> list[Cell]:
        """The cells of one campaign; none if it was not run."""
        return [cell for name, cell in self._cells if name == campaign]

    def losing(self, campaign: str) -> list[LossyGoodputs]:
        """The goodputs of one campaign under losses; empty if that was not run."""
        return [LossyGoodputs(cell) for cell in self.cells_of(campaign)]


def place_of(cell: Cell) -> str:
    """The place where the packets of a cell are lost."""
    return {"cnes-250-3-loss1": ACCESS, "cnes-250-3-loss1-satellite": SATELLITE}.get(
        cell.key.scenario_label.name, CLEAN
    )
