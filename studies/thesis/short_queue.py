"""A short queue, the published variation: what the 25 packets of the runner change for every pair."""

from __future__ import annotations

import statistics

from bentpipe import labels
from bentpipe.study.markdown import mbit, table

from . import intervals
from .runs import SHORT_QUEUE, ThesisRuns

_TEXT = """The runner asked for 25 packets, and the published link is mostly read so: `bentpipe scenarios show
sat` is that path. All pairs over it, with nothing else changed, means over the pairs that failed over neither
queue:"""
_END = """Where an interval holds 1, these trials do not show that the queue matters."""


def ratios(runs: ThesisRuns) -> dict[str, intervals.Estimate]:
    """Scenario → goodput with 25 packets / with 125, where there is an interval."""
    found = {}
    for name in runs.matrices:
        both = [_short(runs, name), runs.pairs(name)]
        ratio = intervals.over_stacks(both, intervals.ratio_of_means)
        if ratio is not None:
            found[name] = ratio
    return found


def _short(runs: ThesisRuns, name: str) -> dict[tuple[str, str], float]:
    """The pairs over the short queue that never failed."""
    return {
        (client, server): cell.goodput_mean_bps
        for (scenario, client, server), cell in runs.cells_beside(SHORT_QUEUE).items()
        if labels.scenario(scenario).name == name and cell.goodput_mean_bps and not cell.failures
    }


def section(runs: ThesisRuns) -> list[str]:
    """The section; empty without its run."""
    rows = []
    for name, ratio in ratios(runs).items():
        short, usual = _short(runs, name), runs.pairs(name)
        both = short.keys() & usual.keys()
        means = (statistics.fmean(one[pair] for pair in both) for one in (usual, short))
        rows.append([name, *map(mbit, means), ratio.written(), str(len(both))])
    if not rows:
        return []
    head = ["", "125 packets, Mbit/s", "25 packets", "ratio", "pairs"]
    return ["### A short queue", _TEXT, table(head, rows), _END]
