//! qlog out of s2n-quic's events.
//!
//! s2n-quic has its own event framework and no qlog. Its events tell what is in a qlog, but for one
//! thing: the frames of a packet are events apart, which do not say whose they are, so packets are
//! logged without them.

use std::fmt::Display;
use std::io::Write;
use std::time::Duration;

use bentpipe_endpoint::{LogFile, LogFolder, Setup};
use s2n_quic::provider::event::events::{
    BbrStateChanged, ConnectionClosed, ConnectionMeta, MtuUpdated, PacingRateUpdated, PacketHeader,
    PacketLost, PacketReceived, PacketSent, RecoveryMetrics, SlowStartExitCause, SlowStartExited,
};
use s2n_quic::provider::event::{ConnectionInfo, Subscriber};
use serde_json::json;

use crate::machine::since_start;

/// Writes a file per connection, or nothing.
pub struct Qlog {
    folder: Option<LogFolder>,
    side: &'static str,
    /// The wall-clock time of time 0.
    start: Duration,
}

/// A connection's file.
pub struct Log {
    file: LogFile,
    /// Most events of recovery change nothing.
    metrics: String,
}

impl Qlog {
    pub fn new(setup: &Setup) -> Self {
        Self {
            folder: setup.qlog.clone(),
            side: setup.role.name(),
            start: setup.clock.unix(),
        }
    }
}

impl Log {
    /// A record of JSON-SEQ. A full disk shows again, as an error, when the file is completed.
    fn record(&mut self, json: impl Display) {
        let _ = writeln!(self.file, "\u{1e}{json}");
    }

    fn event(&mut self, meta: &ConnectionMeta, name: &str, data: impl Display) {
        let time = milliseconds(since_start(meta.timestamp));
        self.record(format_args!(
            r#"{{"time":{time},"name":"{name}","data":{{{data}}}}}"#
        ));
    }

