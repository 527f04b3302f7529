"""The content of the page of one cell, as JSON values. Every number is computed here; the bundle only draws.

Keys carry their unit, as in records. `report-ui/src/model.ts` declares the same shapes.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from bentpipe import workload
from bentpipe.analysis import ideal_sender
from bentpipe.analysis.cells import Cell
from bentpipe.errors import BentpipeError
from bentpipe.report import pages
from bentpipe.report.analyses import ReadTrace
from bentpipe.report.command import reproduce
from bentpipe.report.outline import RunOutline
from bentpipe.report.waterfall import waterfall
from bentpipe.runs.records import Record
from bentpipe.runs.trial_files import ELSEWHERE, HOP_TRACES, LINK_EVENTS, PICTURE, REQUESTS, TracePlace
from bentpipe.schema.record import SHOWN
from bentpipe.testbed import TESTBEDS
from bentpipe.workload import TESTCASES, Workload


def cell_data(outline: RunOutline, slug: str, cell: Cell, traces: Mapping[str, ReadTrace]) -> dict[str, Any]:
    """The data of the page of one cell, besides those that every page has; `traces` by the names of their
    trials.
    """
    median = cell.median
    first = cell.records[0]
    moved = workload.known(first.workload)  # None: of the interop runner, or of a newer version
    summary = outline.summary(first.scenario)
    several = "each_path" in summary  # rates and round trips of the summary are those of the first
    upload = moved is not None and TESTCASES[moved.testcase].sender == "client"
    # Over a link whose rate is drawn, each iteration has its own.
    limits = [record.limit_s for record in cell.records if record.limit_s is not None]
    limit_s = statistics.median(limits) if limits else None
    data = {
        **cell.key._asdict(),
        "slug": slug,
        "measured_bytes": moved.measured_of(first.size_bytes) if moved else first.size_bytes,
        "receiver": "server" if upload else "client",
        "rate_bps": None if several else _number(summary, f"{'return' if upload else 'forward'}_rate_bps"),
        "limit_s": limit_s,
        "ideal": None if several else _ideal(moved, limit_s, _number(summary, "rtt_ms"), first),
        "median": median.iteration if median and median.ok else None,
        "command": reproduce(cell, outline.manifest) if moved and first.testbed in TESTBEDS else "",
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
        "waterfall": waterfall(outline.folder, median),
        "hops": msgspec.to_builtins(median.hops) if median else [],
        "proxies": [
            {"place": one.place, "cpu_s": one.cpu_s, "memory_bytes": one.memory_bytes}
            for one in (median.proxies if median else [])
        ],
        "iterations": [_iteration(outline.folder, record, traces) for record in cell.records],
    }
    return pages.finite(data)  # type: ignore[no-any-return]


def _ideal(
    moved: Workload | None, limit_s: float | None, rtt_ms: float | None, record: Record
) -> list[tuple[float, float]] | None:
    """The course of an ideal sender, (seconds, bytes received); None where the path is not known."""
    if moved is None or limit_s is None or rtt_ms is None:
        return None
    saved, transport = record.saved_round_trips, record.transport
    size = moved.measured_of(record.size_bytes)
    return ideal_sender.curve(moved.testcase, size, limit_s, rtt_ms / 1e3, transport, saved)


def _iteration(run: Path, record: Record, traces: Mapping[str, ReadTrace]) -> dict[str, Any]:
    trace = traces.get(record.trial)
    return {name: getattr(record, name) for name in SHOWN} | {
        "files": _files(run, record.trial),
        "trace": trace and {"script": trace.script and f"../{trace.script}", "failure": trace.failure},
    }


def _files(run: Path, trial: str) -> list[dict[str, str]]:
    """Links from the page of a cell to what the trial left, for the files that exist now."""
    folder = run / "trials" / trial
    wanted = [
        ("trace", "trace.pcapng"),
        ("events of links", LINK_EVENTS),
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


def _number(values: dict[str, Any], key: str) -> float | None:
    value = values.get(key)
    return value if isinstance(value, int | float) else None
