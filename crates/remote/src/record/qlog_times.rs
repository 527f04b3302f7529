//! When a client's handshake was complete and its data came, by its qlog.
//!
//! Times count from the first packet that was sent. The first STREAM frame in a 1-RTT packet stands
//! for the first byte, the last one for the last; of logs that do not name frames, which some
//! stacks write, the last 1-RTT packet does, and the first byte is not known.

use std::fs;
use std::path::Path;

use bentpipe_qlog::Reader;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The times of a trial in nanoseconds from its first packet.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "times carry their unit")]
pub struct Times {
    /// Until the first 1-RTT packet came.
    pub handshake_ns: Option<u64>,
    /// Until the first data came.
    pub first_byte_ns: Option<u64>,
    /// Until the last came.
    pub last_byte_ns: Option<u64>,
}

#[derive(Deserialize)]
struct Packet<'a> {
    #[serde(borrow)]
    header: Option<Header<'a>>,
    frames: Option<Vec<Frame<'a>>>,
}

#[derive(Deserialize)]
struct Header<'a> {
    packet_type: Option<&'a str>,
}

#[derive(Deserialize)]
struct Frame<'a> {
    frame_type: Option<&'a str>,
}

/// Reads the logs in a folder. None: there is none, or several, of which it is not known which is
/// of the files.
pub fn read(folder: &Path) -> Option<Times> {
    let files = fs::read_dir(folder).ok()?.flatten();
    let texts = files.filter_map(|entry| fs::read(entry.path()).ok());
    let mut found = texts.filter_map(|text| of_log(&text));
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

fn of_log(text: &[u8]) -> Option<Times> {
    let mut reader = Reader::new(text).ok()?;
    let mut times = Times::default();
    let mut zero = None;
    while let Some(Ok(event)) = reader.next() {
        match (&*event.name, zero) {
            ("quic:packet_sent", None) => zero = Some(event.time),
            ("quic:packet_received", Some(zero)) => {
                let at = u64::try_from(event.time - zero).unwrap_or_default();
                times.take(at, event.data);
            }
            _ => {}
        }
    }
    times.last_byte_ns.map(|_| times)
}

impl Times {
    fn take(&mut self, at: u64, data: Option<&RawValue>) {
        let packet = data.and_then(|data| serde_json::from_str::<Packet>(data.get()).ok());
        let Some(packet) = packet else { return };
        let kind = packet.header.and_then(|it| it.packet_type);
        if !matches!(kind, Some("1RTT")) {
            return;
        }
        self.handshake_ns.get_or_insert(at);
        let is_data = |frames: &Vec<Frame>| frames.iter().any(|it| it.frame_type == Some("stream"));
        match packet.frames.as_ref().map(is_data) {
            Some(false) => {}
            Some(true) => {
                self.first_byte_ns.get_or_insert(at);
                self.last_byte_ns = Some(at);
            }
            None => self.last_byte_ns = Some(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_tell_when_data_came() {
        let event = |ms: f64, kind: &str, frame: Option<&str>| {
            let frames = frame.map(|it| format!(r#","frames":[{{"frame_type":"{it}"}}]"#));
            let frames = frames.unwrap_or_default();
            format!(
                r#"{{"time":{ms},"name":"transport:packet_received","data":{{"header":{{"packet_type":"{kind}"}}{frames}}}}}"#
            )
        };
        let events = |received: &str| {
            let sent = r#"{"time":100.0,"name":"transport:packet_sent","data":{"header":{"packet_type":"initial"}}}"#;
            format!(
                r#"{{"qlog_version":"0.3","traces":[{{"vantage_point":{{"type":"client"}},"events":[{sent},{received}]}}]}}"#
            )
        };
        let named = [
            event(700.0, "handshake", Some("crypto")),
            event(800.0, "1RTT", Some("ack")),
            event(1_400.0, "1RTT", Some("stream")),
            event(9_100.0, "1RTT", Some("stream")),
            event(9_200.0, "1RTT", Some("ack")),
        ];
        let ms = |ms: u64| Some(ms * 1_000_000);
        let expected = Times {
            handshake_ns: ms(700),
            first_byte_ns: ms(1300),
            last_byte_ns: ms(9000),
        };
        assert_eq!(of_log(events(&named.join(",")).as_bytes()), Some(expected));
        let bare = [event(800.0, "1RTT", None), event(9_100.0, "1RTT", None)];
        let expected = Times {
            first_byte_ns: None,
            ..expected
        };
        assert_eq!(of_log(events(&bare.join(",")).as_bytes()), Some(expected));
        assert_eq!(of_log(events(&named[0]).as_bytes()), None, "nothing came");
    }
}
