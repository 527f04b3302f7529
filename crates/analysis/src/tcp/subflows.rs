//! Subflows of MPTCP (RFC 8684): connections of TCP that carry the data of one together.

use std::collections::HashMap;
use std::ops::Range;

use crate::connection::Subflow;
use bentpipe_wire::quic::End;
use bentpipe_wire::tcp::{DataMapping, Header, Multipath, key_names};
use bentpipe_wire::{KeyLog, TlsReader, TlsRecords};

/// Data of connections are shorter; what says otherwise is not of this connection.
const MOST_DATA: u64 = 1 << 48;

/// A part of a subflow's stream, and its place in the data of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    subflow: u64,
    data: u64,
    length: u64,
}

impl Part {
    fn end(&self) -> u64 {
        self.subflow + self.length
    }

    /// The part behind its first bytes; none if there is nothing.
    fn behind(self, bytes: u64) -> Option<Self> {
        let length = self.length.checked_sub(bytes).filter(|it| *it > 0)?;
        Some(Self {
            subflow: self.subflow + bytes,
            data: self.data + bytes,
            length,
        })
    }
}

/// The places of the stream of one end of a subflow, in the order of the stream.
#[derive(Debug, Default)]
struct Mappings(Vec<Part>);

impl Mappings {
    /// Adds a part; what is known of it stays as it is.
    fn add(&mut self, part: Part) {
        let at = self.0.partition_point(|it| it.subflow <= part.subflow);
        let before = at.checked_sub(1).map(|before| self.0[before]);
        let known = before.map_or(0, |it| it.end().saturating_sub(part.subflow));
        let Some(mut part) = part.behind(known) else {
            return;
        };
        if let Some(next) = self.0.get(at) {
            part.length = part.length.min(next.subflow - part.subflow);
        }
        match before {
            Some(it) if it.behind_is(&part) => self.0[at - 1].length += part.length,
            _ if part.length > 0 => self.0.insert(at, part),
            _ => {}
        }
    }

    /// The parts of a range of the stream.
    fn parts(&self, range: Range<u64>) -> impl Iterator<Item = Part> {
        let from = self.0.partition_point(|it| it.end() <= range.start);
        let within = self.0[from..].iter();
        let within = within.take_while(move |it| it.subflow < range.end);
        within.filter_map(move |it| {
            let part = it.behind(range.start.saturating_sub(it.subflow))?;
            let length = part.length.min(range.end - part.subflow);
            Some(Part { length, ..part })
        })
    }

    /// Where ranges of the data, which are in order, are in this stream.
    fn ranges(&self, of_data: &[Range<u64>]) -> Vec<Range<u64>> {
        let of_part = |part: &Part| {
            let part = *part;
            let end = part.data + part.length;
            let from = of_data.partition_point(|it| it.end <= part.data);
            let met = of_data[from..].iter().take_while(move |it| it.start < end);
            met.map(move |it| {
                let place = |data: u64| part.subflow + (data.clamp(part.data, end) - part.data);
                place(it.start)..place(it.end)
            })
        };
        self.0.iter().flat_map(of_part).collect()
    }

    /// How far the stream is known if all data before an offset are.
    fn known_to(&self, data: u64) -> u64 {
        let unknown = self.0.iter().find(|it| it.data + it.length > data);
        match unknown {
            Some(part) => part.subflow + data.saturating_sub(part.data),
            None => self.0.last().map_or(0, Part::end),
        }
    }

    /// Where a byte of the data is in this stream, if it is.
    fn place(&self, data: u64) -> Option<u64> {
        let mut parts = self.0.iter();
        let part = parts.find(|it| (it.data..it.data + it.length).contains(&data))?;
        Some(part.subflow + (data - part.data))
    }
}

impl Part {
    /// Whether another part goes on where this one ends, in the stream and in the data.
    fn behind_is(&self, next: &Self) -> bool {
        self.end() == next.subflow && self.data + self.length == next.data
    }
}

