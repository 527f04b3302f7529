//! The JSON form of a packet.
//!
//! Most of a line is written by hand: a general serializer takes as long for a line as
//! it takes to read and decrypt the packet. The result is the same, as a test shows.

use bentpipe_wire::quic::{AckRanges, End, Frame, FrameError, Packet, Space, TransportParameters};

/// The facts of a packet besides what it says itself.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// The captured packet that it came in, counted from 1 as Wireshark does.
    pub frame: usize,
    /// Where, as [`interface`] gives it.
    pub interface: &'a str,
    /// Nanoseconds since the Unix epoch.
    pub time: Option<u64>,
}

/// The part of a line that tells the interface.
pub fn interface(name: &str) -> String {
    format!(
        ",\"interface\":{},\"time_s\":",
        serde_json::Value::from(name)
    )
}

/// Adds the line of a packet. An error tells where its frames could be read no further; the line
/// has those before.
pub fn add_line(out: &mut Vec<u8>, seen: &Seen<'_>, packet: &Packet<'_>) -> Result<(), FrameError> {
    out.reserve(400); // most lines are shorter
    let mut line = JsonLine { out };
    line.number("{\"frame\":", seen.frame as u64);
    line.text(seen.interface).time(seen.time);
    line.optional(
        ",\"connection\":",
        packet.connection.map(|number| number as u64),
    );
    line.text(match packet.sender {
        End::Client => ",\"sender\":\"client\",\"type\":\"",
        End::Server => ",\"sender\":\"server\",\"type\":\"",
    });
    line.text(packet.kind.name());
    line.text(match packet.kind.space() {
        Some(Space::Application) => "\",\"space\":\"application\"",
        Some(Space::Handshake) => "\",\"space\":\"handshake\"",
        Some(Space::Initial) => "\",\"space\":\"initial\"",
        None => "\",\"space\":null",
    });
    line.optional(",\"number\":", packet.number);
    if packet.path_id > 0 {
        line.number(",\"path\":", packet.path_id.into());
    }
    line.number(",\"size\":", packet.size as u64);
    line.text(",\"frames\":[");
    let (mut result, mut separator) = (Ok(()), "");
    for frame in packet.frames() {
        match frame {
            Ok(frame) => line.text(separator).frame(&frame, packet.parameters),
            Err(error) => result = Err(error),
        }
        separator = ",";
    }
    line.text("]}\n");
    result
}

/// A line while it is written.
struct JsonLine<'a> {
    out: &'a mut Vec<u8>,
}

impl JsonLine<'_> {
    #[inline]
    fn text(&mut self, text: &str) -> &mut Self {
        self.out.extend_from_slice(text.as_bytes());
        self
    }

    #[inline]
    fn number(&mut self, before: &str, number: u64) -> &mut Self {
        self.text(before).text(itoa::Buffer::new().format(number))
    }

    fn optional(&mut self, before: &str, number: Option<u64>) {
        match number {
            Some(number) => self.number(before, number),
            None => self.text(before).text("null"),
        };
    }

    /// Seconds, in text: a JSON number would not hold the nanoseconds.
    fn time(&mut self, time: Option<u64>) {
        const SECOND: u64 = 1_000_000_000;
        let Some(time) = time else {
            self.text("null");
            return;
        };
        // 1 before the fraction keeps its zeros; a point takes its place.
        let (whole, fraction) = (time / SECOND, time % SECOND + SECOND);
        self.number("\"", whole);
        let point = self.out.len();
        self.number("", fraction).text("\"");
        self.out[point] = b'.';
    }

    fn frame(&mut self, frame: &Frame<'_>, parameters: Option<&TransportParameters>) {
        match *frame {
            Frame::Stream {
                id,
                offset,
                data,
                fin,
            } => {
                self.number("{\"type\":\"STREAM\",\"id\":", id);
                self.number(",\"offset\":", offset);
                self.number(",\"length\":", data.len() as u64);
                self.text(if fin {
                    ",\"fin\":true}"
                } else {
                    ",\"fin\":false}"
                });
            }
            Frame::Ack { ranges, delay, ecn } => {
                self.text("{\"type\":\"ACK\",\"ranges\":").ranges(&ranges);
                self.number(",\"delay\":", delay);
                if let Some(delay) = parameters.and_then(|known| known.ack_delay_us(delay)) {
                    self.number(",\"delay_us\":", delay);
                }
                if let Some(ecn) = ecn {
                    self.number(",\"ecn\":{\"ect0\":", ecn.ect0);
                    self.number(",\"ect1\":", ecn.ect1);
                    self.number(",\"ce\":", ecn.ce).text("}");
                }
                self.text("}");
            }
            // The others are rare.
            _ => serde_json::to_writer(&mut *self.out, frame).expect("a frame has a JSON form"),
        }
    }

    fn ranges(&mut self, ranges: &AckRanges<'_>) {
        let mut before = "[[";
        for range in ranges.iter() {
            self.number(before, *range.start())
                .number(",", *range.end());
            before = "],[";
        }
        self.text("]]");
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_wire::quic::Frames;

    use super::*;

    #[test]
    fn frames_are_as_the_general_serializer_writes_them() {
        let payload = [
            &[0x0f, 4, 0x40, 0x80, 2, 7, 7][..],      // STREAM with FIN
            &[0x02, 0x50, 0x00, 5, 2, 3, 1, 2, 0, 0], // ACK of three ranges
            &[0x03, 9, 0, 0, 9, 1, 2, 3],             // ACK with ECN counts
            &[0x10, 0x44, 0x55],
            &[0x08, 0],
        ]
        .concat();
        for frame in Frames::new(&payload) {
            let frame = frame.unwrap();
            let mut out = Vec::new();
            JsonLine { out: &mut out }.frame(&frame, None);
            let text = String::from_utf8(out).unwrap();
            assert_eq!(text, serde_json::to_string(&frame).unwrap());
        }
    }

    #[test]
    fn times_keep_their_nanoseconds() {
        for (time, text) in [
            (Some(946_684_800_000_000_001), "\"946684800.000000001\""),
            (Some(1_999_999_999), "\"1.999999999\""),
            (Some(0), "\"0.000000000\""),
            (None, "null"),
        ] {
            let mut out = Vec::new();
            JsonLine { out: &mut out }.time(time);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }
}
