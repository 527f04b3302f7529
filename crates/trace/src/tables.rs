//! `packets.parquet`: a row per packet, connection after connection, in each by the time at which
//! packets were sent.
//!
//! Format: Apache Parquet with the crate's low-level writer, a column at a time; Arrow would add
//! its crates and a second copy of the rows. Lists have the standard three levels, so that every
//! reader takes them for lists. Times are seconds since the connection's first packet was seen.

use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;

use bentpipe_analysis::LedgerEntry;
use bentpipe_analysis::connection::{Codepoint, Connection, Frame, Kind, Nanos, Packet, Protocol};
use bentpipe_analysis::durations::{milliseconds, seconds};
use bentpipe_analysis::passive::Spin;
use bentpipe_wire::quic::{End, PacketType, Space};
use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

/// The packet number spaces of the paths beside the first that most connections have no more of.
const PATHS: [&str; 7] = [
    "path 1", "path 2", "path 3", "path 4", "path 5", "path 6", "path 7",
];

/// The columns, in the order in which [`Rows::write`] writes them.
const SCHEMA: &str = "
message packets {
  required int32 connection;
  required binary protocol (STRING);
  required binary sender (STRING);
  required binary direction (STRING);
  required binary type (STRING);
  optional binary space (STRING);
  optional int64 number;
  optional double sent_s;
  optional double received_s;
  required int32 size_bytes;
  optional int32 ip_bytes;
  optional binary sent_ecn (STRING);
  optional binary received_ecn (STRING);
  required group frames (LIST) { repeated group list { required binary element (STRING); } }
  required group stream_id (LIST) { repeated group list { required int64 element; } }
  required group stream_offset (LIST) { repeated group list { required int64 element; } }
  required group stream_bytes (LIST) { repeated group list { required int64 element; } }
  required int64 retransmitted_bytes;
  required group ack_first (LIST) { repeated group list { required int64 element; } }
  required group ack_last (LIST) { repeated group list { required int64 element; } }
  optional double ack_delay_ms;
  required binary fate (STRING);
  required boolean copy;
  optional double acked_s;
  optional double lost_s;
  optional int64 in_flight_bytes;
  optional double rtt_ms;
  optional boolean spin;
  optional double spin_rtt_ms;
  optional int64 max_data;
  optional int64 max_stream_data;
}";

/// The number of rows that are kept in memory before they are written.
const ROW_GROUP: usize = 1 << 16;

/// A table while it is written.
pub struct Table<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    rows: Rows,
}

