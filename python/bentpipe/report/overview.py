"""The data that every page of a run's site needs, as JSON: the manifest, and the matrices with a summary of
each cell.

Of a cell no more than its summary is kept, as JSON, so that any number of trials can be shown.
`report-ui/src/model.ts` declares the shapes; keys carry their unit, as in records.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

import bentpipe
from bentpipe.analysis.cells import Cell, MatrixKey, by_name, spread
from bentpipe.report import pages
from bentpipe.report.outline import RunOutline
from bentpipe.runs.records import CellKey

_SPREADS = (
    "goodput_bps", "completion_s", "handshake_s", "share_of_limit", "rs_s", "fcp_s", "speed_index_s", "lcp_s",
    "dcl_s", "plt_s", "startup_s", "stalls", "stalled_s", "media_rate_bps", "rate_changes", "latency_s",
    "frames", "late_frames", "lost_frames", "in_time_share", "frame_age_median_s", "frame_age_p95_s",
    "frame_age_p99_s", "frame_age_max_s",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CellSummary:
    """The part of a cell that is kept while the others are read."""

    shown: str  # its entry in the matrix, as JSON
    goodput_mean_bps: float | None
    efficiency_mean: float | None
    has_success: bool
    h3: bool
    trials: int
    failed: int

    @classmethod
    def of(cls, cell: Cell, slug: str) -> CellSummary:
        """`slug` names the cell's page."""
        return cls(
            shown=pages.json_text(pages.finite(_shown(cell, slug))),
            goodput_mean_bps=cell.goodput_mean_bps,
            efficiency_mean=cell.efficiency_mean,
            has_success=bool(cell.ok),
            h3=cell.h3,
            trials=len(cell.records),
            failed=sum(record.failed for record in cell.records),
        )


def run_json(outline: RunOutline, summaries: Mapping[CellKey, CellSummary]) -> str:
    """The run, with the summary of each of its cells."""
    data = {
        "campaign": outline.heading,
        "version": bentpipe.__version__,
        "manifest": msgspec.to_builtins(outline.manifest),
        "trials": sum(one.trials for one in summaries.values()),
        "failed": sum(one.failed for one in summaries.values()),
        "planned": outline.planned,
    }
    matrices = (_matrix(outline, key, cells, summaries) for key, cells in outline.matrices.items())
    return pages.with_list(pages.finite(data), "matrices", matrices)


def _matrix(
    outline: RunOutline, key: MatrixKey, cells: Sequence[CellKey], summaries: Mapping[CellKey, CellSummary]
) -> str:
    """A matrix; cells without a summary have no trial yet."""
    clients: dict[str, list[CellSummary]] = {}
    servers: dict[str, list[CellSummary]] = {}
    begun = {cell: summaries[cell] for cell in cells if cell in summaries}
    for cell in cells:
        own = [begun[cell]] if cell in begun else []
        clients.setdefault(cell.client, []).extend(own)
        servers.setdefault(cell.server, []).extend(own)
    data = {
        **key._asdict(),
        "summary": outline.summary(key.scenario),
        "clients": [_margin(name, clients[name]) for name in sorted(clients, key=by_name)],
        "servers": [_margin(name, servers[name]) for name in sorted(servers, key=by_name)],
        "total": _margin("all", list(begun.values())),
    }
    return pages.with_list(pages.finite(data), "cells", (one.shown for one in begun.values()))


def _margin(name: str, group: Sequence[CellSummary]) -> dict[str, Any]:
    """A row, a column or all of a matrix: means and extremes of the cells that have a success, each of which
    counts once; failures stand beside them.
    """
    goodputs = _known(cell.goodput_mean_bps for cell in group)
    efficiencies = _known(cell.efficiency_mean for cell in group)
    return {
        "name": name,
        "efficiency": statistics.fmean(efficiencies) if efficiencies else None,
        "efficiency_max": max(efficiencies, default=None),
        "goodput_bps": statistics.fmean(goodputs) if goodputs else None,
        "goodput_max_bps": max(goodputs, default=None),
        "cells": len(group),
        "cells_failed": sum(not cell.has_success for cell in group),
        "cells_measured": len(efficiencies),
        "cells_h3": sum(cell.has_success and cell.h3 for cell in group),
        "trials": sum(cell.trials for cell in group),
        "failed": sum(cell.failed for cell in group),
    }


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _shown(cell: Cell, slug: str) -> dict[str, Any]:
    measured = sum(record.goodput_bps is not None for record in cell.ok)
    return {
        "slug": slug,
        "client": cell.key.client,
        "server": cell.key.server,
        "goodput_mean_bps": cell.goodput_mean_bps,
        "goodput_deviation_bps": cell.goodput_deviation_bps if measured > 1 else None,
        "efficiency": cell.efficiency_mean,
        "h3": cell.h3,
        "failures": cell.failures.most_common(),
        "spreads": {name: _spread(cell, name) for name in _SPREADS},
        "trials": [
            {"iteration": r.iteration, "outcome": r.outcome, "detail": r.detail, "efficiency": r.efficiency}
            for r in cell.records
        ],
        "findings": Counter(rule for record in cell.records for rule in record.findings).most_common(),
    }


def _spread(cell: Cell, column: str) -> dict[str, float | None] | None:
    """JSON has no infinity: the largest value is null then, and there is no spread around such a median."""
    found = spread(cell.values(column))
    if found is None or found.median == math.inf:
        return None
    return found._asdict() | {"max": None if found.max == math.inf else found.max}
