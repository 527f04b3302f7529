"""What is said to have held a page up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fake_run
import pytest
from conftest import Command, installed_or_skip
from test_page_report import request

from bentpipe.analysis import page_findings, page_packets
from bentpipe.analysis.page_packets import ConnectionPackets, StreamBlocking
from bentpipe.runs.records import Record
from bentpipe.schema.requests import PageRequest

STYLE = request("/style.css", "stylesheet", 900, "/", 0.5, 1.5, 1.6)
IMAGE = request("/image.png", "image", 900, "/", 0.6, 1.7, 1.8)
HOLDS = (StreamBlocking(1.0, 1.6, 9000), StreamBlocking(1.5, 2.0, 3000), StreamBlocking(2.5, 2.75, 100))


def urgent(one: PageRequest, urgency: int, *times: float) -> PageRequest:
    made = request(one.path, one.type, one.bytes, one.initiator, *times)
    return PageRequest(
        **{name: getattr(made, name) for name in made.__struct_fields__} | {"urgency": urgency}
    )


def record(**values: Any) -> Record:
    given = {
        "workload": "page:kosek:h3",
        "alpn": "h3",
        "plt_s": 4.0,
        "rtt_min_ms": 500.0,
        "rtt_max_ms": 500.0,
    } | values
    return fake_run.change(fake_run.record("sat", "noq", "noq", 1), **given)


def verdicts(
    of: Record, requests: Sequence[PageRequest], connections: Sequence[ConnectionPackets] | None, rule: str
) -> tuple[str, str]:
    """The verdict and the words of a rule."""
    page = page_findings.PageEvidence(of, requests, connections)
    (found,) = [one for one in page_findings.of_page(page) if one.rule == rule]
    return found.verdict, found.text


def test_a_handshake_of_two_round_trips_is_in_series() -> None:
    rule, tcp = "handshake_in_series", record(transport="tcp", alpn="h2")
    assert verdicts(tcp, [urgent(STYLE, 0, 1.0, 1.5, 1.6)], [], rule) == (
        "yes",
        "The first request left after 1.00 s, 2.0 round trips of 0.500 s.",
    )
    assert verdicts(record(), [STYLE], [], rule)[0] == "no"
    assert verdicts(record(rtt_min_ms=None), [STYLE], [], rule)[0] == "not_sure"


def test_connections_are_reused_or_not() -> None:
    rule, used, spare = (
        "connections_not_reused",
        ConnectionPackets(0, 9000, []),
        ConnectionPackets(0.3, 90, []),
    )
    assert verdicts(record(), [STYLE], [used], rule) == ("no", "Responses came over 1 connection.")
    of_h2 = record(alpn="h2", transport="tcp")
    text = "1 of 2 connections carried no response."
    assert verdicts(of_h2, [STYLE], [used, spare], rule) == ("yes", text), "but what HTTP/2 says of itself"
    of_h1 = record(alpn="http/1.1", transport="tcp")
    assert verdicts(of_h1, [STYLE], [used, spare], rule)[0] == "no", "few bytes are a response"
    assert verdicts(record(), [STYLE], [used, used], rule)[0] == "yes"
    assert verdicts(record(alpn="http/1.1"), [STYLE], [used] * 6, rule)[0] == "no"
    assert verdicts(record(alpn="http/1.1"), [STYLE], [used] * 7, rule)[0] == "yes"
    assert verdicts(record(), [STYLE], None, rule)[0] == "not_sure"


def test_what_waits_behind_a_lost_packet_is_blocked() -> None:
    rule, carried = "head_of_line_blocking", ConnectionPackets(0, 9000, HOLDS)
    text = "For 1.25 s in all, up to 9 kB that had come waited for others of their stream."
    assert verdicts(record(transport="quic"), [STYLE], [carried], rule) == ("yes", text)
    assert verdicts(record(plt_s=30.0), [STYLE], [carried], rule)[0] == "no", "that is little of 30 s"
    assert verdicts(record(), [STYLE], [ConnectionPackets(0, 9000, [])], rule)[0] == "no"
    assert verdicts(record(plt_s=None), [STYLE], [carried], rule)[0] == "not_sure"


@pytest.mark.parametrize(
    ("style", "verdict"),
    [
        ((0.5, 1.5, 1.6), "no"),  # it came first
        ((0.5, 1.5, 1.9), "yes"),
        ((1.3, 1.8, 1.9), "no"),  # its server did not know of it when it began with the image
    ],
)
def test_what_is_urgent_comes_first(style: tuple[float, float, float], verdict: str) -> None:
    requests = [urgent(STYLE, 0, *style), urgent(IMAGE, 3, 0.6, 1.7, 1.8)]
    whole = [ConnectionPackets(0, 9000, [])]
    assert verdicts(record(), requests, whole, "priorities_not_kept")[0] == verdict
    assert verdicts(record(lcp_s=1.0), requests, whole, "priorities_not_kept")[0] == "not_sure"
    lossy = [ConnectionPackets(0, 9000, HOLDS)]
    assert verdicts(record(), requests, lossy, "priorities_not_kept")[0] != "yes", "loss may have done it"
    proxied = record(rtt_max_ms=None)
    assert verdicts(proxied, requests, whole, "priorities_not_kept")[0] == "not_sure"


def packet(connection: int, offset: int, received_s: float | None, **values: Any) -> dict[str, Any]:
    """One of the server's with 100 bytes of stream 0; None: it was lost."""
    row: dict[str, Any] = {
        "connection": connection, "sender": "server", "stream_id": [0], "stream_offset": [offset],
        "stream_bytes": [100], "sent_s": 0.0, "protocol": "quic", "received_s": received_s, "copy": False,
    }  # fmt: skip
    return row | values