impl<W: Write + Send> Table<W> {
    pub fn new(out: W) -> Result<Self, ParquetError> {
        let schema = parse_message_type(SCHEMA).expect("the schema above is well-formed");
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by("bentpipe-trace".to_owned());
        // Nearly every value of these is another one: a dictionary would cost time and save
        // nothing.
        for column in ["number", "in_flight_bytes"] {
            properties = properties
                .set_column_dictionary_enabled(column.into(), false)
                .set_column_encoding(column.into(), Encoding::DELTA_BINARY_PACKED);
        }
        for column in ["sent_s", "received_s", "acked_s", "rtt_ms", "spin_rtt_ms"] {
            properties = properties.set_column_dictionary_enabled(column.into(), false);
        }
        for column in ["stream_offset", "ack_first", "ack_last"] {
            let path = format!("{column}.list.element");
            let path: Vec<String> = path.split('.').map(str::to_owned).collect();
            properties = properties
                .set_column_dictionary_enabled(path.clone().into(), false)
                .set_column_encoding(path.into(), Encoding::DELTA_BINARY_PACKED);
        }
        Ok(Self {
            writer: SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties.build()))?,
            rows: Rows::default(),
        })
    }

    /// Adds the packets of a connection; `entries` is its ledger, `spin` what its spin bit said.
    pub fn add(
        &mut self,
        number: i32,
        connection: &Connection,
        entries: &[LedgerEntry],
        spin: &Spin,
    ) -> Result<(), ParquetError> {
        let mut samples = spin.samples.iter().copied().peekable();
        for (at, (packet, entry)) in connection.packets.iter().zip(entries).enumerate() {
            self.rows.add(number, connection, packet, entry);
            let sample = samples.next_if(|(of, _)| *of == at);
            let sample = sample.map(|(_, length)| milliseconds(length));
            self.rows.spin_rtt_ms.push_optional(sample);
            if self.rows.connection.values.len() == ROW_GROUP {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Writes what is left, and the end of the file.
    pub fn finish(mut self) -> Result<W, ParquetError> {
        self.flush()?;
        self.writer.into_inner()
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        if !self.rows.connection.values.is_empty() {
            let mut group = self.writer.next_row_group()?;
            self.rows.write(&mut group)?;
            group.close()?;
        }
        Ok(())
    }
}

/// The rows of a row group, by column.
#[derive(Default)]
struct Rows {
    connection: Column<Int32Type>,
    protocol: TextColumn,
    sender: TextColumn,
    direction: TextColumn,
    kind: TextColumn,
    space: TextColumn,
    number: Column<Int64Type>,
    sent_s: Column<DoubleType>,
    received_s: Column<DoubleType>,
    size_bytes: Column<Int32Type>,
    ip_bytes: Column<Int32Type>,
    sent_ecn: TextColumn,
    received_ecn: TextColumn,
    frames: TextColumn,
    stream_id: Column<Int64Type>,
    stream_offset: Column<Int64Type>,
    stream_bytes: Column<Int64Type>,
    retransmitted_bytes: Column<Int64Type>,
    ack_first: Column<Int64Type>,
    ack_last: Column<Int64Type>,
    ack_delay_ms: Column<DoubleType>,
    fate: TextColumn,
    copy: Column<BoolType>,
    acked_s: Column<DoubleType>,
    lost_s: Column<DoubleType>,
    in_flight_bytes: Column<Int64Type>,
    rtt_ms: Column<DoubleType>,
    spin: Column<BoolType>,
    spin_rtt_ms: Column<DoubleType>,
    max_data: Column<Int64Type>,
    max_stream_data: Column<Int64Type>,
}

impl Rows {
    fn add(&mut self, number: i32, connection: &Connection, packet: &Packet, entry: &LedgerEntry) {
        let is_quic = connection.protocol != Protocol::Tcp;
        let is_forward = packet.sender == End::Server;
        self.connection.push(number);
        self.protocol.push(if is_quic { "quic" } else { "tcp" });
        self.sender.push(packet.sender.name());
        self.direction
            .push(if is_forward { "forward" } else { "return" });
        self.kind.push(word(packet.kind));
        match packet.path_id {
            0 => self.space.push_optional(packet.space().map(Space::name)),
            path => self.space.push_path(path),
        }
        self.number.push_optional(packet.number.map(int));
        self.sent_s.push_optional(packet.sent().map(seconds));
        self.received_s
            .push_optional(packet.received().map(seconds));
        self.size_bytes.push(bytes(packet.size));
        self.ip_bytes.push_optional(packet.ip_size.map(bytes));
        let codepoint = |seen: Option<Codepoint>| seen.map(Codepoint::name);
        self.sent_ecn.push_optional(codepoint(packet.sent_ecn()));
        self.received_ecn
            .push_optional(codepoint(packet.received_ecn()));
        self.add_frames(connection.frames(packet));
        self.add_acks(connection, packet);
        self.retransmitted_bytes
            .push(i64::from(entry.retransmitted));
        self.fate.push(packet.fate.name());
        self.copy.push(packet.copy);
        self.acked_s.push_optional(entry.acked.nanos().map(seconds));
        self.lost_s
            .push_optional(entry.declared_lost.nanos().map(seconds));
        self.in_flight_bytes
            .push_optional(entry.in_flight.count().map(int));
        self.rtt_ms
            .push_optional(entry.rtt.nanos().map(milliseconds));
        self.spin.push_optional(packet.spin());
    }

    fn add_frames(&mut self, frames: &[Frame]) {
        self.frames.push_list(frames.iter().map(Frame::label));
        let streams = frames.iter().filter_map(|frame| match frame {
            Frame::Stream {
                id, offset, length, ..
            } => Some((*id, *offset, *length)),
            _ => None,
        });
        self.stream_id
            .push_list(streams.clone().map(|(id, ..)| int(id)));
        self.stream_offset
            .push_list(streams.clone().map(|(_, offset, _)| int(offset)));
        self.stream_bytes
            .push_list(streams.map(|(.., length)| i64::from(length)));
        let max_data = frames.iter().filter_map(|frame| match frame {
            Frame::MaxData(maximum) => Some(int(*maximum)),
            _ => None,
        });
        self.max_data.push_optional(max_data.max());
        let max_stream_data = frames.iter().filter_map(|frame| match frame {
            Frame::MaxStreamData { maximum, .. } => Some(int(*maximum)),
            _ => None,
        });
        self.max_stream_data.push_optional(max_stream_data.max());
    }

    fn add_acks(&mut self, connection: &Connection, packet: &Packet) {
        let acks = connection
            .frames(packet)
            .iter()
            .filter_map(|frame| match frame {
                // A range is read beside the space of its packet: one of another path's packets
                // would seem to be of it.
                Frame::Ack {
                    path_id: Some(path),
                    ..
                } if *path != packet.path_id => None,
                Frame::Ack {
                    ranges, delay_us, ..
                } => Some((connection.ranges(ranges), *delay_us)),
                _ => None,
            });
        let ranges = acks.clone().flat_map(|(ranges, _)| ranges);
        self.ack_first
            .push_list(ranges.clone().map(|(first, _)| int(*first)));
        self.ack_last.push_list(ranges.map(|(_, last)| int(*last)));
        let mut acks = acks;
        let delay = acks.find_map(|(_, delay)| delay);
        let delay = delay.and_then(|delay| Nanos::try_from(delay.checked_mul(1000)?).ok());
        self.ack_delay_ms.push_optional(delay.map(milliseconds));
    }

    /// Writes all columns, and begins anew.
    fn write<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        self.connection.write(group)?;
        self.protocol.write(group)?;
        self.sender.write(group)?;
        self.direction.write(group)?;
        self.kind.write(group)?;
        self.space.write(group)?;
        self.number.write(group)?;
        self.sent_s.write(group)?;
        self.received_s.write(group)?;
        self.size_bytes.write(group)?;
        self.ip_bytes.write(group)?;
        self.sent_ecn.write(group)?;
        self.received_ecn.write(group)?;
        self.frames.write(group)?;
        self.stream_id.write(group)?;
        self.stream_offset.write(group)?;
        self.stream_bytes.write(group)?;
        self.retransmitted_bytes.write(group)?;
        self.ack_first.write(group)?;
        self.ack_last.write(group)?;
        self.ack_delay_ms.write(group)?;
        self.fate.write(group)?;
        self.copy.write(group)?;
        self.acked_s.write(group)?;
        self.lost_s.write(group)?;
        self.in_flight_bytes.write(group)?;
        self.rtt_ms.write(group)?;
        self.spin.write(group)?;
        self.spin_rtt_ms.write(group)?;
        self.max_data.write(group)?;
        self.max_stream_data.write(group)
    }
}

/// The values of a column, with the levels that say where there is none, or a list (Dremel's
/// encoding).
struct Column<T: DataType> {
    values: Vec<T::T>,
    /// 1 where there is a value. Empty for columns that always have one.
    definition: Vec<i16>,
    /// 1 where a value continues a list. Empty for columns without lists.
    repetition: Vec<i16>,
}

impl<T: DataType> Default for Column<T> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            definition: Vec::new(),
            repetition: Vec::new(),
        }
    }
}

