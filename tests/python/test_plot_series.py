"""Series out of packets: no byte is lost or counted twice, and small cases are as computed by hand."""

from __future__ import annotations

from typing import Any

import fake_trace
import numpy as np
import pyarrow as pa
import pytest
from chance import examples
from fake_trace import Setting
from hypothesis import given
from hypothesis import strategies as st

from bentpipe.analysis.plots import queueing, series, table

TRANSFERS = st.builds(
    Setting,
    size_bytes=st.integers(1, 150_000),
    queue_bytes=st.sampled_from([5_000, 20_000, 1_000_000]),
    loss=st.sampled_from([0.0, 0.01, 0.1]),
    seed=st.integers(0, 1000),
)


def rows(*given: dict[str, Any]) -> pa.Table:
    """A table of packets of the server's, seen at both sides 0.3 s apart, with what is given changed."""
    base = dict.fromkeys(fake_trace.SCHEMA.names) | {
        "connection": 0, "protocol": "quic", "sender": "server", "direction": "forward", "type": "1rtt",
        "space": "application", "size_bytes": 1000, "ip_bytes": 1028, "frames": [], "stream_id": [],
        "stream_offset": [], "stream_bytes": [], "retransmitted_bytes": 0, "ack_first": [], "ack_last": [],
        "fate": "delivered", "copy": False,
    }  # fmt: skip
    return pa.Table.from_pylist([base | one for one in given], schema=fake_trace.SCHEMA)


def stream(sent_s: float, *frames: tuple[int, int, int], **more: Any) -> dict[str, Any]:
    """A packet with STREAM frames of (id, offset, bytes)."""
    ids, offsets, lengths = ([frame[part] for frame in frames] for part in range(3))
    there = {"stream_id": ids, "stream_offset": offsets, "stream_bytes": lengths}
    return {"sent_s": sent_s, "received_s": sent_s + 0.3, **there, **more}


def ack(sent_s: float, *ranges: tuple[int, int], **more: Any) -> dict[str, Any]:
    """A packet of the client's with the ranges of an ACK frame, the highest first."""
    first, last = ([one[end] for one in ranges] for end in (0, 1))
    who = {"sender": "client", "direction": "return"}
    return {"sent_s": sent_s, "received_s": sent_s + 0.3, "ack_first": first, "ack_last": last, **who, **more}


@examples(25)
@given(TRANSFERS)
def test_bytes_are_conserved(setting: Setting) -> None:
    packets = fake_trace.packets(fake_trace.simulate(setting))
    forward = series.in_direction(packets, "forward")
    sent = int(series.stream_bytes(forward).sum())
    again = int(table.ints(forward, "retransmitted_bytes").sum())
    assert sent - again == setting.size_bytes

    frames = series.offset(packets, "forward")
    lengths = frames.end - frames.start
    assert lengths.sum() == sent
    assert lengths[frames.retransmitted].sum() == again
    assert lengths[~frames.lost].sum() == series.stream_bytes(forward)[~table.lost(forward)].sum()
    assert (np.diff(frames.time_s) >= 0).all()

    for bin_s in (0.05, 0.15, 1.0):
        rate = series.rate(packets, "forward", bin_s)
        assert rate.payload.sum() == setting.size_bytes
        assert rate.raw.sum() == table.ints(forward, "ip_bytes").sum()
    arrived = series.rate(packets, "forward", 0.15, "client")
    assert arrived.raw.sum() == table.ints(forward, "ip_bytes")[~table.lost(forward)].sum()

    for course in (series.received(packets, "forward"), series.acknowledged(packets, "forward")):
        assert course.bytes[-1] == setting.size_bytes
        assert (np.diff(course.bytes) >= 0).all() and (np.diff(course.time_s) >= 0).all()


