//! The application data in TCP's streams, where these carry TLS that was decrypted.
//!
//! Only that stands in STREAM frames then, as offsets among itself: so bytes and times mean the
//! same as those of QUIC. All else, from handshakes to what records add, stands in CRYPTO frames,
//! at its offset in TCP's stream.

use std::ops::Range;

use crate::connection::Frame;
use bentpipe_wire::TlsRecords;
use bentpipe_wire::quic::End;

/// The application data of both streams.
#[derive(Debug)]
pub(super) struct Content {
    /// Each with how many bytes of application data come before it.
    data: [Vec<(Range<u64>, u64)>; 2],
    size: [u64; 2],
    /// Bytes behind it count as data: nothing better is known of them.
    read_to: [u64; 2],
}

impl Content {
    /// None if there is no TLS, or not all of it was read.
    pub(super) fn of(tls: Option<&TlsRecords>) -> Option<Self> {
        let tls = tls.filter(|it| it.readable)?;
        let mut size = [0; 2];
        let data = [0, 1].map(|end: usize| {
            let placed = tls.application[end].iter().map(|range| {
                let before = size[end];
                size[end] += range.end - range.start;
                (range.clone(), before)
            });
            placed.collect()
        });
        Some(Self {
            data,
            size,
            read_to: tls.read_to,
        })
    }

    /// The position of the byte at `offset` of `sender`'s stream among its data; behind all that
    /// was seen, bytes count as data.
    pub(super) fn position(&self, sender: End, offset: u64) -> u64 {
        let data = &self.data[sender as usize];
        let from = data.partition_point(|(range, _)| range.end <= offset);
        match data.get(from) {
            Some((range, before)) => before + offset.saturating_sub(range.start),
            None => self.behind(sender, offset),
        }
    }

    /// Where a byte behind all data that were read is among the data.
    fn behind(&self, sender: End, offset: u64) -> u64 {
        let end = sender as usize;
        self.size[end] + offset.saturating_sub(self.read_to[end])
    }

    /// The frames of a segment with these bytes of `sender`'s stream.
    pub(super) fn frames(
        &self,
        sender: End,
        bytes: &Range<u64>,
        fin: bool,
        frames: &mut Vec<Frame>,
    ) {
        let data = &self.data[sender as usize];
        let read_to = self.read_to[sender as usize].clamp(bytes.start, bytes.end);
        let read = bytes.start..read_to;
        let from = data.partition_point(|(range, _)| range.end <= read.start);
        let mut at = read.start;
        let within = if read.is_empty() { &[] } else { &data[from..] };
        for (range, before) in within.iter().take_while(|(it, _)| it.start < read.end) {
            frames.extend(crypto(at..range.start));
            let (start, end) = (at.max(range.start), read.end.min(range.end));
            frames.push(Frame::Stream {
                id: 0,
                offset: before + (start - range.start),
                length: length(&(start..end)),
                fin: false,
            });
            at = end;
        }
        frames.extend(crypto(at..read.end));
        let rest = read.end..bytes.end;
        frames.extend((fin || !rest.is_empty()).then(|| Frame::Stream {
            id: 0,
            offset: self.behind(sender, rest.start),
            length: length(&rest),
            fin,
        }));
    }
}

fn crypto(bytes: Range<u64>) -> Option<Frame> {
    (bytes.start < bytes.end).then(|| Frame::Crypto {
        offset: bytes.start,
        length: length(&bytes),
    })
}

fn length(bytes: &Range<u64>) -> u32 {
    u32::try_from(bytes.end - bytes.start).expect("no more than in a segment")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    /// The stream as frames describe it: bytes of data, which come in order, bytes of the rest, and
    /// whether it ended.
    fn told(content: &Content, cuts: &[u64]) -> (u64, u64, bool) {
        let mut frames = Vec::new();
        for pair in cuts.windows(2) {
            let is_last = Some(&pair[1]) == cuts.last() && pair[0] < pair[1];
            content.frames(End::Client, &(pair[0]..pair[1]), is_last, &mut frames);
        }
        let (mut data, mut rest, mut ended) = (0, 0, false);
        for frame in frames {
            match frame {
                Frame::Stream {
                    offset,
                    length,
                    fin,
                    ..
                } => {
                    assert!(length > 0 || fin, "what says nothing is no frame");
                    assert_eq!(offset, data);
                    data += u64::from(length);
                    ended |= fin;
                }
                Frame::Crypto { length, .. } => rest += u64::from(length),
                other => unreachable!("{other:?}"),
            }
        }
        (data, rest, ended)
    }

    proptest! {
        /// However a stream is cut into segments, and however far it was read, each byte is there
        /// once.
        #[test]
        fn no_byte_is_lost_or_doubled(
            lengths in prop::collection::vec((1u64..50, 1u64..50), 1..20),
            cuts in prop::collection::vec(any::<Index>(), 0..30),
            unread in 0u64..40,
        ) {
            let mut at = 0;
            let records = lengths.iter().map(|(other, data)| {
                let range = at + other..at + other + data;
                at = range.end;
                range
            });
            let application: Vec<_> = records.collect();
            let read_to = at + 7;
            let whole = read_to + unread;
            let tls = TlsRecords {
                application: [application, Vec::new()],
                read_to: [read_to, 0],
                readable: true,
                ..TlsRecords::default()
            };
            let content = Content::of(Some(&tls)).unwrap();
            let size = usize::try_from(whole).unwrap();
            let mut cuts: Vec<u64> = cuts.iter().map(|it| it.index(size) as u64).collect();
            cuts.extend([0, whole]);
            cuts.sort_unstable();
            let data: u64 = lengths.iter().map(|(_, data)| data).sum();
            prop_assert_eq!(told(&content, &cuts), (data + unread, read_to - data, true));
            prop_assert_eq!(content.position(End::Client, whole), data + unread);
        }
    }
}