impl<T: DataType> Column<T> {
    fn push(&mut self, value: T::T) {
        self.values.push(value);
    }

    fn push_optional(&mut self, value: Option<T::T>) {
        self.definition.push(i16::from(value.is_some()));
        self.values.extend(value);
    }

    fn push_list(&mut self, values: impl Iterator<Item = T::T>) {
        let before = self.values.len();
        self.values.extend(values);
        self.end_list(before);
    }

    /// Notes that the values from `before` on are a list.
    fn end_list(&mut self, before: usize) {
        let added = self.values.len() - before;
        let first = i16::from(added > 0);
        self.definition.push(first);
        self.repetition.push(0);
        for _ in 1..added {
            self.definition.push(1);
            self.repetition.push(1);
        }
    }

    fn write<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        let mut column = group
            .next_column()?
            .expect("as many columns as in the schema");
        column.typed::<T>().write_batch(
            &self.values,
            Some(&self.definition[..]).filter(|it| !it.is_empty()),
            Some(&self.repetition[..]).filter(|it| !it.is_empty()),
        )?;
        column.close()?;
        self.values.clear();
        self.definition.clear();
        self.repetition.clear();
        Ok(())
    }
}

/// A column of words, of which few are different: each value takes four bytes until it is written.
#[derive(Default)]
struct TextColumn {
    words: Vec<Cow<'static, str>>,
    /// Those of the program, each with its place among all.
    known: Vec<(&'static str, usize)>,
    /// Each value is the index of a word.
    column: Column<Int32Type>,
}

impl TextColumn {
    fn push(&mut self, word: &'static str) {
        let word = self.index(Cow::Borrowed(word));
        self.column.push(word);
    }