@examples(25)
@given(TRANSFERS)
def test_ranges_and_gaps_of_acks_leave_nothing_out(setting: Setting) -> None:
    packets = fake_trace.packets(fake_trace.simulate(setting))
    ranges = series.acks(packets, "forward")
    gaps = series.gaps(ranges)
    assert (gaps.first <= gaps.last).all()
    covered = (ranges.last - ranges.first + 1).sum() + (gaps.last - gaps.first + 1).sum()
    frames = np.flatnonzero(ranges.highest)
    lowest = ranges.first[np.append(frames[1:], len(ranges.first)) - 1]
    assert covered == (ranges.last[frames] - lowest + 1).sum()
    assert np.isin(np.concatenate([gaps.first, gaps.last]), series.numbers(packets, "forward").number).all()


def test_frames_of_a_mixed_packet_are_told_apart() -> None:
    packets = rows(
        stream(1.0, (0, 0, 100), (4, 0, 50)),
        stream(2.0, (0, 0, 100), (0, 100, 100), (4, 50, 10), retransmitted_bytes=100),
        stream(3.0, (0, 100, 100), (4, 50, 10), retransmitted_bytes=110, fate="loss", received_s=None),
    )
    frames = series.offset(packets, "forward")
    assert frames.retransmitted.tolist() == [False, False, True, False, False, True, True]
    assert frames.lost.tolist() == [False] * 5 + [True] * 2
    assert frames.end.tolist() == [100, 50, 100, 200, 60, 200, 60]
    assert series.offset(packets, "forward", "client").time_s.tolist() == [1.3, 1.3, 2.3, 2.3, 2.3]


def test_what_arrives_twice_or_in_parts_counts_once() -> None:
    packets = rows(
        stream(1.0, (0, 0, 100)),
        stream(1.1, (0, 200, 100)),
        stream(1.2, (0, 50, 200)),
        stream(1.3, (4, 0, 7)),
        stream(1.4, (0, 0, 300)),
    )
    assert series.received(packets, "forward").bytes.tolist() == [100, 200, 300, 307, 307]


def test_credit_counts_when_it_reaches_the_sender_of_data() -> None:
    packets = rows(
        stream(0.9, (0, 0, 100)),
        ack(1.0, max_stream_data=1000),
        ack(1.1, max_stream_data=900),  # an old one, late
        ack(1.2, max_stream_data=2000, max_data=5000),
    )
    assert series.credit(packets, "forward").time_s.tolist() == [1.3, 1.5]
    assert series.credit(packets, "forward").bytes.tolist() == [1000, 2000]
    assert series.credit(packets, "forward", "max_data", "client").time_s.tolist() == [1.2]
    assert len(series.credit(packets, "return").bytes) == 0


def test_copies_count_nowhere() -> None:
    packets = rows(stream(1.0, (0, 0, 100)), stream(1.1, (0, 0, 100), copy=True))
    one = series.of_connection(packets, 0)
    assert series.offset(one, "forward").time_s.tolist() == [1.0]
    assert series.rate(one, "forward", 2.0).payload.tolist() == [100]


def test_a_datagram_of_several_packets_counts_once() -> None:
    packets = rows({"sent_s": 0.0, "ip_bytes": 1228}, {"sent_s": 0.0, "ip_bytes": None})
    assert series.sizes(packets, "forward").bytes.tolist() == [1228]
    assert series.rate(packets, "forward", 0.05).raw.tolist() == [1228]


def test_a_capture_of_one_side_is_read_there() -> None:
    at_client = rows(
        stream(0.3, (0, 0, 10), number=0, fate="unknown") | {"sent_s": None},
        ack(0.7, (0, 0), received_s=None),
    )
    assert series.best_side(at_client, "forward") == "client"
    assert series.offset(at_client, "forward").time_s.tolist() == [0.6]
    assert series.acks(at_client, "forward").time_s.tolist() == [0.7]
    assert series.numbers(at_client, "forward", "server").time_s.tolist() == []


def test_packets_that_were_not_decrypted_are_left_out() -> None:
    packets = rows(ack(0.1, space=None, number=None), {"sent_s": 0.2, "space": "handshake", "number": 3})
    assert len(series.numbers(packets, "return").number) == 0
    assert len(series.numbers(packets, "forward").number) == 0
    assert series.numbers(packets, "forward", space="handshake").number.tolist() == [3]
    tcp = rows({"sent_s": 0.2, "space": None, "protocol": "tcp", "type": "tcp", "number": 5})
    assert series.numbers(tcp, "forward").number.tolist() == [5]


