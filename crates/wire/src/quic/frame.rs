//! Frames, read one after the other from the payload of a packet, in place.
//!
//! Source: RFC 9000 section 19; RFC 9221 section 4 (DATAGRAM); draft-ietf-quic-ack-frequency
//! (`ACK_FREQUENCY` and `IMMEDIATE_ACK`); draft-ietf-quic-multipath-20 section 4 (those with a path
//! identifier); draft-kuhn-quic-bdpframe-extension, as picoquic and noq with patches have it
//! (`BDP`). The length of a frame of unknown type is unknown too, so such a frame takes up the rest
//! of its packet. Limits that the transport sets, such as the largest offset of 2^62 - 1, are not
//! checked: what is on the wire is shown.

use serde::{Serialize, Serializer};

use crate::cursor::Cursor;

use super::{AckRanges, ConnectionId, EcnCounts};

/// A frame. Its JSON form has the name of RFC 9000 as `type`; data are given by their length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(
    missing_docs,
    reason = "the fields are those of RFC 9000 section 19, under their names there"
)]
pub enum Frame<'a> {
    /// Consecutive PADDING frames, taken together.
    Padding {
        length: usize,
    },
    Ping,
    Ack {
        ranges: AckRanges<'a>,
        /// In units of the sender's `ack_delay_exponent`.
        delay: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        ecn: Option<EcnCounts>,
    },
    ResetStream {
        id: u64,
        error_code: u64,
        final_size: u64,
    },
    StopSending {
        id: u64,
        error_code: u64,
    },
    Crypto {
        offset: u64,
        #[serde(rename = "length", serialize_with = "length")]
        data: &'a [u8],
    },
    NewToken {
        #[serde(rename = "length", serialize_with = "length")]
        token: &'a [u8],
    },
    Stream {
        id: u64,
        offset: u64,
        #[serde(rename = "length", serialize_with = "length")]
        data: &'a [u8],
        fin: bool,
    },
    MaxData {
        maximum: u64,
    },
    MaxStreamData {
        id: u64,
        maximum: u64,
    },
    MaxStreams {
        bidirectional: bool,
        maximum: u64,
    },
    DataBlocked {
        limit: u64,
    },
    StreamDataBlocked {
        id: u64,
        limit: u64,
    },
    StreamsBlocked {
        bidirectional: bool,
        limit: u64,
    },
    NewConnectionId {
        sequence: u64,
        retire_prior_to: u64,
        #[serde(serialize_with = "hexadecimal")]
        connection_id: ConnectionId,
        #[serde(skip)]
        stateless_reset_token: &'a [u8; 16],
    },
    RetireConnectionId {
        sequence: u64,
    },
    PathChallenge {
        #[serde(skip)]
        data: &'a [u8; 8],
    },
    PathResponse {
        #[serde(skip)]
        data: &'a [u8; 8],
    },
    ConnectionClose {
        /// Whether the error code is the application's.
        application: bool,
        error_code: u64,
        /// The type of the frame that caused the error, if that is the transport's.
        #[serde(skip_serializing_if = "Option::is_none")]
        frame_type: Option<u64>,
        #[serde(serialize_with = "text")]
        reason: &'a [u8],
    },
    HandshakeDone,
    Datagram {
        #[serde(rename = "length", serialize_with = "length")]
        data: &'a [u8],
    },
    AckFrequency {
        sequence: u64,
        ack_eliciting_threshold: u64,
        /// In microseconds.
        request_max_ack_delay: u64,
        reordering_threshold: u64,
    },
    ImmediateAck,
    Bdp {
        /// When it loses its validity, by its sender's clock.
        lifetime: u64,
        /// In bytes.
        capacity: u64,
        /// In microseconds.
        rtt: u64,
        #[serde(rename = "length", serialize_with = "length")]
        token: &'a [u8],
    },
    PathAck {
        path_id: u64,
        ranges: AckRanges<'a>,
        /// In units of the sender's `ack_delay_exponent`.
        delay: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        ecn: Option<EcnCounts>,
    },
    PathAbandon {
        path_id: u64,
        error_code: u64,
    },
    PathStatusBackup {
        path_id: u64,
        sequence: u64,
    },
    PathStatusAvailable {
        path_id: u64,
        sequence: u64,
    },
    PathNewConnectionId {
        path_id: u64,
        sequence: u64,
        retire_prior_to: u64,
        #[serde(serialize_with = "hexadecimal")]
        connection_id: ConnectionId,
        #[serde(skip)]
        stateless_reset_token: &'a [u8; 16],
    },
    PathRetireConnectionId {
        path_id: u64,
        sequence: u64,
    },
    MaxPathId {
        maximum: u64,
    },
    PathsBlocked {
        maximum: u64,
    },
    PathCidsBlocked {
        path_id: u64,
        next_sequence: u64,
    },
    /// A frame of a type that is not known here, and all that follows it in its packet.
    Unknown {
        frame_type: u64,
        #[serde(rename = "length", serialize_with = "length")]
        rest: &'a [u8],
    },
}

