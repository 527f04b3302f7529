"""The page on proxies around a satellite hop: what the paper measured, here and there, and what it left
open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bentpipe import labels
from bentpipe.analysis.inference import ratio as ratio_of
from bentpipe.errors import BentpipeError
from bentpipe.schema.manifest import ScenarioState
from bentpipe.study import footing, markdown
from bentpipe.study.markdown import literal, several, table
from bentpipe.study.quantiles import median
from bentpipe.study.source import Source

from . import drawn as pep_figures
from . import open_questions as pep_open
from . import published
from .published import Pep
from .runs import (
    AHEAD_S,
    FULL,
    NEAR,
    STEP_S,
    WINDOW_S,
    Arrivals,
    Floats,
    LossyPath,
    PepRun,
    finite,
    ratio,
    shown,
)

MB = 1e6
_INSTANTS_S = (1, 2, 3, 5, 10, 15)
_STEADY_S = 5  # at the end: long after slow start
_ALIKE_S = 0.15
_SMALL = 1e4  # mean bytes without proxies, before which a ratio says nothing
_DIFFERS = """- **The stack.** The source's ends and proxies are quicly of 2022; here all of them are noq,
  with its own CUBIC and NewReno. noq paces what it sends. The source does not say whether its windows did,
  nor how large its flow control windows were; here they never limit.
- **The link.** The source's satellite is OpenSAND, with 20 Mbit/s at the link layer and frames of its own;
  here it is a model with 19.6 Mbit/s of IP packets and a fixed delay. The source states no queue: here it
  holds one bandwidth-delay product of the whole path. Its satellite adds some {satellite_ms:g} ms to QUIC's
  handshake and first byte, for a reason that it did not find.
- **Loss** is independent from packet to packet, on the satellite segment, in both directions. The source's
  is netem's on one interface of its satellite, through which both directions pass.
- **What is counted.** The source samples bytes that its client program received, every 0.1 s. Here it is
  what reached the client of the file, in whatever order, read at the same instants: UDP payload, less the
  trial's mean share of headers and of what came twice. So without proxies what waits in the client for a
  lost packet is counted; with proxies it waits in the terminal, which hands a stream on in order, and
  comes in a burst over the cable once the packet is there. All times are since the client's first packet.
- **Where the proxies are.** A cable of 0.1 ms joins client and terminal, and the gateway's other side has
  the 40 ms of Internet, as there.
