"""The runs of the page on proxies: what arrived when, out of records.

Bytes are of the file, as far as the client's program could read them: no byte before them was missing. So the
source counts them. Times count from the file's first byte on, as those of the source do, near enough: it
counts bytes in its first second where the first one takes more than a second since the client's first packet.
Rates are over windows of WINDOW_S, of what arrives in whatever order: a lost packet holds up what the client
can read, and not the sender. *Slow start ends*, as seen by the receiver, when the rate first reaches
NEAR of the highest of the next AHEAD_S: until then it doubles each round trip, so that what comes soon is far
higher. This needs nothing that only one kind of sender could say, and the source's figures of each second
allow it, too (`second_of_peak`).

Trials of one setting count together, of whichever run they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bentpipe import labels, workload
from bentpipe.analysis.cells import Cell, cells
from bentpipe.errors import BentpipeError
from bentpipe.plan import treatments
from bentpipe.plan.treatments import DIRECT
from bentpipe.runs.records import Record
from bentpipe.study.quantiles import median
from bentpipe.study.source import Source, pooled

Floats = npt.NDArray[np.float64]
Curve = Callable[[Record, float], Floats]

STEP_S = 0.1
WINDOW_S, _WINDOW = 0.3, 3  # steps
AHEAD_S, _AHEAD = 2.0, 20
NEAR = 0.9
FULL = 0.95  # of the link's rate
UNTIL_S = 15.0  # as the source
LATE_S = 3.0  # after the client's first packet first bytes have come, but for very few
DURATION = "duration"
QUIC, TCP = "quic", "tcp"
_PROXIES = {"quic-pep": QUIC, "tcp-pep": TCP}


def in_order(record: Record, until_s: float) -> Floats:
    """Bytes of the file that could be read after each STEP_S since its first byte; zero where there was none.
    A curve ends with the last packet that arrived. BentpipeError where the record has no such curve.
    """
    if record.ttfb_s is not None and not record.in_order_bytes:
        raise BentpipeError(
            f"trial {record.trial}: in_order_bytes is empty: it does not say what could be read when",
            f"it is measured from the {record.measured_from}; runs of older versions have to be made again",
        )
    return _since(record, np.array(record.in_order_bytes, dtype=np.float64), until_s)


def arrived(record: Record, until_s: float) -> Floats:
    """The same of what arrived in whatever order: the payload that reached the client, less what had come
    before the file's first byte (with a proxy nearby the client's handshake is over before anything has
    crossed the satellite), and less the trial's share of headers and of what came twice, which is taken to be
    the same throughout: proxies cut packets anew, so that payload alone would count their headers for them.
    """
    curve = np.array(record.received_bytes, dtype=np.float64)
    if record.ttfb_s is None or not len(curve):
        return np.zeros(round(until_s / STEP_S))
    before = int(record.ttfb_s / record.received_step_s)
    of_file = np.maximum(curve - (curve[before - 1] if before else 0), 0)
    of_file[:before] = 0
    if record.goodput_bps is not None and of_file[-1] > 0:
        new = record.goodput_bps / 8 * (_lasted_s(record.workload) - record.ttfb_s)
        of_file *= min(new / of_file[-1], 1.0)
    return _since(record, of_file, until_s)


def _since(record: Record, curve: Floats, until_s: float) -> Floats:
    """A curve of the record at each STEP_S since the first byte."""
    since = np.arange(1, round(until_s / STEP_S) + 1) * STEP_S
    if record.ttfb_s is None or not len(curve):
        return np.zeros(len(since))
    times = np.arange(len(curve) + 1) * record.received_step_s
    result: Floats = np.interp(record.ttfb_s + since, times, np.concatenate(([0.0], curve)))
    return result


def _lasted_s(label: str) -> float:
    return (workload.parse(label, "the run").duration_ms or 0) / 1e3


@dataclass(frozen=True)
class Arrivals:
    """The bytes that arrived in all trials of one treatment over one path."""

    records: tuple[Record, ...]
    bytes: Floats  # trials, by instants
    received: Floats  # likewise, in whatever order: what rates are of

    @classmethod
    def of(cls, records: Sequence[Record], until_s: float, curve: Curve = in_order) -> Arrivals:
        curves = [np.array([way(one, until_s) for one in records]) for way in (curve, arrived)]
        return cls(tuple(records), *curves)

    def with_draws_of(self, other: Arrivals) -> Arrivals:
        """Those with the random draws of `other`'s trials, in its order, if each has one; else all."""
        places = {record.seed: place for place, record in enumerate(self.records)}
        wanted = [record.seed for record in other.records]
        if len(self.records) <= len(wanted) or not places.keys() >= set(wanted):
            return self
        chosen = [places[seed] for seed in wanted]
        return Arrivals(
            tuple(self.records[place] for place in chosen), self.bytes[chosen], self.received[chosen]
        )

    @cached_property
    def times(self) -> Floats:
        return np.arange(1, self.bytes.shape[1] + 1) * STEP_S

    @cached_property
    def mean(self) -> Floats:
        result: Floats = self.bytes.mean(axis=0)
        return result

    @cached_property
    def rates(self) -> Floats:
        """In bit/s, over the window that ends at each instant."""
        padded = np.pad(self.received, ((0, 0), (_WINDOW, 0)))
        result: Floats = (padded[:, _WINDOW:] - padded[:, :-_WINDOW]) * 8 / WINDOW_S
        return result

    @property
    def per_second(self) -> Floats:
        """Mean rate of each second, in bit/s."""
        return _by_second(self.mean)

    @property
    def received_per_second(self) -> Floats:
        """Likewise of what arrived in whatever order."""
        return _by_second(self.received.mean(axis=0))

    def at(self, time_s: float) -> Floats:
        """Bytes of each trial by then."""
        result: Floats = self.bytes[:, round(time_s / STEP_S) - 1]
        return result

    @property
    def slow_start_s(self) -> list[float]:
        """The end of slow start in each trial; infinite where nothing arrived."""
        return [_peak(row) for row in self.rates]

    def full_s(self, rate_bps: float) -> list[float]:
        """The time at which the link was first full in each trial; infinite if it never was."""
        return [_first(row >= FULL * rate_bps) for row in self.rates]

    def when_full(self, rate_bps: float) -> str:
        """The median of these times; of how many trials, if not all of them fill it."""
        times = self.full_s(rate_bps)
        known = finite(times)
        middle = median(known)
        if middle is None:
            return "never"
        return f"{middle:.1f} s" + ("" if len(known) == len(times) else f" ({len(known)} of {len(times)})")


