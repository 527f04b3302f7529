"""Larger first windows of aioquic's old server (figure 5.10): what they save, over queues by length."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bentpipe import labels
from bentpipe.analysis.cells import Cell
from bentpipe.analysis.inference import geometric_mean
from bentpipe.study.markdown import code, literal, table

Cells = Mapping[tuple[str, str, str], Cell]

_OLD = "aioquic:pto=loss"
_TEXT = """The thesis gives aioquic five times the initial window and finds 30 % less time (section 5.6.4.1).
It reads 0.2 Mbit/s off its figure for the first ten seconds, and five times as much with the larger window.
Completion over sat by the length of the queue, geometric means over the clients, and what the queue dropped
of each trial:"""
_THEN = """The probe timeout halves the first window, of which a short queue drops some, and it is halved
again.{fits} Over sockets it is a race whether another probe timeout, some 0.6 s after the first packet, comes
before the first acknowledgement and halves the window once more. Of three trials in real time, one of each
window, it did in two, as their qlogs say, too few to tell whether the window has a part in it:"""
_FITS = """ So what the thesis shows fits a window of {half} packets *after* the handshake. What its text does
not tell is how: by a first window of {first}, by a least window that was raised, too, or because no timeout
halved it and slow start ended otherwise."""
_RACE = (
    "bentpipe run --testbed emu --scenario sat --client quinn --server "
    "aioquic:pto=loss,aioquic:pto=loss:iw=50,aioquic:pto=loss:iw=100 --iterations 1 --trace all --qlog "
    "--set 'forward.queue=125 packets'"
)
_PUBLISHED = -0.30


def section(known: Cells) -> list[str]:
    """The section; empty without a larger window beside the usual one."""
    servers = [one for one in dict.fromkeys(server for _, _, server in known) if one.startswith(_OLD)]
    links = [one for one in dict.fromkeys(link for link, _, _ in known) if _seconds(known, one, _OLD)]
    if len(servers) < 2 or not links:
        return []
    missing = _missing(known, links, servers)
    known = {place: cell for place, cell in known.items() if place[1] not in missing}
    saved = _saved(known, links, servers)
    nearest = min(saved, key=lambda one: abs(saved[one] - _PUBLISHED), default=None)
    rows = [
        [
            literal(one),
            *(_cell(known, link, one) for link in links),
            *(_drops(known, link, one) for link in links),
        ]
        for one in servers
    ]
    queues = [labels.scenario(link).queue for link in links]
    said = "" if nearest is None else _told(nearest, saved[nearest])
    fits = "" if nearest is None else _fits(nearest[0])
    if missing:
        said = f"Left out, as not all of its trials succeeded: {', '.join(map(literal, missing))}. {said}"
    head = ["server", *(f"{queue}, s" for queue in queues), *(f"{queue}, dropped" for queue in queues)]
    shown = [cell for (link, _, server), cell in known.items() if server in servers and link in links]
    trials = sum(len(cell.records) for cell in shown)
    return [
        "### Five times the initial window",
        _TEXT,
        table(head, rows),
        f"{trials} trials. {said}{_THEN.format(fits=fits)}",
        code(_RACE),
    ]


def _missing(known: Cells, links: Sequence[str], servers: Sequence[str]) -> list[str]:
    """Clients that have not succeeded everywhere: without them, means are over the same ones."""
    return [
        client
        for client in dict.fromkeys(client for _, client, server in known if server in servers)
        if any(
            (cell := known.get((link, client, server))) is None or cell.failures
            for link in links
            for server in servers
        )
    ]


def _saved(known: Cells, links: Sequence[str], servers: Sequence[str]) -> dict[tuple[str, str], float]:
    """By server and link, by what share completion is sooner than with the usual window; below zero."""
    return {
        (server, link): seconds / usual - 1
        for server in servers
        for link in links
        if server != _OLD
        and (seconds := _seconds(known, link, server)) is not None
        and (usual := _seconds(known, link, _OLD)) is not None
    }


def _told(nearest: tuple[str, str], saved: float) -> str:
    server, link = nearest
    return (
        f"The nearest to what was published is {literal(server)} over {labels.scenario(link).queue}, "
        f"{-100 * saved:.0f} % less. "
    )


def _fits(server: str) -> str:
    first = int(labels.variant(server).options["iw"])
    return _FITS.format(first=first, half=first // 2)


def _of(known: Cells, link: str, server: str) -> Iterable[Cell]:
    return (cell for (mine, _, served), cell in known.items() if (mine, served) == (link, server))


def _seconds(known: Cells, link: str, server: str) -> float | None:
    """The geometric mean of their completion."""
    return geometric_mean(
        [value for cell in _of(known, link, server) for value in cell.values("completion_s")]
    )


def _cell(known: Cells, link: str, server: str) -> str:
    """Seconds, and what they are less than with the usual window."""
    seconds, usual = _seconds(known, link, server), _seconds(known, link, _OLD)
    if seconds is None or usual is None:
        return "-"
    return f"{seconds:.1f}" if server == _OLD else f"{seconds:.1f} ({100 * (seconds / usual - 1):+.0f} %)"


def _drops(known: Cells, link: str, server: str) -> str:
    """Packets that the queue dropped, per trial."""
    ok = [one for cell in _of(known, link, server) for one in cell.ok]
    counted = [one.forward_queue_drops for one in ok if one.forward_queue_drops is not None]
    return f"{sum(counted) / len(counted):.0f}" if counted else "-"