/// A frame that ends early or contradicts itself; what follows it cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a damaged frame of type {frame_type:#x} at byte {offset} of the packet's payload")]
pub struct FrameError {
    /// The frame's type.
    pub frame_type: u64,
    /// The offset of the frame, in bytes from the start of the payload.
    pub offset: usize,
}

/// The frames of a payload, one after the other.
#[derive(Debug, Clone)]
pub struct Frames<'a> {
    cursor: Cursor<'a>,
    length: usize,
}

impl<'a> Frames<'a> {
    /// The frames of a decrypted payload.
    #[must_use]
    pub fn new(payload: &'a [u8]) -> Self {
        Self {
            cursor: Cursor::new(payload),
            length: payload.len(),
        }
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, FrameError>;

    fn next(&mut self) -> Option<Self::Item> {
        let offset = self.length - self.cursor.rest().len();
        if offset == self.length {
            return None;
        }
        let frame_type = self.cursor.varint();
        let frame = frame_type.and_then(|frame_type| Frame::parse(frame_type, &mut self.cursor));
        if frame.is_none() {
            self.cursor = Cursor::new(&[]);
        }
        Some(frame.ok_or(FrameError {
            frame_type: frame_type.unwrap_or(0),
            offset,
        }))
    }
}

impl<'a> Frame<'a> {
    /// The name of RFC 9000 section 19, as in its JSON form.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Padding { .. } => "PADDING",
            Self::Ping => "PING",
            Self::Ack { .. } => "ACK",
            Self::ResetStream { .. } => "RESET_STREAM",
            Self::StopSending { .. } => "STOP_SENDING",
            Self::Crypto { .. } => "CRYPTO",
            Self::NewToken { .. } => "NEW_TOKEN",
            Self::Stream { .. } => "STREAM",
            Self::MaxData { .. } => "MAX_DATA",
            Self::MaxStreamData { .. } => "MAX_STREAM_DATA",
            Self::MaxStreams { .. } => "MAX_STREAMS",
            Self::DataBlocked { .. } => "DATA_BLOCKED",
            Self::StreamDataBlocked { .. } => "STREAM_DATA_BLOCKED",
            Self::StreamsBlocked { .. } => "STREAMS_BLOCKED",
            Self::NewConnectionId { .. } => "NEW_CONNECTION_ID",
            Self::RetireConnectionId { .. } => "RETIRE_CONNECTION_ID",
            Self::PathChallenge { .. } => "PATH_CHALLENGE",
            Self::PathResponse { .. } => "PATH_RESPONSE",
            Self::ConnectionClose { .. } => "CONNECTION_CLOSE",
            Self::HandshakeDone => "HANDSHAKE_DONE",
            Self::Datagram { .. } => "DATAGRAM",
            Self::AckFrequency { .. } => "ACK_FREQUENCY",
            Self::ImmediateAck => "IMMEDIATE_ACK",
            Self::Bdp { .. } => "BDP",
            Self::PathAck { .. } => "PATH_ACK",
            Self::PathAbandon { .. } => "PATH_ABANDON",
            Self::PathStatusBackup { .. } => "PATH_STATUS_BACKUP",
            Self::PathStatusAvailable { .. } => "PATH_STATUS_AVAILABLE",
            Self::PathNewConnectionId { .. } => "PATH_NEW_CONNECTION_ID",
            Self::PathRetireConnectionId { .. } => "PATH_RETIRE_CONNECTION_ID",
            Self::MaxPathId { .. } => "MAX_PATH_ID",
            Self::PathsBlocked { .. } => "PATHS_BLOCKED",
            Self::PathCidsBlocked { .. } => "PATH_CIDS_BLOCKED",
            Self::Unknown { .. } => "UNKNOWN",
        }
    }

    fn parse(frame_type: u64, cursor: &mut Cursor<'a>) -> Option<Self> {
        Some(match frame_type {
            0x00 => padding(cursor),
            0x01 => Self::Ping,
            0x02 | 0x03 => ack(cursor, frame_type == 0x03)?,
            0x04..=0x0f => Self::of_stream(frame_type, cursor)?,
            0x10..=0x17 => Self::of_flow_control(frame_type, cursor)?,
            0x18..=0x1b => Self::of_path(frame_type, cursor)?,
            0x1c | 0x1d => connection_close(cursor, frame_type == 0x1d)?,
            0x1e => Self::HandshakeDone,
            0x1f => Self::ImmediateAck,
            0x3e | 0x3f | 0x3e75..=0x3e7c => Self::of_several_paths(frame_type, cursor)?,
            0x30 => Self::Datagram {
                data: cursor.take(cursor.rest().len())?,
            },
            0x31 => Self::Datagram {
                data: cursor.counted()?,
            },
            0xaf => Self::AckFrequency {
                sequence: cursor.varint()?,
                ack_eliciting_threshold: cursor.varint()?,
                request_max_ack_delay: cursor.varint()?,
                reordering_threshold: cursor.varint()?,
            },
            0xebd9 => Self::Bdp {
                lifetime: cursor.varint()?,
                capacity: cursor.varint()?,
                rtt: cursor.varint()?,
                token: cursor.counted()?,
            },
            _ => Self::Unknown {
                frame_type,
                rest: cursor.take(cursor.rest().len())?,
            },
        })
    }

    /// RFC 9000 sections 19.4 to 19.8
    fn of_stream(frame_type: u64, cursor: &mut Cursor<'a>) -> Option<Self> {
        Some(match frame_type {
            0x04 => Self::ResetStream {
                id: cursor.varint()?,
                error_code: cursor.varint()?,
                final_size: cursor.varint()?,
            },
            0x05 => Self::StopSending {
                id: cursor.varint()?,
                error_code: cursor.varint()?,
            },
            0x06 => Self::Crypto {
                offset: cursor.varint()?,
                data: cursor.counted()?,
            },
            0x07 => Self::NewToken {
                token: cursor.counted()?,
            },
            _ => Self::Stream {
                id: cursor.varint()?,
                offset: if frame_type & 0x04 != 0 {
                    cursor.varint()?
                } else {
                    0
                },
                data: if frame_type & 0x02 != 0 {
                    cursor.counted()?
                } else {
                    cursor.take(cursor.rest().len())?
                },
                fin: frame_type & 0x01 != 0,
            },
        })
    }

    /// RFC 9000 sections 19.9 to 19.14
    fn of_flow_control(frame_type: u64, cursor: &mut Cursor<'a>) -> Option<Self> {
        let bidirectional = frame_type & 1 == 0;
        Some(match frame_type {
            0x10 => Self::MaxData {
                maximum: cursor.varint()?,
            },
            0x11 => Self::MaxStreamData {
                id: cursor.varint()?,
                maximum: cursor.varint()?,
            },
            0x12 | 0x13 => Self::MaxStreams {
                bidirectional,
                maximum: cursor.varint()?,
            },
            0x14 => Self::DataBlocked {
                limit: cursor.varint()?,
            },
            0x15 => Self::StreamDataBlocked {
                id: cursor.varint()?,
                limit: cursor.varint()?,
            },
            _ => Self::StreamsBlocked {
                bidirectional,
                limit: cursor.varint()?,
            },
        })
    }

    /// draft-ietf-quic-multipath-20 section 4
    fn of_several_paths(frame_type: u64, cursor: &mut Cursor<'a>) -> Option<Self> {
        let first = cursor.varint()?;
        let path_id = first;
        Some(match frame_type {
            0x3e | 0x3f => {
                let (ranges, delay, ecn) = acknowledged(cursor, frame_type == 0x3f)?;
                Self::PathAck {
                    path_id,
                    ranges,
                    delay,
                    ecn,
                }
            }
            0x3e75 => Self::PathAbandon {
                path_id,
                error_code: cursor.varint()?,
            },
            0x3e76 => Self::PathStatusBackup {
                path_id,
                sequence: cursor.varint()?,
            },
            0x3e77 => Self::PathStatusAvailable {
                path_id,
                sequence: cursor.varint()?,
            },
            0x3e78 => {
                let new = NewId::parse(cursor)?;
                Self::PathNewConnectionId {
                    path_id,
                    sequence: new.sequence,
                    retire_prior_to: new.retire_prior_to,
                    connection_id: new.connection_id,
                    stateless_reset_token: new.stateless_reset_token,
                }
            }
            0x3e79 => Self::PathRetireConnectionId {
                path_id,
                sequence: cursor.varint()?,
            },
            0x3e7a => Self::MaxPathId { maximum: first },
            0x3e7b => Self::PathsBlocked { maximum: first },
            _ => Self::PathCidsBlocked {
                path_id,
                next_sequence: cursor.varint()?,
            },
        })
    }

    /// RFC 9000 sections 19.15 to 19.18
    fn of_path(frame_type: u64, cursor: &mut Cursor<'a>) -> Option<Self> {
        Some(match frame_type {
            0x18 => {
                let new = NewId::parse(cursor)?;
                Self::NewConnectionId {
                    sequence: new.sequence,
                    retire_prior_to: new.retire_prior_to,
                    connection_id: new.connection_id,
                    stateless_reset_token: new.stateless_reset_token,
                }
            }
            0x19 => Self::RetireConnectionId {
                sequence: cursor.varint()?,
            },
            0x1a => Self::PathChallenge {
                data: cursor.take(8)?.try_into().ok()?,
            },
            _ => Self::PathResponse {
                data: cursor.take(8)?.try_into().ok()?,
            },
        })
    }
}

