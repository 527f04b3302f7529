//! Frames as they are kept for good: their numbers, not their data.

use std::borrow::Cow;
use std::ops::Range;

use bentpipe_wire::{quic, tcp};

/// A frame without its data.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the fields are those of RFC 9000 section 19, under their names there"
)]
pub enum Frame {
    Crypto {
        offset: u64,
        length: u32,
    },
    Stream {
        id: u64,
        offset: u64,
        length: u32,
        fin: bool,
    },
    Ack {
        /// The path whose packets it acknowledges, of `PATH_ACK`; None: those of the first path,
        /// or the only one.
        path_id: Option<u32>,
        /// Where in [`super::Connection::ranges`] the acknowledged ranges are, the highest first.
        ranges: Range<u32>,
        /// How long its sender says that it waited, in microseconds. None if its transport
        /// parameters are not known, or it speaks TCP.
        delay_us: Option<u64>,
        /// The ECN counts of an ACK that has them (section 19.3.2).
        ecn: Option<Box<quic::EcnCounts>>,
    },
    MaxData(u64),
    MaxStreamData {
        id: u64,
        maximum: u64,
    },
    DataBlocked(u64),
    StreamDataBlocked {
        id: u64,
        limit: u64,
    },
    Datagram {
        length: u32,
    },
    /// One of this type, which is not known here. It is the last of its packet: where it ends
    /// cannot be told.
    Unknown(u64),
    /// TCP: the number of the segment of which this ACK gives an RTT sample.
    Echo(u64),
    /// TCP: a segment as it was captured. [`super::join`] puts in its place the frames that it
    /// amounts to.
    Segment(Box<tcp::Header>),
    /// One of which only the name matters here.
    Other(&'static str),
}

/// Acknowledged ranges, each from its smallest to its largest number.
pub type Ranges = Vec<(u64, u64)>;

impl Frame {
    /// Keeps a frame; the ranges of an ACK go to `ranges`. `parameters` are the transport
    /// parameters of its sender.
    pub(crate) fn without_data(
        frame: &quic::Frame<'_>,
        parameters: Option<&quic::TransportParameters>,
        ranges: &mut Ranges,
    ) -> Self {
        use quic::Frame as F;
        match frame {
            F::Crypto { offset, data } => Self::Crypto {
                offset: *offset,
                length: length(data),
            },
            F::Stream {
                id,
                offset,
                data,
                fin,
            } => Self::Stream {
                id: *id,
                offset: *offset,
                length: length(data),
                fin: *fin,
            },
            // A path identifier has 32 bits: this one is about no packets.
            F::PathAck { path_id, .. } if u32::try_from(*path_id).is_err() => {
                Self::Other(frame.name())
            }
            F::Ack {
                ranges: acked,
                delay,
                ecn,
            }
            | F::PathAck {
                ranges: acked,
                delay,
                ecn,
                ..
            } => {
                let of_path = match frame {
                    F::PathAck { path_id, .. } => u32::try_from(*path_id).ok(),
                    _ => None,
                };
                let start = index(ranges);
                ranges.extend(acked.iter().map(|range| (*range.start(), *range.end())));
                Self::Ack {
                    path_id: of_path,
                    ranges: start..index(ranges),
                    delay_us: parameters.and_then(|known| known.ack_delay_us(*delay)),
                    ecn: ecn.map(Box::new),
                }
            }
            F::MaxData { maximum } => Self::MaxData(*maximum),
            F::MaxStreamData { id, maximum } => Self::MaxStreamData {
                id: *id,
                maximum: *maximum,
            },
            F::DataBlocked { limit } => Self::DataBlocked(*limit),
            F::StreamDataBlocked { id, limit } => Self::StreamDataBlocked {
                id: *id,
                limit: *limit,
            },
            F::Datagram { data } => Self::Datagram {
                length: length(data),
            },
            F::Unknown { frame_type, .. } => Self::Unknown(*frame_type),
            other => Self::Other(other.name()),
        }
    }

    /// The name of RFC 9000.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Crypto { .. } => "CRYPTO",
            Self::Stream { .. } => "STREAM",
            Self::Ack { path_id: None, .. } => "ACK",
            Self::Ack { .. } => "PATH_ACK",
            Self::MaxData(_) => "MAX_DATA",
            Self::MaxStreamData { .. } => "MAX_STREAM_DATA",
            Self::DataBlocked(_) => "DATA_BLOCKED",
            Self::StreamDataBlocked { .. } => "STREAM_DATA_BLOCKED",
            Self::Datagram { .. } => "DATAGRAM",
            Self::Unknown(_) => "UNKNOWN",
            Self::Echo(_) => "ECHO",
            Self::Segment(_) => "SEGMENT",
            Self::Other(name) => name,
        }
    }

    /// The name; of an unknown frame with its type, as in `UNKNOWN(0x1234)`.
    #[must_use]
    pub fn label(&self) -> Cow<'static, str> {
        match self {
            Self::Unknown(frame_type) => format!("UNKNOWN({frame_type:#x})").into(),
            known => known.name().into(),
        }
    }

    /// Whether a QUIC packet with it asks for an acknowledgement: all but ACK, PADDING and
    /// `CONNECTION_CLOSE` do (RFC 9002 section 2), and `PATH_ACK` neither. Of packets of any
    /// protocol, ask [`super::Connection::is_ack_eliciting`].
    #[must_use]
    pub fn is_ack_eliciting(&self) -> bool {
        !matches!(
            self.name(),
            "ACK" | "PATH_ACK" | "PADDING" | "CONNECTION_CLOSE"
        )
    }
}

fn length(data: &[u8]) -> u32 {
    u32::try_from(data.len()).expect("a frame fits a datagram")
}

fn index(ranges: &Ranges) -> u32 {
    u32::try_from(ranges.len()).expect("fewer than 2^32 acknowledged ranges in a capture")
}
