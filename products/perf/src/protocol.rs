//! The protocol between client and server of a test.
//!
//! The first bidirectional stream of a connection carries lines of JSON, a [`Message`] each, both
//! ways. The client's first is its [`Request`]; the server accepts or refuses. Data are on
//! unidirectional streams of whoever sends them. Each side reports every interval what only it can
//! know: the receiver what has arrived, the sender its congestion window, round-trip time and
//! losses. So both can show all of it. When the data end (FIN, or a reset where time is what ends
//! them) the receiver says how it ended, then the sender does, and the receiver closes the
//! connection.
//!
//! What a connection is to be like must be known before there is one: the [`Options`] of a variant
//! travel in the `ClientHello`, as an application protocol that no server selects. The request
//! repeats them, so that a server which has not seen them can refuse.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bentpipe_endpoint::contract::Statistics;
use bentpipe_endpoint::{EndpointError, Options};
use serde::{Deserialize, Serialize};

/// The application protocol (RFC 7301); another version is another protocol.
pub const ALPN: &[u8] = b"bentpipe-perf/1";
/// The beginning of the protocol that carries the options.
const OPTIONS: &str = "bentpipe-perf-options/1 ";
/// The longest protocol name of RFC 7301.
const LONGEST_ALPN: usize = 255;

/// A line that is longer is not this protocol's.
pub const LONGEST_LINE: usize = 4096;

pub const MOST_STREAMS: u32 = 128;
pub const MOST_BYTES: u64 = 1 << 50;
pub const LONGEST_S: f64 = 86_400.0;
pub const INTERVALS_S: std::ops::RangeInclusive<f64> = 0.02..=3600.0;
/// A report has a line for each.
const MOST_INTERVALS: f64 = 100_000.0;

/// The direction of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The client sends.
    Upload,
    /// The server sends.
    Download,
}

/// The amount of data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// The bytes that the path takes in this number of seconds.
    TimeS(f64),
    /// This number of bytes over all streams.
    Bytes(u64),
}

/// The request of a client: the test that it wants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub direction: Direction,
    pub amount: Amount,
    pub streams: u32,
    pub interval_s: f64,
    pub options: BTreeMap<String, String>,
}

/// The counters of an interval: one side's part on the wire, both where they are together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// From 0, counted by each side from its first data.
    pub index: u32,
    /// How long it was: the last one is shorter.
    pub seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received: Option<ReceiverCounters>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<SenderCounters>,
}

/// The counters that only the receiver knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiverCounters {
    /// Of streams, each once.
    pub bytes: u64,
}

/// The counters that only the sender knows; window and round-trip time at the end of the interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SenderCounters {
    pub cwnd_bytes: u64,
    pub rtt_ms: f64,
    pub packets: u64,
    pub lost_packets: u64,
}

/// The end of a test at one side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestEnd {
    /// The receiver's from the first byte to the last, the sender's until it had nothing more to
    /// send.
    pub seconds: f64,
    /// Of the whole program since the test began.
    pub cpu_s: f64,
    /// Whether somebody ended the test before its time.
    pub interrupted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received: Option<ReceiverCounters>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<SenderTotals>,
}

/// The totals of the sender.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SenderTotals {
    pub totals: SenderCounters,
    pub mtu_bytes: u16,
    /// The report of congestion control.
    pub statistics: Statistics,
}

/// A message: a line of the control stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    Request(Request),
    /// The program that serves.
    Accepted(String),
    /// Why not.
    Refused(String),
    Interval(Interval),
    /// The reader of this is to send no more.
    Stop,
    End(TestEnd),
}

impl Message {
    /// As a line.
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("messages are JSON");
        line.push(b'\n');
        line
    }

    pub fn parse(line: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(line).map_err(|error| format!("a line is no message: {error}"))
    }
}

/// Takes the next whole line off `inbox`.
pub fn next_line(inbox: &mut Vec<u8>) -> Result<Option<Vec<u8>>, String> {
    let Some(end) = inbox.iter().position(|byte| *byte == b'\n') else {
        let long = inbox.len() > LONGEST_LINE;
        return if long { Err(too_long()) } else { Ok(None) };
    };
    if end > LONGEST_LINE {
        return Err(too_long());
    }
    let rest = inbox.split_off(end + 1);
    let mut line = std::mem::replace(inbox, rest);
    line.pop();
    Ok(Some(line))
}

