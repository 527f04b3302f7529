"""Findings on what delayed a page: rules about its requests and the packets that carried them.

Each answers yes, no or not sure, and says with which numbers. `docs/reference/pages.md` lists them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bentpipe import workload
from bentpipe.analysis import page_packets
from bentpipe.analysis.page_packets import ConnectionPackets
from bentpipe.runs.records import Record
from bentpipe.schema.requests import PageRequest
from bentpipe.workload.http import UPGRADE
from bentpipe.workload.page.visit import PageVisit

# A new connection of TCP and TLS needs two round trips before a request, one of QUIC needs one.
_SERIAL_ROUND_TRIPS = 1.5
# Of a page load time: to wait for less is not worth a word.
_WORTH_SAYING = 0.05
# HTTP/2's own frames on a connection that carries no response are fewer bytes.
_RESPONSE_BYTES = {"h2": 600, UPGRADE: 600}
# In seconds: a program's own time is no small part of a shorter round trip.
_SHORTEST_RTT_S = 0.01
# As many connections may carry responses, by the ALPN.
_MOST_CONNECTIONS = {"http/1.1": 6, UPGRADE: 2}
_NO_RTT = "the round trip to the server is not known, or too short to tell"
_NO_TRACE = "there is no analysis of its trace, or the trace cannot be read"


@dataclass(frozen=True)
class PageFinding:
    """The finding of a rule on a page: whether the flaw is there, and the numbers behind that in words."""

    rule: str
    title: str
    verdict: Literal["yes", "no", "not_sure"]
    text: str


@dataclass(frozen=True)
class PageEvidence:
    """The evidence on a page that was loaded in a trial: from its client and from the packets on its hop."""

    record: Record
    requests: Sequence[PageRequest]  # in the order of the page
    connections: Sequence[ConnectionPackets] | None  # None: not known

    @property
    def has_path_rtt(self) -> bool:
        """Whether the round trip of the client's hop is that of the path, and long enough for the rules."""
        rtt_ms = self.record.rtt_min_ms
        return not self.record.proxies and rtt_ms is not None and rtt_ms / 1e3 >= _SHORTEST_RTT_S


def of_trial(folder: Path, record: Record, requests: Sequence[PageRequest]) -> list[PageFinding]:
    """The findings on the page of the trial in RUN/trials/ID. Errors are those of `traces.of_folder`."""
    visit = workload.known(record.workload)
    is_later = isinstance(visit, PageVisit) and visit.is_later
    return of_page(
        PageEvidence(record, requests, page_packets.of_connections(folder, is_later_visit=is_later))
    )


def of_page(page: PageEvidence) -> list[PageFinding]:
    """The findings on a page."""
    found = [_handshake(page), _connections(page), _head_of_line(page)]
    return [*found, _priorities(page)] if page.record.alpn != "http/1.1" else found


def _handshake(page: PageEvidence) -> PageFinding:
    rule = "handshake_in_series"
    asked_s, rtt_ms = page.requests[0].asked_s, page.record.rtt_min_ms
    if asked_s is None or rtt_ms is None or not page.has_path_rtt:
        return _said(rule, "not_sure", f"when the first request left is not known, or {_NO_RTT}")
    rtt_s = rtt_ms / 1e3
    round_trips = asked_s / rtt_s
    text = f"the first request left after {asked_s:.2f} s, {round_trips:.1f} round trips of {rtt_s:.3f} s"
    if round_trips < _SERIAL_ROUND_TRIPS:
        return _said(rule, "no", text)
    return _said(rule, "yes", text)


def _connections(page: PageEvidence) -> PageFinding:
    rule = "connections_not_reused"
    if not page.connections:
        return _said(rule, "not_sure", _NO_TRACE)
    least = _RESPONSE_BYTES.get(page.record.alpn or "", 1)
    carrying = [one for one in page.connections if one.response_bytes >= least]
    unused = len(page.connections) - len(carrying)
    most = _MOST_CONNECTIONS.get(page.record.alpn or "", 1)
    flaws = []
    if len(carrying) > most:
        flaws.append(f"responses came over {len(carrying)} connections, where {most} would do")
    if unused:
        flaws.append(f"{unused} of {len(page.connections)} connections carried no response")
    if flaws:
        return _said(rule, "yes", "; ".join(flaws))
    return _said(rule, "no", f"responses came over {_counted(len(carrying), 'connection')}")


