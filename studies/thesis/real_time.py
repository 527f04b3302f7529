"""Pairs of 2021 whose stacks run in real time alone, over emulated links, beside what they reached then."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bentpipe import labels
from bentpipe.analysis.cells import Cell, cells
from bentpipe.study.markdown import literal, mbit, several, table

from . import intervals
from .runs import ThesisRuns, by_equation

_HOW = """kwik and lsquic run in real time alone: all pairs with them, msquic and nginx went through emulated
links (`--testbed emu`). msquic and nginx have virtual time, too, but are not in the matrix above: they were
added after it. By equation 4.1: means of pairs that never failed, where there is more than one trial with the
standard deviation."""
_QUEUE = """ The queue held 25 packets. Of pairs that reached something in 2021 those over SAT went over the
[queue of then](#the-simulators-queue-held-125-packets), too, with nothing else changed; not those of nginx,
which has what its window of 64 KiB allows."""


@dataclass(frozen=True)
class _Pair:
    """A client and a server over one scenario, with each queue that was set."""

    scenario: str
    client: str
    server: str
    then: float | None  # goodput of 2021, bit/s
    by_queue: dict[str, Cell] = field(default_factory=dict)  # the queue that was set, or ""

    def ratio(self, queue: str) -> float | None:
        """Goodput over this queue / goodput of 2021."""
        now = _mean(self.by_queue.get(queue))
        return now / self.then if now is not None and self.then is not None else None


def section(runs: ThesisRuns) -> list[str]:
    """The section; nothing where no such run is among the runs."""
    pairs = _pairs(runs)
    if not pairs:
        return []
    queues = sorted({queue for pair in pairs for queue in pair.by_queue} - {""})
    count = sum(len(cell.records) for pair in pairs for cell in pair.by_queue.values())
    added = [words for queue in queues for words in (queue, f"{queue} / 2021")]
    head = ["scenario", "client → server", "2021", "now", "now / 2021", *added, "failed"]
    return [
        "### The same pairs in real time",
        f"{_HOW}{_QUEUE if queues else ''} {several(count, 'trial')}.{_told(pairs, queues)}",
        table(head, [_row(pair, queues) for pair in pairs], left=2),
    ]


def _pairs(runs: ThesisRuns) -> list[_Pair]:
    found: dict[tuple[str, str, str], _Pair] = {}
    for source in runs.in_real_time:
        for cell in cells([by_equation(one, runs.rate_bps(_name(one.scenario))) for one in source.in_order]):
            label = labels.scenario(cell.key.scenario)
            known = runs.known.pairs.get(label.name)
            if known is None:
                continue
            client, server = cell.key.client, cell.key.server
            new = _Pair(label.name, client, server, known.bps.get((client, server)))
            found.setdefault((label.name, client, server), new).by_queue[label.queue] = cell
    return sorted(found.values(), key=lambda pair: pair.scenario)


def _name(scenario: str) -> str:
    return labels.scenario(scenario).name


def _told(pairs: list[_Pair], queues: list[str]) -> str:
    """The means of the ratios: of all pairs over the usual queue, and over each other one of the pairs that
    have both.
    """
    by_scenario: dict[str, list[_Pair]] = {}
    for pair in pairs:
        by_scenario.setdefault(pair.scenario, []).append(pair)
    told = [words for name, group in by_scenario.items() for words in _means({"": ""}, name, group)]
    for queue in queues:
        for name, group in by_scenario.items():
            both = [pair for pair in group if pair.ratio("") is not None and pair.ratio(queue) is not None]
            told += _means({"": ", of those with both queues", queue: f", {queue}"}, name, both)
    return f" Geometric mean of now / 2021, with its interval: {'; '.join(told)}." if told else ""


def _means(over: Mapping[str, str], scenario: str, pairs: Iterable[_Pair]) -> list[str]:
    told = []
    for queue, words in over.items():
        ratios = [ratio for pair in pairs if (ratio := pair.ratio(queue)) is not None]
        if found := intervals.over_ratios([math.log(one) for one in ratios]):
            told.append(f"{scenario}{words} {found.written()}, {several(len(ratios), 'pair')}")
    return told


def _mean(cell: Cell | None) -> float | None:
    values = cell.values("goodput_bps") if cell is not None else []
    return None if cell is None or cell.failures or not values else statistics.fmean(values)


def _row(pair: _Pair, queues: list[str]) -> list[str]:
    made = list(pair.by_queue.values())
    failed = sum(cell.failures.total() for cell in made)
    added = [words for queue in queues for words in _shown(pair, queue)]
    return [
        pair.scenario,
        literal(f"{pair.client} → {pair.server}"),
        "none" if pair.then is None else mbit(pair.then),
        *_shown(pair, ""),
        *added,
        f"{failed} of {sum(len(cell.records) for cell in made)}" if failed else "-",
    ]


def _shown(pair: _Pair, queue: str) -> list[str]:
    """Goodput over a queue, and its ratio to that of 2021."""
    cell, ratio = pair.by_queue.get(queue), pair.ratio(queue)
    if cell is None:
        return ["-", "-"]
    now, values = _mean(cell), cell.values("goodput_bps")
    spread = f" ±{statistics.stdev(values) / 1e6:.2f}" if now is not None and len(values) > 1 else ""
    written = "failed" if now is None else f"{mbit(now)}{spread}"
    return [written, "-" if ratio is None else f"{ratio:.2f}"]
