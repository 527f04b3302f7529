"""The costs of each treatment: bytes, CPU time, and what it leaves to a flow beside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from bentpipe.analysis.cells import Cell
from bentpipe.analysis.trial_marks import marked
from bentpipe.plan.treatments import DIRECT
from bentpipe.runs.records import Record
from bentpipe.study.markdown import literal, number, percent, table
from bentpipe.study.quantiles import median

from . import effects, tables
from .effects import PATHS, Setting

_LARGE = 100_000_000  # bytes
_ABOUT = {
    DIRECT: "nothing",
    "quic-pep": "splits the connection, so it can read what is in it",
    "masque": "carries the connection in another, encrypted from end to end",
    "masque, not nested": "the same, without congestion control of its own",
    "fec": "carries it, with a repair packet for every five",
    "sidecar": "carries it, and sends again what the satellite lost",
}
_BYTES = """Medians over 100 MB without random loss, over all paths and both senders. Bytes are those of IP
packets towards the client, beyond those of the file."""
_CPU = """CPU time of the programs, in real time over emulated links, for each gigabyte of the file: medians,
least and most in brackets. Programs that serve many at full rate need less of it, since they then handle
many packets at a time."""
_SHARED = """Two flows for 60 s, both behind the treatment; the second has CUBIC and starts five seconds
later. Goodput in Mbit/s, first / second."""
_BESIDE = """Two flows with CUBIC for 60 s through a tunnel each. The first has repairs, or none; the second
has none. Goodput in Mbit/s, first / second."""
_REPAIRS = {
    "fec terminal,gateway": "repairs of 20 %",
    "fec terminal:rate=adaptive,gateway:rate=adaptive": "adaptive repairs",
    "fec terminal:hold_ms=0:rate=0%,gateway:hold_ms=0:rate=0%": "no repairs",
}

_ENDS: tuple[Callable[[Record], float], ...] = (lambda one: one.cpu_client_s, lambda one: one.cpu_server_s)

Grouped = Mapping[Setting, Mapping[str, Cell]]


@dataclass(frozen=True)
class Runs:
    """The cells that costs are read from, by setting and treatment."""

    files: Grouped
    real_files: Grouped
    shared: Grouped
    beside: Grouped


def sections(runs: Runs) -> list[str]:
    """The section on costs, of what there is."""
    parts = []
    if large := _large(runs.files):
        parts += [_BYTES, _bytes(large)]
    if real := _large(runs.real_files):
        parts += [_CPU, _processors(real)]
    if runs.beside:
        parts += ["### A flow with repairs beside one without", _BESIDE, _repairs(runs.beside)]
    if runs.shared:
        parts += tables.folded(
            "Two flows behind the same treatment", _SHARED, tables.figures(runs.shared, two_flows)
        )
    return ["## What each costs", *parts] if parts else []


def _large(files: Grouped) -> list[Cell]:
    """Those of 100 MB over a path that neither loses packets nor varies."""
    return [
        one
        for where, row in files.items()
        for one in row.values()
        if effects.size(where.workload) == _LARGE and where.loss == "0 %" and where.path != "starlink"
    ]


def two_flows(cell: Cell) -> str:
    """The goodputs of two flows in Mbit/s, the measured one first."""
    both = [
        median(one.flows[number].goodput_bps for one in cell.ok if len(one.flows) > 1) for number in (0, 1)
    ]
    return " / ".join(number(None if one is None else one / 1e6, 1) for one in both)


def _bytes(cells: Iterable[Cell]) -> str:
    rows = []
    for name, mine in _by_treatment(cells).items():
        sent = median(_sent(one) for cell in mine for one in cell.ok)
        rows.append([literal(name), _ABOUT.get(name, ""), percent(None if sent is None else sent - 1)])
    return table(["treatment", "what stands there", "more bytes"], rows, left=2)


def _processors(cells: Iterable[Cell]) -> str:
    rows = []
    for name, mine in _by_treatment(cells).items():
        trials = [one for cell in mine for one in cell.ok]
        places = {it.place: "" for one in trials for it in one.proxies}
        boxes = [_spread(_of_box(one, place) for one in trials) for place in places]
        ends = [_spread(_per_gigabyte(one, seconds(one)) for one in trials) for seconds in _ENDS]
        rows.append([literal(name), *ends, *(boxes or ["", ""])])
    return table(["s/GB", "client", "server", "terminal", "gateway"], rows)


def _of_box(one: Record, place: str) -> float | None:
    return _per_gigabyte(one, sum(it.cpu_s for it in one.proxies if it.place == place))


def _spread(values: Iterable[float | None]) -> str:
    known = [one for one in values if one is not None]
    if not known:
        return ""
    return f"{number(median(known), 1)} ({min(known):.1f} to {max(known):.1f})"


def _sent(one: Record) -> float | None:
    """Bytes over the satellite towards the client for each byte of the file."""
    return one.forward_bytes / one.size_bytes if one.forward_bytes and one.size_bytes else None


def _per_gigabyte(one: Record, seconds: float) -> float | None:
    return seconds / (one.size_bytes / 1e9) if one.size_bytes else None


def _by_treatment(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    found: dict[str, list[Cell]] = {}
    for one in cells:
        found.setdefault(effects.treatment(one), []).append(one)
    order: Sequence[str] = list(effects.TREATMENTS.values())
    return {name: found[name] for name in order if name in found}


def _repairs(beside: Grouped) -> str:
    rows: list[list[str]] = []
    for where in effects.in_order(beside):
        mine = {one.key.treatment: one for one in beside[where].values()}
        shown = [marked(two_flows(mine[it]), mine[it]) if it in mine else "" for it in _REPAIRS]
        rows.append([PATHS.get(where.path, literal(where.path)), where.loss, *shown])
    return table(["path", "loss", *_REPAIRS.values()], rows, left=2)