- **Repetition.** The source has {iterations} runs of each setting and shows their averages. So do the
  figures here; without loss runs hardly differ, as nothing else varies."""
_RENO = """Losses set what follows slow start. NewReno comes to about 1.22 · MSS / (RTT · √p) (Mathis et
al., 1997): over a satellite hop of 500 ms to 0.9 Mbit/s at p = 0.1 % and to 0.3 at 1 %, whatever the link
could carry. CUBIC, which the ends have, grows with time and not with round trips, and so stands more loss
over a long one. Over a low orbit the hop's round trip is a third of the path's, and the formula is in the
proxies' favour; the source sees a fast decline with 1 % of loss there, and does not say why."""
_BURSTS = """Where the curve with proxies falls to nothing and then exceeds the link, the terminal waited for
packets that the queue had dropped when slow start overshot, and then handed on what had come meanwhile."""
_HOW = f"""**Slow start ends**, as a receiver sees it, when the rate over {WINDOW_S:g} s first reaches
{NEAR:.0%} of the highest of the next {AHEAD_S:g} s: until then it doubles each round trip. Told is the
median over the trials. **The link is full** when that rate first reaches {FULL:.0%} of the link's. The
source reads both off its figure."""


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page and its figures to `folder`; the files, the page first. BentpipeError if the run has
    not trials with a duration, over one path at least, with proxies and without.
    """
    source, *more = runs
    study = PepRun(source)
    chain = next((one for one in study.chains if any(study.pair(road, one) for road in study.roads)), None)
    if chain is None or not study.until_s:
        raise BentpipeError(
            f"{source.folder}: wanted are trials of a duration, over the same path with proxies and without",
            "make such a run with: bentpipe run pep",
        )
    drawn = pep_figures.draw(study, chain, folder)
    path = folder / "pep.md"
    further = [PepRun(one) for one in more]
    path.write_text(markdown.page(_sections(study, chain, further, drawn)))
    return [path, *drawn.values()]


def _sections(study: PepRun, chain: str, more: Sequence[PepRun], drawn: dict[str, Path]) -> list[str]:
    known = published.load()
    figures = {name: f"![{pep_figures.NAMES[name]}]({path.name})" for name, path in drawn.items()}
    opened = [one for one in more if not one.is_real_time]
    broad = [one for one in opened if not pep_open.is_about_aside(one)]
    records = [record for one in (study, *more) for record in one.source.records]
    return [
        "# QUIC proxies around a satellite hop",
        _opening(study, chain, known),
        "## At a glance",
        _glance(study, chain, known, broad),
        "What differs from the source, and so limits what its numbers and these say of each other:",
        _DIFFERS.format(satellite_ms=known.satellite_ms, iterations=known.iterations),
        "## Bytes over time",
        _times_as_many(study, chain),
        figures["ratio"],
        _multiples(study, chain),
        "## Goodput, and the end of slow start",
        _HOW,
        figures["goodput"],
        _BURSTS,
        _ends(study, chain),
        *(text for one in broad for text in pep_open.sections(one)),
        *(pep_open.aside([study, *opened], chain) if opened else []),
        *_real_time(study, chain, [one for one in more if one.is_real_time]),
        *footing.failures(records),
        *footing.made(study.source, {"published": known.source}),
        *_made_more(more),
    ]


def _opening(study: PepRun, chain: str, known: Pep) -> str:
    first = study.source.in_order[0]
    count = max(len(one.records) for one in study.arrivals.values())
    titles = study.source.manifest.scenarios
    listed = dict.fromkeys(f"{literal(name)} ({literal(_title(titles, name))})" for name in study.scenarios)
    fewer = f", where the source has {known.iterations}" if count < known.iterations else ""
    return (
        f"A connection from {literal(first.client)} to {literal(first.server)} over {' and '.join(listed)}, "
        f"for {study.until_s:g} s, with and without proxies at terminal and gateway "
        f"({literal(shown(chain))}): {several(count, 'trial')} of each setting{fewer}, "
        f"beside what was published: {known.source}."
    )


def _title(scenarios: dict[str, ScenarioState], name: str) -> str:
    return next(str(one.summary.get("title", label)) for label, one in scenarios.items()
                if labels.scenario(label).name == name)  # fmt: skip


def _glance(study: PepRun, chain: str, known: Pep, more: Sequence[PepRun]) -> str:
    rows = []
    for name in study.scenarios:
        pairs = [(road, both) for road in study.of_scenario(name) if (both := study.pair(road, chain))]
        then = known.scenarios.get(name)
        peaks = [(*_highest(*both), road) for road, both in pairs]
        if peaks:
            value, at_s, road = max(peaks, key=lambda one: one[0])
            told = f"up to {then.most:g}" if then else "-"
            rows.append(
                [
                    f"{name}: bytes with proxies / without, at most",
                    f"{value:.1f}, at {at_s:.1f} s and {road.loss}",
                    told,
                ]
            )
        if pairs:
            road, both = pairs[0]
            rows.append(
                [f"{name}, {road.loss}: slow start ends", _sooner(*both), then.slow_start if then else "-"]
            )
            rows.append([f"{name}, {road.loss}: the link is full", _full(study, road, both), "-"])
            end = min(pairs, key=lambda one: float(ratio(*one[1])[-1]))
            rows.append(
                [
                    f"{name}: bytes by {study.until_s:g} s, with / without, at least",
                    f"{_by_end(study, end[1])}, {end[0].loss}",
                    then.by_end if then else "-",
                ]
            )
    for one in more:
        rows += pep_open.first_bytes(one, chain, known)
    return table(["", "here", "published"], rows)


def _highest(proxied: Arrivals, direct: Arrivals) -> tuple[float, float]:
    """The greatest multiple, and when, from where on it says anything."""
    many = np.where(direct.mean >= _SMALL, ratio(proxied, direct), -math.inf)
    place = int(np.argmax(many))
    return float(many[place]), float(direct.times[place])


def _sooner(proxied: Arrivals, direct: Arrivals) -> str:
    with_, without = (median(finite(one.slow_start_s)) for one in (proxied, direct))
    if with_ is None or without is None:
        return "-"
    gap = without - with_
    if abs(gap) < _ALIKE_S:
        return f"at the same time, {with_:.1f} s"
    return f"{abs(gap):.1f} s {'sooner' if gap > 0 else 'later'}, at {with_:.1f} in place of {without:.1f} s"


def _full(study: PepRun, road: LossyPath, both: tuple[Arrivals, Arrivals]) -> str:
    with_, without = (one.when_full(study.rate_bps(road)) for one in both)
    return f"from {with_} on in place of {without}"


def _by_end(study: PepRun, both: tuple[Arrivals, Arrivals]) -> str:
    return _with_interval(*(one.at(study.until_s) for one in both))


def _with_interval(proxied: Floats, direct: Floats) -> str:
    found = ratio_of(list(map(float, direct)), list(map(float, proxied)))
    if found is None:
        return "-"
    if found.low is None or found.high is None or found.low == found.high:
        return _multiple(found.value)
    return f"{_multiple(found.value)} ({_multiple(found.low)} to {_multiple(found.high)})"


def _multiple(value: float) -> str:
    return "-" if not math.isfinite(value) else f"{value:.2f}" if value < 3 else f"{value:.1f}"


def _times_as_many(study: PepRun, chain: str) -> str:
    pairs = [(road, both) for road in study.roads if (both := study.pair(road, chain))]
    fewer = [road.title for road, both in pairs if _ever_behind(*both)]
    text = (
        "Mean bytes received with proxies, as a multiple of those without. A curve begins where the first "
        "byte arrives without proxies; a multiple there is of few bytes."
    )
    if fewer:
        listed = "; ".join(fewer)
        return f"{text} Once slow start is over without proxies, it falls below 0.98 in: {listed}.\n\n{_RENO}"
    return f"{text} It never falls below 0.98 once slow start is over without proxies."


def _ever_behind(proxied: Arrivals, direct: Arrivals) -> bool:
    ended = median(finite(direct.slow_start_s)) or 0.0
    return bool(np.nanmin(ratio(proxied, direct)[round(ended / STEP_S) :], initial=math.inf) < 0.98)


def _multiples(study: PepRun, chain: str) -> str:
    instants = [one for one in _INSTANTS_S if one <= study.until_s]
    rows = []
    for road in study.roads:
        both = study.pair(road, chain)
        if both is None:
            continue
        many = ratio(*both)
        told = [many[round(one / STEP_S) - 1] for one in instants]
        highest, at_s = _highest(*both)
        rows.append(
            [road.title, f"{highest:.1f} at {at_s:.1f} s", *map(_multiple, told), _by_end(study, both)]
        )
    head = ["", "most", *(f"{one} s" for one in instants), f"by {study.until_s:g} s, with its 95 % interval"]
    return table(head, rows) + (
        "\n\nThe last column is of geometric means over the trials, by Welch's t on logarithms; the others "
        "are of means, as in the figure."
    )


def _ends(study: PepRun, chain: str) -> str:
    rows = []
    for road in study.roads:
        both = study.pair(road, chain)
        if both is None:
            continue
        proxied, direct = both
        rate = study.rate_bps(road)
        rows.append(
            [
                road.title,
                *(_time(median(finite(one.slow_start_s))) for one in (direct, proxied)),
                *(one.when_full(rate) for one in (direct, proxied)),
                *(f"{one.at(study.until_s).mean() / MB:.1f}" for one in (direct, proxied)),
                *(_steady(study, one) for one in (direct, proxied)),
            ]
        )
    head = ["", "slow start ends: direct", "proxies", "link full: direct", "proxies",
            f"MB by {study.until_s:g} s: direct", "proxies",
            f"Mbit/s in the last {_STEADY_S} s: direct", "proxies"]  # fmt: skip
    return table(head, rows)


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.1f} s"


def _steady(study: PepRun, one: Arrivals) -> str:
    if study.until_s <= _STEADY_S:
        return "-"
    late = one.at(study.until_s) - one.at(study.until_s - _STEADY_S)
    return f"{late.mean() * 8 / _STEADY_S / MB:.1f}"


def _real_time(study: PepRun, chain: str, more: Sequence[PepRun]) -> list[str]:
    """The same in real time, where there is a run of it."""
    parts = []
    for real in more:
        rows = []
        for road in real.roads:
            here, there = study.pair(road, chain), real.pair(road, chain)
            if here is None or there is None:
                continue
            instants = [one for one in _INSTANTS_S if one <= min(study.until_s, real.until_s)]
            told = [_both_ways(ratio(*here), ratio(*there), one) for one in instants]
            rows.append([road.title, str(len(there[0].records)), *told])
        if rows:
            head = [
                "",
                "trials",
                *(f"{one} s" for one in _INSTANTS_S if one <= min(study.until_s, real.until_s)),
            ]
            text = (
                "Real processes and sockets behind emulated links. Bytes with proxies as a multiple of those "
                "without: in real time / in virtual time."
            )
            parts += ["## In real time", text, table(head, rows)]
    return parts


def _both_ways(here: Floats, there: Floats, at_s: float) -> str:
    place = round(at_s / STEP_S) - 1
    return f"{_multiple(float(there[place]))} / {_multiple(float(here[place]))}"


def _made_more(more: Sequence[PepRun]) -> list[str]:
    return [
        f"Also: `{literal(one.source.manifest.command)}`, {several(len(one.source.records), 'trial')}, "
        f"{one.source.manifest.plan.iterations} iterations, {one.source.manifest.started} to "
        f"{one.source.manifest.finished or 'not finished'}."
        for one in more
    ]
