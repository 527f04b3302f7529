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

from bentpipe.analysis.plots import series, table

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
