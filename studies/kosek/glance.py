"""The table at the head of the page: what is here beside what was published, at the same loss and time."""

from __future__ import annotations

import math

import numpy as np

from bentpipe.plan.treatments import DIRECT
from bentpipe.study.markdown import table
from bentpipe.study.quantiles import median

from .open_questions import first_bytes
from .published import Kosek
from .runs import QUIC, TCP, Arrivals, KosekRuns, LossyPath, finite, ratio
from .tables import WORDS, last_rate, multiple

_ALIKE_S = 0.15
_EARLY_S = 5  # where the source sees the most of the benefit
_SMALL = 1e4  # mean bytes without proxies, before which a ratio says nothing


def rows(study: KosekRuns, chains: dict[str, str], known: Kosek) -> str:
    found = []
    for name in study.scenarios:
        for transport, chain in chains.items():
            found += _of(study, name, transport, chain, known)
        if TCP in chains:
            found += _beside(study, name, chains, known)
    found += first_bytes(study, chains, known)
    return table(["", "here", "published"], found, left=3)


def highest(proxied: Arrivals, direct: Arrivals) -> tuple[float, float]:
    """The greatest multiple at the beginning, and when, from where on it says anything."""
    told = (direct.mean >= _SMALL) & (direct.times <= _EARLY_S)
    many = np.where(told, ratio(proxied, direct), -math.inf)
    place = int(np.argmax(many))
    return float(many[place]), float(direct.times[place])


def _of(study: KosekRuns, name: str, transport: str, chain: str, known: Kosek) -> list[list[str]]:
    """What proxies bring one transport over one path."""
    pairs = [(road, both) for road in study.of_scenario(name) if (both := study.pair(road, chain))]
    if not pairs:
        return []
    word, text = f"{name}, {WORDS[transport]}", known.scenarios.get(name)
    value, at_s, road = max(((*highest(*both), road) for road, both in pairs), key=lambda one: one[0])
    then = f"up to {text.most:g}" if text and transport == QUIC else "-"
    found = [[f"{word}: bytes with proxies / without, at most, in the first {_EARLY_S} s",
              f"{value:.1f}, at {at_s:.1f} s and {road.loss}", then]]  # fmt: skip
    found += [
        _at(pairs, f"{word}: bytes with / without by {each} s", transport, each, known)
        for each in (1, round(study.until_s))
    ]
    road, both = pairs[0]
    then = text.slow_start if text and transport == QUIC else "-"
    found.append([f"{word}, {road.loss}: slow start ends", _sooner(*both), then])
    lossy, both = pairs[-1]
    if lossy.share:
        here = " / ".join(last_rate(study, one) for one in both)
        row = known.row(name, lossy.loss)
        there = "-" if row is None else " / ".join(
            f"{row.rates(transport, proxies=way)[-5:].mean():.1f}" for way in (True, False)
        )  # fmt: skip
        found.append([f"{word}, {lossy.loss}: Mbit/s with / without in the last 5 s", here, there])
    return found


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


def _sooner(proxied: Arrivals, direct: Arrivals) -> str:
    with_, without = (median(finite(one.slow_start_s)) for one in (proxied, direct))
    if with_ is None or without is None:
        return "-"
    gap = without - with_
    if abs(gap) < _ALIKE_S:
        return f"at the same time, {with_:.1f} s"
    return f"{abs(gap):.1f} s {'sooner' if gap > 0 else 'later'}, at {with_:.1f} in place of {without:.1f} s"


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
