"""The section on stacks that were in the publication: what they did then, and what they do in a run."""

from __future__ import annotations

from collections.abc import Mapping

from bentpipe import labels
from bentpipe.analysis.cells import Matrix
from bentpipe.runs.manifest import Manifest
from bentpipe.study.front import folded
from bentpipe.study.markdown import literal, mbit, table

from .pairs import changes
from .published import Published

_HOW = """\
Each as a server: mean goodput, by equation 4.1, with its slowest and with its fastest client, in Mbit/s, and
with how many clients no trial failed. Then, these are of the six clients that the picture shows, over satloss
of five. Most clients are not the same ones now: only where the ranges do not overlap, more than the choice of
clients must have changed. That may be the stack, but also its settings, which were those of its container,
or the testbed. What a server does with its best client is close to what it
can do."""
_PICOQUIC = """picoquic's settings were those of its own program, whose server has BBR; here it has NewReno,
as its library does by itself. [What that changes](#congestion-control) is an experiment."""


def sections(manifest: Manifest, known: Published, matrices: Mapping[str, Matrix]) -> list[str]:
    """The section's paragraphs and tables. Published pairs are of a part of the scenarios."""
    compared = {name: one for name, one in matrices.items() if name in known.pairs}
    heading = "## Stacks that were in the publication"
    rows = [
        [name, literal(one.stack), one.verdict, _range(one.then), _range(one.now)]
        for name, matrix in compared.items()
        for one in changes(matrix, known.pairs[name])
    ]
    if not rows:
        return [heading, "No server of this run is among the published pairs."]
    origin = "; ".join(sorted({known.pairs[name].source for name in compared}))
    has_picoquic = any("picoquic" in one.servers for one in compared.values())
    parts = [
        heading,
        _HOW,
        *([_PICOQUIC] if has_picoquic else []),
        *folded("Each server", table(["scenario", "server", "since then", "2021", "now"], rows, left=3)),
    ]
    parts.append(f"2021: {origin}.")
    return [*parts, *_versions(manifest, known), *_others(known, compared)]


def _range(goodputs: Mapping[str, float]) -> str:
    if not goodputs:
        return "failed"
    low, high = min(goodputs.values()), max(goodputs.values())
    return f"{mbit(low)} to {mbit(high)} ({len(goodputs)})"


def _versions(manifest: Manifest, known: Published) -> list[str]:
    now = manifest.versions.get("stacks", {})
    rows = [
        [
            literal(name),
            one.version or "not stated",
            one.congestion_control or "not stated",
            literal(str(now[name])),
        ]
        for name, one in known.stacks.items()
        if name in now
    ]
    head = ["stack", "version then", "congestion control that it was listed with", "version now"]
    return ["Versions; then: endres, tables 4.1 and 4.2.", table(head, rows, left=4)] if rows else []


def _others(known: Published, compared: Mapping[str, Matrix]) -> list[str]:
    """The published servers that the run does not have."""
    now = {labels.variant(server).stack for matrix in compared.values() for server in matrix.servers}
    rows = [
        [name, *(_range(known.pairs[one].of_server(name)) for one in compared)]
        for name in known.stacks
        if name not in now
    ]
    rows = [row for row in rows if set(row[1:]) != {"failed"}]
    if not rows:
        return []
    text = "Servers of the publication that are not in this run, in the same columns:"
    return [text, *folded("Servers of 2021", table(["server in 2021", *compared], rows))]
