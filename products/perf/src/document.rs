//! The output for programs: one JSON document for a test.

use bentpipe_noq_adapter::Library as _;
use bentpipe_noq_options::Noq;
use serde_json::{Value, json};

use crate::protocol::{Amount, Direction, Interval, Request, TestEnd};
use crate::real;
use crate::session::Session;

/// The context of a test: what a document says of it beyond its session.
pub struct TestContext<'a> {
    pub role: &'a str,
    pub local: String,
    pub remote: String,
    pub started_unix_s: f64,
    /// `None`: a server does not know.
    pub certificate: Option<&'a str>,
    pub session_resumed: Option<bool>,
    pub error: Option<&'a str>,
}

pub fn of(session: &Session, context: &TestContext<'_>) -> Value {
    let step = session.request.as_ref().map_or(0.0, |it| it.interval_s);
    let intervals = session.rows.iter().map(|row| interval(row, step));
    json!({
        "program": format!("bentpipe {}", env!("CARGO_PKG_VERSION")),
        "stack": Noq::VERSION,
        "start": start(session, context),
        "intervals": intervals.collect::<Vec<_>>(),
        "end": end(session, context),
        "error": context.error,
    })
}

fn start(session: &Session, context: &TestContext<'_>) -> Value {
    json!({
        "role": context.role,
        "local": context.local,
        "remote": context.remote,
        "peer_program": session.peer,
        "started_unix_s": context.started_unix_s,
        "certificate": context.certificate,
        "test": session.request.as_ref().map(test),
        "handshake_s": session.handshake().map(|time| time.as_secs_f64()),
        "ttfb_s": session.time_to_first_byte().map(|time| time.as_secs_f64()),
        "session_resumed": context.session_resumed,
        "zero_rtt": session.zero_rtt.name(),
    })
}

fn test(request: &Request) -> Value {
    let (time, bytes) = match request.amount {
        Amount::TimeS(time) => (Some(time), None),
        Amount::Bytes(bytes) => (None, Some(bytes)),
    };
    json!({
        "direction": request.direction,
        "reverse": request.direction == Direction::Download,
        "time_s": time,
        "bytes": bytes,
        "streams": request.streams,
        "interval_s": request.interval_s,
        "options": request.options,
    })
}

fn interval(row: &Interval, interval_s: f64) -> Value {
    let start = f64::from(row.index) * interval_s;
    let received = row.received.map(|it| it.bytes);
    json!({
        "start_s": start,
        "end_s": start + row.seconds,
        "received_bytes": received,
        "goodput_bps": received.map(|bytes| 8.0 * real(bytes) / row.seconds),
        "cwnd_bytes": row.sent.map(|it| it.cwnd_bytes),
        "rtt_ms": row.sent.map(|it| it.rtt_ms),
        "sent_packets": row.sent.map(|it| it.packets),
        "lost_packets": row.sent.map(|it| it.lost_packets),
    })
}

fn end(session: &Session, context: &TestContext<'_>) -> Value {
    let received = session.received();
    let goodput = received
        .filter(|(_, seconds)| *seconds > 0.0)
        .map(|(it, seconds)| 8.0 * real(it.bytes) / seconds);
    let sent = session.sent();
    let totals = sent.map(|it| it.totals);
    let (client, server) = if context.role == "client" {
        (&session.own_end, &session.peer_end)
    } else {
        (&session.peer_end, &session.own_end)
    };
    let cpu = |end: &Option<TestEnd>| end.as_ref().map(|end| end.cpu_s);
    json!({
        "received_bytes": received.map(|(it, _)| it.bytes),
        "seconds": received.map(|(_, seconds)| seconds),
        "goodput_bps": goodput,
        "sent_packets": totals.map(|it| it.packets),
        "lost_packets": totals.map(|it| it.lost_packets),
        "cwnd_bytes": totals.map(|it| it.cwnd_bytes),
        "rtt_ms": totals.map(|it| it.rtt_ms),
        "mtu_bytes": sent.map(|it| it.mtu_bytes),
        "congestion_control": sent.map(|it| &it.statistics),
        "cpu_client_s": cpu(client),
        "cpu_server_s": cpu(server),
        "interrupted": session.was_interrupted(),
    })
}
