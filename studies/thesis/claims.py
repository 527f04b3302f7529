"""The thesis's claims of chapter 5, each with what our trials say of it."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from bentpipe.analysis import inference
from bentpipe.analysis.cells import Cell
from bentpipe.study.claims import Claim, MeasuredValue, Published
from bentpipe.study.markdown import literal, mbit, percent, several
from bentpipe.study.means import GeometricMean

from . import both_ends, distributions, intervals
from .controllers import controller
from .intervals import Estimate, Floats
from .runs import CONTROLLERS, SAT, SATLOSS, ThesisRuns, short

HOW = """Intervals are 95 %: of a bootstrap over clients and over servers; of a pair, of its trials, by
Student's t on logarithms; of the slowest server and of NewReno, by Welch's. Means are over pairs that never
failed over either of two scenarios, and over all stacks here, which are others than in the thesis. Goodput
and efficiency are by [equations 4.1 and 4.2](#two-definitions-of-goodput) but for shares of the variance and
correlations, which are of ours. Higher efficiency over Astra than over Eutelsat is no claim here: the
stand-ins differ in their nominal rate alone, so it follows from how they were made."""
_HIGHEST = {SAT: 60, SATLOSS: 60, "astra": 55, "eutelsat": 30}  # percent, section 5.5.1
_MUCH = 1.25  # times: what "much better" is at least
_LEAST_POINTS = 1.0  # percent: shares of pairs that differ by less do not differ
_LEAST_R = 0.05  # coefficients that differ by less do not differ
_ROUNDED = 0.5  # half a unit of what the source's tables have in percent
_NAMES = {SAT: "SAT", SATLOSS: "SATLOSS"}


def of(runs: ThesisRuns) -> list[Claim]:
    """The claims that these runs have something to say of."""
    parts = (_means, _extremes, _stacks, both_ends.claims, _newreno, _relations, _links)
    return [one for source in parts for one in source(runs)]


def name(scenario: str) -> str:
    """The scenario as the thesis calls it."""
    return _NAMES.get(scenario, scenario.upper())


def _measured(estimate: Estimate | None) -> MeasuredValue | None:
    return None if estimate is None else MeasuredValue(estimate.value, estimate.low, estimate.high)


def _means(runs: ThesisRuns) -> Iterator[Claim]:
    wanted = (
        ("goodput", SAT, "Efficiency falls where a link becomes geostationary"),
        (SAT, SATLOSS, "Losses lower it further"),
    )
    for below, above, text in wanted:
        if not {below, above} <= runs.matrices.keys():
            continue
        tables = [runs.pairs_as_published(one, "efficiency") for one in (above, below)]
        found = _measured(intervals.over_stacks(tables, intervals.ratio_of_means))
        if found is not None:
            published = _ratio(*(runs.known.scenarios[one].mean_efficiency for one in (above, below)))
            said = runs.known.scenarios[above].mean_efficiency / runs.known.scenarios[below].mean_efficiency
            label = f"efficiency, {name(above)} / {name(below)}"
            words = f"{text} ({name(above)} / {name(below)})"
            yield Claim(words, f"{said:.2f}", published, found, found.written(), label)
    if {SAT, SATLOSS} <= runs.matrices.keys():
        yield from _better_with_losses(runs)


def _ratio(above: float, below: float) -> Published:
    """A ratio of two percentages that are rounded."""
    low, high = (above - _ROUNDED) / (below + _ROUNDED), (above + _ROUNDED) / (below - _ROUNDED)
    return Published.ratio_of(above / below, low, high)


def _better_with_losses(runs: ThesisRuns) -> Iterator[Claim]:
    """The largest ratio of a pair with losses to that without. It is at least as large as every pair's least
    end, and at most as large as the largest end; all hold together, by Bonferroni. Pairs that failed have
    none.
    """
    sat, lossy = (_by_pair(runs, one) for one in (SAT, SATLOSS))
    both = sorted(sat.keys() & lossy.keys())
    confidence = 1 - (1 - inference.CONFIDENCE) / max(len(both), 1)
    ratios = {
        pair: found
        for pair in both
        if not sat[pair].failures and not lossy[pair].failures
        if (found := inference.ratio(_values(sat[pair]), _values(lossy[pair]), confidence)) is not None
    }
    known = {pair: (one.low, one.high) for pair, one in ratios.items()}
    ends = [(low, high) for low, high in known.values() if low is not None and high is not None]
    if ends:
        value = max(one.value for one in ratios.values() if one.low is not None)
        measured = MeasuredValue(value, max(low for low, _ in ends), max(high for _, high in ends))
        surest = max(known, key=lambda pair: known[pair][0] or 0.0)
        here = f"the largest of {several(len(ends), 'ratio')} is {measured.written()}; the surest is of "
        here += f"{literal(_pair(surest))}, {MeasuredValue(ratios[surest].value, *known[surest]).written()}"
        text = f"No pair is much better over SATLOSS than over SAT (by {100 * (_MUCH - 1):.0f} %)"
        yield Claim(text, "none", Published.at_most(_MUCH), measured, here)


def _pair(pair: tuple[str, str]) -> str:
    return " → ".join(map(short, pair))


def _values(cell: Cell) -> list[float]:
    return cell.values("goodput_bps")


def _by_pair(runs: ThesisRuns, scenario: str) -> dict[tuple[str, str], Cell]:
    return {(cell.key.client, cell.key.server): cell for cell in runs.matrices[scenario].cells}


def highest(runs: ThesisRuns, scenario: str) -> tuple[tuple[str, str], MeasuredValue] | None:
    """The pair of highest mean efficiency over a scenario, and that, in percent."""
    if scenario not in runs.as_published:
        return None
    known = {
        (cell.key.client, cell.key.server): [100 * one for one in cell.values("efficiency")]
        for cell in runs.as_published[scenario].cells
        if not cell.failures
    }
    means = {pair: found for pair, values in known.items() if (found := GeometricMean.of(values))}
    if not means:
        return None
    first = max(means, key=lambda one: means[one].value)
    return first, MeasuredValue(means[first].value, means[first].low, means[first].high)


def _extremes(runs: ThesisRuns) -> Iterator[Claim]:
    for scenario, limit in _HIGHEST.items():
        found = highest(runs, scenario)
        if found is not None:
            pair, measured = found
            here = f"{measured.written(0, ' %')}, {literal(_pair(pair))}"
            text = f"No pair's mean efficiency is above this ({name(scenario)}, section 5.5.1)"
            yield Claim(text, f"{limit} %", Published.at_most(limit), measured, here)
    if {SAT, SATLOSS} <= runs.results.keys():
        yield from _more_timeouts(runs)
        yield from _timeouts(runs)


def _more_timeouts(runs: ThesisRuns) -> Iterator[Claim]:
    """The share of pairs that time out, with losses less without."""
    tables = [
        {pair: 100.0 * any(cell.failures[one] for one in ("handshake_timeout", "transfer_timeout"))
         for pair, cell in _by_pair(runs, scenario).items()}
        for scenario in (SATLOSS, SAT)
    ]  # fmt: skip
    then = [runs.known.scenarios[one].timeout for one in (SATLOSS, SAT)]
    difference = then[0] - then[1]
    published = Published.difference(difference, _LEAST_POINTS, 2 * _ROUNDED / abs(difference))
    found = _measured(intervals.over_stacks(tables, _difference_of_means))
    shares = ", ".join(
        f"{name(one)} {percent(runs.results[one].share(runs.results[one].timeout))}" for one in (SAT, SATLOSS)
    )
    here = shares if found is None else f"{shares}: {found.written(0)} points more"
    said = f"SAT {then[1]:g} %, SATLOSS {then[0]:g} %"
    yield Claim("More pairs time out with losses", said, published, found, here)


def _difference_of_means(first: Floats, second: Floats) -> float:
    return float(first.mean() - second.mean())


def _timeouts(runs: ThesisRuns) -> Iterator[Claim]:
    """The servers of the pairs that time out with losses."""
    late = Counter(c.key.server for c in runs.matrices[SATLOSS].cells if c.failures["transfer_timeout"])
    if late:
        said = ", ".join(f"{short(server)} {pairs}" for server, pairs in late.most_common())
        kwik = [
            cell for cell in runs.in_real_time if (cell.key.scenario, cell.key.server) == (SATLOSS, "kwik")
        ]
        if kwik:
            timed_out = sum(cell.failures["transfer_timeout"] > 0 for cell in kwik)
            said += f"; [in real time](#the-same-pairs-in-real-time) kwik {timed_out} of {len(kwik)}"
        text = "Most of these are of the servers aioquic and kwik"
        note = "kwik is not among these servers"
        yield Claim(text, "by eye", Published(), None, f"pairs: {said}", note=note)


def _stacks(runs: ThesisRuns) -> Iterator[Claim]:
    for scenario in (SAT, "eutelsat"):
        by_server: dict[str, list[float]] = {}
        for (_, server), value in runs.pairs_as_published(scenario).items():
            by_server.setdefault(server, []).append(value)
        if len(by_server) < 2 or "aioquic" not in by_server:
            continue
        means = {server: statistics.fmean(values) for server, values in by_server.items()}
        nearest = min((one for one in means if one != "aioquic"), key=lambda one: means[one])
        found = MeasuredValue.of(inference.ratio(by_server[nearest], by_server["aioquic"]))
        here = f"aioquic {mbit(means['aioquic'])} Mbit/s of {several(len(by_server['aioquic']), 'pair')}"
        here += f", {'next' if means['aioquic'] < means[nearest] else 'slowest'} {short(nearest)}"
        here += f" {mbit(means[nearest])} of {len(by_server[nearest])}"
        here += _left_out(runs, scenario, by_server)
        text = f"aioquic's server is the slowest over {name(scenario)}"
        note = "" if scenario != SAT else "[its probe timeout of then](#causes)"
        yield Claim(text, "aioquic", Published.side(above=False), found, here, note=note)


def _left_out(runs: ThesisRuns, scenario: str, by_server: Mapping[str, Sequence[float]]) -> str:
    """The servers of which no pair was without a failure."""
    without = [short(one) for one in runs.matrices[scenario].servers if one not in by_server]
    return f"; without {', '.join(without)}, of which all pairs failed once" if without else ""


def _newreno(runs: ThesisRuns) -> Iterator[Claim]:
    """Figure 5.6b: the means of servers by their congestion control, a server counted once."""
    by_server: dict[str, list[float]] = {}
    for (_, server), value in runs.pairs_as_published(SATLOSS).items():
        by_server.setdefault(server, []).append(value)
    by_word: dict[str, list[float]] = {}
    for server, values in by_server.items():
        by_word.setdefault(controller(server) or "unknown", []).append(statistics.fmean(values))
    mine = by_word.get("NewReno", [])
    others = [one for word, values in by_word.items() if word != "NewReno" for one in values]
    if not mine or not others:
        return
    shown = (
        f"{word} {mbit(statistics.fmean(values))} of {several(len(values), 'server')}"
        for word, values in by_word.items()
    )
    text = "Servers with NewReno do worse over SATLOSS than those with CUBIC or BBR"
    here = f"Mbit/s: {', '.join(shown)}{_left_out(runs, SATLOSS, by_server)}"
    note = "[by experiment](#congestion-control)" if runs.beside(CONTROLLERS) is not None else ""
    measured = MeasuredValue.of(inference.ratio(others, mine))
    yield Claim(text, "figure 5.6b", Published.side(above=False), measured, here, note=note)


def _relations(runs: ThesisRuns) -> Iterator[Claim]:
    known = distributions.correlations(runs)
    mine = {pair[1]: one for pair, one in known.items() if pair[0] == "goodput"}
    if mine:
        here = ", ".join(f"{name(other)} {one.written()}" for other, one in mine.items())
        # Either sign is a correlation: the one whose interval is farthest from 0.
        strongest = max(mine.values(), key=lambda one: (max(one.low, -one.high), abs(one.value)))
        text = "GOODPUT is not correlated with the other scenarios"
        # A correlation of 0 can be contradicted, and never be shown.
        yield Claim(text, "by eye", Published.number(0.0), _measured(strongest), here)
    names = (SAT, "eutelsat", "astra")
    if set(names) <= runs.matrices.keys():
        tables = [runs.pairs(one, "efficiency") for one in names]
        nearer = _measured(intervals.over_stacks(tables, _nearer))
        here = "-" if nearer is None else f"difference of the coefficients {nearer.written()}"
        text = "SAT is nearer to EUTELSAT than to ASTRA (rank correlation)"
        yield Claim(text, "by eye", Published.side(above=True, least=_LEAST_R), nearer, here)


def _nearer(first: Floats, second: Floats, third: Floats) -> float:
    """How much more the first is correlated with the second than with the third."""
    with np.errstate(invalid="ignore"):
        found = intervals.ranks(first, second) - intervals.ranks(first, third)
    return found if math.isfinite(found) else float("nan")


def _links(runs: ThesisRuns) -> Iterator[Claim]:
    """The return link: the mean rate of each trial, and what its queue dropped."""
    rates = [
        8 * one.return_bytes / one.completion_s
        for one in runs.records
        if one.scenario in (SAT, SATLOSS, "astra") and one.ok and one.completion_s
        if one.return_bytes is not None
    ]
    if rates:
        drops = [one.return_queue_drops for one in runs.records if one.scenario == SAT and one.ok]
        counted = [one for one in drops if one is not None]
        here = f"means of trials up to {max(rates) / 1e3:.0f} kbit/s"
        if counted:
            dropped = sum(one > 0 for one in counted)
            here += f"; its queue dropped in {dropped} of {len(counted)} trials over SAT"
        text, said = "The return link, 2 Mbit/s, is no limit", "at most 600 kbit/s, over 1 s"
        note = "[a wider one](../stacks/stacks.md#return-link) is an experiment"
        yield Claim(text, said, Published(), None, here, note=note)
