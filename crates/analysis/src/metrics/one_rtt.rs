//! How long an end was sent 1-RTT packets.

use crate::connection::{Connection, Kind, Nanos};
use bentpipe_wire::quic::{End, PacketType};

/// From the first to the last 1-RTT packet of `sender` that reached the other end, whatever they
/// carry: between these two the QUIC interop runner takes its goodput (`get_1rtt_sniff_times` of
/// its `trace.py`), and the thesis its equation 4.1 (Endres 2022). The first may be the end of the
/// handshake, a round trip before the reply, the last a `CONNECTION_CLOSE`. Headers tell them
/// apart: no secrets are needed. None if no such packet came.
#[must_use]
pub fn one_rtt_span(connection: &Connection, sender: End) -> Option<Nanos> {
    let own = connection.packets.iter();
    let own = own.filter(|it| it.sender == sender && it.kind == Kind::Quic(PacketType::OneRtt));
    let came = own.filter_map(|it| connection.seen_at(it, sender.other()));
    let (first, last) = came.fold((Nanos::MAX, Nanos::MIN), |(first, last), at| {
        (first.min(at), last.max(at))
    });
    (first <= last).then(|| last - first)
}
