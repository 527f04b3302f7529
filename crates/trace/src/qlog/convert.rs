//! Writes 0.3, the newest qlog that qvis opens, from any generation.
//!
//! qvis takes a file whose `qlog_version` is 0.3 and whose events are members of `traces[].events`, and draws from the
//! members below. Sources: the change logs of draft-ietf-quic-qlog-quic-events up to -14; qvis's loader
//! (`QlogLoaderV2.ts`) and schema (`QlogSchema02.ts`).
//!
//! | event or frame | current schema, or the stack's own | 0.3 |
//! |---|---|---|
//! | all | `quic:…` | `transport:…`, `connectivity:…`, `security:…`, `recovery:…` |
//! | `packet_*` | `header.length`, no `raw` (noq, quinn) | `raw.length` |
//! | `packet_*` (draft-01) | `packet_type`, `packet_number`, `header.packet_size` | `header.packet_type`, `header.packet_number`, `raw.length` |
//! | CRYPTO, STREAM, DATAGRAM | `raw.payload_length`, else `raw.length` | `length` |
//! | other frames | `raw.length`, `raw.payload_length` | `length`, `payload_length` |
//! | ACK | `acked_ranges: [[7]]` | `[[7, 7]]` |
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
//! All else stays as it is. Times become relative to the trace's first event. A trace whose clock is unknown begins when
//! the first of those with a known one does. An event's `group_id` stays only if the events of groups alternate: qvis
//! makes a connection of each group, but quinn changes the group of a connection when the peer's connection ID changes.

use std::borrow::Cow;
use std::io::{self, Write};

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::congestion::RttUnit;
use super::event::Event;
use super::names;
use super::outline::Outline;
use super::time;
use super::trace::{Clock, Trace};

/// Writes traces into one file.
#[derive(Debug)]
pub struct Converter<W> {
    out: W,
    traces: usize,
    events: usize,
    unknown_clocks_begin: Option<i64>,
    current: Option<Current>,
}

/// The trace that is being written.
#[derive(Debug)]
struct Current {
    /// Time of its first event.
    first: i64,
    keep_groups: bool,
    rtt_unit: RttUnit,
}

impl<W: Write> Converter<W> {
    /// Begins a file that will have the traces of these outlines.
    pub fn new<'o>(
        mut out: W,
        outlines: impl IntoIterator<Item = &'o Outline>,
    ) -> io::Result<Self> {
        out.write_all(br#"{"qlog_version":"0.3","qlog_format":"JSON","title":"converted by bentpipe-trace","traces":["#)?;
        let known = outlines
            .into_iter()
            .filter(|outline| outline.clock == Clock::Unix);
        Ok(Self {
            out,
            traces: 0,
            events: 0,
            unknown_clocks_begin: known
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
        let reference = match (outline.clock, self.unknown_clocks_begin) {
            (Clock::Unknown, Some(begin)) => begin,
            _ => first,
        };
        let head = json!({
            "title": trace.label(),
            "vantage_point": {"name": trace.label(), "type": outline.vantage.name()},
            "common_fields": {
                "protocol_type": ["QUIC"],
                "time_format": "relative",
                "reference_time": number(&time::milliseconds(reference)),
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
            rtt_unit: RttUnit::of(trace),
        });
        Ok(())
    }

    /// Writes an event of the trace that was begun last.
    pub fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        let Some(current) = &mut self.current else {
            return Err(io::Error::other("an event before the first trace"));
        };
        let time = time::milliseconds(event.time - current.first);
        let data = match event.data {
            Some(data) => data_of(&event.name, data, &mut current.rtt_unit),
            None => Cow::Borrowed("{}"),
        };
        let separator = if self.events > 0 { ",\n" } else { "\n" };
        let name = serde_json::to_string(&name_of(&event.name, &data))?;
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

fn number(digits: &str) -> Value {
    serde_json::from_str(digits).unwrap_or(Value::Null)
}

/// The name in 0.3, which had an event only for those timers that loss detection has.
fn name_of<'a>(name: &'a str, data: &str) -> Cow<'a, str> {
    let of_loss_detection = |data: &str| {
        let data = serde_json::from_str::<Map<String, Value>>(data).unwrap_or_default();
        matches!(
            data.get("timer_type").and_then(Value::as_str),
            None | Some("ack" | "pto" | "loss_timeout")
        )
    };
    if name == "quic:timer_updated" && !of_loss_detection(data) {
        return Cow::Borrowed(name);
    }
    names::old(name)
}

/// An event's data as 0.3 has it.
fn data_of<'a>(name: &str, data: &'a RawValue, rtt_unit: &mut RttUnit) -> Cow<'a, str> {
    let kind = name.strip_prefix("quic:").unwrap_or("");
    let change: fn(&mut Map<String, Value>) = match kind {
        "packet_sent" | "packet_received" | "packet_dropped" | "packet_buffered"
        | "packet_lost" => packet,
        "frames_processed" | "frames_created" | "frames_parsed" | "marked_for_retransmit" => frames,
        "parameters_set" | "parameters_restored" | "connection_id_updated" => owner,
        "connection_started" => connection_started,
        "connection_closed" => connection_closed,
        "alpn_information" => alpn_information,
        "key_updated" | "key_discarded" => |data| rename(data, "key_phase", "generation"),
        "stream_data_moved" | "datagram_data_moved" => lengths,
        "recovery_metrics_updated" => metrics,
        _ => return Cow::Borrowed(data.get()),
    };
    let Ok(mut members) = serde_json::from_str::<Map<String, Value>>(data.get()) else {
        return Cow::Borrowed(data.get());
    };
    change(&mut members);
    if kind == "recovery_metrics_updated" {
        for key in ["smoothed_rtt", "latest_rtt", "min_rtt", "rtt_variance"] {
            if let Some(value) = members.get_mut(key)
                && let Some(rtt) = rtt_unit.read(&value.to_string())
            {
                *value = number(&time::milliseconds(rtt));
            }
        }
    }
    Cow::Owned(Value::Object(members).to_string())
}