    fn packet(&mut self, meta: &ConnectionMeta, name: &str, header: &PacketHeader, size: usize) {
        let header = describe(header);
        self.event(
            meta,
            name,
            format_args!(r#"{header},"raw":{{"length":{size}}}"#),
        );
    }

    fn phase(&mut self, meta: &ConnectionMeta, new: &str) {
        self.event(
            meta,
            "recovery:congestion_state_updated",
            format_args!(r#""new":"{new}""#),
        );
    }
}

impl Subscriber for Qlog {
    type ConnectionContext = Option<Log>;

    fn create_connection_context(
        &mut self,
        _: &ConnectionMeta,
        _: &ConnectionInfo<'_>,
    ) -> Option<Log> {
        let file = self.folder.as_ref()?.create()?;
        let metrics = String::new();
        let mut log = Log { file, metrics };
        log.record(json!({
            "qlog_version": "0.3",
            "qlog_format": "JSON-SEQ",
            "title": "s2n-quic",
            "trace": {
                "vantage_point": { "name": "s2n-quic", "type": self.side },
                "common_fields": {
                    "protocol_type": ["QUIC"],
                    "time_format": "relative",
                    "reference_time": self.start.as_secs_f64() * 1e3,
                },
            },
        }));
        Some(log)
    }

    fn on_packet_sent(&mut self, log: &mut Option<Log>, meta: &ConnectionMeta, event: &PacketSent) {
        if let Some(log) = log {
            let header = &event.packet_header;
            log.packet(meta, "transport:packet_sent", header, event.packet_len);
        }
    }

    fn on_packet_received(
        &mut self,
        log: &mut Option<Log>,
        meta: &ConnectionMeta,
        event: &PacketReceived,
    ) {
        if let Some(log) = log {
            let header = &event.packet_header;
            log.packet(meta, "transport:packet_received", header, event.packet_len);
        }
    }

    fn on_packet_lost(
        &mut self,
        log: &mut Option<Log>,
        meta: &ConnectionMeta,
        event: &PacketLost<'_>,
    ) {
        if let Some(log) = log {
            log.event(meta, "recovery:packet_lost", describe(&event.packet_header));
        }
    }

    fn on_recovery_metrics(
        &mut self,
        log: &mut Option<Log>,
        meta: &ConnectionMeta,
        event: &RecoveryMetrics<'_>,
    ) {
        let Some(log) = log else { return };
        let metrics = format!(
            r#""min_rtt":{},"smoothed_rtt":{},"latest_rtt":{},"rtt_variance":{},"pto_count":{},"congestion_window":{},"bytes_in_flight":{}"#,
            milliseconds(event.min_rtt),
            milliseconds(event.smoothed_rtt),
            milliseconds(event.latest_rtt),
            milliseconds(event.rtt_variance),
            event.pto_count,
            event.congestion_window,
            event.bytes_in_flight,
        );
        if metrics != log.metrics {
            log.event(meta, "recovery:metrics_updated", &metrics);
            log.metrics = metrics;
        }
    }

    fn on_pacing_rate_updated(
        &mut self,
        log: &mut Option<Log>,
        meta: &ConnectionMeta,
        event: &PacingRateUpdated,
    ) {
        if let Some(log) = log {
            let rate = 8 * event.bytes_per_second;
            log.event(
                meta,
                "recovery:metrics_updated",
                format_args!(r#""pacing_rate":{rate}"#),
            );
        }
    }

    fn on_slow_start_exited(
        &mut self,
        log: &mut Option<Log>,
        meta: &ConnectionMeta,
        event: &SlowStartExited,
    ) {
        if let Some(log) = log {
            let lost = matches!(
                event.cause,
                SlowStartExitCause::PacketLoss { .. } | SlowStartExitCause::Ecn { .. }
            );
            log.phase(
                meta,
                if lost {
                    "recovery"
                } else {
                    "congestion_avoidance"
                },
            );
        }
    }

    fn on_bbr_state_changed(
        &mut self,
        log: &mut Option<Log>,
        meta: &ConnectionMeta,
        event: &BbrStateChanged,
    ) {
        if let Some(log) = log {
            log.phase(meta, &format!("{:?}", event.state));
        }
    }

    fn on_mtu_updated(&mut self, log: &mut Option<Log>, meta: &ConnectionMeta, event: &MtuUpdated) {
        if let Some(log) = log {
            log.event(
                meta,
                "connectivity:mtu_updated",
                format_args!(r#""new":{}"#, event.mtu),
            );
        }
    }

    fn on_connection_closed(
        &mut self,
        log: &mut Option<Log>,
        meta: &ConnectionMeta,
        event: &ConnectionClosed,
    ) {
        if let Some(log) = log {
            let words = json!(event.error.to_string());
            log.event(
                meta,
                "connectivity:connection_closed",
                format_args!(r#""reason":{words}"#),
            );
        }
    }
}

/// A packet's header as a member of an object.
fn describe(header: &PacketHeader) -> String {
    let (kind, number) = match header {
        PacketHeader::Initial { number, .. } => ("initial", Some(number)),
        PacketHeader::Handshake { number, .. } => ("handshake", Some(number)),
        // s2n-quic does not read it, and says 0 for its number.
        PacketHeader::ZeroRtt { .. } => ("0RTT", None),
        PacketHeader::OneRtt { number, .. } => ("1RTT", Some(number)),
        PacketHeader::Retry { .. } => ("retry", None),
        PacketHeader::VersionNegotiation { .. } => ("version_negotiation", None),
        PacketHeader::StatelessReset { .. } => ("stateless_reset", None),
        _ => ("unknown", None),
    };
    let number = number.map_or(String::new(), |number| {
        format!(r#","packet_number":{number}"#)
    });
    format!(r#""header":{{"packet_type":"{kind}"{number}}}"#)
}

fn milliseconds(time: Duration) -> String {
    format!(
        "{}.{:06}",
        time.as_millis(),
        time.subsec_nanos() % 1_000_000
    )
}