def test_bytes_in_flight_fall_when_acks_arrive_and_losses_show() -> None:
    packets = rows(
        stream(1.0, (0, 0, 900), acked_s=1.6, in_flight_bytes=1000, frames=["STREAM"]),
        stream(1.1, (0, 900, 900), acked_s=1.6, in_flight_bytes=2000, frames=["STREAM"]),
        {"sent_s": 1.2, "in_flight_bytes": 2000, "acked_s": 1.5, "frames": ["ACK"]},  # does not count
        # Taken for lost, and acknowledged after all.
        stream(1.3, (0, 1800, 900), in_flight_bytes=3000, lost_s=1.65, acked_s=2.2, frames=["STREAM"]),
        stream(1.7, (0, 1800, 900), acked_s=2.3, in_flight_bytes=1000, frames=["STREAM"]),
        stream(1.7, (0, 2700, 900), acked_s=2.4, in_flight_bytes=2000, frames=["ACK", "STREAM"]),
        stream(1.8, (0, 3600, 900), acked_s=1.9, in_flight_bytes=3000, frames=["PADDING"]),
        stream(1.9, (0, 4500, 900), acked_s=2.5, in_flight_bytes=3000, frames=["PING"]),
    )
    flying = series.in_flight(packets, "forward")
    assert flying.time_s.tolist() == [1.0, 1.1, 1.2, 1.3, 1.6, 1.6, 1.65, 1.7, 1.7, 1.8, 1.9, 2.3, 2.4, 2.5]
    assert flying.bytes.tolist() == [
        1000, 2000, 2000, 3000, 2000, 1000, 0, 1000, 2000, 3000, 3000, 2000, 1000, 0
    ]  # fmt: skip


@examples(10)
@given(TRANSFERS)
def test_nothing_is_in_flight_in_the_end(setting: Setting) -> None:
    packets = fake_trace.packets(fake_trace.simulate(setting))
    flying = series.in_flight(packets, "forward")
    assert flying.bytes.max() == table.ints(packets, "in_flight_bytes").max()
    assert flying.bytes[-1] == 0 and (flying.bytes >= 0).all()


def test_rtt_samples_are_those_of_the_sender_of_data() -> None:
    packets = rows(ack(1.0, (0, 3), rtt_ms=600.5), ack(1.1, (0, 3)))
    samples = series.rtt(packets, "forward")
    assert (samples.time_s.tolist(), samples.rtt_ms.tolist()) == ([1.3], [600.5])
    assert len(series.rtt(packets, "return").rtt_ms) == 0


def test_clocks_of_two_captures_may_differ() -> None:
    packets = rows(stream(0.0, (0, 0, 10)), stream(0.1, (0, 10, 10)) | {"received_s": -0.13})
    rate = series.rate(packets, "forward", 0.25, "client")
    assert rate.start_s.tolist() == [-0.25, 0.0, 0.25]
    assert rate.raw.tolist() == [1028, 0, 1028]


@pytest.mark.parametrize(("rtt_s", "bin_s"), [(0.0, 0.05), (0.1, 0.05), (0.6, 0.15)])
def test_bins_are_a_quarter_of_a_round_trip(rtt_s: float, bin_s: float) -> None:
    assert series.bin_for(rtt_s) == pytest.approx(bin_s)


def test_a_connection_without_packets_has_empty_series() -> None:
    packets = series.of_connection(rows(stream(1.0, (0, 0, 10))), 7)
    for make in (
        series.offset, series.received, series.acknowledged, series.credit, series.numbers, series.sizes,
        series.in_flight, series.rtt, series.acks,
    ):  # fmt: skip
        assert len(make(packets, "forward").time_s) == 0, make
    assert series.rate(packets, "forward", 0.05).raw.tolist() == [0]


def sent(sent_s: float, delay_s: float | None, **more: Any) -> dict[str, Any]:
    """A packet of the server's that takes that long, or that does not arrive."""
    return {"sent_s": sent_s, "received_s": None if delay_s is None else sent_s + delay_s, **more}


