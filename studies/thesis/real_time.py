"""Pairs of 2021 whose stacks run in real time alone, over emulated links, beside what they reached then."""

from __future__ import annotations

import math
import statistics

from bentpipe.analysis.cells import Cell, cells
from bentpipe.study.markdown import literal, mbit, several, table
from bentpipe.study.source import Source

from . import intervals
from .runs import ThesisRuns, by_equation

_HOW = """kwik and lsquic run in real time alone: all pairs with them, msquic and nginx went through emulated
links (`--testbed emu`). msquic and nginx have virtual time, too, but are not in the matrix above: they were
added after it. By equation 4.1: means of pairs that never failed, where there is more than one trial with the
standard deviation. The queue held 25 packets, and [125 then](#the-simulators-queue-held-125-packets); these
pairs were not tried over that."""


def section(runs: ThesisRuns) -> list[str]:
    """The section; nothing where no such run is among the runs."""
    source = runs.in_real_time
    if source is None:
        return []
    rows: list[list[str]] = []
    means: list[str] = []
    for scenario in sorted(source.manifest.plan.scenarios):
        if scenario not in runs.known.pairs:
            continue
        then = runs.known.pairs[scenario].bps
        logarithms: list[float] = []
        for cell in _cells(source, scenario):
            before = then.get((cell.key.client, cell.key.server))
            now = _mean(cell)
            if before is not None and now is not None:
                logarithms.append(math.log(now / before))
            rows.append(_row(cell, before, now))
        if found := intervals.over_ratios(logarithms):
            means.append(f"{scenario} {found.written()}, {several(len(logarithms), 'pair')}")
    told = f" Geometric mean of now / 2021, with its interval: {'; '.join(means)}." if means else ""
    return [
        "### The same pairs in real time",
        f"{_HOW} {several(len(source.records), 'trial')}.{told}",
        table(["scenario", "client → server", "2021", "now", "now / 2021", "failed"], rows, left=2),
    ]


def _cells(source: Source, scenario: str) -> list[Cell]:
    rate = float(source.manifest.scenarios[scenario].summary["forward_rate_bps"])
    return cells([by_equation(one, rate) for one in source.in_order if one.scenario == scenario])


def _mean(cell: Cell) -> float | None:
    values = cell.values("goodput_bps")
    return None if cell.failures or not values else statistics.fmean(values)


def _row(cell: Cell, before: float | None, now: float | None) -> list[str]:
    values = cell.values("goodput_bps")
    spread = f" ±{statistics.stdev(values) / 1e6:.2f}" if now is not None and len(values) > 1 else ""
    failed = f"{cell.failures.total()} of {len(cell.records)}" if cell.failures else "-"
    return [
        cell.key.scenario,
        literal(f"{cell.key.client} → {cell.key.server}"),
        "none" if before is None else mbit(before),
        "failed" if now is None else f"{mbit(now)}{spread}",
        "-" if before is None or now is None else f"{now / before:.2f}",
        failed,
    ]
