"""noq's BBR3 with jitter: what the stack does on any path, and what the path does to every stack."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bentpipe import labels
from bentpipe.analysis.cell_ratio import cell_ratio
from bentpipe.analysis.cells import Cell, cells
from bentpipe.runs.records import Record
from bentpipe.study.claims import NO_EFFECT, MeasuredValue
from bentpipe.study.front import folded
from bentpipe.study.markdown import listed, literal, number, percent, several, table
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
_CHANCE = 0.05  # a correlation that a random order has less often is none of chance
_HOW = """[A maintainer of noq reports](https://github.com/n0-computer/noq/issues/819) that in
simulations BBR3 is often slower than CUBIC, as with 10 ms one way and 5 ms of jitter. The report names
neither rate nor queue, and not whether packets overtake each other. Here the link has 50 Mbit/s and a queue
of two BDP, and each table changes one thing. Goodputs are medians over the seeds. Shares of another goodput
are ratios of geometric means with [intervals](../../docs/reference/study-verdicts.md#intervals-of-ratios) of
95 %; where none is shown, both its ends round to the value, or there is one trial alone. A setting of which a
trial failed has no share."""


@dataclass(frozen=True)
class JitterRuns:
    """The records over the path of the report, and its changes."""

    records: Sequence[Record]

    @classmethod
    def of(cls, sources: Sequence[Source]) -> JitterRuns:
        found = [one for source in sources for one in source.in_order]
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
        """The median share of the bytes that were retransmitted."""
        mine = [one.retransmitted_share for one in self._of(server, key, value)]
        known = [one for one in mine if one is not None]
        return statistics.median(known) if known else None

    def ratio(self, server: str, other: str, key: str, value: str) -> MeasuredValue | None:
        """The goodput of a sender as a share of another's."""
        return _ratio(self._cell(other, key, value), self._cell(server, key, value))

    def kept(self, server: str, order: str) -> MeasuredValue | None:
        """Goodput where packets overtake each other, as a share of that in order."""
        return _ratio(self._cell(server, "forward.delay", self.plain), self._cell(server, ORDER, order))

    def _of(self, server: str, key: str, value: str) -> list[Record]:
        return [one for one in self._all(server, key, value) if one.ok]

    def _all(self, server: str, key: str, value: str) -> list[Record]:
        return [
            one
            for one in self.records
            if one.server == server and labels.scenario(one.scenario).values.get(key) == value
        ]

    def _cell(self, server: str, key: str, value: str) -> Cell | None:
        found = cells(self._all(server, key, value))
        return found[0] if len(found) == 1 else None


def _ratio(first: Cell | None, second: Cell | None) -> MeasuredValue | None:
    """Mean goodput, second / first; None where one did not run, or a trial failed."""
    if first is None or second is None or first.failures or second.failures:
        return None
    return MeasuredValue.of(cell_ratio(first, second, "goodput_bps"))


def share(ratio: MeasuredValue | None) -> str:
    """A ratio in percent with its interval: `88 % (87 to 89)`."""
    return "an unknown share" if ratio is None else ratio.written(0, " %", 100)


def is_less(ratio: MeasuredValue | None) -> bool:
    """Whether all of a ratio's interval is below 1 by more than what counts as no effect."""
    return ratio is not None and ratio.high is not None and ratio.high < 1 / NO_EFFECT


def rtt_ms(delay: str) -> float:
    """The round trip of a path whose one-way delay is given as `10ms`."""
    return 2 * float(delay.removesuffix("ms"))


def sections(evidence: Evidence) -> list[str]:
    """The part of the page; nothing without its runs."""
    runs = JitterRuns.of(evidence.sources)
    if not runs.plain:
        return []
    parts = ["## noq's BBR3 with jitter", _HOW, *_jitter(runs), *_round_trips(runs), *_fades(evidence)]
    return [*parts, *_order(runs), *_causes(evidence, runs)]


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
        *folded(
            several(len(rows), "sender"), table(["server", "no jitter", "jitter of 5 ms both ways"], rows)
        ),
    ]


def _rounds(rtt_s: float, rate_bps: float) -> float:
    """The round trips between two probes, by the draft."""
    return min(rate_bps * rtt_s / 8 / PACKET, ROUNDS, SPREAD_S / rtt_s)


def _round_trips(runs: JitterRuns) -> list[str]:
    key = "forward.delay"
    values = [one for one in runs.settings(key) if "jitter" not in one]
    values.sort(key=rtt_ms)
    senders = [one for one in runs.servers(key) if one != CUBIC]
    others = [one for one in senders if all(runs.ratio(one, CUBIC, key, value) for value in values)]
    rows = [
        [
            f"{rtt_ms(value):g} ms",
            f"{_rounds(1e-3 * rtt_ms(value), RATE_BPS):.0f}",
            *(share(runs.ratio(one, CUBIC, key, value)) for one in others),
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
        "A share of the packets is overtaken by so many others, or late by so much; none is lost. Goodput in "
        "Mbit/s, in brackets the share of bytes that were retransmitted:",
        *folded(several(len(rows), "sender"), table(["server", "in order", *map(_named, values)], rows)),
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


def _causes(evidence: Evidence, runs: JitterRuns) -> list[str]:
    """What follows, in numbers of the tables above."""
    parts = [_of_stack(evidence, runs)]
    if values := runs.settings(ORDER):
        parts.append(_of_path(runs, values))
    return ["### What the stack does, and what the path does", "\n".join(parts)]


def _of_stack(evidence: Evidence, runs: JitterRuns) -> str:
    """What noq's BBR3 does over any path."""
    key = "forward.delay"
    shaken = next((one for one in runs.settings(key) if "jitter" in one), "")
    still, with_it = (runs.ratio(BBR3, CUBIC, key, value) for value in (runs.plain, shaken))
    by_acks = [runs.ratio(f"{BBR3}:ack={n}", f"{CUBIC}:ack={n}", key, runs.plain) for n in (1, 10)]
    window = runs.ratio(f"{BBR3}:iw=100", CUBIC, key, runs.plain)
    text = (
        f"- **The stack.** BBR3 has {share(still)} of CUBIC's goodput without jitter and {share(with_it)} "
        f"with jitter in order: {_without_jitter(still, with_it)}. With an ACK for each packet it has "
        f"{share(by_acks[0])} of CUBIC's, with one for ten {share(by_acks[1])}; with a first window of "
        f"100 packets {share(window)}."
    )
    return f"{text} {_cause(evidence, runs)}" if is_less(still) else text


def _cause(evidence: Evidence, runs: JitterRuns) -> str:
    """Why BBR3 is likely to be behind CUBIC."""
    fall = _fade(evidence, BBR3)
    return (
        "Likely its estimate of the rate falls in each round trip in which it does not probe, where the "
        "draft lets it fall with a cycle (section 5.5.6). Other round trips were tried: "
        f"{_with_round_trips(runs)}. The pace between two probes falls by "
        f"{number(None if fall is None else 100 * fall, 1, ' %')} in ten round trips. [The report to "
        "noq](../../docs/upstream/noq-bbr3.md) names the place in the source, and tries a corrected library."
    )


def _without_jitter(still: MeasuredValue | None, with_it: MeasuredValue | None) -> str:
    """How much of a gap is surely there without jitter, too, by both intervals."""
    ends = [end for one in (still, with_it) if one is not None for end in (one.low, one.high)]
    known = [end for end in ends if end is not None]
    if len(known) < 4 or min(known[1], known[2]) >= 1:
        return "how much of the gap is there without jitter cannot be told"
    least, most = 1 - known[1], 1 - known[2]
    return f"at least {percent(min(least / most, 1.0))} of the gap is there without jitter"


def _with_round_trips(runs: JitterRuns) -> str:
    """Whether the gap grows with the round trips between two probes, as it has to if this is its cause."""
    found = _follows(runs)
    if found is None:
        return "too few to tell whether the gap follows their number between two probes"
    rank, chance = found
    begin = "the gap grows with" if chance <= _CHANCE else "it cannot be told whether the gap grows with"
    return (
        f"{begin} their number between two probes (rank correlation {rank:.2f}, one-sided p = {chance:.2f})"
    )


def _follows(runs: JitterRuns) -> tuple[float, float] | None:
    """Spearman's rank correlation of round trips between two probes and what BBR3 is behind CUBIC, and how
    often a random order has as much or more.
    """
    values = [one for one in runs.settings("forward.delay") if "jitter" not in one]
    known = [
        (_rounds(1e-3 * rtt_ms(one), RATE_BPS), -ratio.value)
        for one in values
        if (ratio := runs.ratio(BBR3, CUBIC, "forward.delay", one)) is not None
    ]
    if len(known) < 3:
        return None
    rounds, gaps = np.argsort(np.argsort(np.array(known), axis=0), axis=0).T
    rank = _correlation(rounds, gaps)
    orders = [_correlation(rounds, np.array(one)) for one in itertools.permutations(gaps)]
    return rank, float(np.mean(np.array(orders) >= rank - 1e-9))


def _correlation(first: np.ndarray, second: np.ndarray) -> float:
    return float(np.corrcoef(first, second)[0, 1])


def _of_path(runs: JitterRuns, values: Sequence[str]) -> str:
    """What packets that overtake each other do to every stack."""
    few = next((one for one in values if "2packets" in one), values[0])
    late = next((one for one in values if "by=" in one), values[-1])
    kept = {one: ratio for one in runs.servers(ORDER) if (ratio := runs.kept(one, late)) is not None}
    ordered = sorted((one for one in kept if not one.startswith("linux")), key=lambda one: kept[one].value)
    ends = ""
    if ordered:
        each = [f"{literal(one)} {share(kept[one])}" for one in dict.fromkeys((ordered[0], ordered[-1]))]
        ends = f"; of all stacks of QUIC the ends are {listed(each)}"
    text = (
        f"- **The path, and how stacks detect losses.** With {_named(late)} noq's BBR3 keeps "
        f"{share(kept.get(BBR3))} of its goodput in order and its CUBIC {share(kept.get(CUBIC))}{ends}. "
        f"Linux's TCP keeps {share(kept.get(TCP))}."
    )
    if not is_less(kept.get(BBR3)):
        return text
    again = [percent(runs.again(BBR3, ORDER, value)) for value in (few, late)]
    return (
        f"{text} Likely the threshold of three packets (RFC 9002 section 6.1.1) takes late packets for lost. "
        f"With {_named(few)}, which stay below it, noq's BBR3 retransmits {again[0]} of its bytes, with "
        f"{_named(late)} {again[1]}; none is lost."
    )
