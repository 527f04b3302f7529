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
_THEN = """The probe timeout halves 50 packets to 25, and 100 packets to 50, of which a short queue drops
some, and the window is halved again. So what the thesis shows fits a window of 50 packets *after* the
handshake. What its text does not tell is how: by a first window of 100, by a least window that was raised,
too, or because no timeout halved it and slow start ended otherwise. Over sockets it is a race whether another
probe timeout, some 0.6 s after the first packet, comes before the first acknowledgement and halves the window
once more: of three trials in real time, one of each window, it did with 10 and with 100 packets, and not with
50, as their qlogs say:"""
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
    rows = [
        [
            literal(one),
            *(_cell(known, link, one) for link in links),
            *(_drops(known, link, one) for link in links),
        ]
        for one in servers
    ]
    queues = [labels.scenario(link).queue for link in links]
    head = ["server", *(f"{queue}, s" for queue in queues), *(f"{queue}, dropped" for queue in queues)]
    shown = [cell for (link, _, server), cell in known.items() if server in servers and link in links]
    trials = sum(len(cell.records) for cell in shown)
    return [
        "### Five times the initial window",
        _TEXT,
        table(head, rows),
        f"{trials} trials. {_nearest(known, links, servers)}{_THEN}",
        code(_RACE),
    ]


def _nearest(known: Cells, links: Sequence[str], servers: Sequence[str]) -> str:
    """Which window and queue save about what was published."""
    saved = {
        (server, link): seconds / usual - 1
        for server in servers
        for link in links
        if server != _OLD
        and (seconds := _seconds(known, link, server)) is not None
        and (usual := _seconds(known, link, _OLD)) is not None
    }
    if not saved:
        return ""
    server, link = min(saved, key=lambda one: abs(saved[one] - _PUBLISHED))
    return (
        f"The nearest is {literal(server)} over {labels.scenario(link).queue}, "
        f"{-100 * saved[server, link]:.0f} % less. "
    )


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
