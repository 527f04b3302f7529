"""Attenuation of the satellite's carrier: its rate with adaptive coding and with the paper's one MODCOD, and
what proxies bring QUIC then.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from bentpipe import labels
from bentpipe.plan.treatments import DIRECT
from bentpipe.runs.records import Record
from bentpipe.schema.manifest import ScenarioState
from bentpipe.study.front import folded
from bentpipe.study.intervals import span
from bentpipe.study.markdown import number, table, trials
from bentpipe.study.quantiles import median
from bentpipe.study.source import Source, pooled

from .means import times_as_much
from .runs import Arrivals
from .tables import MB, with_interval

CAMPAIGN = "kosek-attenuation"
ACM = "ACM"
_RATE, _KEY, _MODCOD = "forward.rate", "forward.rate.attenuation", "forward.rate.modcod"
_INSTANTS_S = (5.0, 15.0)
_STEP = re.compile(r'\["([^"]+)","([^"]+)"\]')
_UNIT = re.compile(r"(?<=\d)(?=[a-zA-Z])")  # between a number and its unit
_MODULATION = re.compile(r"(\d*[A-Z]+)(?=\d+/)")
_SAME = 1.02  # times as much, or less: equal

_TEXT = """Table I of the source has attenuation among its parameters, and section III leaves it at 0 dB, with
QPSK 1/4 throughout. Here its carrier, 50 MHz at an Es/N0 of 20 dB without attenuation, has adaptive coding
(ACM): the fastest MODCOD that Es/N0 allows. That is compared with QPSK 1/4 for all frames. Nothing is lost on
the medium but frames whose MODCOD needs more Es/N0 than there is, which happens where attenuation grows
during a trial, until the loop has closed. The queue holds one bandwidth-delay product of the rate at the
beginning. {trials} of each setting, over QUIC; TCP was not tried."""
_COLUMNS = """Bytes of `direct` in MB by the given second since the first byte, and with proxies as a multiple
of these, as above. A fade counts from the client's first packet on. *Lost* are packets of lost frames towards
the client, in percent."""


@dataclass(frozen=True)
class AttenuationRuns:
    """The runs over attenuated carriers: trials by coding, level and treatment."""

    sources: tuple[Source, ...]
    until_s: float

    @cached_property
    def arrivals(self) -> dict[tuple[str, str, str], Arrivals]:
        """By coding, level and treatment."""
        found: dict[tuple[str, str, str], list[Record]] = {}
        records = pooled(self.sources)
        for record in records:
            setting = _setting(record.scenario)
            if record.outcome == "ok" and setting is not None and _place(record) == _place(records[0]):
                way = DIRECT if record.treatment == DIRECT else "proxies"
                found.setdefault((*setting, way), []).append(record)
        return {key: Arrivals.of(records, self.until_s) for key, records in found.items()}

    @property
    def levels(self) -> list[tuple[str, str]]:
        """Coding and level of the settings that have trials with proxies and without."""
        keys = dict.fromkeys(key[:2] for key in self.arrivals)
        return [key for key in keys if all((*key, way) in self.arrivals for way in (DIRECT, "proxies"))]

    @cached_property
    def rates(self) -> dict[tuple[str, str], tuple[float, float]]:
        """By coding and level: the lowest and the highest rate of the carrier, Mbit/s."""
        first = _path(pooled(self.sources)[0].scenario)
        return {
            setting: _rates(state)
            for source in self.sources
            for label, state in source.manifest.scenarios.items()
            if (setting := _setting(label)) is not None and _path(label) == first
        }

    def pair(self, key: tuple[str, str]) -> tuple[Arrivals, Arrivals]:
        """With proxies and without."""
        return self.arrivals[*key, "proxies"], self.arrivals[*key, DIRECT]


def sections(sources: Sequence[Source], until_s: float) -> list[str]:
    """The section; nothing without trials of a level with proxies and without."""
    runs = AttenuationRuns(tuple(sources), until_s)
    if not runs.levels:
        return []
    counts = trials({len(one.records) for one in runs.arrivals.values()})
    text = _TEXT.format(trials=counts[0].upper() + counts[1:])
    parts = ["## Attenuation", text, *_findings(runs)]
    return [*parts, *folded("Levels of attenuation", _table(runs), _COLUMNS)]


def _path(label: str) -> tuple[str, str | None]:
    """The path, but for coding and attenuation."""
    scenario = labels.scenario(label)
    return scenario.name, scenario.values.get(_RATE)


def _place(record: Record) -> tuple[tuple[str, str | None], str, str]:
    """What all trials of the section have in common: the path, and the ends."""
    return _path(record.scenario), record.client, record.server


def _setting(label: str) -> tuple[str, str] | None:
    """Coding, and level of attenuation; None of a path of which something else was changed, too."""
    values = labels.scenario(label).values
    if not values.keys() <= {_RATE, _KEY, _MODCOD}:
        return None
    return _MODULATION.sub(r"\1 ", values.get(_MODCOD, ACM)), _level(values.get(_KEY, "0dB"))


def _level(value: str) -> str:
    """`5 dB`, or `0 dB, 15 dB from 5 s on` of one that changes during a trial."""
    if "steps" not in value:
        return _UNIT.sub(" ", value)
    (_, first), *later = _STEP.findall(_UNIT.sub(" ", value))
    return ", ".join([first, *(f"{level} from {at} on" for at, level in later)])


def _is_fade(level: str) -> bool:
    return "," in level


def _rates(state: ScenarioState) -> tuple[float, float]:
    highest = float(state.summary["forward_rate_bps"]) / MB
    lowest = state.summary.get("forward_rate_lowest_bps")
    return (highest if lowest is None else float(lowest) / MB), highest


def _findings(runs: AttenuationRuns) -> list[str]:
    """A sentence for each coding: what the levels change."""
    parts = []
    for coding in dict.fromkeys(coding for coding, _ in runs.levels):
        steady = [key for key in runs.levels if key[0] == coding and not _is_fade(key[1])]
        if len(steady) < 2:
            continue
        received = [[one.mean[-1] for one in runs.pair(key)] for key in steady]
        if all(max(of_way) <= _SAME * min(of_way) for of_way in zip(*received, strict=True)):
            parts.append(
                f"With {coding} QUIC receives the same at {steady[0][1]} as at {steady[-1][1]}, within 2 %, "
                "with proxies and without."
            )
            continue
        (_, first), (_, last) = ends = (steady[0], steady[-1])
        rates = [span(runs.rates[key], 0) for key in ends]
        parts.append(f"With {coding} the carrier has {rates[0]} Mbit/s at {first} and {rates[1]} at {last}.")
        for at_s in _instants(runs):
            gains = [with_interval(times_as_much(*runs.pair(key), at_s)) for key in ends]
            parts.append(
                f"By {at_s:g} s QUIC with proxies has received {gains[0]} times as much as without at "
                f"{first}, and {gains[1]} times at {last}."
            )
        for fade in (key for key in runs.levels if key[0] == coding and _is_fade(key[1])):
            parts += _of_fade(runs, fade, ends[0])
    return [" ".join(parts)] if parts else []


def _of_fade(runs: AttenuationRuns, fade: tuple[str, str], steady: tuple[str, str]) -> list[str]:
    """What a fade leaves of the bytes that arrive at a steady level."""
    proxied, direct = (
        with_interval(times_as_much(faded, whole, runs.until_s))
        for faded, whole in zip(runs.pair(fade), runs.pair(steady), strict=True)
    )
    return [
        f"With a fade ({fade[1]}) it receives by then {direct} times what it does at a steady {steady[1]} "
        f"without proxies, and {proxied} times with them."
    ]


def _instants(runs: AttenuationRuns) -> list[float]:
    return [one for one in _INSTANTS_S if one <= runs.until_s]


def _table(runs: AttenuationRuns) -> str:
    instants = _instants(runs)
    rows = []
    for key in runs.levels:
        proxied, direct = runs.pair(key)
        row = [f"{key[0]}: {key[1]}", span(runs.rates[key], 1)]
        for at_s in instants:
            row.append(f"{direct.at(at_s).mean() / MB:.1f}")
            row.append(with_interval(times_as_much(proxied, direct, at_s)))
        rows.append([*row, _lost(direct), _lost(proxied)])
    head = ["coding: attenuation", "rate, Mbit/s"]
    head += [text for at_s in instants for text in (f"direct: MB by {at_s:g} s", "proxies: times")]
    head += ["direct: lost", "proxies: lost"]
    return table(head, rows)


def _lost(arrivals: Arrivals) -> str:
    shares = [
        100 * one.forward_losses / one.forward_packets
        for one in arrivals.records
        if one.forward_packets and one.forward_losses is not None
    ]
    return number(median(shares), 1, " %")
