"""Causes of the differences from the publication: runs in which one thing is changed at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from bentpipe import labels
from bentpipe.analysis.comparison import FALSE_DISCOVERIES
from bentpipe.analysis.inference import Ratio, adjusted
from bentpipe.plan import treatments
from bentpipe.plan.treatments import DIRECT
from bentpipe.runs.records import Record
from bentpipe.study.markdown import literal, table
from bentpipe.study.source import Source, pooled

from .means import in_pairs, ratio_of_means, times_as_much
from .published import GoodputRow, Kosek
from .runs import QUIC, Arrivals, KosekRuns, LossyPath, arrived
from .tables import len_of, multiple, with_interval

CAMPAIGNS = "kosek-causes"  # begin so
_INSTANTS_S = (1, 2, 5, 15)
_START_S = 2.0
_SAME = 1.02  # times as much, or less: no difference, where nothing varies
_ENDS = {"cc": "cubic", "iw": "10", "ss": "standard"}
_PROXIES = {"cc": "newreno", "iw": "100", "ss": "standard"}
CONTROL = "control"
# Of the packets, at how many a burst begins where frames are lost, as a multiple of the frames that are.
_BURSTS = 1.32

# What a change stands for, of what is known of the source's programs.
_WHY = {
    "ends and proxies: pacing=off": "quicly of 2022 sends in bursts",
    "ends: cc=newreno": "a bound: quicly's CUBIC grows with ACKs and not with packets, so hardly beyond Reno",
    "proxies: cc=cubic": "like quicly's NewReno it keeps 0.7 of its window after a loss, and not 0.5",
    "ends and proxies: window=1048576": "quicly's own flow control window of a stream",
    "losses towards the client alone": "netem is on one interface of its satellite",
    "frames are lost, in bursts of 2.5 packets": "netem takes frames, which hold parts of several packets",
}


@dataclass(frozen=True)
class Setting:
    """A setting: a path, its nominal loss, and the changes against the control."""

    road: LossyPath
    changes: tuple[str, ...]

    @classmethod
    def of(cls, record: Record, chain: str) -> Setting:
        named = labels.scenario(record.scenario)
        values = dict(named.values)
        road, changes = _loss(named.name, values)
        of_both = (labels.variant(record.client).options, labels.variant(record.server).options)
        ends = [*dict.fromkeys(it for options in of_both for it in _differing(options, _ENDS))]
        proxies = _differing(_options(chain), _PROXIES)
        both = [one for one in ends if one in proxies]
        changes += [f"ends and proxies: {one}" for one in both]
        changes += [f"ends: {one}" for one in ends if one not in both]
        changes += [f"proxies: {one}" for one in proxies if one not in both]
        if "forward.delay" in values and values.get("return.delay") == values["forward.delay"]:
            changes.append(f"{values.pop('return.delay')} over the satellite, each way")
            del values["forward.delay"]
        changes += [f"{key} = {value}" for key, value in values.items()]
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
        cells: dict[tuple[str, str, str, str], list[Record]] = {}
        for record in pooled(self.sources):
            if record.outcome == "ok":
                key = (record.scenario, record.client, record.server, record.treatment)
                cells.setdefault(key, []).append(record)
        found = {}
        for (*place, treatment), records in cells.items():
            direct = cells.get((place[0], place[1], place[2], DIRECT))
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


def tried(sources: tuple[Source, ...], until_s: float) -> list[LossyPath]:
    """The paths over which runs look for causes."""
    return Causes(sources, until_s).roads


def sections(sources: tuple[Source, ...], study: KosekRuns, chain: str, known: Kosek) -> list[str]:
    """The section on causes, if there are runs of it."""
    causes = Causes(sources, study.until_s)
    shown = [
        (road, row, control)
        for road in causes.roads
        if (row := known.row(road.scenario, road.loss)) is not None
        and (control := causes.pairs.get(Setting(road, ()))) is not None
    ]
    moved = _moved(causes, {road: control for road, _, control in shown})
    parts = []
    for road, row, control in shown:
        parts += [
            f"### Causes over {road.title}",
            _table(causes, row, control, moved, study.pair(road, chain)),
        ]
    if not parts:
        return []
    lines = [
        line
        for road, row, control in shown
        if (line := _summary(causes, road, row, control, moved)) is not None
    ]
    return ["## What differs, tried one by one", _TEXT, "In short:\n\n" + "\n".join(lines), *parts]


Pair = tuple[Arrivals, Arrivals]


def _judged_s(road: LossyPath, until_s: float) -> float:
    """By when a ratio is judged: where nothing is lost, early enough to see slow starts."""
    return until_s if road.share else _START_S


def _moved(causes: Causes, controls: Mapping[LossyPath, Pair]) -> dict[Setting, Ratio | None]:
    """By how much each change moves the ratio; how probable that is by chance is adjusted over all."""
    mine = [one for one in causes.pairs if one.changes and one.road in controls]
    found = [
        _change(controls[one.road], causes.pairs[one], _judged_s(one.road, causes.until_s)) for one in mine
    ]
    chances = adjusted([None if one is None else one.p for one in found])
    fair = (None if one is None else replace(one, p=p) for one, p in zip(found, chances, strict=True))
    return dict(zip(mine, fair, strict=True))


def _change(control: Pair, both: Pair, at_s: float) -> Ratio | None:
    (with_a, without_a), (with_b, without_b) = ([one.at(at_s) for one in pair] for pair in (control, both))
    if both[1].records == control[1].records:  # the same trials, which differ by no chance
        return ratio_of_means([with_a], [with_b], paired=in_pairs(both[0], control[0]))
    paired = in_pairs(*both, *control)
    return ratio_of_means([without_b, with_a], [with_b, without_a], paired=paired)


def _summary(
    causes: Causes, road: LossyPath, row: GoodputRow, control: Pair, moved: Mapping[Setting, Ratio | None]
) -> str | None:
    """The changes that bring the ratio nearer to the published one over a path, and those that do not."""
    found: dict[str, list[str]] = {"nearer": [], "farther": [], "no difference shown": []}
    at_s = _judged_s(road, causes.until_s)
    then = float(row.ratio(QUIC)[round(at_s) - 1])
    before = times_as_much(*control, at_s)
    for setting, both in causes.of(road):
        word = _verdict(moved.get(setting), before, times_as_much(*both, at_s), then).partition(",")[0]
        if setting.changes and word in found:
            text = ", ".join(setting.changes)
            found[word].append(literal(f"together ({text})" if len(setting.changes) > 1 else text))
    told = [f"{word}: {'; '.join(names)}" for word, names in found.items() if names]
    return (
        f"- {road.title}, by {at_s:g} s. {'. '.join(one[0].upper() + one[1:] for one in told)}."
        if told
        else None
    )


def _table(
    causes: Causes, row: GoodputRow, control: Pair, moved: Mapping[Setting, Ratio | None], usual: Pair | None
) -> str:
    rows = [_published(row, causes.until_s)]
    if usual is not None:
        rows.append(["noq's own CUBIC and NewReno", *_cells(usual), "-"])
        with_, without = (Arrivals.of(one.records, causes.until_s, arrived) for one in usual)
        rows.append(["the same, bytes in whatever order", *_cells((with_, without)), "-"])
    rows.append([f"{CONTROL}: Bentpipe's own CUBIC and NewReno", *_cells(control), "-"])
    road = LossyPath(row.scenario, row.loss)
    at_s = _judged_s(road, causes.until_s)
    for setting, both in causes.of(road):
        if setting.changes:
            before, after = (times_as_much(*one, at_s) for one in (control, both))
            told = _verdict(moved[setting], before, after, float(row.ratio(QUIC)[round(at_s) - 1]))
            why = f" ({_WHY[setting.title]})" if setting.title in _WHY else ""
            rows.append([literal(setting.title) + why, *_cells(both), told])
    head = ["", "trials", *(f"{one} s" for one in _INSTANTS_S), "MB with / without", f"ratio by {at_s:g} s"]
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


def _verdict(change: Ratio | None, before: Ratio | None, after: Ratio | None, published: float) -> str:
    """Whether the ratio moved, and which way: nearer to what was published, or not."""
    if change is None or change.p is None or before is None or after is None:
        return "-"
    if change.p >= FALSE_DISCOVERIES or max(change.value, 1 / change.value) < _SAME:
        return "no difference shown"
    was, now = (abs(math.log(one.value / published)) for one in (before, after))
    return f"{'nearer' if now < was else 'farther'}, {multiple(change.value)} times the control's"


_TEXT = """Why the ratios are others than the published ones, by experiments: ends and proxies as above,
and one thing changed at a time. The control has Bentpipe's own CUBIC and NewReno, since more of them can
be changed than of noq's. In parentheses intervals of 95 %. The last column says whether the ratio by that
time is another one than the control's (a t test, adjusted by Benjamini and Hochberg over all changes, p
< 0.05), and whether it is nearer to the published one. What is *nearer* may be a cause; that it is one in
the source's testbed is not shown.

What is known of the source's programs is from their code: quicly's controllers (`lib/cc-cubic.c` and
`lib/cc-reno.c`, 2019 to 2022) and the scripts of the testbed (kosekmi/quic-opensand-emulation). quicly
did not pace then. Its CUBIC has no HyStart, and adds to the window with each ACK, however many packets
that acknowledges: with one for two packets it grows half as fast as RFC 9438 wants, with fewer hardly.
Its NewReno keeps 0.7 of the window after a loss; noq's and Bentpipe's keep half as RFC 9002 has it, and
no option of theirs changes that. netem drops what is sent to the emulated satellite, of both directions:
frames. One towards the client holds 1991 bytes, and takes two packets of the emulator's network.
Where frames are lost here, none of the acknowledgements are: compare it with *losses towards the client
alone*."""