def test_a_hold_lasts_until_what_was_missing_has_come() -> None:
    """Of a later visit connections count that began when something had come of the earlier one."""
    rows = [
        packet(0, 0, 1.0),
        packet(1, 0, 0.5),
        packet(1, 100, None),
        packet(1, 200, 0.6),
        packet(1, 300, 0.7),
        packet(1, 100, 1.5),
        packet(1, 400, 1.6),
        packet(2, 0, 0.9, stream_id=[3]),
    ]
    starts = {0: 0.0, 1: 1.0, 2: 0.4}
    first = page_packets.connections_of(rows, starts, is_later_visit=False)
    assert first is not None and [one.response_bytes for one in first] == [100, 0, 500], (
        "3 is the server's own"
    )
    later = page_packets.connections_of(rows, starts, is_later_visit=True)
    assert later == [ConnectionPackets(1.0, 500, [StreamBlocking(1.6, 2.5, 200)])]


def test_parts_that_come_twice_or_overlap_are_held_once() -> None:
    rows = [
        packet(0, offset, at) for at, offset in ((1, 0), (2, 500), (3, 450), (4, 300), (5, 500), (6, 250))
    ]
    rows.append(packet(0, 100, 7.0, stream_bytes=[200]))
    rows.append(packet(0, 400, 8.0, stream_bytes=[60]))
    all_found = page_packets.connections_of(rows, {0: 0.0}, is_later_visit=False)
    assert all_found is not None
    (found,) = all_found
    assert found.holds == [StreamBlocking(2.0, 8.0, 300)]


@pytest.mark.virtual_time
def test_a_later_visit_is_judged_by_its_own_connection(bentpipe: Command) -> None:
    installed_or_skip("noq")
    words = ["--scenario", "geo-tum", "--workload", "page:api:h3:early", "--client", "noq", "--server", "noq"]
    done = bentpipe("run", *words, "--iterations", "1", "--trace", "all", "--json", "--out", "A")
    (record,) = done.records()
    all_found = page_packets.of_connections(Path("A/trials") / record["trial"], is_later_visit=True)
    assert all_found is not None
    (found,) = all_found
    assert found.began_s > 1 and found.response_bytes > record["size_bytes"] and found.holds == []


def test_without_an_analysis_nothing_is_known(tmp_path: Path) -> None:
    assert page_packets.of_connections(tmp_path, is_later_visit=False) is None