def _by_second(received: Floats) -> Floats:
    step = round(1 / STEP_S)
    result: Floats = np.diff(np.concatenate(([0.0], received[step - 1 :: step]))) * 8
    return result


def _peak(rates: Floats) -> float:
    highest = np.array([rates[place : place + _AHEAD + 1].max() for place in range(len(rates))])
    return _first((rates > 0) & (rates >= NEAR * highest))


def second_of_peak(rates: Floats) -> int | None:
    """The second in which slow start has ended, counted from 1, by that rule over rates of whole seconds."""
    ahead = round(AHEAD_S)
    for place, rate in enumerate(rates):
        if rate > 0 and rate >= NEAR * rates[place : place + ahead + 1].max():
            return place + 1
    return None


def _first(there: npt.NDArray[np.bool_]) -> float:
    return float(np.argmax(there) + 1) * STEP_S if there.any() else math.inf


def ratio(proxied: Arrivals, direct: Arrivals) -> Floats:
    """Mean bytes with proxies to without them at each instant; NaN before anything came without."""
    with np.errstate(divide="ignore", invalid="ignore"):
        result: Floats = np.where(direct.mean > 0, proxied.mean / direct.mean, np.nan)
    return result


@dataclass(frozen=True)
class LossyPath:
    """A path with random loss: a scenario with a loss ratio."""

    scenario: str
    loss: str  # as in "0.1 %"

    @classmethod
    def of(cls, label: str) -> LossyPath:
        named = labels.scenario(label)
        return cls(named.name, named.values.get("forward.loss", "0%").replace("%", " %"))

    @property
    def title(self) -> str:
        return f"{self.scenario}, {self.loss}"

    @property
    def share(self) -> float:
        """Of the packets, lost."""
        return float(self.loss.removesuffix(" %")) / 100