fn too_long() -> String {
    format!("a line has more than {LONGEST_LINE} bytes")
}

impl Request {
    /// Whether its numbers make sense, in words.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=MOST_STREAMS).contains(&self.streams) {
            return Err(format!("streams: write 1 to {MOST_STREAMS}"));
        }
        if !INTERVALS_S.contains(&self.interval_s) {
            let (least, most) = (INTERVALS_S.start(), INTERVALS_S.end());
            return Err(format!("interval: write {least} to {most} seconds"));
        }
        match self.amount {
            Amount::Bytes(bytes) if !(1..=MOST_BYTES).contains(&bytes) => {
                Err(format!("bytes: write 1 to {MOST_BYTES}"))
            }
            Amount::TimeS(time) if !(0.1..=LONGEST_S).contains(&time) => {
                Err(format!("time: write 0.1 to {LONGEST_S} seconds"))
            }
            Amount::TimeS(time) if time / self.interval_s > MOST_INTERVALS => {
                let least = time / MOST_INTERVALS;
                Err(format!("interval: write at least {least} for this time"))
            }
            _ => Ok(()),
        }
    }
}

/// The protocol that carries options to the server.
pub fn options_to_alpn(options: &BTreeMap<String, String>) -> Result<Vec<u8>, EndpointError> {
    let mut text = OPTIONS.to_owned();
    for (index, (name, value)) in options.iter().enumerate() {
        let space = if index == 0 { "" } else { " " };
        write!(text, "{space}{name}={value}").expect("a String takes all text");
    }
    if text.len() > LONGEST_ALPN {
        let most = LONGEST_ALPN - OPTIONS.len();
        let what = format!("all options of the connection together: at most {most} characters");
        return Err(EndpointError::Unsupported(what));
    }
    Ok(text.into_bytes())
}

