"""noq's BBR3 with jitter: what the stack does on any path, and what the path does to every stack."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bentpipe import labels
from bentpipe.runs.records import Record
from bentpipe.study.markdown import literal, number, percent, table
from bentpipe.study.source import Source

from . import cycle
from .evidence import Evidence

PATH = "bbr-jitter"
BBR3, CUBIC, TCP = "noq:cc=bbr3", "noq:cc=cubic", "linux:cc=bbr"
ORDER = "forward.reorder"
SPREAD_S = 2.5  # section 5.3.3.8.2 of the draft: a probe follows 2 to 3 s after the last one,
ROUNDS = 62  # or after so many round trips, or as many as the BDP has packets
PACKET = 1500
RATE_BPS = 50e6  # of the path
_HOW = """[A maintainer of noq reports](https://github.com/n0-computer/noq/issues/819) that in
simulations BBR3 is often slower than CUBIC, as with 10 ms one way and 5 ms of jitter. The report names
neither rate nor queue, and not whether packets overtake each other. Here the link has 50 Mbit/s and a queue
of two BDP, each table changes one thing, and figures are medians of three seeds."""


@dataclass(frozen=True)
class JitterRuns:
    """The records over the path of the report, and its changes."""

    records: Sequence[Record]

    @classmethod
    def of(cls, sources: Sequence[Source]) -> JitterRuns:
        found = [one for source in sources for one in source.in_order if one.ok]
        return cls([one for one in found if labels.scenario(one.scenario).name == PATH])

    def settings(self, key: str) -> list[str]:
        """The values of a key of the scenario, in order."""
        found = (labels.scenario(one.scenario).values.get(key) for one in self.records)
        return list(dict.fromkeys(one for one in found if one is not None))

    @cached_property
    def plain(self) -> str:
        """The delay without jitter, which all other paths have, too."""
        return next((one for one in self.settings("forward.delay") if one == "10ms"), "")

    def servers(self, key: str) -> list[str]:
        known = [one for one in self.records if key in labels.scenario(one.scenario).values]
        return list(dict.fromkeys(one.server for one in known))

    def goodput(self, server: str, key: str, value: str) -> float | None:
        """The median in Mbit/s."""
        mine = [one.goodput_bps / 1e6 for one in self._of(server, key, value) if one.goodput_bps is not None]
        return statistics.median(mine) if mine else None

    def again(self, server: str, key: str, value: str) -> float | None:
        """The median share of the bytes that were sent again."""
        mine = [one.retransmitted_share for one in self._of(server, key, value)]
        known = [one for one in mine if one is not None]
        return statistics.median(known) if known else None

    def ratio(self, server: str, other: str, key: str, value: str) -> float | None:
        """The goodput of a sender as a share of another's."""
        mine, theirs = (self.goodput(one, key, value) for one in (server, other))
        return mine / theirs if mine is not None and theirs else None

    def _of(self, server: str, key: str, value: str) -> list[Record]:
        return [
            one
            for one in self.records
            if one.server == server and labels.scenario(one.scenario).values.get(key) == value
        ]


def sections(evidence: Evidence) -> list[str]:
    """The part of the page; nothing without its runs."""
    runs = JitterRuns.of(evidence.sources)
    if not runs.plain:
        return []
    parts = ["## noq's BBR3 with jitter", _HOW, *_jitter(runs), *_round_trips(runs), *_fades(evidence)]
    return [*parts, *_order(runs), *_whose(evidence, runs)]


def _jitter(runs: JitterRuns) -> list[str]:
    key = "forward.delay"
    shaken = [one for one in runs.settings(key) if "jitter" in one]
    if not shaken:
        return []
    with_it = shaken[0]
    servers = [one for one in runs.servers(key) if runs.goodput(one, key, with_it) is not None]
    rows = [
        [literal(one), *(number(runs.goodput(one, key, value), 1) for value in (runs.plain, with_it))]
        for one in servers
    ]
    return [
        "### Jitter in order, the frequency of acknowledgements, the first window",
        "Packets keep their order. `ack=1` and `ack=10`: the client is asked for an ACK for each packet, "
        "and for ten. Goodput in Mbit/s:",
        table(["server", "no jitter", "jitter of 5 ms both ways"], rows),
    ]


def _rounds(rtt_s: float, rate_bps: float) -> float:
    """The round trips between two probes, by the draft."""
    return min(rate_bps * rtt_s / 8 / PACKET, ROUNDS, SPREAD_S / rtt_s)


def _round_trips(runs: JitterRuns) -> list[str]:
    key = "forward.delay"
    values = [one for one in runs.settings(key) if "jitter" not in one]
    values.sort(key=lambda one: float(one.removesuffix("ms")))
    senders = [one for one in runs.servers(key) if one != CUBIC]
    others = [one for one in senders if all(runs.ratio(one, CUBIC, key, value) for value in values)]
    rows = [
        [
            f"{2 * float(value.removesuffix('ms')):g} ms",
            f"{_rounds(2e-3 * float(value.removesuffix('ms')), RATE_BPS):.0f}",
            *(percent(runs.ratio(one, CUBIC, key, value)) for one in others),
        ]
        for value in values
    ]
    return [
        "### Round trips between two probes",
        "Without jitter. The draft waits for 2 to 3 s between two probes, 62 to 63 round trips, or as many "
        "as the BDP has packets, whichever is least (section 5.3.3.8.2). Goodput as a share of noq's CUBIC:",
        table(["RTT", "round trips between two probes", *map(literal, others)], rows),
    ]


def _fades(evidence: Evidence) -> list[str]:
    """How the pace of each sender falls between two probes."""
    found = {server: _fade(evidence, server) for server in evidence.servers}
    rows = [[literal(one), f"{100 * fall:.1f} %"] for one, fall in found.items() if fall is not None]
    return [
        "### The pace between two probes",
        "Over the steady path of the cases, where nothing changes: by how much the pace falls in ten round "
        "trips of CRUISE, median over its phases. Senders without such a phase are left out.",
        table(["server", "fall of the pace"], rows),
    ]


def _fade(evidence: Evidence, server: str) -> float | None:
    """The median over seeds; None if no trial has such a phase."""
    mine = [one for one in evidence.trials if one.path == "bbr-steady" and one.record.server == server]
    falls = [one for each in mine if (one := cycle.fade(each.signals())) is not None]
    return statistics.median(falls) if falls else None


def _order(runs: JitterRuns) -> list[str]:
    values = runs.settings(ORDER)
    if not values:
        return []
    rows = [
        [
            literal(one),
            _with_again(runs, one, "forward.delay", runs.plain),
            *(_with_again(runs, one, ORDER, value) for value in values),
        ]
        for one in runs.servers(ORDER)
    ]
    return [
        "### Packets that overtake each other",
        "A share of the packets is overtaken by so many, or late by so much; none is lost. Goodput in "
        "Mbit/s, in brackets what was sent again:",
        table(["server", "in order", *map(_named, values)], rows),
    ]


def _with_again(runs: JitterRuns, server: str, key: str, value: str) -> str:
    share = percent(runs.again(server, key, value))
    return f"{number(runs.goodput(server, key, value), 1)} ({share})"


def _named(reorder: str) -> str:
    """`{share="10%",distance="2packets"}` in words."""
    values = dict(part.split("=") for part in reorder.strip("{}").replace('"', "").split(","))
    share = values["share"].replace("%", " %")
    if "distance" in values:
        return f"{share} by {values['distance'].replace('packets', ' packets')}"
    return f"{share} late by {values['by'].replace('ms', ' ms').replace('us', ' µs')}"


def _whose(evidence: Evidence, runs: JitterRuns) -> list[str]:
    """What follows, in numbers of the tables above."""
    parts = [_of_stack(evidence, runs)]
    if values := runs.settings(ORDER):
        parts.append(_of_path(runs, values))
    return ["### Whose fault", "\n".join(parts)]


def _of_stack(evidence: Evidence, runs: JitterRuns) -> str:
    """What noq's BBR3 does over any path."""
    key = "forward.delay"
    shaken = next((one for one in runs.settings(key) if "jitter" in one), "")
    still, with_it = (runs.ratio(BBR3, CUBIC, key, value) for value in (runs.plain, shaken))
    by_acks = [runs.ratio(f"{BBR3}:ack={n}", f"{CUBIC}:ack={n}", key, runs.plain) for n in (1, 10)]
    window = runs.ratio(f"{BBR3}:iw=100", CUBIC, key, runs.plain)
    fall = _fade(evidence, BBR3)
    behind = f"{_part(still, with_it)} of what it is behind, it is behind without jitter"
    return (
        f"- **The stack's.** BBR3 has {percent(still)} of CUBIC's goodput without jitter and "
        f"{percent(with_it)} with jitter in order: {behind}. With an ACK for each packet it has "
        f"{percent(by_acks[0])} of CUBIC's, with one for ten {percent(by_acks[1])}; with a first window of "
        f"100 packets {percent(window)}. Likely its estimate of the rate falls in each round trip in which "
        "it does not probe, where the draft lets it fall with a cycle (section 5.5.6). Tried were other "
        "round trips: the gap follows their number between two probes with a rank correlation of "
        f"{number(_follows(runs), 2)}. And its pace falls by "
        f"{number(None if fall is None else 100 * fall, 1, ' %')} in ten of them. [The report to "
        "noq](../../docs/upstream/noq-bbr3.md) names the place in the source, and tries a corrected library."
    )


def _part(still: float | None, with_it: float | None) -> str:
    """Which share of a gap is there without jitter, too."""
    if still is None or with_it is None or with_it >= 1:
        return "an unknown part"
    return percent(min((1 - still) / (1 - with_it), 1.0))


def _follows(runs: JitterRuns) -> float | None:
    """Spearman's rank correlation of round trips between two probes and what BBR3 is behind CUBIC."""
    values = [one for one in runs.settings("forward.delay") if "jitter" not in one]
    known = [
        (_rounds(2e-3 * float(one.removesuffix("ms")), RATE_BPS), -share)
        for one in values
        if (share := runs.ratio(BBR3, CUBIC, "forward.delay", one)) is not None
    ]
    if len(known) < 3:
        return None
    ranks = np.argsort(np.argsort(np.array(known), axis=0), axis=0)
    return float(np.asarray(np.corrcoef(ranks.T))[0, 1])


def _of_path(runs: JitterRuns, values: Sequence[str]) -> str:
    """What packets that overtake each other do to every stack."""
    few = next((one for one in values if "2packets" in one), values[0])
    late = next((one for one in values if "by=" in one), values[-1])
    kept = {one: share for one in runs.servers(ORDER) if (share := _kept(runs, one, late)) is not None}
    ordered = sorted((one for one in kept if not one.startswith("linux")), key=lambda one: kept[one])
    least, most = ordered[0], ordered[-1]
    again = [percent(runs.again(BBR3, ORDER, value)) for value in (few, late)]
    return (
        f"- **The path's, and that of the loss detection of stacks.** With {_named(late)} noq's BBR3 keeps "
        f"{percent(kept.get(BBR3))} of its goodput in order, its CUBIC {percent(kept.get(CUBIC))}, "
        f"{literal(least)} {percent(kept[least])} and {literal(most)} {percent(kept[most])}; Linux's TCP "
        f"keeps {percent(kept.get(TCP))}. Likely the threshold of three packets (RFC 9002 section 6.1.1) "
        "takes late packets for lost: tried were packets overtaken by two others, which is below it, where "
        f"noq's BBR3 sends {again[0]} again, and these, where it sends {again[1]} again; none is lost."
    )


def _kept(runs: JitterRuns, server: str, value: str) -> float | None:
    """Goodput with packets that overtake each other, as a share of that in order."""
    mine = runs.goodput(server, ORDER, value)
    before = runs.goodput(server, "forward.delay", runs.plain)
    return mine / before if mine is not None and before else None
