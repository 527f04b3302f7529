//! The output for people: tables of at most 80 columns.

use std::fmt::Write as _;

use crate::protocol::{Amount, Direction, Interval, Request};
use crate::real;
use crate::session::Session;

pub const HEADING: [&str; 2] = [
    "      seconds    received       goodput       cwnd       RTT     lost",
    "                      MiB        Mbit/s        KiB        ms  packets",
];

/// A line for an interval; `-`: not known.
pub fn row(row: &Interval, request: &Request) -> String {
    let start = f64::from(row.index) * request.interval_s;
    let digits = if request.interval_s < 1.0 { 2 } else { 1 };
    let end = start + row.seconds;
    let times = format!("{start:.digits$}-{end:.digits$}");
    let mut line = format!("{times:>13}");
    match row.received {
        Some(received) => {
            let rate = 8.0 * real(received.bytes) / row.seconds / 1e6;
            let _ = write!(line, " {:>11.2} {rate:>13.2}", mib(received.bytes));
        }
        None => line.push_str("           -             -"),
    }
    match row.sent {
        Some(sent) => {
            let cwnd = real(sent.cwnd_bytes) / 1024.0;
            let (rtt, lost) = (sent.rtt_ms, sent.lost_packets);
            let _ = write!(line, " {cwnd:>10.0} {rtt:>9.2} {lost:>8}");
        }
        None => line.push_str("          -         -        -"),
    }
    line
}

/// The measurement that is about to begin.
pub fn intention(request: &Request) -> String {
    let way = match request.direction {
        Direction::Upload => "client sends",
        Direction::Download => "server sends",
    };
    let amount = match request.amount {
        Amount::TimeS(time) => format!("for {time} s"),
        Amount::Bytes(bytes) => size(bytes),
    };
    let streams = match request.streams {
        1 => String::new(),
        count => format!(" over {count} streams"),
    };
    let mut text = format!("{way} {amount}{streams}");
    if !request.options.is_empty() {
        let words: Vec<_> = request
            .options
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let _ = write!(text, ", {}", words.join(" "));
    }
    text
}

/// The result of the measurement.
pub fn summary(session: &Session, role: [&str; 2]) -> String {
    let mut lines = Vec::new();
    if let Some((received, seconds)) = session.received() {
        let rate = rate(received.bytes, seconds);
        let size = size(received.bytes);
        lines.push(format!("goodput   {rate}: {size} in {seconds:.3} s"));
    }
    if let Some(sent) = session.sent() {
        let totals = &sent.totals;
        let share = 100.0 * real(totals.lost_packets) / real(totals.packets.max(1));
        lines.push(format!(
            "sender    {} packets of up to {} bytes, {} lost ({share:.2} %)",
            totals.packets, sent.mtu_bytes, totals.lost_packets
        ));
        lines.push(format!(
            "          at the end: cwnd {:.0} KiB, RTT {:.2} ms",
            real(totals.cwnd_bytes) / 1024.0,
            totals.rtt_ms
        ));
        let said = serde_json::to_value(&sent.statistics).unwrap_or_default();
        for (name, value) in said.as_object().into_iter().flatten() {
            lines.push(format!("          {name} {value}"));
        }
    }
    if let (Some(own), Some(peer)) = (&session.own_end, &session.peer_end) {
        let [here, there] = role;
        lines.push(format!(
            "CPU time  {here} {:.2} s, {there} {:.2} s",
            own.cpu_s, peer.cpu_s
        ));
    }
    lines.join("\n")
}

fn rate(bytes: u64, seconds: f64) -> String {
    if seconds <= 0.0 {
        return "too short to tell".into();
    }
    let rate = 8.0 * real(bytes) / seconds;
    if rate >= 1e9 {
        format!("{:.3} Gbit/s", rate / 1e9)
    } else {
        format!("{:.3} Mbit/s", rate / 1e6)
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{:.2} KiB", real(bytes) / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.2} MiB", mib(bytes)),
        _ => format!("{:.3} GiB", mib(bytes) / 1024.0),
    }
}

fn mib(bytes: u64) -> f64 {
    real(bytes) / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{ReceiverCounters, SenderCounters};

    #[test]
    fn rows_are_below_their_heading_and_fit_into_a_terminal() {
        let request = Request {
            direction: Direction::Upload,
            amount: Amount::TimeS(86_400.0),
            streams: 1,
            interval_s: 1.0,
            options: std::collections::BTreeMap::default(),
        };
        let large = Interval {
            index: 86_399,
            seconds: 1.0,
            received: Some(ReceiverCounters { bytes: 5 << 30 }),
            sent: Some(SenderCounters {
                cwnd_bytes: 1 << 40,
                rtt_ms: 12_345.0,
                packets: 5_000_000,
                lost_packets: 5_000_000,
            }),
        };
        let empty = Interval {
            received: None,
            sent: None,
            ..large
        };
        assert_eq!(
            row(&large, &request),
            "86399.0-86400.0     5120.00      42949.67 1073741824  12345.00  5000000"
        );
        assert_eq!(
            row(&empty, &request),
            "86399.0-86400.0           -             -          -         -        -"
        );
        let longest = HEADING.into_iter().map(str::len).max();
        assert!(longest < Some(72), "a server puts a number before it");
    }
}
