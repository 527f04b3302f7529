"""What the pages show, as JSON values. Every number is computed here; the bundle only draws.

Keys carry their unit, as in records. `report-ui/src/model.ts` declares the same shapes.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

import bentpipe
from bentpipe import workload
from bentpipe.analysis import ideal_sender
from bentpipe.analysis.cells import Cell, Matrix, MatrixKey, efficiency_over, matrices, spread
from bentpipe.errors import BentpipeError
from bentpipe.plan import treatments
from bentpipe.report import slugs
from bentpipe.report.analyses import ReadTrace
from bentpipe.report.command import reproduce
from bentpipe.report.waterfall import waterfall
from bentpipe.runs.manifest import Manifest
from bentpipe.runs.records import Record
from bentpipe.runs.trial_files import ELSEWHERE, HOP_TRACES, PICTURE, REQUESTS, TracePlace
from bentpipe.schema.record import SHOWN
from bentpipe.testbed import TESTBEDS
from bentpipe.workload import TESTCASES, Workload

# What `bentpipe run` calls a run that is no campaign.
_UNNAMED = "run"
_NAMED = 4  # names that a heading lists before it counts them
_SPREADS = (
    "goodput_bps", "completion_s", "handshake_s", "share_of_limit", "rs_s", "fcp_s", "speed_index_s", "lcp_s",
    "dcl_s", "plt_s", "startup_s", "stalls", "stalled_s", "media_rate_bps", "rate_changes", "latency_s",
    "frames", "late_frames", "lost_frames", "in_time_share", "frame_age_median_s", "frame_age_p95_s",
    "frame_age_p99_s", "frame_age_max_s",
)  # fmt: skip


@dataclass(frozen=True)
class RunModel:
    """A run as read from its folder; its records need no courses."""

    run: Path
    manifest: Manifest
    records: list[Record]
    traces: dict[str, ReadTrace] = field(default_factory=dict)  # by the names of their trials

    @property
    def campaign(self) -> str:
        return self.manifest.campaign or self.run.resolve().name

    @cached_property
    def heading(self) -> str:
        """The campaign's name; for a run without one of its own, what it ran over which scenarios."""
        if self.campaign != _UNNAMED or not self.matrices:
            return self.campaign
        scenarios, clients, servers = (
            list(dict.fromkeys(getattr(cell.key, part) for matrix in self.matrices for cell in matrix.cells))
            for part in ("scenario", "client", "server")
        )
        stacks = f"{_named(clients, 'clients')} to {_named(servers, 'servers')}"
        if sorted(clients) == sorted(servers):
            stacks = _named(clients, "stacks")
        return f"{stacks} over {_named(scenarios, 'scenarios')}"

    @cached_property
    def matrices(self) -> list[Matrix]:
        """In the manifest's order of scenarios, then of workloads and of treatments; what it does not name
        comes last.
        """
        labels, plan = list(self.manifest.scenarios), self.manifest.plan
        between = treatments.labels(plan.treatments, plan.pep)

        def place(matrix: Matrix) -> tuple[int, int, int, MatrixKey]:
            key = matrix.key
            first = _place(labels, key.scenario), _place(plan.workloads, key.workload)
            return *first, _place(between, key.treatment), key

        return sorted(matrices(self.records), key=place)

    @cached_property
    def slugs(self) -> dict[str, Cell]:
        """File name → cell, over all matrices."""
        return slugs.assign(cell for matrix in self.matrices for cell in matrix.cells)

    def summary(self, scenario: str) -> dict[str, Any]:
        """The manifest's summary of a scenario; empty if it has none."""
        known = self.manifest.scenarios.get(scenario)
        return known.summary if known else {}


def run_data(model: RunModel) -> dict[str, Any]:
    """What every page needs: the manifest, and the matrices without the courses of their trials."""
    slug_of = {cell.key: slug for slug, cell in model.slugs.items()}
    data = {
        "campaign": model.heading,
        "version": bentpipe.__version__,
        "manifest": msgspec.to_builtins(model.manifest),
        "trials": len(model.records),
        "failed": sum(record.failed for record in model.records),
        "matrices": [
            _matrix(model, matrix, {cell.key: slug_of[cell.key] for cell in matrix.cells})
            for matrix in model.matrices
        ],
    }
    return _finite(data)  # type: ignore[no-any-return]


def _matrix(model: RunModel, matrix: Matrix, slug_of: dict[Any, str]) -> dict[str, Any]:
    return {
        **matrix.key._asdict(),
        "summary": model.summary(matrix.key.scenario),
        "clients": [_margin(name, matrix.row(name)) for name in matrix.clients],
        "servers": [_margin(name, matrix.column(name)) for name in matrix.servers],
        "total": _margin("all", matrix.cells),
        "cells": [_cell(cell, slug_of[cell.key]) for cell in matrix.cells],
    }