def _head_of_line(page: PageEvidence) -> PageFinding:
    rule = "head_of_line_blocking"
    plt_s = page.record.plt_s
    if not page.connections or plt_s is None:
        why = "the page did not come whole" if page.connections else _NO_TRACE
        return _said(rule, "not_sure", why)
    held = [hold for one in page.connections for hold in one.holds]
    total_s = sum(end - begin for begin, end in _united([(one.begin_s, one.end_s) for one in held]))
    if not held:
        return _said(rule, "no", "nothing that had come waited for what was missing before it")
    what = "stream" if page.record.transport == "quic" else "connection"
    if page.record.alpn == UPGRADE:
        what = "connection or stream"
    most = max(one.most_bytes for one in held)
    waited = f"up to {most / 1000:.0f} kB that had come waited for others of their {what}"
    text = f"for {total_s:.2f} s in all, {waited}"
    return _said(rule, "yes" if total_s > _WORTH_SAYING * plt_s else "no", text)


def _priorities(page: PageEvidence) -> PageFinding:
    rule = "priorities_not_kept"
    if page.record.lcp_s is not None:
        return _said(rule, "not_sure", "a browser chooses urgencies by itself")
    rtt_ms = page.record.rtt_max_ms  # with what waited in queues
    if rtt_ms is None or not page.has_path_rtt:
        return _said(rule, "not_sure", _NO_RTT)
    before = dict(_overtaken(page.requests, rtt_ms / 1e3))
    if not before:
        return _said(rule, "no", "nothing came whole before what was more urgent and asked for in time")
    if not page.connections:
        return _said(rule, "not_sure", _NO_TRACE)
    if any(one.holds for one in page.connections):
        return _said(rule, "not_sure", "packets were lost, which holds up what is urgent, too")
    first, urgent = next(iter(before.items()))
    paths = {one.path: one for one in page.requests}
    example = f"{first} (urgency {paths[first].urgency}) before {urgent} ({paths[urgent].urgency})"
    return _said(
        rule,
        "yes",
        f"{len(before)} of {len(page.requests)} resources came whole before one that was more urgent and was "
        f"asked for a round trip before they began: {example}",
    )


def _overtaken(requests: Sequence[PageRequest], rtt_s: float) -> Iterator[tuple[str, str]]:
    """Resources that were complete before something more urgent that its server knew of when it began to send
    it, and the most urgent of those.
    """
    for one in requests:
        if one.first_byte_s is None or one.last_byte_s is None:
            continue
        urgent = [
            other
            for other in requests
            if other.urgency < one.urgency
            and other.asked_s is not None
            and other.asked_s + rtt_s <= one.first_byte_s
            and (other.last_byte_s is None or other.last_byte_s > one.last_byte_s)
        ]
        if urgent:
            yield one.path, min(urgent, key=lambda other: other.urgency).path


_TITLES: Mapping[str, str] = {
    "handshake_in_series": "Handshakes one after the other",
    "connections_not_reused": "Connections not reused",
    "head_of_line_blocking": "Head-of-line blocking",
    "priorities_not_kept": "Priorities not kept",
}


def _said(rule: str, verdict: Literal["yes", "no", "not_sure"], text: str) -> PageFinding:
    return PageFinding(rule, _TITLES[rule], verdict, f"{text[0].upper()}{text[1:]}.")


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _united(spans: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """The same time in spans that do not overlap."""
    begin, end = 0.0, 0.0
    for from_s, to_s in sorted(spans):
        if from_s > end:
            yield begin, end
            begin, end = from_s, to_s
        end = max(end, to_s)
    yield begin, end
