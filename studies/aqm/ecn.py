"""What each stack does with ECN, as seen on the wire behind queues that mark."""

from __future__ import annotations

from collections.abc import Sequence

from bentpipe.analysis.cells import Cell
from bentpipe.runs.records import Record
from bentpipe.study.front import folded
from bentpipe.study.markdown import literal, several, table

from .disciplines import discipline

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
    shown = folded("ECN of each server", table(head, rows, left=2))
    return ["## Who speaks ECN", counted(single), _HOW, *shown]


def setting(single: Sequence[Cell]) -> set[str]:
    """The servers that set ECT."""
    return {server for server, records in _by_server(single).items() if _sets(records)}


def counted(single: Sequence[Cell]) -> str:
    """How many servers set ECT, and how many of these slow down when marks are reported."""
    found = _by_server(single)
    those = [found[server] for server in setting(single)]
    answering = [
        one for one in those if _sum(one, "forward_ce_answered") > _sum(one, "forward_ce_rounds") / 2
    ]
    return (
        f"Of {several(len(found), 'server')}, {len(those)} set ECT, and {len(answering)} of these slow down "
        "in more than half of the round trips in which marks are reported."
    )


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
