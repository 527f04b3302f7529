"""The paper's claims about figure 2, each with the result here."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from bentpipe.analysis.inference import Ratio
from bentpipe.plan.treatments import DIRECT
from bentpipe.study import claims
from bentpipe.study.claims import CONTRADICTED, OPEN, REPEATED
from bentpipe.study.markdown import table
from bentpipe.study.quantiles import median

from .glance import highest
from .means import ratio_of_means, times_as_much
from .published import Kosek
from .runs import QUIC, TCP, Arrivals, KosekRuns, LossyPath, finite
from .tables import with_interval

GEO, LEO = "geo-tum", "leo-tum"
_EARLY_S = 5.0
_REAL_WORLD = 1e-4  # the paper's word for losses up to this
_SOONER_S, _SAME_S = 1.0, 0.5  # whole seconds are what the paper reads off its figure
_NEAR = 1.2  # times as much, or less: about the same
_SAME = 1.02  # times as much, or less: no difference
_WHY = "; [tried](#what-differs-tried-one-by-one)"

HOW = """*Repeated*, where the interval is on the side that the paper names at every loss; *contradicted*,
where it is on the other at the losses that are named; *open*, where it holds 1, or comes within 2 % of it.
Intervals are 95 %, each by itself; none is shown where nothing varies. Maxima and ends of slow start have
none: their size alone is compared with the paper's. A maximum is *about as much* up to 1.2 times more or
less, and else *differs*; slow start ends sooner by 1 s or more at every loss, or at the same time within 0.5
s."""

Pairs = list[tuple[LossyPath, Ratio | None]]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, the result here, and the verdict."""

    text: str
    here: str
    verdict: str
    differs_over: tuple[LossyPath, ...] = ()  # of those that runs on causes could be about


def rows(study: KosekRuns, chains: dict[str, str], known: Kosek, tried: Collection[LossyPath]) -> str:
    """The table of the claims whose settings the runs have; it leads to what was `tried` over these paths."""
    found = [*_benefits(study, chains[QUIC]), *_most(study, chains[QUIC], known), *_ends(study, chains[QUIC])]
    found += _late(study, chains[QUIC])
    if TCP in chains:
        found += _beside_tcp(study, chains)
    shown = [
        [one.text, one.here, one.verdict + (_WHY if set(one.differs_over) & set(tried) else "")]
        for one in found
    ]
    return table(["the paper says", "here", ""], shown, left=3)


def verdict(pairs: Pairs, above: bool = True) -> str:
    """Of a claim that ratios lie above 1, or below it."""
    by_word: dict[str, list[str]] = {}
    for road, one in pairs:
        by_word.setdefault(_word(one, above), []).append(road.loss)
    if list(by_word) == [REPEATED]:
        return REPEATED
    words = (CONTRADICTED, OPEN, REPEATED)
    return "; ".join(f"{word} at {', '.join(by_word[word])}" for word in words if word in by_word)


def _word(one: Ratio | None, above: bool) -> str:
    """The verdict of a ratio on the claim that it lies above 1, or below it."""
    return OPEN if one is None else claims.verdict(one.low, one.high, 1, above=above, same=_SAME)


def _differing(pairs: Pairs, above: bool = True) -> tuple[LossyPath, ...]:
    return tuple(road for road, one in pairs if _word(one, above) != REPEATED)


def _told(pairs: Pairs) -> str:
    return ", ".join(f"{road.loss}: {with_interval(one)}" for road, one in pairs)


def _both(study: KosekRuns, name: str, chain: str) -> list[tuple[LossyPath, tuple[Arrivals, Arrivals]]]:
    return [(road, both) for road in study.of_scenario(name) if (both := study.pair(road, chain))]