/// The data of a connection: of TCP its streams, of MPTCP what its subflows carry together.
#[derive(Debug)]
pub(super) struct Whole<'k> {
    tls: TlsReader<'k>,
    /// The numbers before the first byte of data of client and server.
    before: [Option<u64>; 2],
    /// The offset of the last mapping of either.
    last: [u64; 2],
}

impl<'k> Whole<'k> {
    pub(super) fn new(secrets: &'k KeyLog) -> Self {
        Self {
            tls: TlsReader::new(secrets),
            before: [None; 2],
            last: [0; 2],
        }
    }

    pub(super) fn finish(self) -> Option<TlsRecords> {
        self.tls.finish()
    }

    pub(super) fn read(&mut self, sender: End, offset: u64, payload: &[u8]) {
        self.tls.read(sender, offset, payload);
    }

    /// The offset of what a mapping of `sender` is about.
    fn offset(&mut self, sender: End, mapping: &DataMapping) -> Option<u64> {
        let end = sender as usize;
        let first = self.before[end]?.wrapping_add(1);
        let offset = if mapping.is_long {
            mapping.data.wrapping_sub(first)
        } else {
            let number = first.wrapping_add(self.last[end]);
            let [number, other] = [number, mapping.data].map(low);
            let step = i64::from(other.wrapping_sub(number).cast_signed());
            self.last[end].wrapping_add_signed(step)
        };
        let offset = Some(offset).filter(|it| *it < MOST_DATA)?;
        self.last[end] = offset;
        Some(offset)
    }
}

fn low(number: u64) -> u32 {
    u32::try_from(number & 0xffff_ffff).expect("32 bits")
}

/// The connections of MPTCP, by the tokens that name them.
pub(super) type Tokens = HashMap<u32, usize>;

/// A connection of TCP as a subflow.
#[derive(Debug, Default)]
pub(super) struct SubflowState {
    pub(super) role: Option<Subflow>,
    mappings: [Mappings; 2],
    /// Where either stream has only data in order from: RFC 8684 section 3.7, the connection fell
    /// back to TCP.
    plain: [Option<Place>; 2],
}

/// A place in a subflow's stream, and in the data of the connection.
#[derive(Debug, Clone, Copy)]
struct Place {
    subflow: u64,
    data: u64,
}

impl Place {
    /// The part of a stream from `offset` on, where it is behind this place.
    fn part(self, offset: u64, length: u64) -> Option<Part> {
        let skipped = self.subflow.saturating_sub(offset);
        let length = length.checked_sub(skipped).filter(|it| *it > 0)?;
        let subflow = offset + skipped;
        let data = self.data + (subflow - self.subflow);
        let is_possible = data < MOST_DATA;
        is_possible.then_some(Part {
            subflow,
            data,
            length,
        })
    }
}

impl SubflowState {
    /// Whether it carried data.
    pub(super) fn has_data(&self) -> bool {
        self.mappings.iter().any(|it| !it.0.is_empty())
    }

    /// How it is a part of its connection, of which so many others carried data.
    pub(super) fn role_among(&self, others: usize) -> Option<Subflow> {
        self.role.map(|role| match role {
            Subflow::First if others == 0 => Subflow::Only,
            role => role,
        })
    }