@dataclass(frozen=True)
class KosekRuns:
    """The trials of several runs: of each road and treatment, those with a duration and those with a file."""

    sources: tuple[Source, ...]

    @cached_property
    def cells(self) -> list[Cell]:
        return [cell for cell in cells(pooled(self.sources)) if cell.ok]

    @cached_property
    def until_s(self) -> float:
        """Until when all durations have lasted since the first byte; 0 if there is none."""
        lasted = [_lasted_s(cell.key.workload) for cell in self.cells if _is_duration(cell)]
        return min(UNTIL_S, min(lasted) - LATE_S) if lasted else 0.0

    @cached_property
    def arrivals(self) -> dict[tuple[LossyPath, str, str], Arrivals]:
        """By road, transport and treatment."""
        found: dict[tuple[LossyPath, str, str], list[Record]] = {}
        for cell in filter(_is_duration, self.cells):
            found.setdefault((*_place(cell), cell.key.treatment), []).extend(cell.ok)
        return {key: Arrivals.of(records, self.until_s) for key, records in found.items()}

    @cached_property
    def files(self) -> dict[tuple[LossyPath, str, str], Cell]:
        """By road, treatment and workload, over QUIC."""
        return {
            (_place(cell)[0], cell.key.treatment, cell.key.workload): cell
            for cell in self.cells
            if not _is_duration(cell) and _place(cell)[1] == QUIC
        }

    @cached_property
    def roads(self) -> list[LossyPath]:
        return list(dict.fromkeys(LossyPath.of(cell.key.scenario) for cell in self.cells))

    @property
    def scenarios(self) -> list[str]:
        return list(dict.fromkeys(one.scenario for one in self.roads))

    def of_scenario(self, name: str) -> list[LossyPath]:
        """In order of loss."""
        return sorted((one for one in self.roads if one.scenario == name), key=lambda one: one.share)

    @cached_property
    def chains(self) -> list[str]:
        """Treatments with proxies, as the runs list them."""
        return list(dict.fromkeys(c.key.treatment for c in self.cells if c.key.treatment != DIRECT))

    def chain(self, transport: str) -> str | None:
        """The first proxies of that transport which some road has been measured with, and without."""
        mine = (one for one in self.chains if _PROXIES.get(labels.treatment(one).kind) == transport)
        return next((one for one in mine if any(self.pair(road, one) for road in self.roads)), None)

    @cached_property
    def workloads(self) -> list[str]:
        return list(dict.fromkeys(workload for _, _, workload in self.files))

    def direct(self, road: LossyPath, transport: str = QUIC) -> Arrivals | None:
        return self.arrivals.get((road, transport, DIRECT))

    def proxied(self, road: LossyPath, chain: str) -> Arrivals | None:
        return self.arrivals.get((road, _PROXIES.get(labels.treatment(chain).kind, QUIC), chain))

    def pair(self, road: LossyPath, chain: str) -> tuple[Arrivals, Arrivals] | None:
        """With proxies and without; None if one of them has no trial that succeeded."""
        transport = _PROXIES.get(labels.treatment(chain).kind, QUIC)
        proxied, direct = self.proxied(road, chain), self.direct(road, transport)
        return None if proxied is None or direct is None else (proxied, direct)

    def rate_bps(self, road: LossyPath) -> float:
        """Of the link towards the client."""
        for source in self.sources:
            for label, entry in source.manifest.scenarios.items():
                if LossyPath.of(label) == road:
                    return float(entry.summary.get("forward_rate_bps") or math.inf)
        return math.inf


def _place(cell: Cell) -> tuple[LossyPath, str]:
    """The road and the transport."""
    return LossyPath.of(cell.key.scenario), cell.ok[0].transport or QUIC


def _is_duration(cell: Cell) -> bool:
    return cell.key.workload.startswith(f"{DURATION}:")


def shown(treatment: str) -> str:
    """A treatment in the words of a table: `both: cc=newreno iw=100`, `gateway alone`."""
    if treatment == DIRECT:
        return DIRECT
    proxies = treatments.parse(treatment, "the run").proxies
    said = [" ".join(f"{key}={value}" for key, value in sorted(one.options.items())) for one in proxies]
    if len(proxies) == 1:
        return f"{proxies[0].place} alone" + (f": {said[0]}" if said[0] else "")
    if len(set(said)) == 1:
        return f"both: {said[0] or 'defaults'}"
    return "; ".join(f"{one.place}: {text or 'defaults'}" for one, text in zip(proxies, said, strict=True))


def has(treatment: str, option: str, value: str) -> bool:
    """Whether a proxy of it has this option."""
    if treatment == DIRECT:
        return False
    proxies = treatments.parse(treatment, "the run").proxies
    return any(one.options.get(option) == value for one in proxies)


def finite(values: Iterable[float]) -> list[float]:
    return [one for one in values if math.isfinite(one)]
