"""Objectives derived from what TCP reaches: how soon its first bytes have arrived, with an operator's proxies
and without, and the best of these times, rounded up.

So N. Kuhn et al. (QUIC: Opportunities and threats in SATCOM, 2020, section IV) read their objectives off
received data over time (figures 7 and 9): what TCP reaches in the best possible configuration of the proxies
(table III), in whole seconds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from bentpipe import labels
from bentpipe.analysis.comparison import ComparedKey
from bentpipe.objectives.measures import MARKS_MB, worse_median
from bentpipe.objectives.questions import by_cell
from bentpipe.runs.records import Record
from bentpipe.schema.manifest import ScenarioState

TCP_PEP = "tcp-pep"
CONFIGURATIONS = "ABCD"  # of the source's table III
SIZES_MB = (2, 10, 100)  # the source's


def expanded(treatments: Sequence[str]) -> tuple[str, ...]:
    """Treatments as plans name them, `tcp-pep` without a chain with each of the source's configurations."""
    found: list[str] = []
    for one in treatments:
        if one == TCP_PEP:
            found += [f"{TCP_PEP}=terminal:config={word},gateway:config={word}" for word in CONFIGURATIONS]
        else:
            found.append(one)
    return tuple(dict.fromkeys(found))


def name_of(treatment: str) -> str:
    """A treatment of records in a word or two: `tcp-pep D`."""
    label = labels.treatment(treatment)
    words = {
        word for part in label.chain.split(",") for word in part.split(":")[1:] if word.startswith("config=")
    }
    if len(words) == 1 and label.chain.count("config=") == 2:
        return f"{label.kind} {words.pop().removeprefix('config=')}"
    return treatment


@dataclass(frozen=True)
class Reached:
    """The times after which the first bytes had arrived over one path, with one treatment: medians over the
    trials.
    """

    key: ComparedKey
    trials: int
    times_s: Mapping[int, float]  # megabytes → seconds from the client's first packet; infinite: never
    from_request_s: Mapping[int, float]  # the same without the handshakes

    @property
    def name(self) -> str:
        return name_of(self.key.treatment)


def reached(records: Sequence[Record]) -> list[Reached]:
    """The times of each cell, in the order of the records."""
    found = []
    for key, several in by_cell(records).items():
        sizes = [one for one in SIZES_MB if one * 10**6 <= several[0].size_bytes]
        times = {one: _median([_time(record, one) for record in several]) for one in sizes}
        since = {one: _median([_since_request(record, one) for record in several]) for one in sizes}
        found.append(Reached(key, len(several), times, since))
    return found


def _median(times_s: Sequence[float]) -> float:
    return worse_median(times_s, more_is_worse=True)


def _time(record: Record, megabytes: int) -> float:
    mark = MARKS_MB.index(megabytes)
    return record.first_mb_s[mark] if mark < len(record.first_mb_s) else math.inf


def _since_request(record: Record, megabytes: int) -> float:
    return _time(record, megabytes) - (record.handshake_s or 0.0)


@dataclass(frozen=True)
class DerivedObjective:
    """An objective for one path: the first megabytes within a number of seconds."""

    scenario: str
    megabytes: int
    within_s: int
    by: Reached  # who reached it


def derive(found: Sequence[Reached]) -> list[DerivedObjective]:
    """The best of each path and size in whole seconds, from the client's first packet on; none where no trial
    received that many bytes.
    """
    made = []
    for scenario in dict.fromkeys(one.key.scenario for one in found):
        here = [one for one in found if one.key.scenario == scenario]
        for size in sorted({size for one in here for size in one.times_s}):
            time, best = min(((one.times_s.get(size, math.inf), one) for one in here), key=itemgetter(0))
            if math.isfinite(time):
                made.append(DerivedObjective(scenario, size, math.ceil(time), best))
    return made


def suite_toml(made: Sequence[DerivedObjective], paths: Mapping[str, str], command: str) -> str:
    """The file of a suite of these objectives. `paths` has the names of scenarios in it."""
    lines = [
        "# What TCP reached with an operator's proxies and without: the best, in whole seconds, from the",
        "# client's first packet on. Made by:",
        f"# {command}",
        "",
        'title = "What TCP reaches"',
        'source = "derived from runs of TCP"',
    ]
    for scenario in dict.fromkeys(one.scenario for one in made):
        here = [one for one in made if one.scenario == scenario]
        within = ", ".join(f'"{one.megabytes} MB" = "{one.within_s} s"' for one in here)
        lines += [
            "",
            "[[objectives]]",
            f"name = {json.dumps(scenario)}",
            f"scenario = {json.dumps(paths.get(scenario, scenario))}",
            f'workload = "transfer:{max(one.megabytes for one in here)}MB"',
            f"within = {{ {within} }}",
        ]
    return "\n".join([*lines, ""])


def curve_mb(record: Record, times: Sequence[float]) -> list[float]:
    """Megabytes of payload that had reached the client at each time since its request, with linear
    interpolation between the steps of the record.
    """
    step, start = record.received_step_s, record.handshake_s or 0.0
    received = [0, *record.received_bytes]
    found = []
    for time in times:
        at = max((time + start) / step, 0.0)
        low = min(int(at), len(received) - 1)
        high = min(low + 1, len(received) - 1)
        found.append((received[low] + (received[high] - received[low]) * (at - low)) / 1e6)
    return found


def title_of(scenario: str, known: Mapping[str, ScenarioState]) -> str:
    """The title of a path."""
    summary = known[scenario].summary if scenario in known else {}
    return f"{scenario}: {summary['title']}" if summary.get("title") else scenario
