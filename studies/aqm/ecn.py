"""What each stack does with ECN, as seen on the wire behind queues that mark."""

from __future__ import annotations

from collections.abc import Container, Sequence

from bentpipe.analysis.cells import Cell
from bentpipe.runs.records import Record
from bentpipe.study.markdown import listed, literal, several, table
from bentpipe.study.quantiles import median_of

from .disciplines import discipline, path_of

_MARKING = ("codel", "fq-codel")
_HOW = """Behind CoDel and FQ-CoDel, over all paths. *Sets*: the codepoint of the server's packets with data
(RFC 9000 section 13.4 asks for it to be validated: *stops* says that fewer than half of them kept it).
*Marked*: packets that the queue marked CE. *Reported*: marks that the client's ACKs tell the server of. TCP
reports episodes, each of one mark or more. *Slowed down*: round trips with news of marks after which the
server had less in flight, of all of them ([how](../../docs/reference/traces.md#ecn))."""


def sections(single: Sequence[Cell]) -> list[str]:
    """The table of all stacks."""
    rows = [_row(server, records) for server, records in _by_server(single).items()]
    if not rows:
        return []
    head = ["server", "sets", "marked", "reported", "slowed down"]
    return ["## Who speaks ECN", _HOW, table(head, rows, left=2)]


def sentence(single: Sequence[Cell]) -> str:
    """How many set it, how many of these answer, and what marks in place of drops change for them."""
    found = _by_server(single)
    if not found:
        return ""
    setting = {server: records for server, records in found.items() if _sets(records)}
    answering = [
        one
        for one in setting.values()
        if _sum(one, "forward_ce_answered") > _sum(one, "forward_ce_rounds") / 2
    ]
    return (
        f"Of {several(len(found), 'server')}, {len(setting)} set ECT, and {len(answering)} of these slow "
        f"down in more than half of the round trips in which marks are reported{_change(single, setting)}."
    )


def _change(single: Sequence[Cell], setting: Container[str]) -> str:
    """What marks in place of drops do to the completion of servers that set ECT: the least and the most over
    each path, with server and discipline.
    """
    completion = {
        (path_of(one), one.key.server, discipline(one)): median_of(one, "completion_s")
        for one in single
        if one.key.server in setting and not one.failures
    }
    changes: dict[str, list[tuple[float, str]]] = {}
    for (path, server, name), marked in completion.items():
        dropped = completion.get((path, server, f"{name}, ecn=off"))
        if marked is not None and dropped is not None:
            changes.setdefault(path, []).append((marked / dropped - 1, f"{literal(server)}, {name}"))
    if not changes:
        return ""
    said = [f"by {_range(some)} over {literal(path)}" for path, some in changes.items()]
    return f"; marks in place of drops change the completion of those that set ECT {listed(said)}"


def _range(changes: Sequence[tuple[float, str]]) -> str:
    ends = [f"{100 * change:+.0f} % ({of})" for change, of in (min(changes), max(changes))]
    return ends[0] if len(changes) == 1 else " to ".join(ends)


def _by_server(single: Sequence[Cell]) -> dict[str, list[Record]]:
    """The successful trials behind queues that mark, of each server with its client."""
    found: dict[str, list[Record]] = {}
    for cell in single:
        if discipline(cell) in _MARKING:
            found.setdefault(cell.key.server, []).extend(cell.ok)
    return {server: records for server, records in found.items() if records}


def _row(server: str, records: Sequence[Record]) -> list[str]:
    codepoint = _codepoint(records)
    shares = [one.forward_ect_share for one in records if one.forward_ect_share is not None]
    stops = _sets(records) and bool(shares) and min(shares) < 0.5
    rounds = _sum(records, "forward_ce_rounds")
    answered = _sum(records, "forward_ce_answered")
    return [
        literal(server),
        f"{codepoint}, stops" if stops else codepoint,
        str(_sum(records, "forward_marked")),
        str(_sum(records, "forward_ce_echoed")),
        f"{answered} of {rounds}" if rounds else "-",
    ]


def _sets(records: Sequence[Record]) -> bool:
    return _codepoint(records).startswith("ECT")


def _codepoint(records: Sequence[Record]) -> str:
    """The codepoint that most trials have."""
    seen = [one.forward_ect for one in records if one.forward_ect is not None]
    return max(set(seen), key=lambda one: (seen.count(one), one)) if seen else "not read"


def _sum(records: Sequence[Record], column: str) -> int:
    return sum(getattr(one, column) or 0 for one in records)