def _benefits(study: KosekRuns, chain: str) -> Iterator[Claim]:
    for name in (GEO, LEO):
        for at_s in sorted({min(_EARLY_S, study.until_s), study.until_s}):
            pairs: Pairs = [(road, times_as_much(*both, at_s)) for road, both in _both(study, name, chain)]
            if pairs:
                text = f"Proxies bring QUIC more bytes at every loss: {name}, by {at_s:g} s"
                yield Claim(text, _told(pairs), verdict(pairs), _differing(pairs))


def _most(study: KosekRuns, chain: str, known: Kosek) -> Iterator[Claim]:
    for name in (GEO, LEO):
        pairs, then = _both(study, name, chain), known.scenarios.get(name)
        if pairs and then:
            value, at_s, road = max(((*highest(*both), road) for road, both in pairs), key=lambda one: one[0])
            text = f"Up to {then.most:g} times as many, in the first seconds: {name}"
            here = f"up to {value:.1f} times, at {at_s:.1f} s and {road.loss}"
            is_near = 1 / _NEAR <= value / then.most <= _NEAR
            yield Claim(text, here, "about as much" if is_near else "differs", () if is_near else (road,))


def _ends(study: KosekRuns, chain: str) -> Iterator[Claim]:
    for name, text in (
        (GEO, "Slow start ends up to 2 s sooner with proxies, at 0 and 0.01 %"),
        (LEO, "It ends at the same time with them and without"),
    ):
        saved: dict[LossyPath, float] = {}
        for road, both in _both(study, name, chain):
            ends = [median(finite(one.slow_start_s)) for one in both]
            if road.share <= _REAL_WORLD and ends[0] is not None and ends[1] is not None:
                saved[road] = ends[1] - ends[0]
        if saved:
            here = ", ".join(
                f"{road.loss}: {abs(seconds):.1f} s {'sooner' if seconds >= 0 else 'later'}"
                for road, seconds in saved.items()
            )
            other = [
                road
                for road, seconds in saved.items()
                if (seconds < _SOONER_S if name == GEO else abs(seconds) > _SAME_S)
            ]
            yield Claim(f"{text}: {name}", here, CONTRADICTED if other else REPEATED, tuple(other))


def _late(study: KosekRuns, chain: str) -> Iterator[Claim]:
    """Claims on the time after slow start over the low orbit."""
    for loss, text, above in (
        ("0.1 %", "Almost throughout a benefit with 0.1 % of loss", True),
        ("1 %", "With 1 % of loss QUIC with proxies falls off after slow start", False),
    ):
        for road, both in _both(study, LEO, chain):
            if road.loss == loss and study.until_s > _EARLY_S:
                pairs: Pairs = [(road, _after(study, *both))]
                said = verdict(pairs, above).partition(" at ")[0]
                here = f"{_told(pairs)}, of bytes between {_EARLY_S:g} and {study.until_s:g} s"
                yield Claim(f"{text}: {LEO}", here, said, _differing(pairs, above))


def _beside_tcp(study: KosekRuns, chains: dict[str, str]) -> Iterator[Claim]:
    if study.until_s <= _EARLY_S:
        return
    for words, treatments in (("without proxies", dict.fromkeys(chains, DIRECT)), ("with proxies", chains)):
        pairs: Pairs = []
        for road in study.of_scenario(GEO):
            quic, tcp = (study.arrivals.get((road, one, treatments[one])) for one in (QUIC, TCP))
            if quic is not None and tcp is not None:
                pairs.append((road, _after(study, quic, tcp)))
        if pairs:
            text = f"QUIC has more goodput than TCP after slow start: {GEO}, {words}"
            here = f"{_told(pairs)}, of bytes between {_EARLY_S:g} and {study.until_s:g} s"
            yield Claim(text, here, verdict(pairs))  # causes are of QUIC alone


def _after(study: KosekRuns, above: Arrivals, below: Arrivals) -> Ratio | None:
    """The ratio of what came after the first seconds."""
    return ratio_of_means(*([[one.at(study.until_s) - one.at(_EARLY_S)] for one in (below, above)]))
