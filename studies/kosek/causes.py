"""What makes the results differ from what was published: runs in which one thing is changed at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from bentpipe import labels
from bentpipe.plan import treatments
from bentpipe.plan.treatments import DIRECT
from bentpipe.runs.records import Record
from bentpipe.study.markdown import literal, table
from bentpipe.study.source import Source, pooled

from .means import ratio_of_means, times_as_much
from .published import GoodputRow, Kosek
from .runs import QUIC, Arrivals, KosekRuns, LossyPath, arrived
from .tables import len_of, multiple, with_interval

CAMPAIGNS = "kosek-causes"  # begin so
_INSTANTS_S = (1, 2, 5, 15)
_SAME = 1.02  # times as much, or less: no difference, where nothing varies
_ENDS = {"cc": "cubic", "iw": "10", "ss": "standard"}
_PROXIES = {"cc": "newreno", "iw": "100", "ss": "standard"}
CONTROL = "control"
# Of the packets, at how many a burst begins where frames are lost, as a multiple of the frames that are.
_BURSTS = 1.32

# What a change stands for, of what is known of the source's programs.
_WHY = {
    "ends and proxies: pacing=off": "quicly of 2022 sends in bursts",
    "ends: cc=newreno": "quicly's CUBIC grows with each ACK, not with each packet, so hardly beyond Reno",
    "proxies: cc=cubic": "as NewReno in quicly it keeps 0.7 of its window after a loss, where NewReno has 0.5",
    "losses towards the client alone": "netem is on one interface of its satellite",
    "frames are lost, in bursts of 2.5 packets": "netem takes frames, which hold parts of several packets",
}


@dataclass(frozen=True)
class Setting:
    """What was run: a path, its nominal loss, and what differs from the control."""

    road: LossyPath
    changes: tuple[str, ...]

    @classmethod
    def of(cls, record: Record, chain: str) -> Setting:
        named = labels.scenario(record.scenario)
        values = dict(named.values)
        road, changes = _loss(named.name, values)
        ends = _differing(labels.variant(record.server).options, _ENDS)
        proxies = _differing(_options(chain), _PROXIES)
        both = [one for one in ends if one in proxies]
        changes += [f"ends and proxies: {one}" for one in both]
        changes += [f"ends: {one}" for one in ends if one not in both]
        changes += [f"proxies: {one}" for one in proxies if one not in both]
        changes += [f"{key} {value}" for key, value in values.items()]
        return cls(road, tuple(changes))

    @property
    def title(self) -> str:
        return "; ".join(self.changes) or CONTROL


def _loss(name: str, values: dict[str, str]) -> tuple[LossyPath, list[str]]:
    """The path with its nominal loss, and how it is another one than in both directions, packet by packet.
    Takes the keys of losses out of `values`.
    """
    forward, back = values.pop("forward.loss", None), values.pop("return.loss", None)
    begins = values.pop("forward.loss.p_bad_given_good", None)
    values.pop("forward.loss.model", None)
    values.pop("forward.loss.p_bad_given_bad", None)
    if begins is not None:
        share = float(begins.removesuffix("%")) / _BURSTS
        return LossyPath(name, f"{share:.2g} %"), ["frames are lost, in bursts of 2.5 packets"]
    changes = []
    if forward not in (None, "0%") and back in (None, "0%"):
        changes.append("losses towards the client alone")
    return LossyPath(name, (forward or "0%").replace("%", " %")), changes


def _differing(options: Mapping[str, str], usual: Mapping[str, str]) -> list[str]:
    return [f"{key}={value}" for key, value in sorted(options.items()) if usual.get(key) != value]


def _options(chain: str) -> Mapping[str, str]:
    """Of the proxies, all of which have the same."""
    return treatments.parse(chain, "the run").proxies[0].options


@dataclass(frozen=True)
class Causes:
    """The runs in which one thing is changed: of each setting, with proxies and without."""

    sources: tuple[Source, ...]
    until_s: float

    @cached_property
    def pairs(self) -> dict[Setting, tuple[Arrivals, Arrivals]]:
        cells: dict[tuple[str, str, str], list[Record]] = {}
        for record in pooled(self.sources):
            if record.outcome == "ok":
                cells.setdefault((record.scenario, record.server, record.treatment), []).append(record)
        found = {}
        for (scenario, server, treatment), records in cells.items():
            direct = cells.get((scenario, server, DIRECT))
            if treatment != DIRECT and direct is not None:
                both = tuple(Arrivals.of(one, self.until_s) for one in (records, direct))
                found[Setting.of(records[0], treatment)] = (both[0], both[1])
        return found

    def of(self, road: LossyPath) -> Iterator[tuple[Setting, tuple[Arrivals, Arrivals]]]:
        return ((setting, both) for setting, both in self.pairs.items() if setting.road == road)

    @cached_property
    def roads(self) -> list[LossyPath]:
        known = dict.fromkeys(setting.road for setting in self.pairs)
        return sorted(known, key=lambda one: (one.scenario, one.share))


def sections(sources: tuple[Source, ...], study: KosekRuns, chain: str, known: Kosek) -> list[str]:
    """The section on causes, if there are runs of it."""
    causes = Causes(sources, study.until_s)
    parts = []
    for road in causes.roads:
        row = known.row(road.scenario, road.loss)
        control = causes.pairs.get(Setting(road, ()))
        if row is not None and control is not None:
            parts += [f"### Causes over {road.title}", _table(causes, road, row, control, study, chain)]
    return ["## What differs, tried one by one", _TEXT, *parts] if parts else []


def _table(
    causes: Causes,
    road: LossyPath,
    row: GoodputRow,
    control: tuple[Arrivals, Arrivals],
    study: KosekRuns,
    chain: str,
) -> str:
    # Where nothing is lost all is over when slow starts are; a bound that is early enough to see them.
    judged_s = study.until_s if road.share else 2.0
    rows = [_published(row, study.until_s)]
    usual = study.pair(road, chain)
    if usual is not None:
        rows.append(["noq's own CUBIC and NewReno", *_cells(usual), "-"])
        received = tuple(Arrivals.of(one.records, study.until_s, arrived) for one in usual)
        rows.append(["the same, bytes in whatever order", *_cells((received[0], received[1])), "-"])
    rows.append([f"**{CONTROL}**: Bentpipe's own CUBIC and NewReno", *_cells(control), "-"])
    for setting, both in causes.of(road):
        if setting.changes:
            told = _verdict(control, both, float(row.ratio(QUIC)[round(judged_s) - 1]), judged_s)
            why = f" ({_WHY[setting.title]})" if setting.title in _WHY else ""
            rows.append([literal(setting.title) + why, *_cells(both), told])
    head = ["", "trials", *(f"{one} s" for one in _INSTANTS_S), "MB with / without", f"ratio by {judged_s:g} s"]
    return table(head, rows)


def _published(row: GoodputRow, until_s: float) -> list[str]:
    many = row.ratio(QUIC)
    received = [row.received(QUIC, proxies=way)[round(until_s) - 1] for way in (True, False)]
    told = [multiple(float(many[one - 1])) for one in _INSTANTS_S]
    return ["published", "100", *told, " / ".join(f"{one:.1f}" for one in received), "-"]


def _cells(both: tuple[Arrivals, Arrivals]) -> list[str]:
    instants = [one for one in _INSTANTS_S if one <= both[0].times[-1] + 1e-6]
    received = " / ".join(f"{one.mean[-1] / 1e6:.1f}" for one in both)
    return [len_of(both), *(with_interval(times_as_much(*both, one)) for one in instants), received]


def _verdict(
    control: tuple[Arrivals, Arrivals], both: tuple[Arrivals, Arrivals], published: float, at_s: float
) -> str:
    """Whether the ratio moved, and which way: nearer to what was published, or not."""
    before, after = (times_as_much(*one, at_s) for one in (control, both))
    (with_a, without_a), (with_b, without_b) = ([one.at(at_s) for one in pair] for pair in (control, both))
    if both[1].records == control[1].records:  # the same trials, which differ by no chance
        change = ratio_of_means([with_a], [with_b])
    else:
        change = ratio_of_means([without_b, with_a], [with_b, without_a])
    if before is None or after is None or change is None or change.low is None or change.high is None:
        return "-"
    if change.low <= 1 <= change.high or max(change.value, 1 / change.value) < _SAME:
        return "no difference shown"
    far = [abs(math.log(one.value / published)) for one in (before, after)]
    return f"{'nearer' if far[1] < far[0] else 'farther'}, {multiple(change.value)} times the control's"


_TEXT = """Why the ratios are others than the published ones, by experiments: ends and proxies as above, and one
thing changed at a time. The control has Bentpipe's own CUBIC and NewReno, since more of them can be changed
than of noq's. In parentheses intervals of 95 %. The last column says whether the ratio by that time differs
from the control's by more than chance, and whether it is nearer to the published one then. A change that is
*nearer* may be a cause; that it is one in the source's testbed is not shown.

What is known of the source's programs is from their code: quicly's controllers (`lib/cc-cubic.c`,
`lib/cc-reno.c`, 2019 to 2022) and the scripts of the testbed (kosekmi/quic-opensand-emulation). quicly did not
pace then. Its CUBIC has no HyStart, and adds to the window with each ACK, whatever that acknowledges: with one
for two packets it grows half as fast as RFC 9438 wants, with fewer hardly. Its NewReno keeps 0.7 of the window
after a loss; noq's and Bentpipe's keep 0.5 as RFC 9002 has it, and no option of theirs changes that. netem
drops what is sent to the emulated satellite, of both directions: frames, of which one towards the client holds
1991 bytes and takes two packets of the emulator's network."""
