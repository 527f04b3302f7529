"""The table at the head of the page: what is here beside what was published, at the same loss and time."""

from __future__ import annotations

import math

import numpy as np

from bentpipe.plan.treatments import DIRECT

from .open_questions import first_bytes
from .published import Kosek
from .runs import QUIC, TCP, Arrivals, Floats, KosekRuns, LossyPath, ratio, second_of_peak
from .tables import WORDS, last_rate, multiple

_EARLY_S = 5  # where the source sees the most of the benefit
_SMALL = 1e4  # mean bytes without proxies, before which a ratio says nothing


HEAD = ("", "here", "published")


def rows(study: KosekRuns, chains: dict[str, str], known: Kosek) -> list[list[str]]:
    """The rows of the table: what is read from the runs, and what was published."""
    found: list[list[str]] = []
    for name in study.scenarios:
        for transport, chain in chains.items():
            found += _of(study, name, transport, chain, known)
        if TCP in chains:
            found += _beside(study, name, chains, known)
    found += first_bytes(study, chains, known)
    return found


def highest(proxied: Arrivals, direct: Arrivals) -> tuple[float, float]:
    """The greatest multiple at the beginning, and when, from where on it says anything."""
    told = (direct.mean >= _SMALL) & (direct.times <= _EARLY_S)
    many = np.where(told, ratio(proxied, direct), -math.inf)
    place = int(np.argmax(many))
    return float(many[place]), float(direct.times[place])


def _of(study: KosekRuns, name: str, transport: str, chain: str, known: Kosek) -> list[list[str]]:
    """Rows on the benefit of proxies for one transport over one path."""
    pairs = [(road, both) for road in study.of_scenario(name) if (both := study.pair(road, chain))]
    if not pairs:
        return []
    word, text = f"{name}, {WORDS[transport]}", known.scenarios.get(name)
    value, at_s, road = max(((*highest(*both), road) for road, both in pairs), key=lambda one: one[0])
    then = f"up to {text.most:g}" if text and transport == QUIC else "-"
    what = f"bytes with proxies / without, at most, over all losses, in the first {_EARLY_S} s"
    found = [[f"{word}: {what}", f"{value:.1f}, at {at_s:.1f} s and {road.loss}", then]]
    found.append(_by_seconds(pairs, word, transport, known))
    found += [
        _at(pairs, f"{word}: bytes with / without by {each} s", transport, each, known)
        for each in (1, 2, round(study.until_s))
    ]
    road, both = pairs[0]
    row = known.row(name, road.loss)
    there = None if row is None else [row.rates(transport, proxies=way) for way in (True, False)]
    peaks = [_peaks([one.received_per_second for one in both]), "-" if there is None else _peaks(there)]
    found.append(
        [f"{word}, {road.loss}: the second in which slow start ends, with proxies / without", *peaks]
    )
    lossy, both = pairs[-1]
    if lossy.share:
        here = " / ".join(last_rate(study, one) for one in both)
        row = known.row(name, lossy.loss)
        late = "-" if row is None else " / ".join(
            f"{row.rates(transport, proxies=way)[-5:].mean():.1f}" for way in (True, False)
        )  # fmt: skip
        found.append([f"{word}, {lossy.loss}: Mbit/s with / without in the last 5 s", here, late])
    return found


def _by_seconds(
    pairs: list[tuple[LossyPath, tuple[Arrivals, Arrivals]]], word: str, transport: str, known: Kosek
) -> list[str]:
    """The largest multiple by the end of a whole second, for which there are published figures."""
    here = [(float(many), place + 1, road) for road, both in pairs
            for place, many in enumerate(ratio(*both)[9::10][:_EARLY_S]) if math.isfinite(many)]  # fmt: skip
    rows = [(row, road) for road, _ in pairs if (row := known.row(road.scenario, road.loss)) is not None]
    there = [(float(many), place + 1, road) for row, road in rows
             for place, many in enumerate(row.ratio(transport)[:_EARLY_S])]  # fmt: skip
    told = [
        "-" if not one else "{:.1f}, by {} s and {}".format(*_named(max(one, key=lambda it: it[0])))
        for one in (here, there)
    ]
    return [f"{word}: the same by the end of a second", *told]


def _named(found: tuple[float, int, LossyPath]) -> tuple[float, int, str]:
    return found[0], found[1], found[2].loss


def _peaks(rates: list[Floats]) -> str:
    return " / ".join("-" if (found := second_of_peak(one)) is None else str(found) for one in rates)


def _at(
    pairs: list[tuple[LossyPath, tuple[Arrivals, Arrivals]]],
    title: str,
    transport: str,
    at_s: int,
    known: Kosek,
) -> list[str]:
    """A row with a multiple for each loss."""
    here = [f"{multiple(float(ratio(*both)[round(at_s * 10) - 1]))}" for _, both in pairs]
    there = []
    for road, _ in pairs:
        row = known.row(road.scenario, road.loss)
        many = None if row is None else row.ratio(transport)
        there.append("-" if many is None or len(many) < at_s else multiple(float(many[at_s - 1])))
    losses = ", ".join(road.loss.removesuffix(" %") for road, _ in pairs)
    return [f"{title}; at {losses} % of loss", ", ".join(here), ", ".join(there)]


def _beside(study: KosekRuns, name: str, chains: dict[str, str], known: Kosek) -> list[list[str]]:
    """QUIC as a multiple of TCP, with proxies and without."""
    found = []
    for words, treatments in (
        ("without proxies", dict.fromkeys(chains, DIRECT)),
        ("with proxies", chains),
    ):
        here, there, losses = [], [], []
        for road in study.of_scenario(name):
            quic, tcp = (study.arrivals.get((road, one, treatments[one])) for one in (QUIC, TCP))
            if quic is None or tcp is None or not tcp.mean[-1]:
                continue
            here.append(multiple(float(quic.mean[-1] / tcp.mean[-1])))
            row = known.row(road.scenario, road.loss)
            both = [] if row is None else [
                row.received(one, proxies=words == "with proxies")[round(study.until_s) - 1]
                for one in (QUIC, TCP)
            ]  # fmt: skip
            there.append("-" if not both else multiple(float(both[0] / both[1])))
            losses.append(road.loss.removesuffix(" %"))
        if here:
            title = f"{name}: bytes over QUIC / TCP by {study.until_s:g} s, {words}; at {', '.join(losses)} %"
            found.append([f"{title} of loss", ", ".join(here), ", ".join(there)])
    return found