    /// The packet number space of a path beside the first.
    fn push_path(&mut self, path: u32) {
        let word = match PATHS.get(path as usize - 1) {
            Some(name) => Cow::Borrowed(*name),
            None => Cow::Owned(format!("path {path}")),
        };
        let word = self.index(word);
        self.column.push_optional(Some(word));
    }

    fn push_optional(&mut self, word: Option<&'static str>) {
        let word = word.map(|it| self.index(Cow::Borrowed(it)));
        self.column.push_optional(word);
    }

    fn push_list(&mut self, words: impl Iterator<Item = Cow<'static, str>>) {
        let before = self.column.values.len();
        for word in words {
            let word = self.index(word);
            self.column.values.push(word);
        }
        self.column.end_list(before);
    }

    /// The index of a word. Those of the program are few; others are kept one by one.
    fn index(&mut self, word: Cow<'static, str>) -> i32 {
        let own = match word {
            Cow::Borrowed(word) => Some(word),
            Cow::Owned(_) => None,
        };
        let known = self.known.iter();
        let mut known = known.filter(|(it, _)| own.is_some_and(|own| std::ptr::eq(*it, own)));
        let index = known.next().map_or(self.words.len(), |(_, index)| *index);
        if index == self.words.len() {
            self.known.extend(own.map(|own| (own, index)));
            self.words.push(word);
        }
        i32::try_from(index).expect("fewer than 2^31 words in a row group")
    }

    fn write<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        self.known.clear();
        let words = self.words.drain(..).map(|word| match word {
            Cow::Borrowed(word) => Bytes::from_static(word.as_bytes()),
            Cow::Owned(word) => word.into(),
        });
        let words: Vec<ByteArray> = words.map(Into::into).collect();
        let values = self.column.values.drain(..);
        let values = values.map(|it| words[usize::try_from(it).expect("an index")].clone());
        let mut column = Column::<ByteArrayType> {
            values: values.collect(),
            definition: std::mem::take(&mut self.column.definition),
            repetition: std::mem::take(&mut self.column.repetition),
        };
        column.write(group)
    }
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Tcp => "tcp",
        Kind::Quic(PacketType::VersionNegotiation) => "version_negotiation",
        Kind::Quic(PacketType::Initial) => "initial",
        Kind::Quic(PacketType::ZeroRtt) => "0rtt",
        Kind::Quic(PacketType::Handshake) => "handshake",
        Kind::Quic(PacketType::Retry) => "retry",
        Kind::Quic(PacketType::OneRtt) => "1rtt",
    }
}

fn int(number: u64) -> i64 {
    i64::try_from(number).expect("numbers of QUIC and TCP are below 2^62")
}

fn bytes(size: u32) -> i32 {
    i32::try_from(size).expect("a packet fits a datagram")
}