/// The options in one of the protocols that a client offers, if it is the one that carries them.
pub fn options_of_alpn(protocol: &[u8]) -> Option<BTreeMap<String, String>> {
    let text = std::str::from_utf8(protocol).ok()?.strip_prefix(OPTIONS)?;
    Some(Options::parse(text).ok()?.into_map())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request() -> Request {
        Request {
            direction: Direction::Download,
            amount: Amount::Bytes(1 << 20),
            streams: 4,
            interval_s: 0.1,
            options: BTreeMap::from([("cc".into(), "cubic".into()), ("iw".into(), "100".into())]),
        }
    }

    #[test]
    fn lines_on_the_wire() {
        let line = Message::Request(request()).to_line();
        let expected = r#"{"request":{"direction":"download","amount":{"bytes":1048576},"streams":4,"interval_s":0.1,"options":{"cc":"cubic","iw":"100"}}}"#;
        assert_eq!(String::from_utf8(line).unwrap(), format!("{expected}\n"));
        let interval = Interval {
            index: 3,
            seconds: 0.5,
            received: Some(ReceiverCounters { bytes: 17 }),
            sent: None,
        };
        let expected = r#"{"interval":{"index":3,"seconds":0.5,"received":{"bytes":17}}}"#;
        let line = Message::Interval(interval).to_line();
        assert_eq!(String::from_utf8(line).unwrap(), format!("{expected}\n"));
        assert_eq!(Message::Stop.to_line(), b"\"stop\"\n");
    }

    #[test]
    fn what_is_said_is_understood() {
        let sent = SenderTotals {
            totals: SenderCounters {
                cwnd_bytes: 1,
                rtt_ms: 0.25,
                packets: 3,
                lost_packets: 0,
            },
            mtu_bytes: 1452,
            statistics: Statistics::default(),
        };
        let end = TestEnd {
            seconds: 1.5,
            cpu_s: 0.5,
            interrupted: false,
            received: None,
            sent: Some(sent),
        };
        for message in [
            Message::Request(request()),
            Message::Accepted("noq".into()),
            Message::Refused("no".into()),
            Message::Stop,
            Message::End(end),
        ] {
            let line = message.to_line();
            assert_eq!(Message::parse(&line).unwrap(), message);
        }
    }

    #[test]
    fn what_is_no_message() {
        for line in [
            &b""[..],
            b"{}",
            b"null",
            b"\"go\"",
            b"{\"request\":{}}",
            b"{\"stop\":true}",
            b"{\"interval\":{\"index\":-1,\"seconds\":1,\"received\":{\"bytes\":1}}}",
            b"{\"interval\":{\"index\":1,\"seconds\":1,\"received\":{\"bytes\":1},\"more\":1}}",
            b"{\"accepted\":\"a\",\"refused\":\"b\"}",
            b"\xff",
        ] {
            assert!(Message::parse(line).is_err(), "{line:?}");
        }
    }

    #[test]
    fn requests_that_make_no_sense() {
        let wrong: [fn(&mut Request); 8] = [
            |it| it.streams = 0,
            |it| it.streams = MOST_STREAMS + 1,
            |it| it.interval_s = 0.0,
            |it| it.interval_s = f64::NAN,
            |it| it.amount = Amount::Bytes(0),
            |it| it.amount = Amount::TimeS(-1.0),
            |it| it.amount = Amount::TimeS(f64::INFINITY),
            |it| (it.amount, it.interval_s) = (Amount::TimeS(80_000.0), 0.1),
        ];
        request().check().unwrap();
        for spoil in wrong {
            let mut request = request();
            spoil(&mut request);
            assert!(request.check().is_err(), "{request:?}");
        }
    }

    #[test]
    fn options_in_the_client_hello() {
        let options = request().options;
        let protocol = options_to_alpn(&options).unwrap();
        assert_eq!(protocol, b"bentpipe-perf-options/1 cc=cubic iw=100");
        assert_eq!(options_of_alpn(&protocol), Some(options));
        assert_eq!(options_of_alpn(ALPN), None);
        assert_eq!(options_of_alpn(b"bentpipe-perf-options/1 cc"), None);
        let empty = options_to_alpn(&BTreeMap::new()).unwrap();
        assert_eq!(options_of_alpn(&empty), Some(BTreeMap::new()));
        let long = BTreeMap::from([("saved".into(), "1".repeat(300))]);
        assert!(options_to_alpn(&long).is_err());
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut inbox = vec![b'x'; LONGEST_LINE];
        assert_eq!(next_line(&mut inbox), Ok(None));
        inbox.push(b'x');
        assert!(next_line(&mut inbox).is_err());
        inbox.push(b'\n');
        assert!(next_line(&mut inbox).is_err());
    }

    proptest! {
        #[test]
        fn garbage_is_an_error_and_no_panic(bytes in proptest::collection::vec(any::<u8>(),
            0..512)) {
            let _ = Message::parse(&bytes);
            let _ = options_of_alpn(&bytes);
        }

        /// One byte of a good line is another: it is understood, or refused in words.
        #[test]
        fn a_spoilt_line_is_no_panic(at in 0usize..120, byte in any::<u8>()) {
            let mut line = Message::Request(request()).to_line();
            let at = at % line.len();
            line[at] = byte;
            if let Ok(Message::Request(request)) = Message::parse(&line) {
                let _ = request.check();
            }
        }

        /// However the bytes come in, the same lines come out.
        #[test]
        fn lines_are_cut_at_their_ends(
            lines in proptest::collection::vec("[a-z]{0,20}", 0..8), step in 1usize..30,
        ) {
            let ended: Vec<_> = lines.iter().map(|line| line.clone() + "\n").collect();
            let text = ended.concat();
            let (mut inbox, mut found) = (Vec::new(), Vec::new());
            for piece in text.as_bytes().chunks(step) {
                inbox.extend_from_slice(piece);
                while let Some(line) = next_line(&mut inbox).unwrap() {
                    found.push(String::from_utf8(line).unwrap());
                }
            }
            prop_assert_eq!(found, lines);
            prop_assert!(inbox.is_empty());
        }
    }
}
