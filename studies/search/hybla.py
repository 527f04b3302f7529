"""SEARCH while Hybla grows: which of the two ends slow start, over many paths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bentpipe import labels
from bentpipe.runs.records import Record
from bentpipe.study.markdown import several, table
from bentpipe.study.quantiles import median
from bentpipe.study.slow_starts import SlowStartTrial
from bentpipe.study.source import Source
from bentpipe.study.variants import slow_start

ALONE, TOGETHER, HYBLA = "search", "search-hybla", "hybla"
_ENDS = {"search": "SEARCH", "ssthresh": "Hybla", "loss": "a loss"}
_TEXT = """The source proposes to let SEARCH watch while Hybla grows (section 7.1.2), and has not tried
it. Here both are tried over {paths}: round trips of {rtts} ms, {rates} Mbit/s and queues of {queues} BDP,
with files of {size:g} MB. A cell says in how many of its paths slow start was ended by SEARCH, by Hybla's
own rule (the window reaches what the measured rate fills), by a loss, or not at all while the file
lasted."""


@dataclass(frozen=True)
class SearchedPath:
    """A path, with the trials over it by the server's slow start, and whether its window was capped."""

    rtt_s: float
    trials: dict[tuple[str, bool], SlowStartTrial]

    def ended_by(self, start: str, capped: bool) -> str:
        """`search`, `ssthresh`, `loss`, or "" if slow start lasted."""
        one = self.trials.get((start, capped))
        return (one.left_by or "") if one else ""

    def left(self, start: str) -> float | None:
        """After how many round trips from the client's first packet on slow start ended."""
        one = self.trials.get((start, False))
        return None if one is None or one.left_s is None else one.left_s / self.rtt_s


def sections(runs: Sequence[Source]) -> list[str]:
    """The section; none without a run that has both."""
    records = [
        record
        for one in runs
        if any(slow_start(each.server) == TOGETHER for each in one.records)
        for record in one.in_order
    ]
    paths = _paths(records)
    if not paths:
        return []
    return ["## SEARCH while Hybla grows", _opening(records, len(paths)), _table(paths), *_said(paths)]


def _paths(records: Sequence[Record]) -> list[SearchedPath]:
    found: dict[str, dict[tuple[str, bool], SlowStartTrial]] = {}
    for one in records:
        capped = "cwnd" in labels.variant(one.server).options
        found.setdefault(one.scenario, {})[slow_start(one.server), capped] = SlowStartTrial(one)
    return [
        SearchedPath(_number(scenario, "forward.delay") * 2e-3, trials) for scenario, trials in found.items()
    ]


def _number(scenario: str, key: str) -> float:
    """The value of a setting of that scenario, without its unit."""
    return float(labels.scenario(scenario).values[key].rstrip("BDPMbit/sm"))


def _opening(records: Sequence[Record], paths: int) -> str:
    def values(key: str, factor: float = 1) -> str:
        known = sorted({_number(one.scenario, key) * factor for one in records})
        return f"{known[0]:g} to {known[-1]:g}"

    return _TEXT.format(
        paths=several(paths, "path"),
        rtts=values("forward.delay", 2),
        rates=values("forward.rate"),
        queues=values("forward.queue"),
        size=records[0].size_bytes / 1e6,
    )


_COLUMNS = ((ALONE, False, "SEARCH alone"), (TOGETHER, False, "with Hybla"),
            (TOGETHER, True, "with Hybla, a capped window"))  # fmt: skip


def _table(paths: Sequence[SearchedPath]) -> str:
    rows = []
    for rtt in sorted({one.rtt_s for one in paths}):
        here = [one for one in paths if one.rtt_s == rtt]
        rows.append([f"{1000 * rtt:g} ms", *(_ends(here, start, capped) for start, capped, _ in _COLUMNS)])
    return table(["round trip", *(name for _, _, name in _COLUMNS)], rows)


def _ends(paths: Sequence[SearchedPath], start: str, capped: bool) -> str:
    ended = [one.ended_by(start, capped) for one in paths]
    told = [f"{name} {ended.count(word)}" for word, name in _ENDS.items() if ended.count(word)]
    lasted = sum(word not in _ENDS for word in ended)
    return ", ".join([*told, *([f"not at all {lasted}"] if lasted else [])])


def _said(paths: Sequence[SearchedPath]) -> list[str]:
    acts = [one for one in paths if one.ended_by(TOGETHER, False) == "search"]
    alone = [one for one in paths if one.ended_by(ALONE, False) == "search"]
    ahead = [
        search / hybla
        for one in alone
        if (search := one.left(ALONE)) is not None and (hybla := one.left(TOGETHER)) is not None
    ]
    text = f"SEARCH alone ends slow start over {len(alone)} of {several(len(paths), 'path')}, together "
    text += f"with Hybla over {len(acts) or 'none'}."
    if ahead:
        text += (
            f" Where SEARCH alone does, that takes {min(ahead):.1f} to {max(ahead):.1f} times as long as "
            "with Hybla, whose slow start ends when the window is what the path holds, by a rate that it "
            "measures itself. SEARCH needs a queue of several times that, and 4.9 round trips of "
            "acknowledgments before it can compare anything; by then a window that grows eightfold in a "
            "round trip has long been there."
        )
    return [text, *_capped(paths)]


def _capped(paths: Sequence[SearchedPath]) -> list[str]:
    acts = [one for one in paths if one.ended_by(TOGETHER, True) == "search"]
    if not acts:
        return []
    factors = [
        searched / grown
        for one in acts
        if (searched := _time(one, TOGETHER)) is not None and (grown := _time(one, HYBLA)) is not None
    ]
    cap = next(
        labels.variant(one.record.server).options["cwnd"]
        for (_, capped), one in acts[0].trials.items()
        if capped
    )
    text = (
        f"It does act where the window may not grow beyond {int(cap) / 1000:g} kB (`cwnd={cap}`), over "
        f"{len(acts)} of {several(len(paths), 'path')}. Where a path holds more than that, Hybla's rule is "
        "never met; what is delivered stops doubling, and SEARCH takes the sender's own limit for a full "
        "link."
    )
    middle = median(factors)
    if middle is not None:
        text += (
            f" A file then takes {middle:.2f} times as long as with Hybla alone and the same cap: the "
            f"median, of {min(factors):.2f} to {max(factors):.2f}."
        )
    return [text]


def _time(one: SearchedPath, start: str) -> float | None:
    trial = one.trials.get((start, True))
    value = None if trial is None else trial.record.completion_s
    return value if value is not None and math.isfinite(value) else None
