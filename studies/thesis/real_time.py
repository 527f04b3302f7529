"""Pairs of 2021 whose stacks run in emulation only, over emulated links, beside what they reached then."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field

from bentpipe import labels
from bentpipe.analysis.cells import Cell
from bentpipe.study.front import folded
from bentpipe.study.markdown import literal, mbit, number, several, table

from . import intervals
from .runs import ThesisRuns

_HOW = """kwik and lsquic run in emulation only. The pairs among kwik, msquic, lsquic, and nginx as a server,
went through emulated links (`--testbed emu`). msquic and nginx have virtual time, too, but are not in the
matrix above: they were added after it. By equation 4.1: means of trials that did not fail, where there is
more than one with the standard deviation; (n!): n trials failed. Pairs that failed once have no ratio. The
queue is [that of then](#the-simulators-queue-held-125-packets)."""
_QUEUE = """Pairs over SAT went over a short queue, too; not those of nginx, which has what its window of 64
KiB allows."""
_USUAL = ""  # the scenario's own queue


@dataclass(frozen=True)
class _Pair:
    """A client and a server over one scenario, with each queue that was set."""

    scenario: str
    client: str
    server: str
    then: float | None  # goodput of 2021, bit/s
    by_queue: dict[str, Cell] = field(default_factory=dict)

    def ratio(self, queue: str) -> float | None:
        """Goodput over this queue / goodput of 2021; None if a trial failed, or one of them is not known."""
        cell = self.by_queue.get(queue)
        if cell is None or cell.failures or self.then is None:
            return None
        return statistics.fmean(cell.values("goodput_bps")) / self.then


def section(runs: ThesisRuns) -> list[str]:
    """The section; nothing where no such run is among the runs."""
    pairs = _pairs(runs)
    if not pairs:
        return []
    queues = sorted({queue for pair in pairs for queue in pair.by_queue} - {_USUAL})
    added = [words for queue in queues for words in (queue, f"{queue} / 2021")]
    head = ["scenario", "client → server", "2021", "now", "now / 2021", *added]
    text = [_HOW, *([_QUEUE] if queues else []), f"{_counted(pairs, queues)}{_told(pairs, queues)}"]
    rows = [_row(pair, [_USUAL, *queues]) for pair in pairs]
    shown = folded(several(len(rows), "pair"), table(head, rows, left=2))
    return ["### The same pairs in real time", " ".join(text), *shown]


def _pairs(runs: ThesisRuns) -> list[_Pair]:
    found: dict[tuple[str, str, str], _Pair] = {}
    for cell in runs.in_real_time:
        label = labels.scenario(cell.key.scenario)
        if (known := runs.known.pairs.get(label.name)) is None:
            continue
        client, server = cell.key.client, cell.key.server
        new = _Pair(label.name, client, server, known.bps.get((client, server)))
        found.setdefault((label.name, client, server), new).by_queue[label.queue] = cell
    return sorted(found.values(), key=lambda pair: pair.scenario)


def _counted(pairs: list[_Pair], queues: list[str]) -> str:
    """The number of trials of each pair over each queue."""
    words = []
    for queue in (_USUAL, *queues):
        counts = {len(pair.by_queue[queue].records) for pair in pairs if queue in pair.by_queue}
        most = several(max(counts, default=0), "trial")
        words.append(f"{most} of each{f' over {queue}' if queue else ''}")
    return f"{', '.join(words)}."


def _told(pairs: list[_Pair], queues: list[str]) -> str:
    """The means of the ratios: of all pairs over the usual queue, and over each other one of the pairs that
    have both.
    """
    by_scenario: dict[str, list[_Pair]] = {}
    for pair in pairs:
        by_scenario.setdefault(pair.scenario, []).append(pair)
    told = [words for name, group in by_scenario.items() for words in _mean(name, _USUAL, group)]
    for queue in queues:
        for name, group in by_scenario.items():
            both = [one for one in group if one.ratio(_USUAL) is not None and one.ratio(queue) is not None]
            told += _mean(f"{name}, of those that have both", _USUAL, both)
            told += _mean(f"{name}, {queue}", queue, both)
    return f" Geometric mean of now / 2021, with its interval: {'; '.join(told)}." if told else ""


def _mean(name: str, queue: str, pairs: Iterable[_Pair]) -> list[str]:
    ratios = [ratio for pair in pairs if (ratio := pair.ratio(queue)) is not None]
    found = intervals.over_ratios([math.log(one) for one in ratios])
    return [f"{name} {found.written()}, {several(len(ratios), 'pair')}"] if found else []


def _row(pair: _Pair, queues: list[str]) -> list[str]:
    return [
        pair.scenario,
        literal(f"{pair.client} → {pair.server}"),
        "none" if pair.then is None else mbit(pair.then),
        *(words for queue in queues for words in _shown(pair, queue)),
    ]


def _shown(pair: _Pair, queue: str) -> list[str]:
    """Goodput over a queue, and its ratio to that of 2021."""
    cell, ratio = pair.by_queue.get(queue), pair.ratio(queue)
    if cell is None:
        return ["not run", "-"]
    values = cell.values("goodput_bps")
    words = [mbit(statistics.fmean(values))] if values else ["failed"]
    words += [f"±{statistics.stdev(values) / 1e6:.2f}"] if len(values) > 1 else []
    words += [f"({cell.failures.total()}!)"] if cell.failures else []
    return [" ".join(words), number(ratio)]
