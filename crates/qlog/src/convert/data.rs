//! The rows of the table: what an event is called in 0.3, and what its data becomes.

use std::borrow::Cow;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::congestion::RttUnit;
use crate::names;
use crate::time;
use crate::trace::Trace;

/// The way in which a stack departs from the schema that it writes.
#[derive(Debug)]
pub struct Dialect {
    rtt_unit: RttUnit,
    /// The second number of an ACK range is one too large; none until the first range was seen.
    ack_ends_behind: Option<bool>,
}

impl Dialect {
    pub fn of(trace: &Trace) -> Self {
        let may_be_wrong = trace.title.as_deref() == Some("noq");
        Self {
            rtt_unit: RttUnit::of(trace),
            ack_ends_behind: if may_be_wrong { None } else { Some(false) },
        }
    }

    /// Brings units and ranges of an event to those of the schema.
    fn translate(&mut self, data: &mut Map<String, Value>) {
        for key in ["smoothed_rtt", "latest_rtt", "min_rtt", "rtt_variance"] {
            if let Some(value) = data.get_mut(key)
                && let Some(rtt) = self.rtt_unit.read(&value.to_string())
            {
                *value = number(&time::milliseconds(rtt));
            }
        }
        if self.ack_ends_behind != Some(false)
            && let Some(Value::Array(frames)) = data.get_mut("frames")
        {
            let ranges = frames
                .iter_mut()
                .filter_map(|frame| frame.get_mut("acked_ranges")?.as_array_mut());
            ranges.flatten().for_each(|range| self.range(range));
        }
    }

    fn range(&mut self, range: &mut Value) {
        if let (Some(first), Some(last)) = (range[0].as_u64(), range[1].as_u64()) {
            let behind = *self.ack_ends_behind.get_or_insert(first < last);
            if behind {
                range[1] = last.saturating_sub(1).into();
            }
        }
    }
}

/// The part of a timer's event that decides what it is called.
#[derive(serde::Deserialize)]
struct Timer<'a> {
    #[serde(borrow)]
    timer_type: Option<Cow<'a, str>>,
}

/// The name in 0.3, which had an event only for the timers that loss detection has.
pub fn name_of<'a>(name: &'a str, data: &str) -> Cow<'a, str> {
    if name == "quic:timer_updated"
        && let Ok(Timer {
            timer_type: Some(kind),
        }) = serde_json::from_str(data)
        && !matches!(kind.as_ref(), "ack" | "pto" | "loss_timeout")
    {
        return Cow::Borrowed(name);
    }
    names::old(name)
}

/// An event's data as 0.3 has it.
pub fn of<'a>(name: &str, data: &'a RawValue, dialect: &mut Dialect) -> Cow<'a, str> {
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
    dialect.translate(&mut members);
    Cow::Owned(Value::Object(members).to_string())
}

/// A JSON number of these digits.
pub fn number(digits: &str) -> Value {
    serde_json::from_str(digits).unwrap_or(Value::Null)
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
