//! Writes 0.3, the newest qlog that qvis opens, from any generation.
//!
//! qvis takes a file whose `qlog_version` is 0.3 and whose events are members of `traces[].events`,
//! and draws from the members below. Sources: the change logs of draft-ietf-quic-qlog-quic-events
//! up to -14; qvis's loader (`QlogLoaderV2.ts`) and schema (`QlogSchema02.ts`).
//!
//! | event or frame | current schema, or the stack's own | 0.3 |
//! |---|---|---|
//! | all | `quic:…` | `transport:…`, `connectivity:…`, `security:…`, `recovery:…` |
//! | `packet_*` | `header.length`, no `raw` (noq, quinn) | `raw.length` |
//! | `packet_*` (draft-01) | `packet_type`, `packet_number`, `header.packet_size` | `header.packet_type`, `header.packet_number`, `raw.length` |
//! | CRYPTO, STREAM, DATAGRAM | `raw.payload_length`, else `raw.length` | `length` |
//! | other frames | `raw.length`, `raw.payload_length` | `length`, `payload_length` |
//! | ACK | `acked_ranges: [[7]]`; `[[7, 8]]` for 7 alone (noq) | `[[7, 7]]` |
//! | `CONNECTION_CLOSE` | `error`, `error_code` | `error_code`, `raw_error_code` |
//! | `RESET_STREAM`, `STOP_SENDING` | `error`, `error_code` | `error_code` |
//! | unknown frames | `frame_type_bytes` | `raw_frame_type` |
//! | `parameters_set`, `connection_id_updated` | `initiator` | `owner` |
//! | `connection_started` | `local`, `remote` with `ip_v4`, `port_v4`, `connection_ids` | `src_ip`, `src_port`, `src_cid`, `dst_…` |
//! | `connection_closed` | `initiator`, `connection_error`, `application_error`, `error_code` | `owner`, `connection_code`, `application_code` |
//! | `alpn_information` | `{string_value}`, `{byte_value}` | a string |
//! | `key_updated`, `key_discarded` | `key_phase` | `generation` |
//! | `stream_data_moved` | `raw.length` | `length` |
//! | `timer_updated` | of `ack`, `pto`, `loss_timeout` | `recovery:loss_timer_updated`; others keep their name |
//! | `recovery_metrics_updated` | `cwnd` (aioquic); RTT in s (quinn); `ssthresh` of 2⁶⁴ − 1 | `congestion_window`; ms; left out |
//!
//! noq 1.4 writes the number behind a range as its last. It is corrected if the trace is titled
//! `noq` and the first range is of more than one number: a range is never empty, and the first
//! packet is acknowledged alone. All else stays as it is. Times become relative to the trace's
//! first event. What an unknown clock counts from can be given; if it is not, such a trace begins
//! when the first of those with a known clock does. An event's `group_id` stays only if the events
//! of groups alternate: qvis makes a connection of each group, but quinn changes the group of a
//! connection when the peer's connection ID changes.

mod data;

use std::borrow::Cow;
use std::io::{self, Write};

use serde_json::json;

use crate::clock::Clock;
use crate::event::Event;
use crate::outline::Outline;
use crate::time;
use crate::trace::Trace;
use data::Dialect;

/// The writer of traces into one file.
#[derive(Debug)]
pub struct Converter<W> {
    out: W,
    traces: usize,
    events: usize,
    epoch: Option<i64>,
    first_known: Option<i64>,
    current: Option<Current>,
}

/// The trace that is being written.
#[derive(Debug)]
struct Current {
    /// Time of its first event.
    first: i64,
    keep_groups: bool,
    dialect: Dialect,
}

impl<W: Write> Converter<W> {
    /// Begins a file that will have the traces of these outlines. `epoch` is what unknown clocks
    /// count from, in nanoseconds since the Unix epoch.
    pub fn new<'o>(
        mut out: W,
        outlines: impl IntoIterator<Item = &'o Outline>,
        epoch: Option<i64>,
    ) -> io::Result<Self> {
        let head = r#"{"qlog_version":"0.3","qlog_format":"JSON","title":"converted by bentpipe-trace","traces":["#;
        out.write_all(head.as_bytes())?;
        let known = outlines
            .into_iter()
            .filter(|outline| outline.clock == Clock::Unix);
        Ok(Self {
            out,
            traces: 0,
            events: 0,
            epoch,
            first_known: known
                .filter_map(|outline| outline.span)
                .map(|(first, _)| first)
                .min(),
            current: None,
        })
    }

    /// Begins the next trace.
    pub fn begin_trace(&mut self, trace: &Trace, outline: &Outline) -> io::Result<()> {
        self.end_trace()?;
        let separator = if self.traces > 0 { ",\n" } else { "\n" };
        let (first, _) = outline.span.unwrap_or_default();
        let reference = match (outline.clock, self.epoch, self.first_known) {
            (Clock::Unknown, Some(epoch), _) => epoch.saturating_add(first),
            (Clock::Unknown, None, Some(first_known)) => first_known,
            _ => first,
        };
        let head = json!({
            "title": trace.label(),
            "vantage_point": {"name": trace.label(), "type": outline.vantage.name()},
            "common_fields": {
                "protocol_type": ["QUIC"],
                "time_format": "relative",
                "reference_time": data::number(&time::milliseconds(reference)),
            },
        });
        let head = head.to_string();
        write!(
            self.out,
            "{separator}{},\"events\":[",
            &head[..head.len() - 1]
        )?;
        self.traces += 1;
        self.events = 0;
        self.current = Some(Current {
            first,
            keep_groups: outline.groups_alternate,
            dialect: Dialect::of(trace),
        });
        Ok(())
    }

    /// Writes an event of the trace that was begun last.
    pub fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        let Some(current) = &mut self.current else {
            return Err(io::Error::other("an event before the first trace"));
        };
        let time = time::milliseconds(event.time.saturating_sub(current.first));
        let data = match event.data {
            Some(data) => data::of(&event.name, data, &mut current.dialect),
            None => Cow::Borrowed("{}"),
        };
        let separator = if self.events > 0 { ",\n" } else { "\n" };
        let name = serde_json::to_string(&data::name_of(&event.name, &data))?;
        write!(
            self.out,
            "{separator}{{\"time\":{time},\"name\":{name},\"data\":{data}"
        )?;
        if current.keep_groups
            && let Some(group) = event.group
        {
            write!(self.out, ",\"group_id\":{group}")?;
        }
        for (key, value) in &event.others {
            write!(self.out, ",{}:{value}", serde_json::to_string(key)?)?;
        }
        self.events += 1;
        self.out.write_all(b"}")
    }

    /// Ends the file.
    pub fn finish(mut self) -> io::Result<()> {
        self.end_trace()?;
        self.out.write_all(b"\n]}\n")?;
        self.out.flush()
    }

    fn end_trace(&mut self) -> io::Result<()> {
        match self.current.take() {
            Some(_) => self.out.write_all(b"\n]}"),
            None => Ok(()),
        }
    }
}