    /// Takes note of what MPTCP says while a subflow is set up. The number of the connection that
    /// it belongs to: `own`, unless it names another.
    pub(super) fn set_up(
        &mut self,
        sender: End,
        header: &Header,
        own: usize,
        (wholes, tokens): (&mut [Whole<'_>], &mut Tokens),
    ) -> usize {
        let is_ask = header.syn && header.acknowledgment.is_none();
        match header.multipath.as_deref() {
            // The client's SYN alone asks; a server without MPTCP does not answer so.
            Some(Multipath::Capable { keys, .. }) if !is_ask => {
                self.role = Some(Subflow::First);
                let ends = [sender, sender.other()];
                for (end, key) in ends.into_iter().zip(keys) {
                    if let Some((token, before)) = key.map(key_names) {
                        wholes[own].before[end as usize] = Some(before);
                        tokens.insert(token, own);
                    }
                }
            }
            Some(Multipath::Join { token }) if is_ask => {
                self.role = Some(Subflow::Joined);
                let known = token.and_then(|token| tokens.get(&token));
                return known.copied().unwrap_or(own);
            }
            _ => {}
        }
        own
    }

    /// Reads the payload at an offset of `sender`'s stream.
    pub(super) fn read(
        &mut self,
        sender: End,
        (header, payload): (&Header, &[u8]),
        offset: u64,
        whole: &mut Whole<'_>,
    ) {
        if self.role.is_none() {
            return whole.read(sender, offset, payload);
        }
        let said = self.said(sender, header, offset, whole);
        let mappings = &mut self.mappings[sender as usize];
        if let Some(part) = said {
            mappings.add(part);
        }
        for piece in mappings.parts(offset..offset + payload.len() as u64) {
            let start = usize::try_from(piece.subflow - offset).expect("within a segment");
            let end = start + usize::try_from(piece.length).expect("within a segment");
            whole.read(sender, piece.data, &payload[start..end]);
        }
    }

    /// The part of the data that a segment at an offset of `sender`'s stream tells the place of.
    fn said(
        &mut self,
        sender: End,
        header: &Header,
        offset: u64,
        whole: &mut Whole<'_>,
    ) -> Option<Part> {
        let end = sender as usize;
        let length = u64::from(header.length);
        let of_stream = Place {
            subflow: 0,
            data: 0,
        };
        let is_first = self.role == Some(Subflow::First) && self.mappings[end].0.is_empty();
        match header.multipath.as_deref() {
            Some(Multipath::Data {
                mapping: Some(mapping),
                fin,
            }) if mapping.length > 0 => {
                let mapping = Some(mapping).filter(|it| it.subflow > 0);
                return mapping.and_then(|it| part(sender, it, *fin, offset, whole));
            }
            Some(Multipath::Data {
                mapping: Some(mapping),
                ..
            }) => {
                let mapping = Some(mapping).filter(|it| it.subflow > 0);
                let from = mapping.and_then(|it| place(sender, it, offset, whole));
                self.plain[end] = self.plain[end].or(from);
            }
            // With its first data, a client may still tell its keys.
            Some(Multipath::Capable { .. }) if is_first => return of_stream.part(offset, length),
            None if is_first && length > 0 => self.plain[end] = Some(of_stream),
            _ => {}
        }
        self.plain[end].and_then(|it| it.part(offset, length))
    }

    /// The part of the records of the whole that is in this subflow, as offsets of its streams.
    pub(super) fn own_part(&self, whole: &TlsRecords) -> TlsRecords {
        let [client, server] = &self.mappings;
        let finished = whole.client_finished.and_then(|it| client.place(it - 1));
        let own = TlsRecords {
            application: [
                client.ranges(&whole.application[0]),
                server.ranges(&whole.application[1]),
            ],
            read_to: [
                client.known_to(whole.read_to[0]),
                server.known_to(whole.read_to[1]),
            ],
            client_finished: finished.map(|it| it + 1),
            readable: whole.readable,
            ..TlsRecords::default()
        };
        if self.role == Some(Subflow::Joined) {
            return own;
        }
        TlsRecords {
            handshake: whole.handshake,
            client_hello: whole.client_hello.clone(),
            early_bytes: whole.early_bytes,
            ..own
        }
    }
}

/// The part that a mapping in a segment at `offset` says.
fn part(
    sender: End,
    mapping: &DataMapping,
    fin: bool,
    offset: u64,
    whole: &mut Whole<'_>,
) -> Option<Part> {
    let Place { subflow, data } = place(sender, mapping, offset, whole)?;
    let length = u64::from(mapping.length).checked_sub(u64::from(fin))?;
    (length > 0).then_some(Part {
        subflow,
        data,
        length,
    })
}

/// The place that a mapping in a segment at `offset` begins at.
fn place(sender: End, mapping: &DataMapping, offset: u64, whole: &mut Whole<'_>) -> Option<Place> {
    let number = mapping.subflow.wrapping_sub(1);
    let step = number.wrapping_sub(low(offset)).cast_signed();
    let subflow = offset.checked_add_signed(i64::from(step))?;
    let data = whole.offset(sender, mapping)?;
    Some(Place { subflow, data })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn part_of((subflow, data, length): (u64, u64, u64)) -> Part {
        Part {
            subflow,
            data,
            length,
        }
    }

    fn mappings(parts: &[(u64, u64, u64)]) -> Mappings {
        let mut mappings = Mappings::default();
        for part in parts {
            mappings.add(part_of(*part));
        }
        mappings
    }

    #[test]
    fn parts_that_go_on_are_one() {
        let found = mappings(&[(0, 0, 10), (10, 10, 5), (10, 10, 5), (15, 40, 5)]);
        assert_eq!(found.0, [(0, 0, 15), (15, 40, 5)].map(part_of));
    }

    #[test]
    fn records_are_where_the_subflow_has_them() {
        // Bytes 0 to 9 of the data, then 20 to 29; 10 to 19 went another way.
        let found = mappings(&[(0, 0, 10), (10, 20, 10)]);
        let records = [5..15, 18..22, 28..40];
        assert_eq!(found.ranges(&records), [5..10, 10..12, 18..20]);
        assert_eq!(found.known_to(25), 15);
        assert_eq!(found.known_to(40), 20);
        assert_eq!(found.place(29), Some(19));
        assert_eq!(found.place(15), None);
    }

    /// Where the parts are of the stream of a first subflow's server, whose segments have 10 bytes
    /// each, and say this.
    fn read(said: &[Option<Multipath>]) -> Vec<Part> {
        let secrets = KeyLog::default();
        let mut whole = Whole::new(&secrets);
        whole.before = [Some(100); 2];
        let mut state = SubflowState {
            role: Some(Subflow::First),
            ..SubflowState::default()
        };
        for (at, said) in (0_u64..).zip(said) {
            let header = Header {
                length: 10,
                multipath: said.map(Box::new),
                ..Header::default()
            };
            let said = (&header, &[0; 10][..]);
            state.read(End::Server, said, 10 * at, &mut whole);
        }
        state.mappings[End::Server as usize].0.clone()
    }

    /// A mapping of a part of the stream to an offset of the data.
    fn mapped(subflow: u32, data: u64, length: u16) -> Multipath {
        Multipath::Data {
            mapping: Some(DataMapping {
                data: 101 + data,
                is_long: true,
                subflow: subflow + 1,
                length,
            }),
            fin: false,
        }
    }

    #[test]
    fn a_connection_may_fall_back_to_tcp() {
        // From the first data on, which have no mapping.
        assert_eq!(read(&[None; 3]), [part_of((0, 0, 30))]);
        // By a mapping without an end; what comes behind has none.
        let said = [Some(mapped(0, 40, 10)), Some(mapped(10, 80, 0)), None, None];
        assert_eq!(read(&said), [(0, 40, 10), (10, 80, 30)].map(part_of));
        // A client's first data, which come with its keys, say nothing of later ones.
        let capable = Multipath::Capable {
            keys: [Some(1), Some(2)],
            length: Some(10),
        };
        assert_eq!(read(&[Some(capable), None]), [part_of((0, 0, 10))]);
        // One mapping may be about several segments; behind it nothing is known.
        let said = [Some(mapped(0, 0, 20)), None, None];
        assert_eq!(read(&said), [part_of((0, 0, 20))]);
    }

    proptest! {
        /// Whatever mappings say, no byte of a stream has two places.
        #[test]
        fn parts_do_not_overlap(
            parts in prop::collection::vec((0u64..200, 0u64..1000, 1u64..60), 0..30),
        ) {
            let found = mappings(&parts);
            for pair in found.0.windows(2) {
                prop_assert!(pair[0].end() <= pair[1].subflow);
            }
            let all: u64 = found.parts(0..1000).map(|it| it.length).sum();
            prop_assert_eq!(all, found.0.iter().map(|it| it.length).sum::<u64>());
            prop_assert!(found.0.iter().all(|it| it.length > 0));
        }
    }
}
