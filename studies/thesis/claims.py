"""The thesis's claims of chapter 5, each with what our trials say of it."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass

from bentpipe.analysis import inference
from bentpipe.analysis.cells import Cell
from bentpipe.study import claims
from bentpipe.study.claims import CONTRADICTED, OPEN, REPEATED
from bentpipe.study.markdown import literal, mbit, percent, several, table

from . import distributions, intervals
from .controllers import controller
from .intervals import Estimate
from .runs import CONTROLLERS, ThesisRuns, short

_HOW = """*Repeated*, where the interval of what is found here is on the side that the thesis names;
*contradicted*, where it is on the other; *open*, where it is on both. Intervals are 95 %, of a bootstrap over
clients and over servers; of the slowest server and of NewReno, which have none here, of Welch's t on the
logarithms of means. Highest efficiencies and timeouts are counted: *repeated* says there that it is so of the
pairs of this run. Pairs that never failed over either of two scenarios; all stacks, which are others than in
the thesis. Goodput and efficiency are by [equations 4.1 and 4.2](#two-definitions-of-goodput) but for shares
of the variance and correlations, which are of ours."""
_ALIKE = 0.05


@dataclass(frozen=True)
class Claim:
    """A claim of the thesis, and the result here."""

    text: str
    published: str
    here: str
    verdict: str

    def row(self) -> list[str]:
        return list(astuple(self))


def section(runs: ThesisRuns) -> list[str]:
    """The section at the top of the page."""
    found = [one for source in (_means, _extremes, _stacks, _relations, _links) for one in source(runs)]
    if not found:
        return []
    head = ["the thesis says", "its figures", "here", ""]
    return ["## At a glance", table(head, [one.row() for one in found], left=4), _HOW]


def side(estimate: Estimate, border: float, above: bool) -> str:
    """The verdict on a claim that a value lies above a border, or below it."""
    return claims.verdict(estimate.low, estimate.high, border, above=above)


def _means(runs: ThesisRuns) -> Iterator[Claim]:
    known = runs.known.scenarios
    wanted = (
        ("goodput", "sat", False, "Efficiency falls where a link becomes geostationary (SAT / GOODPUT)"),
        ("sat", "satloss", False, "Losses lower it further (SATLOSS / SAT)"),
        ("eutelsat", "astra", True, "It is higher over Astra than over Eutelsat (ASTRA / EUTELSAT)"),
    )
    for below, above, more, text in wanted:
        if not {below, above} <= runs.matrices.keys():
            continue
        tables = [runs.pairs_as_published(name, "efficiency") for name in (above, below)]
        ratio = intervals.over_stacks(tables, intervals.ratio_of_means)
        if ratio is not None:
            then = known[above].mean_efficiency / known[below].mean_efficiency
            yield Claim(text, f"{then:.2f}", ratio.written(), side(ratio, 1, more))
    if {"sat", "satloss"} <= runs.matrices.keys():
        better = _better_with_losses(runs)
        listed = ", ".join(literal(f"{short(client)} → {short(server)}") for client, server in better[:3])
        here = f"{len(better)} pairs" + (f": {listed}{', …' if len(better) > 3 else ''}" if better else "")
        text = "No pair is much better over SATLOSS than over SAT"
        yield Claim(text, "none", here, CONTRADICTED if better else REPEATED)


def _better_with_losses(runs: ThesisRuns) -> list[tuple[str, str]]:
    """Pairs that are faster with losses than without, by Welch on logarithms, Benjamini and Hochberg."""
    sat, lossy = (_by_pair(runs, name) for name in ("sat", "satloss"))
    pairs, ratios = [], []
    for pair in sat.keys() & lossy.keys():
        found = inference.ratio(sat[pair].values("goodput_bps"), lossy[pair].values("goodput_bps"))
        if found is not None:
            pairs.append(pair)
            ratios.append(found)
    adjusted = inference.adjusted([one.p for one in ratios])
    return sorted(
        pair
        for pair, one, p in zip(pairs, ratios, adjusted, strict=True)
        if one.value > 1 and p is not None and p < _ALIKE
    )


def _by_pair(runs: ThesisRuns, name: str) -> dict[tuple[str, str], Cell]:
    return {(cell.key.client, cell.key.server): cell for cell in runs.matrices[name].cells}


def _extremes(runs: ThesisRuns) -> Iterator[Claim]:
    limits = {"sat": 60, "satloss": 60, "astra": 55, "eutelsat": 30}
    known = {name: runs.pairs_as_published(name, "efficiency") for name in limits}
    here = {name: max(pairs.values()) for name, pairs in known.items() if pairs}
    if here:
        said = ", ".join(f"{name} {percent(value)}" for name, value in here.items())
        over = [name for name, value in here.items() if 100 * value > limits[name]]
        text = "No pair's mean efficiency is above this (section 5.5.1)"
        then = ", ".join(f"{name} {limits[name]} %" for name in here)
        yield Claim(text, then, said, f"contradicted: {', '.join(over)}" if over else REPEATED)
    timeouts = {name: runs.results[name] for name in ("sat", "satloss") if name in runs.results}
    if len(timeouts) == 2:
        then = ", ".join(f"{name} {runs.known.scenarios[name].timeout:g} %" for name in timeouts)
        shares = {name: one.share(one.timeout) or 0.0 for name, one in timeouts.items()}
        said = ", ".join(f"{name} {percent(share)}" for name, share in shares.items())
        verdict = REPEATED if shares["satloss"] > shares["sat"] else CONTRADICTED
        yield Claim("More pairs time out with losses", then, said, verdict)
        yield from _timeouts(runs)


def _timeouts(runs: ThesisRuns) -> Iterator[Claim]:
    """The servers of the pairs that time out over satloss."""
    late = Counter(c.key.server for c in runs.matrices["satloss"].cells if c.failures["transfer_timeout"])
    if late:
        said = ", ".join(f"{short(server)} {pairs}" for server, pairs in late.most_common())
        kwik = [
            cell for cell in runs.in_real_time if (cell.key.scenario, cell.key.server) == ("satloss", "kwik")
        ]
        if kwik:
            timed_out = sum(cell.failures["transfer_timeout"] > 0 for cell in kwik)
            said += f"; [in real time](#the-same-pairs-in-real-time) kwik {timed_out} of {len(kwik)}"
        verdict = "open: kwik is not among these servers"
        if 2 * late["aioquic"] > late.total():
            verdict = REPEATED
        yield Claim("Most of these are of the servers aioquic and kwik", "by eye", f"pairs: {said}", verdict)


def _stacks(runs: ThesisRuns) -> Iterator[Claim]:
    for name in ("sat", "eutelsat"):
        by_server: dict[str, list[float]] = {}
        for (_, server), value in runs.pairs_as_published(name).items():
            by_server.setdefault(server, []).append(value)
        if len(by_server) < 2 or "aioquic" not in by_server:
            continue
        means = {server: statistics.fmean(values) for server, values in by_server.items()}
        worst = min(means, key=lambda one: means[one])
        here = f"{short(worst)}, {mbit(means[worst])} Mbit/s; aioquic {mbit(means['aioquic'])}"
        others = [one for one in means if one != "aioquic"]
        nearest = min(others, key=lambda one: means[one])
        verdict = _slowest(by_server["aioquic"], by_server[nearest])
        if worst == "aioquic":
            here += f" of {several(len(by_server['aioquic']), 'pair')}"
            here += f", next {short(nearest)} {mbit(means[nearest])} of {len(by_server[nearest])}"
        here += _left_out(runs, name, by_server)
        yield Claim(f"aioquic's server is the slowest over {name.upper()}", "aioquic", here, verdict)
    for name, one in distributions.splits(runs).items():
        if name in ("sat", "satloss"):
            rest = 1 - one.shares.server - one.shares.chance
            low = Estimate(one.shares.server, one.low.server, one.high.server)
            client = Estimate(one.shares.client, one.low.client, one.high.client)
            here = f"server {low.written(0, 100, ' %')}, client {client.written(0, 100, ' %')}"
            verdict = "contradicted: the server dominates" if low.low > client.high else OPEN
            yield Claim(
                f"Client and server both decide, no side dominates ({name.upper()})",
                "by eye",
                f"{here} of the variance; client and pair {percent(rest)}",
                verdict,
            )
    yield from _newreno(runs)


def _left_out(runs: ThesisRuns, scenario: str, by_server: Mapping[str, Sequence[float]]) -> str:
    """The servers of which no pair was without a failure."""
    without = [short(one) for one in runs.matrices[scenario].servers if one not in by_server]
    return f"; without {', '.join(without)}, of which all pairs failed once" if without else ""


def _slowest(mine: Sequence[float], others: Sequence[float]) -> str:
    """The verdict on whether one is slower than the others, by Welch."""
    found = inference.ratio(others, mine)
    said = OPEN if found is None else claims.verdict(found.low, found.high, 1, above=False)
    return f"{said}: [why](#causes)" if said == CONTRADICTED else said


def _newreno(runs: ThesisRuns) -> Iterator[Claim]:
    """Figure 5.6b: the means of servers by their congestion control, a server counted once."""
    by_server: dict[str, list[float]] = {}
    for (_, server), value in runs.pairs_as_published("satloss").items():
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
    verdict = _slowest(mine, others)
    if runs.beside(CONTROLLERS) is not None:
        verdict += "; [by experiment](#congestion-control)"
    text = "Servers with NewReno do worse over SATLOSS than those with CUBIC or BBR"
    here = f"Mbit/s: {', '.join(shown)}{_left_out(runs, 'satloss', by_server)}"
    yield Claim(text, "figure 5.6b", here, verdict)


def _relations(runs: ThesisRuns) -> Iterator[Claim]:
    known = distributions.correlations(runs)
    mine = {pair[1]: one for pair, one in known.items() if pair[0] == "goodput"}
    if mine:
        here = ", ".join(f"{name} {one.written()}" for name, one in mine.items())
        related = [name for name, one in mine.items() if one.low > 0]
        verdict = f"contradicted: {', '.join(related)}" if related else "open: none is shown, none excluded"
        yield Claim("GOODPUT is not correlated with the other scenarios", "by eye", here, verdict)
    if {("sat", "astra"), ("sat", "eutelsat")} <= known.keys():
        near, far = known["sat", "eutelsat"], known["sat", "astra"]
        here = f"{near.written()} against {far.written()}"
        apart = near.low > far.high or far.low > near.high
        verdict = (REPEATED if near.value > far.value else CONTRADICTED) if apart else OPEN
        yield Claim("SAT is nearer to EUTELSAT than to ASTRA (rank correlation)", "by eye", here, verdict)


def _links(runs: ThesisRuns) -> Iterator[Claim]:
    """The return link: the mean rate of each trial, and what its queue dropped."""
    rates = [
        8 * one.return_bytes / one.completion_s
        for one in runs.records
        if one.scenario in ("sat", "satloss", "astra") and one.ok and one.completion_s
        if one.return_bytes is not None
    ]
    if rates:
        drops = [one.return_queue_drops for one in runs.records if one.scenario == "sat" and one.ok]
        counted = [one for one in drops if one is not None]
        here = f"means of trials up to {max(rates) / 1e3:.0f} kbit/s"
        if counted:
            dropped = sum(one > 0 for one in counted)
            here += f"; its queue dropped in {dropped} of {len(counted)} trials over sat"
        verdict = "open; [a wider one](../stacks/stacks.md#return-link) is an experiment"
        yield Claim("The return link, 2 Mbit/s, is no limit", "at most 600 kbit/s, over 1 s", here, verdict)