def _margin(name: str, group: tuple[Cell, ...]) -> dict[str, Any]:
    goodputs = spread(cell.goodput_mean_bps for cell in group)
    succeeded = [cell.goodput_mean_bps for cell in group if cell.goodput_mean_bps is not None]
    return {
        "name": name,
        "efficiency": efficiency_over(group),
        "efficiency_max": max((e for cell in group if (e := cell.efficiency_mean) is not None), default=None),
        "goodput_bps": math.fsum(succeeded) / len(succeeded) if succeeded else None,
        "goodput_max_bps": goodputs.max if goodputs else None,
        "cells": len(group),
        "cells_failed": sum(not cell.ok for cell in group),
        "cells_measured": sum(cell.efficiency_mean is not None for cell in group),
        "cells_h3": sum(bool(cell.ok) and cell.h3 for cell in group),
        "trials": sum(len(cell.records) for cell in group),
        "failed": sum(record.failed for cell in group for record in cell.records),
    }


def _cell(cell: Cell, slug: str) -> dict[str, Any]:
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


def cell_data(model: RunModel, slug: str, iterations: Iterable[Record]) -> dict[str, Any]:
    """What the page of one cell needs beside `run_data`; its `iterations` with their courses."""
    cell = model.slugs[slug]
    median = cell.median
    first = cell.records[0]
    moved = workload.known(first.workload)  # None: of the interop runner, or of a newer version
    summary = model.summary(first.scenario)
    upload = moved is not None and TESTCASES[moved.testcase].sender == "client"
    # Over a link whose rate is drawn, each iteration has its own.
    limits = [record.limit_s for record in cell.records if record.limit_s is not None]
    limit_s = statistics.median(limits) if limits else None
    data = {
        **cell.key._asdict(),
        "slug": slug,
        "measured_bytes": moved.measured_of(first.size_bytes) if moved else first.size_bytes,
        "receiver": "server" if upload else "client",
        "rate_bps": _number(summary, "return_rate_bps" if upload else "forward_rate_bps"),
        "limit_s": limit_s,
        "ideal": _ideal(moved, limit_s, _number(summary, "rtt_ms"), first),
        "median": median.iteration if median and median.ok else None,
        "command": reproduce(cell, model.manifest) if moved and first.testbed in TESTBEDS else "",
        "endpoints": [
            {
                "role": "client",
                "name": cell.key.client,
                "version": first.client_version,
                "driver": first.client_driver,
            },
            {
                "role": "server",
                "name": cell.key.server,
                "version": first.server_version,
                "driver": first.server_driver,
            },
            *(
                {
                    "role": f"proxy at the {one.place}",
                    "name": one.name,
                    "version": one.version,
                    "driver": one.driver,
                }
                for one in first.proxies
            ),
        ],
        "waterfall": waterfall(model.run, median),
        "hops": msgspec.to_builtins(median.hops) if median else [],
        "proxies": [
            {"place": one.place, "cpu_s": one.cpu_s, "memory_bytes": one.memory_bytes}
            for one in (median.proxies if median else [])
        ],
        "iterations": [_iteration(model, record) for record in iterations],
    }
    return _finite(data)  # type: ignore[no-any-return]


def _ideal(
    moved: Workload | None, limit_s: float | None, rtt_ms: float | None, record: Record
) -> list[tuple[float, float]] | None:
    """The course of an ideal sender, (seconds, bytes received); None where the path is not known."""
    if moved is None or limit_s is None or rtt_ms is None:
        return None
    saved, transport = record.saved_round_trips, record.transport
    size = moved.measured_of(record.size_bytes)
    return ideal_sender.curve(moved.testcase, size, limit_s, rtt_ms / 1e3, transport, saved)


def _iteration(model: RunModel, record: Record) -> dict[str, Any]:
    trace = model.traces.get(record.trial)
    return {name: getattr(record, name) for name in SHOWN} | {
        "files": _files(model.run, record.trial),
        "trace": trace and {"script": trace.script and f"../{trace.script}", "failure": trace.failure},
    }


def _files(run: Path, trial: str) -> list[dict[str, str]]:
    """Links from the page of a cell to what the trial left, for the files that exist now."""
    folder = run / "trials" / trial
    wanted = [
        ("trace", "trace.pcapng"),
        ("requests", REQUESTS),
        ("picture", PICTURE),
        ("qlog", "qlog"),
        ("client's output", "client.log"),
        ("server's output", "server.log"),
    ]
    wanted += [(path.stem.replace("-", " ", 1), path.name) for path in sorted(folder.glob(HOP_TRACES))]
    try:
        place = TracePlace.of(folder)
    except BentpipeError:  # the other trials are shown nevertheless
        wanted.append((f"{ELSEWHERE}, which cannot be read", ELSEWHERE))
    else:
        wanted += [(f"trace on {place.host}", ELSEWHERE)] if place else []
    found = [(label, name) for label, name in wanted if _has_content(folder / name)]
    return [{"label": label, "href": quote(f"../../trials/{trial}/{name}")} for label, name in found]


def _has_content(path: Path) -> bool:
    if path.is_dir():
        return any(path.iterdir())
    return path.is_file() and path.stat().st_size > 0


def _place(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else len(names)


def _number(values: dict[str, Any], key: str) -> float | None:
    value = values.get(key)
    return value if isinstance(value, int | float) else None


def _named(names: list[str], plural: str) -> str:
    return ", ".join(names) if len(names) <= _NAMED else f"{len(names)} {plural}"


def _finite(value: Any) -> Any:
    """`value` with null for numbers that JSON cannot hold."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