# Of 1028 bytes each, over a path that takes 0.3 s: the second waits for 0.05 s, the third for 0.1 s.
QUEUED = (
    sent(1.0, 0.3),
    sent(1.0, 0.35, sent_ecn="ECT(0)", received_ecn="ECT(0)"),
    sent(1.02, 0.4, sent_ecn="ECT(1)", received_ecn="CE"),
    sent(1.03, None, fate="queue_drop"),
    sent(1.04, None, fate="loss"),
    sent(1.2, None, fate="not_received"),
    sent(1.3, 0.3, sent_ecn="CE", received_ecn="CE"),
)


def test_what_waits_is_what_was_sent_and_is_not_yet_on_its_way() -> None:
    found = queueing.queue(rows(*QUEUED), "forward")
    # The first and the last leave at once.
    assert found.waiting.time_s.tolist() == [1.0, 1.02, 1.05, 1.12, 1.3]
    assert found.waiting.bytes.tolist() == [1028, 2056, 1028, 0, 0]
    assert (found.marked.time_s.tolist(), found.marked.bytes.tolist()) == ([1.02], [2056])
    assert (found.dropped.time_s.tolist(), found.dropped.bytes.tolist()) == ([1.03], [2056])
    assert (found.missing.time_s.tolist(), found.missing.bytes.tolist()) == ([1.2], [0])

    there = queueing.queue(rows(*QUEUED), "forward", "client")
    assert there.waiting.time_s.tolist() == pytest.approx([1.3, 1.32, 1.35, 1.42, 1.6])
    assert there.waiting.bytes.tolist() == found.waiting.bytes.tolist()
    assert there.marked.time_s.tolist() == pytest.approx([1.32])


def test_times_in_queues_are_delays_above_the_least() -> None:
    found = queueing.sojourns(rows(*QUEUED), "forward")
    assert found.time_s.tolist() == [1.0, 1.0, 1.02, 1.3]
    assert found.sojourn_ms.tolist() == [0, 50, 100, 0]
    # What was sent with CE was not marked on the way.
    assert found.marked.tolist() == [False, False, True, False]
    assert queueing.sojourns(rows(*QUEUED), "forward", "client").time_s.tolist() == [1.3, 1.35, 1.42, 1.6]


def test_clocks_that_differ_change_no_queue() -> None:
    ahead = [one | {"received_s": one["received_s"] and one["received_s"] - 0.5} for one in QUEUED]
    mine, theirs = (queueing.queue(rows(*which), "forward") for which in (QUEUED, ahead))
    assert mine.waiting.time_s.tolist() == theirs.waiting.time_s.tolist()
    assert mine.waiting.bytes.tolist() == theirs.waiting.bytes.tolist()


def test_without_both_sides_or_without_codepoints_no_queue_and_no_mark_is_made_up() -> None:
    alone = rows(*(one | {"sent_s": None} for one in QUEUED))
    assert len(queueing.queue(alone, "forward").waiting.time_s) == 0
    assert len(queueing.sojourns(alone, "forward").time_s) == 0
    old = rows(*QUEUED).drop_columns(["sent_ecn", "received_ecn"])
    assert not queueing.sojourns(old, "forward").marked.any()


@examples(25)
@given(TRANSFERS)
def test_a_queue_holds_no_more_than_its_size_and_the_packet_in_transmission(setting: Setting) -> None:
    packets = fake_trace.packets(fake_trace.simulate(setting))
    found = queueing.queue(packets, "forward")
    largest = int(table.ints(packets, "ip_bytes").max())
    assert found.waiting.bytes.min() == 0 and found.waiting.bytes[-1] == 0
    assert found.waiting.bytes.max() <= setting.queue_bytes + largest
    dropped = table.texts(series.in_direction(packets, "forward"), "fate") == "queue_drop"
    assert len(found.dropped.time_s) == dropped.sum()
    if not setting.loss:  # what is lost later waits, too, but nobody saw for how long
        assert (found.dropped.bytes > setting.queue_bytes - largest).all()
