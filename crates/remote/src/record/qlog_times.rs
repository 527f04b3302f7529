//! When a client's handshake was complete and its data came, by its qlog.
//!
//! Only what all stacks write is used: packets received, with their type and the frames in them. The first STREAM frame of the
//! application's data stands for the first byte, the last one for the last.

use std::fs;
use std::path::Path;

use bentpipe_qlog::{Clock, Reader};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Times of a trial in nanoseconds from its beginning.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Until the handshake was confirmed or the first 1-RTT packet came.
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
    #[serde(default)]
    frames: Vec<Frame<'a>>,
}

#[derive(Deserialize)]
struct Header<'a> {
    packet_type: Option<&'a str>,
}

#[derive(Deserialize)]
struct Frame<'a> {
    frame_type: Option<&'a str>,
}

/// Reads the logs in a folder. None: there is none, or its times are not the clock's.
pub fn read(folder: &Path, begun_unix_ns: i64) -> Option<Times> {
    let files = fs::read_dir(folder).ok()?.flatten();
    let texts = files.filter_map(|entry| fs::read(entry.path()).ok());
    let mut found = texts.filter_map(|text| of_log(&text, begun_unix_ns));
    // With several connections it is not known which carries the files.
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

fn of_log(text: &[u8], begun_unix_ns: i64) -> Option<Times> {
    let mut reader = Reader::new(text).ok()?;
    let mut times = Times::default();
    let mut seen = false;
    while let Some(event) = reader.next() {
        let Ok(event) = event else { break };
        let is_unix = reader.traces().get(event.trace)?.clock == Clock::Unix;
        if !is_unix {
            return None;
        }
        let at = u64::try_from(event.time - begun_unix_ns).unwrap_or_default();
        seen = true;
        if event.name == "quic:packet_received" {
            times.take(at, event.data);
        }
    }
    seen.then_some(times)
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
        let mut frames = packet.frames.iter();
        if frames.any(|it| it.frame_type == Some("stream")) {
            self.first_byte_ns.get_or_insert(at);
            self.last_byte_ns = Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_tell_when_data_came() {
        let event = |ms: f64, kind: &str, frame: &str| {
            format!(
                r#"{{"time":{ms},"name":"transport:packet_received","data":{{"header":{{"packet_type":"{kind}","packet_number":1}},"frames":[{{"frame_type":"{frame}"}}]}}}}"#
            )
        };
        let events = [
            event(1_700_000_000_600.0, "handshake", "crypto"),
            event(1_700_000_000_700.0, "1RTT", "ack"),
            event(1_700_000_001_300.0, "1RTT", "stream"),
            event(1_700_000_009_000.0, "1RTT", "stream"),
            event(1_700_000_009_100.0, "1RTT", "ack"),
        ];
        let log = format!(
            r#"{{"qlog_version":"0.3","traces":[{{"vantage_point":{{"type":"client"}},"common_fields":{{"time_format":"absolute"}},"events":[{}]}}]}}"#,
            events.join(",")
        );
        let times = of_log(log.as_bytes(), 1_700_000_000_000_000_000).unwrap();
        let ms = |ms: u64| Some(ms * 1_000_000);
        let expected = Times {
            handshake_ns: ms(700),
            first_byte_ns: ms(1300),
            last_byte_ns: ms(9000),
        };
        assert_eq!(times, expected);
    }
}
