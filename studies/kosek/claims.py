"""The paper's claims about figure 2, each with the result here. The figures that they are compared with are
those of its data, of which its text is a summary.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np

from bentpipe.plan.treatments import DIRECT
from bentpipe.study.claims import CANNOT_TELL, CONTRADICTS, Claim, MeasuredValue, Published
from bentpipe.study.markdown import several

from .glance import highest
from .means import in_pairs, ratio_of_means, times_as_much
from .published import GoodputRow, Kosek
from .runs import QUIC, TCP, Arrivals, Floats, KosekRuns, LossyPath, finite, second_of_peak
from .tables import WORDS, multiple

GEO, LEO = "geo-tum", "leo-tum"
ORBITS = {GEO: "GEO", LEO: "LEO"}
EARLY_S = 5.0
_REAL_WORLD = 1e-4  # the paper's word for losses up to this
_READ_OFF = 0.2  # how exactly the text says a maximum
_HALF_S = 0.5  # how exactly an end of slow start can be read off seconds
_TRIED = "[causes tried](#what-differs-tried-one-by-one)"
_CONFLICT = "its text says more bytes"

HOW = """Intervals are 95 %, each by itself; of what does not vary, at 0 % of loss, both ends are the value.
The source's figures are those of its data, by whole seconds; where its text says otherwise, that is noted.
That proxies bring TCP up to 85 times the bytes in the first second is no claim here: the source itself puts
it down to iperf3, which leaves out intervals."""

Pair = tuple[Arrivals, Arrivals]  # with proxies, without


def of(study: KosekRuns, chains: dict[str, str], known: Kosek, tried: Collection[LossyPath]) -> list[Claim]:
    """The claims whose settings the runs have; they lead to what was `tried` over these paths."""
    found: list[tuple[Claim, LossyPath]] = []
    for transport, chain in chains.items():
        for name in ORBITS:
            pairs = [(road, both) for road in study.of_scenario(name) if (both := study.pair(road, chain))]
            found += _benefits(study, transport, pairs, known)
            if transport == QUIC:
                found += _most(pairs, known)
            found += _ends(transport, pairs, known)
    found += _late(study, chains[QUIC], known)
    claims = [_with_causes(one, transport_road, tried) for one, transport_road in found]
    return [*claims, *(_beside_tcp(study, chains, known) if TCP in chains else [])]


def _with_causes(one: Claim, road: LossyPath, tried: Collection[LossyPath]) -> Claim:
    if road not in tried or one.verdict not in (CONTRADICTS, CANNOT_TELL):
        return one
    return replace(one, note="; ".join(filter(None, (one.note, _TRIED))))


def _title(road: LossyPath) -> str:
    return f"{ORBITS[road.scenario]}, {road.loss}"


def _benefits(
    study: KosekRuns, transport: str, pairs: list[tuple[LossyPath, Pair]], known: Kosek
) -> Iterator[tuple[Claim, LossyPath]]:
    for at_s in sorted({min(EARLY_S, study.until_s), study.until_s}):
        for road, both in pairs:
            row, measured = known.row(road.scenario, road.loss), MeasuredValue.of(times_as_much(*both, at_s))
            if row is None or measured is None:
                continue
            then = float(row.ratio(transport)[round(at_s) - 1])
            text = f"Proxies bring {WORDS[transport]} more bytes by {at_s:g} s: {_title(road)}"
            label = f"{_title(road)}, by {at_s:g} s" if transport == QUIC else ""
            note = _CONFLICT if then < 1 else ""
            said, here = multiple(then), measured.written()
            yield Claim(text, said, Published.ratio(then), measured, here, label, note), road


def _most(pairs: list[tuple[LossyPath, Pair]], known: Kosek) -> Iterator[tuple[Claim, LossyPath]]:
    if not pairs or (then := known.scenarios.get(pairs[0][0].scenario)) is None:
        return
    _, at_s, road, both = max(((*highest(*both), road, both) for road, both in pairs), key=lambda one: one[0])
    measured = MeasuredValue.of(times_as_much(*both, at_s)) if np.isfinite(at_s) else None
    if measured is not None:
        text = f"The most that proxies bring QUIC in the first seconds: {ORBITS[road.scenario]}"
        here = f"{measured.written(1)}, at {at_s:.1f} s and {road.loss}"
        yield Claim(text, f"{then.most:g}", Published.ratio(then.most, _READ_OFF), measured, here), road


def _ends(
    transport: str, pairs: list[tuple[LossyPath, Pair]], known: Kosek
) -> Iterator[tuple[Claim, LossyPath]]:
    """The end of slow start with proxies as a part of that without."""
    for road, both in pairs:
        row = known.row(road.scenario, road.loss)
        ends = [finite(one.slow_start_s) for one in both]
        paired = in_pairs(*both) and len(ends[0]) == len(ends[1]) == len(both[0].records)
        known_ends = (
            MeasuredValue.of(ratio_of_means([ends[1]], [ends[0]], paired=paired)) if all(ends) else None
        )
        if road.share > _REAL_WORLD or row is None or known_ends is None:
            continue
        # Trials without an end would have the latest: no verdict stands on the others.
        without = sum(len(one.slow_start_s) for one in both) - sum(map(len, ends))
        measured = None if without else known_ends
        note = f"{several(without, 'trial')} without an end" if without else ""
        there = [second_of_peak(row.rates(transport, proxies=way) * 1e6) for way in (True, False)]
        if there[0] is None or there[1] is None:
            continue
        said = f"second {there[0]} / {there[1]}"
        here = f"{np.mean(ends[0]):.1f} / {np.mean(ends[1]):.1f} s: {known_ends.written()}"
        word = "sooner" if there[0] < there[1] else "later" if there[0] > there[1] else "at the same time"
        text = f"Slow start of {WORDS[transport]} ends {word} with proxies: {_title(road)}"
        yield Claim(text, said, _of_seconds(there[0], there[1]), measured, here, note=note), road


def _of_seconds(first: int, second: int) -> Published:
    """A ratio of two ends that are known by whole seconds."""
    low, high = (first - _HALF_S) / (second + _HALF_S), (first + _HALF_S) / (second - _HALF_S)
    if first == second:
        return Published(low, high)
    return Published.ratio_of(first / second, low, high)


def _late(study: KosekRuns, chain: str, known: Kosek) -> Iterator[tuple[Claim, LossyPath]]:
    """Claims on the time after slow start over the low orbit."""
    for loss, text in (
        ("0.1 %", "A benefit for QUIC almost throughout with 0.1 % of loss"),
        ("1 %", "QUIC with proxies falls off after slow start with 1 % of loss"),
    ):
        road = LossyPath(LEO, loss)
        both, row = study.pair(road, chain), known.row(LEO, loss)
        if both is None or row is None or study.until_s <= EARLY_S:
            continue
        measured = _after(study, *both)
        received = [row.received(QUIC, proxies=way) for way in (True, False)]
        then = _after_of(study, *received)
        if measured is not None:
            here = f"{measured.written()} of bytes between {EARLY_S:g} and {study.until_s:g} s"
            yield Claim(f"{text}: LEO", multiple(then), Published.ratio(then), measured, here), road


def _beside_tcp(study: KosekRuns, chains: dict[str, str], known: Kosek) -> Iterator[Claim]:
    if study.until_s <= EARLY_S:
        return
    for words, treatments in (("without proxies", dict.fromkeys(chains, DIRECT)), ("with proxies", chains)):
        for road in study.of_scenario(GEO):
            quic, tcp = (study.arrivals.get((road, one, treatments[one])) for one in (QUIC, TCP))
            row = known.row(GEO, road.loss)
            if quic is None or tcp is None or row is None:
                continue
            measured, then = _after(study, quic, tcp), _of_both(study, row, proxies=words == "with proxies")
            if measured is not None:
                text = f"QUIC has more goodput than TCP after slow start, {words}: {_title(road)}"
                note = "its text says more goodput" if then < 1 else ""
                yield Claim(
                    text, multiple(then), Published.ratio(then), measured, measured.written(), note=note
                )


def _of_both(study: KosekRuns, row: GoodputRow, *, proxies: bool) -> float:
    return _after_of(study, *(row.received(one, proxies=proxies) for one in (QUIC, TCP)))


def _after(study: KosekRuns, above: Arrivals, below: Arrivals) -> MeasuredValue | None:
    """The ratio of what came after the first seconds."""
    late = [[one.at(study.until_s) - one.at(EARLY_S)] for one in (below, above)]
    return MeasuredValue.of(ratio_of_means(*late, paired=in_pairs(above, below)))


def _after_of(study: KosekRuns, above: Floats, below: Floats) -> float:
    first, last = round(EARLY_S) - 1, round(study.until_s) - 1
    return float((above[last] - above[first]) / (below[last] - below[first]))