fn padding<'a>(cursor: &mut Cursor<'a>) -> Frame<'a> {
    let rest = cursor.rest();
    let more = rest.iter().take_while(|byte| **byte == 0).count();
    *cursor = Cursor::new(&rest[more..]);
    Frame::Padding { length: more + 1 }
}

/// The fields that frames with a new connection ID share.
struct NewId<'a> {
    sequence: u64,
    retire_prior_to: u64,
    connection_id: ConnectionId,
    stateless_reset_token: &'a [u8; 16],
}

impl<'a> NewId<'a> {
    fn parse(cursor: &mut Cursor<'a>) -> Option<Self> {
        let sequence = cursor.varint()?;
        let retire_prior_to = cursor.varint()?;
        let length = usize::from(cursor.u8()?);
        Some(Self {
            sequence,
            retire_prior_to,
            connection_id: ConnectionId::new(cursor.take(length)?)?,
            stateless_reset_token: cursor.take(16)?.try_into().ok()?,
        })
    }
}

fn ack<'a>(cursor: &mut Cursor<'a>, has_ecn: bool) -> Option<Frame<'a>> {
    let (ranges, delay, ecn) = acknowledged(cursor, has_ecn)?;
    Some(Frame::Ack { ranges, delay, ecn })
}

/// The fields that ACK frames share: ranges, delay and counts.
fn acknowledged<'a>(
    cursor: &mut Cursor<'a>,
    has_ecn: bool,
) -> Option<(AckRanges<'a>, u64, Option<EcnCounts>)> {
    let (ranges, delay) = AckRanges::parse(cursor)?;
    let ecn = if has_ecn {
        Some(EcnCounts {
            ect0: cursor.varint()?,
            ect1: cursor.varint()?,
            ce: cursor.varint()?,
        })
    } else {
        None
    };
    Some((ranges, delay, ecn))
}

fn connection_close<'a>(cursor: &mut Cursor<'a>, application: bool) -> Option<Frame<'a>> {
    let error_code = cursor.varint()?;
    let frame_type = if application {
        None
    } else {
        Some(cursor.varint()?)
    };
    Some(Frame::ConnectionClose {
        application,
        error_code,
        frame_type,
        reason: cursor.counted()?,
    })
}

fn length<S: Serializer>(data: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(data.len() as u64)
}

fn hexadecimal<S: Serializer>(id: &ConnectionId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{id:?}"))
}

fn text<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&String::from_utf8_lossy(bytes))
}