fn rename(members: &mut Map<String, Value>, from: &str, to: &str) {
    if !members.contains_key(to)
        && let Some(value) = members.remove(from)
    {
        members.insert(to.to_owned(), value);
    }
}

fn packet(data: &mut Map<String, Value>) {
    for key in ["packet_type", "packet_number"] {
        if let Some(value) = data.remove(key)
            && let Value::Object(header) = data.entry("header").or_insert_with(|| json!({}))
        {
            header.entry(key).or_insert(value);
        }
    }
    if let Some(Value::Object(header)) = data.get_mut("header") {
        let size = header
            .remove("packet_size")
            .or_else(|| header.get("length").cloned());
        if let Some(size) = size {
            data.entry("raw").or_insert_with(|| json!({"length": size}));
        }
    }
    frames(data);
}

fn frames(data: &mut Map<String, Value>) {
    if let Some(Value::Array(frames)) = data.get_mut("frames") {
        for value in frames {
            if let Value::Object(value) = value {
                frame(value);
            }
        }
    }
}

fn frame(frame: &mut Map<String, Value>) {
    let kind = frame
        .get("frame_type")
        .and_then(Value::as_str)
        .unwrap_or("")
        .to_owned();
    match kind.as_str() {
        "crypto" | "stream" | "datagram" => {
            let raw = frame.get("raw").unwrap_or(&Value::Null);
            let length = raw
                .get("payload_length")
                .or_else(|| raw.get("length"))
                .cloned();
            if let Some(length) = length {
                frame.entry("length").or_insert(length);
            }
        }
        "ack" => ack_ranges(frame),
        "connection_close" => {
            if let Some(error) = known_error(frame) {
                rename(frame, "error_code", "raw_error_code");
                frame.insert("error_code".to_owned(), error);
            }
        }
        "reset_stream" | "reset_stream_at" | "stop_sending" => {
            if let Some(error) = known_error(frame) {
                frame.entry("error_code").or_insert(error);
            }
        }
        "unknown" => rename(frame, "frame_type_bytes", "raw_frame_type"),
        _ => {}
    }
    if !matches!(kind.as_str(), "crypto" | "stream" | "datagram") {
        lengths(frame);
    }
    if let Some(Value::Object(raw)) = frame.get("raw")
        && !raw.contains_key("data")
    {
        frame.remove("raw");
    }
}

/// Takes an error's name out; none if it is `unknown`, and only its number tells.
fn known_error(frame: &mut Map<String, Value>) -> Option<Value> {
    frame.remove("error").filter(|error| error != "unknown")
}

/// Ranges of one packet number get their second.
fn ack_ranges(frame: &mut Map<String, Value>) {
    if let Some(Value::Array(ranges)) = frame.get_mut("acked_ranges") {
        for range in ranges {
            if let Value::Array(range) = range
                && let [only] = range.as_slice()
            {
                range.push(only.clone());
            }
        }
    }
}

/// Takes lengths out of `raw`.
fn lengths(members: &mut Map<String, Value>) {
    for key in ["length", "payload_length"] {
        if let Some(length) = members.get("raw").and_then(|raw| raw.get(key)).cloned() {
            members.entry(key).or_insert(length);
        }
    }
}

fn owner(data: &mut Map<String, Value>) {
    rename(data, "initiator", "owner");
}

fn connection_closed(data: &mut Map<String, Value>) {
    owner(data);
    let code = data.remove("error_code");
    for (from, to) in [
        ("connection_error", "connection_code"),
        ("application_error", "application_code"),
    ] {
        if let Some(error) = data.remove(from) {
            let unknown = error == "unknown";
            let value = code.clone().filter(|_| unknown).unwrap_or(error);
            data.insert(to.to_owned(), value);
        }
    }
}

/// Addresses of both ends. quic-go has them in objects `address_v4` and `address_v6`.
fn connection_started(data: &mut Map<String, Value>) {
    for (end, side) in [("local", "src"), ("remote", "dst")] {
        let Some(Value::Object(end)) = data.remove(end) else {
            continue;
        };
        for version in ["v4", "v6"] {
            let own = end
                .get(&format!("address_{version}"))
                .unwrap_or(&Value::Null);
            let ip = end.get(&format!("ip_{version}")).or_else(|| own.get("ip"));
            let port = end
                .get(&format!("port_{version}"))
                .or_else(|| own.get("port"));
            if let Some(ip) = ip {
                data.insert("ip_version".to_owned(), version.into());
                data.insert(format!("{side}_ip"), ip.clone());
            }
            if let Some(port) = port {
                data.insert(format!("{side}_port"), port.clone());
            }
        }
        if let Some(id) = end.get("connection_ids").and_then(|ids| ids.get(0)) {
            data.insert(format!("{side}_cid"), id.clone());
        }
    }
}

fn alpn_information(data: &mut Map<String, Value>) {
    let text = |value: &mut Value| {
        let name = value
            .get("string_value")
            .or_else(|| value.get("byte_value"))
            .cloned();
        if let Some(name) = name {
            *value = name;
        }
    };
    for value in data.values_mut() {
        match value {
            Value::Array(list) => list.iter_mut().for_each(text),
            value => text(value),
        }
    }
}

fn metrics(data: &mut Map<String, Value>) {
    rename(data, "cwnd", "congestion_window");
    if data.get("ssthresh").and_then(Value::as_u64) == Some(u64::MAX) {
        data.remove("ssthresh");
    }
}
