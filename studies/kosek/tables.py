"""The tables of figure 2: bytes and goodputs over time, with proxies and without, here and as published."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bentpipe.analysis.inference import Ratio
from bentpipe.analysis.trial_marks import marked_trials
from bentpipe.study.markdown import number, table
from bentpipe.study.quantiles import median

from .means import times_as_much
from .published import Kosek
from .runs import QUIC, STEP_S, TCP, Arrivals, Floats, KosekRuns, finite, ratio

MB = 1e6
WORDS = {QUIC: "QUIC", TCP: "TCP"}
_INSTANTS_S = (1, 2, 3, 5, 10, 15)
_STEADY_S = 5  # at the end: long after slow start


def multiple(value: float) -> str:
    return "-" if not math.isfinite(value) else f"{value:.2f}" if value < 3 else f"{value:.1f}"


def times_as_many(study: KosekRuns, chains: dict[str, str], reason: str) -> str:
    text = (
        "Mean bytes received with proxies, as a multiple of those without, of each transport. At the "
        "beginning a multiple is of few bytes."
    )
    for transport, chain in chains.items():
        pairs = [(road, both) for road in study.roads if (both := study.pair(road, chain))]
        behind = [road.title for road, both in pairs if _is_behind(study, both)]
        listed = "; ".join(behind) or "no setting"
        text += f" By {study.until_s:g} s that of {WORDS[transport]} is below 1, and its interval too, "
        text += "each by itself, in: "
        text += f"{listed}."
    return f"{text}\n\n{reason}"


def _is_behind(study: KosekRuns, both: tuple[Arrivals, Arrivals]) -> bool:
    found = times_as_much(*both, study.until_s)
    return found is not None and (found.high if found.high is not None else found.value) < 1


MULTIPLES = """All are ratios of means, as in the figure and in the source. The last column has the interval
of the one before it, of 95 %: of as many trials again the ratio would lie about there."""


def multiples(study: KosekRuns, chains: dict[str, str], known: Kosek) -> str:
    instants = [one for one in _INSTANTS_S if one <= study.until_s]
    rows = []
    for name in study.scenarios:
        for road in study.of_scenario(name):
            then = known.row(road.scenario, road.loss)
            for transport, chain in chains.items():
                both = study.pair(road, chain)
                if both is None:
                    continue
                here = ratio(*both)
                there = None if then is None else then.ratio(transport)
                told = [_both(here[round(one / STEP_S) - 1], there, one) for one in instants]
                by_end = interval(times_as_much(*both, study.until_s))
                rows.append([f"{road.title}: {WORDS[transport]}", len_of(both), *told, by_end])
    head = ["here / published", "trials", *(f"{one} s" for one in instants)]
    head.append(f"{study.until_s:g} s, here, 95 %")
    return table(head, rows)


def len_of(both: tuple[Arrivals, Arrivals]) -> str:
    """The number of trials, with proxies and without."""
    counts = [len(one.records) for one in both]
    return str(counts[0]) if counts[0] == counts[1] else f"{counts[0]} and {counts[1]}"


def _both(here: float, there: Floats | None, at_s: int) -> str:
    then = "-" if there is None or len(there) < at_s else multiple(float(there[at_s - 1]))
    return f"{multiple(float(here))} / {then}"


def interval(found: Ratio | None) -> str:
    """`0.44 to 1.11`; nothing where nothing varies that would be seen, or there is one trial alone."""
    if found is None or found.low is None or found.high is None:
        return "-"
    low, high = multiple(found.low), multiple(found.high)
    return "-" if low == high else f"{low} to {high}"


def with_interval(found: Ratio | None) -> str:
    """`0.74 (0.44 to 1.11)`."""
    if found is None:
        return "-"
    reach = interval(found)
    return multiple(found.value) + ("" if reach == "-" else f" ({reach})")


def goodputs(study: KosekRuns, chains: dict[str, str], known: Kosek) -> str:
    """MB by the end, and goodput long after slow start, of each curve."""
    curves = [(one, way) for one in chains for way in (False, True)]
    until = round(study.until_s)
    rows = []
    for name in study.scenarios:
        for road in study.of_scenario(name):
            then = known.row(road.scenario, road.loss)
            row = [road.title]
            for transport, proxies in curves:
                both = study.pair(road, chains[transport])
                if both is None:
                    row += ["-", "-"]
                    continue
                mine = both[0] if proxies else both[1]
                total, late = "-", "-"
                if then is not None:
                    total = f"{then.received(transport, proxies=proxies)[until - 1]:.1f}"
                    rates = then.rates(transport, proxies=proxies)
                    late = f"{rates[until - _STEADY_S : until].mean():.1f}"
                texts = (
                    f"{mine.at(study.until_s).mean() / MB:.1f} / {total}",
                    f"{last_rate(study, mine)} / {late}",
                )
                row += [marked_trials(text, mine.records) for text in texts]
            rows.append(row)
    names = [f"{WORDS[one]}{', proxies' if way else ''}" for one, way in curves]
    head = ["here / published"]
    head += [text for name in names for text in (f"{name}: MB by {until} s", f"Mbit/s, last {_STEADY_S} s")]
    return table(head, rows)


def last_rate(study: KosekRuns, one: Arrivals) -> str:
    """Mbit/s at the end."""
    if study.until_s <= _STEADY_S:
        return "-"
    late = one.at(study.until_s) - one.at(study.until_s - _STEADY_S)
    return f"{late.mean() * 8 / _STEADY_S / MB:.1f}"


def ends(study: KosekRuns, chains: dict[str, str]) -> str:
    """The table of the end of slow start and of the time at which the link was full."""
    rows = []
    for name in study.scenarios:
        for road in study.of_scenario(name):
            for transport, chain in chains.items():
                both = study.pair(road, chain)
                if both is None:
                    continue
                proxied, direct = both
                rate = study.rate_bps(road)
                each = (direct, proxied)
                slow = [
                    marked_trials(number(median(finite(one.slow_start_s)), 1, " s"), one.records)
                    for one in each
                ]
                full = [marked_trials(one.when_full(rate), one.records) for one in each]
                rows.append([f"{road.title}: {WORDS[transport]}", *slow, *full])
    return table(["", "slow start ends: direct", "proxies", "link full: direct", "proxies"], rows)


def growth(study: KosekRuns, chains: dict[str, str], known: Kosek) -> str:
    """The growth of the rate with proxies over the first path without loss, here and as published."""
    road = next((one for one in study.roads if not one.share), None)
    both = None if road is None else study.pair(road, chains[QUIC])
    row = None if road is None else known.row(road.scenario, road.loss)
    if road is None or both is None or row is None:
        return ""
    here = ", ".join(f"{one / MB:.1f}" for one in both[0].per_second[:3])
    then = row.rates(QUIC, proxies=True)[:3]
    there = ", ".join(f"{one:.1f}" for one in then)
    factors = ", ".join(f"{one:.1f}" for one in then[1:] / then[:-1])
    return (
        f"Over {road.title}, QUIC with proxies receives {here} Mbit/s in its first three seconds, in the "
        f"source's data {there}. A slow start from 100 packets doubles with each round trip of the hop, "
        f"twice a second. The source's grows by the factors {factors} from second to second, for a reason "
        f"that it does not say and that was not found: so its multiples fall sooner than those here."
    )


def more_loss(study: KosekRuns, chain: str, known: Kosek) -> list[str]:
    """With how much loss a setting comes to what the source has at 1 %."""
    rows = []
    for name in study.scenarios:
        row = known.row(name, "1 %")
        if row is not None:
            told = [f"{row.rates(QUIC, proxies=way)[-_STEADY_S:].mean():.2f}" for way in (False, True)]
            rows.append([f"{name}, 1 %, published", *told])
        for road in study.of_scenario(name):
            both = study.pair(road, chain)
            if both is not None:
                late = [one.at(study.until_s) - one.at(study.until_s - _STEADY_S) for one in both]
                told = [f"{one.mean() * 8 / _STEADY_S / MB:.2f}" for one in reversed(late)]
                rows.append([f"{road.title}, here", *told])
    head = [f"QUIC, Mbit/s in the last {_STEADY_S} s", "direct", "proxies"]
    return ["## With more loss", _MORE_LOSS, table(head, rows)]


_MORE_LOSS = """At 1 % of loss nearly all of the source's curves end lower than those here, and with
proxies over low orbit by most. Here the same connections have more losses of single packets, to see with how
many they would be as slow."""


def real_time(study: KosekRuns, chains: dict[str, str], runs: Sequence[KosekRuns]) -> list[str]:
    """The multiples in real time, if there is such a run."""
    parts = []
    for real in runs:
        instants = [one for one in _INSTANTS_S if one <= min(study.until_s, real.until_s)]
        rows = []
        for transport, chain in chains.items():
            for road in real.roads:
                here, there = study.pair(road, chain), real.pair(road, chain)
                if here is None or there is None:
                    continue
                told = [
                    " / ".join(multiple(float(one[round(at_s / STEP_S) - 1])) for one in
                               (ratio(*there), ratio(*here)))
                    for at_s in instants
                ]  # fmt: skip
                rows.append([f"{road.title}: {WORDS[transport]}", str(len(there[0].records)), *told])
        if rows:
            text = (
                "Real processes and sockets behind emulated links. Bytes with proxies as a multiple of those "
                "without: in real time / in virtual time."
            )
            head = ["", "trials", *(f"{one} s" for one in instants)]
            parts += ["## In real time", text, table(head, rows)]
    return parts
