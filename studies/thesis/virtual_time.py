"""The CPU time of virtual time by stack, and the limits of what it can show."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bentpipe import labels
from bentpipe.runs.manifest import Manifest
from bentpipe.runs.records import Record
from bentpipe.study.markdown import literal, number, percent, table

_LIMITS = [
    """**Slow machines.** Programs take no virtual time to compute. The source suspects its old processor
  behind some timeouts; here a stack that needs long costs wall time alone, and no goodput.""",
    """**Kernels and sockets.** Socket buffers, segmentation offload, timer granularity and scheduling are not
  there. Arrivals are handled one by one, where a socket hands over bursts; what each program does instead is
  in the records' `client_driver` and `server_driver`.""",
    """**What surrounds a stack.** The source ran the containers that stacks publish, with their settings.
  Here each is a small program around the library, with the library's defaults.""",
    """**Competing traffic**, and queues other than the scenario's. The source states none of its queues.""",
]
_REAL = """**Real links** ({}): the source puts their RTT at 600 to 1000 ms; what their queues and medium
  access did is not known. The stand-ins have a fixed RTT, a fixed queue and independent losses."""


@dataclass(frozen=True)
class StackCost:
    """The CPU time of a stack's programs over all of its trials that ran."""

    stack: str
    client_cpu_s: float | None  # mean per trial
    server_cpu_s: float | None
    wall_share: float | None  # CPU seconds of its program / wall seconds, over its trials with other stacks
    total_cpu_s: float


def costs(records: Sequence[Record]) -> list[StackCost]:
    """Every stack, the most expensive first. Trials that were not started are left out."""
    ran = [one for one in records if one.wall_s > 0]
    names = dict.fromkeys(labels.variant(label).stack for one in ran for label in (one.client, one.server))
    return sorted((_cost(name, ran) for name in names), key=lambda one: -one.total_cpu_s)


def _cost(name: str, ran: Sequence[Record]) -> StackCost:
    client = [one for one in ran if one.cell_key.client_label.stack == name]
    server = [one for one in ran if one.cell_key.server_label.stack == name]
    used = sum(one.cpu_client_s for one in client) + sum(one.cpu_server_s for one in server)
    apart = [
        one
        for one in (*client, *server)
        if one.cell_key.client_label.stack != one.cell_key.server_label.stack
    ]
    own = sum(
        one.cpu_client_s if one.cell_key.client_label.stack == name else one.cpu_server_s for one in apart
    )
    wall = sum(one.wall_s for one in apart)
    return StackCost(
        stack=name,
        client_cpu_s=statistics.fmean(one.cpu_client_s for one in client) if client else None,
        server_cpu_s=statistics.fmean(one.cpu_server_s for one in server) if server else None,
        wall_share=own / wall if wall else None,
        total_cpu_s=used,
    )


def section(records: Sequence[Record], manifest: Manifest) -> list[str]:
    """The section on time."""
    found = costs(records)
    if not found:
        return ["## What slows which stack down", "No trial was started."]
    own, sim = sum(one.total_cpu_s for one in found), sum(r.cpu_sim_s for r in records)
    rows = [
        [
            literal(one.stack),
            number(one.client_cpu_s),
            number(one.server_cpu_s),
            percent(one.wall_share),
            percent(one.total_cpu_s / (own + sim)) if own + sim else "-",
        ]
        for one in found
    ]
    head = ["stack", "as client, CPU s", "as server, CPU s", "of the wall time", "of the run's CPU time"]
    slow = [one for one in found if one.wall_share is not None and one.wall_share > 0.5]
    text = (
        f"All trials together used {own + sim:.0f} s of CPU time: {own:.0f} s the programs of the stacks, "
        f"{sim:.0f} s the coordinator, which moves, decodes and checks. In the table, means per trial; *of "
        "the wall time* is the CPU time of the stack's program / the wall time, over its trials with others."
    )
    wall = _wall_s(manifest)
    if wall is not None:
        cores = manifest.host.get("cores")
        text += f" From start to finish the run took {wall / 60:.1f} minutes on {cores} cores."
    if slow:
        names = ", ".join(literal(one.stack) for one in slow)
        text += f" More than half of the time of their trials passes in the programs of: {names}."
    return ["## What slows which stack down", text, table(head, rows)]


def _wall_s(manifest: Manifest) -> float | None:
    """From start to finish; None if the run was continued, as nobody counted the pause."""
    if manifest.finished is None or manifest.resumed:
        return None
    begin, end = (datetime.fromisoformat(text) for text in (manifest.started, manifest.finished))
    return (end - begin).total_seconds()


def limits(real_links: Sequence[str]) -> list[str]:
    """The section on what virtual time cannot show."""
    real = [_REAL.format(", ".join(real_links))] if real_links else []
    lines = [f"- {text}" for text in (*_LIMITS, *real)]
    return ["## What virtual time cannot show", "\n".join(lines)]
