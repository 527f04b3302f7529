"""What ACM, capacity on demand and handovers each do: one of them switched off at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bentpipe import labels, workload
from bentpipe.analysis.cell_ratio import cell_ratio
from bentpipe.analysis.cells import Cell
from bentpipe.analysis.comparison import FALSE_DISCOVERIES
from bentpipe.analysis.inference import Ratio, adjusted
from bentpipe.study.claims import MeasuredValue
from bentpipe.study.front import folded
from bentpipe.study.markdown import literal, table, trials
from bentpipe.study.means import GeometricMean

from .cells import completion

_HEADS = {
    "dvb-s2-rain": "ACM in rain",
    "rcs2-shared": "Requests on shared carriers",
    "viasat-dama": "Requests of a single terminal",
    "starlink": "Handovers",
}
_ABOUT = {
    "dvb-s2-rain": "Attenuation grows from 5 to 10 dB in two minutes, of 14 dB under a clear sky. With "
    "the clear sky's MODCOD throughout, 32APSK 7/9, nothing would arrive: that is refused.",
    "rcs2-shared": "Each terminal has 16 kbit/s always and requests the rest. It is the return that is "
    "requested: for acknowledgments in a download, for the file in an upload. What is always assigned "
    "is nobody else's: 528 kbit/s for each of eight are most of the 4.6 Mbit/s that there are.",
    "viasat-dama": "The terminal has 64 kbit/s always and requests the rest, up to 11.8 Mbit/s.",
    "starlink": "Handovers come every 15 s, and 100 MB take longer than that, so that each trial meets one "
    "or two of them. The rate is a steady 49 Mbit/s in all rows, 15 on the way back, so that handovers alone "
    "differ.",
}
_WORDS = {
    "forward.rate.modcod=QPSK3/4": "no ACM: QPSK 3/4 throughout, for the shower",
    "forward.rate.modcod=16APSK2/3": "no ACM: 16APSK 2/3 throughout, at its threshold",
    "forward.rate.attenuation=0dB": "no rain",
    "return.rate.fca=on": "slots that nobody asked for are dealt out",
    "return.rate.cra=11.7Mbit/s": "no requests: 11.7 Mbit/s always",
    "return.rate.cra=528kbit/s": "528 kbit/s always for each terminal",
    "forward.handovers.in_flight=forwarded": "nothing is lost: the old path forwards",
    "forward.handovers.in_flight=delayed": "nothing is lost: all is held until the gap ends",
    "forward.handovers.gap=0ms": "no handovers",
}
# Set in all rows of starlink, or together with what names the row.
_ALWAYS = ("forward.rate=49Mbit/s", "return.rate=15Mbit/s", "return.handovers.")
_HOW = """Each row switches one thing off and is compared with the first row. Seconds are the medians of
{}, with the least and the most where they differ by more than 2 %. Behind the semicolon stands the time /
that of the first row, by geometric means, with [its
interval](../../docs/reference/study-verdicts.md#intervals-of-ratios) of 95 %, unless both ends round to the
value. In bold are differences beyond chance (p < 0.05 after Benjamini and Hochberg, over all comparisons of
this section)."""
# What transfers do without, or have less of, by the key that is set.
FEATURES = {
    "forward.rate.modcod": "without ACM",
    "return.rate.": "with other rules for capacity on demand",
    "forward.handovers.": "without handovers or their losses",
}


class Effect(NamedTuple):
    """What a change does to a server: the path, the workload, the change in words, the server."""

    scenario: str
    workload: str
    change: str
    server: str

    @property
    def feature(self) -> str | None:
        """Without what transfers are, as a sentence says it; None of something else, such as rain."""
        keys = {words: key for key, words in _WORDS.items()}
        setting = keys.get(self.change, self.change.strip("`"))
        return next((words for key, words in FEATURES.items() if setting.startswith(key)), None)

    @property
    def way(self) -> str:
        return "upload" if self.workload.startswith("upload") else "download"


@dataclass(frozen=True)
class Setting:
    """A path and a file; the changes by what they are called, "" for none, and the cells by sender."""

    scenario: str
    workload: str
    rows: dict[str, dict[str, Cell]]


def settings(cells: Sequence[Cell]) -> list[Setting]:
    """The settings that have a row with nothing switched off, and others."""
    found: dict[tuple[str, str], dict[str, dict[str, Cell]]] = {}
    for one in cells:
        name = labels.scenario(one.key.scenario).name
        rows = found.setdefault((name, one.key.workload), {})
        rows.setdefault(changed(one.key.scenario), {})[one.key.server] = one
    made = [Setting(name, file, rows) for (name, file), rows in found.items()]
    return [one for one in made if "" in one.rows and len(one.rows) > 1]


def changed(label: str) -> str:
    """What a scenario's label says is switched off, in words; "" if nothing is."""
    values = labels.scenario(label).values
    said = [f"{key}={value}" for key, value in values.items()]
    said = [one for one in said if not one.startswith(_ALWAYS)]
    if "forward.handovers.gap=0ms" in said:
        said = [one for one in said if one != "forward.handovers.in_flight=forwarded"]
    return ", ".join(_WORDS.get(one, f"`{one}`") for one in said)


def effects(found: Sequence[Setting]) -> dict[Effect, Ratio]:
    """How many times as long each change takes, by scenario, workload, change and server; p is adjusted over
    all of them.
    """
    raw: dict[Effect, Ratio] = {}
    for key, (base, cell) in changes(found).items():
        if cell.failures or base.failures:
            continue
        if (value := cell_ratio(base, cell, "completion_s")) is not None:
            raw[key] = value
    chances = adjusted([one.p for one in raw.values()])
    return {
        key: Ratio(one.value, one.low, one.high, p)
        for (key, one), p in zip(raw.items(), chances, strict=True)
    }


def changes(found: Sequence[Setting]) -> dict[Effect, tuple[Cell, Cell]]:
    """The cell of each change, behind the one with nothing switched off; trials may have failed in both."""
    return {
        Effect(one.scenario, one.workload, words, server): (one.rows[""][server], cell)
        for one in found
        for words, row in one.rows.items()
        for server, cell in row.items()
        if words and server in one.rows[""]
    }


def sections(found: Sequence[Setting]) -> list[str]:
    """The section, if there are runs of it."""
    if not found:
        return []
    times = effects(found)
    counts = {len(cell.records) for one in found for row in one.rows.values() for cell in row.values()}
    parts = ["## What is switched off", _HOW.format(trials(counts))]
    for name in dict.fromkeys(one.scenario for one in found):
        parts += [f"### {_HEADS.get(name, name)}", _ABOUT.get(name, "")]
        for one in found:
            if one.scenario == name:
                parts += folded(f"{literal(name)}, {workload.title(one.workload)}", _table(one, times))
    return parts


def _table(one: Setting, times: dict[Effect, Ratio]) -> str:
    servers = list(dict.fromkeys(server for row in one.rows.values() for server in row))
    rows = [
        [
            words or "as it is",
            *(
                _shown(row.get(server), times.get(Effect(one.scenario, one.workload, words, server)))
                for server in servers
            ),
        ]
        for words, row in one.rows.items()
    ]
    return table(["", *map(literal, servers)], rows)


def _shown(cell: Cell | None, times: Ratio | None) -> str:
    return completion(cell) if times is None else f"{completion(cell)}; {written(times)}"


def written(times: Ratio) -> str:
    """`1.32 times (1.20 to 1.45)`, in bold where chance could not have made it."""
    text = MeasuredValue(times.value, times.low, times.high).written() + " times"
    return f"**{text}**" if is_shown(times) else text


def is_shown(times: Ratio) -> bool:
    return times.p is not None and times.p < FALSE_DISCOVERIES and f"{times.value:.2f}" != "1.00"


def side(times: Ratio, margin: float) -> int:
    """1 or -1 where a difference is beyond chance, and its whole interval on one side of 1, by more than a
    margin such as 1.05; else 0.
    """
    if times.p is None or times.p >= FALSE_DISCOVERIES or times.low is None or times.high is None:
        return 0
    return int(times.low > margin) - int(times.high < 1 / margin)


def measured(mean: GeometricMean | None, factor: float = 1.0) -> MeasuredValue | None:
    """A mean as a measured value, times a factor."""
    if mean is None:
        return None
    low, high = (None if end is None else factor * end for end in (mean.low, mean.high))
    return MeasuredValue(factor * mean.value, low, high)
