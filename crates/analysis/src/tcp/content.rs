//! What of TCP's streams is application data, where TLS is in them and was read.
//!
//! Only that stands in STREAM frames then, as offsets among itself: so bytes and times mean the same
//! as those of QUIC. All else, from handshakes to what records add, stands in CRYPTO frames, at its
//! offset in TCP's stream.

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
        Some(Self { data, size })
    }

    /// Where the byte at `offset` of `sender`'s stream is among its data; behind all that was seen,
    /// bytes count as data.
    pub(super) fn position(&self, sender: End, offset: u64) -> u64 {
        let data = &self.data[sender as usize];
        let from = data.partition_point(|(range, _)| range.end <= offset);
        if let Some((range, before)) = data.get(from) {
            return before + offset.saturating_sub(range.start);
        }
        let end = data.last().map_or(0, |(range, _)| range.end);
        self.size[sender as usize] + (offset - end)
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
        let from = data.partition_point(|(range, _)| range.end <= bytes.start);
        let mut at = bytes.start;
        for (range, before) in data[from..]
            .iter()
            .take_while(|(it, _)| it.start < bytes.end)
        {
            frames.extend(crypto(at..range.start));
            let (start, end) = (at.max(range.start), bytes.end.min(range.end));
            frames.push(Frame::Stream {
                id: 0,
                offset: before + (start - range.start),
                length: length(&(start..end)),
                fin: false,
            });
            at = end;
        }
        frames.extend(crypto(at..bytes.end));
        frames.extend(fin.then_some(Frame::Stream {
            id: 0,
            offset: self.size[sender as usize],
            length: 0,
            fin: true,
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

    use super::*;

    proptest! {
        /// However a stream is cut into segments, its data are there once, and so is all else.
        #[test]
        fn no_byte_is_lost_or_doubled(
            lengths in prop::collection::vec((1u64..50, 1u64..50), 1..20),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..30),
        ) {
            let mut at = 0;
            let records = lengths.iter().map(|(other, data)| {
                let range = at + other..at + other + data;
                at = range.end;
                range
            });
            let application: Vec<_> = records.collect();
            let whole = at + 7;
            let tls = TlsRecords {
                application: [application, Vec::new()],
                readable: true,
                ..TlsRecords::default()
            };
            let content = Content::of(Some(&tls)).unwrap();
            let mut cuts: Vec<u64> = cuts.iter().map(|it| it.index(usize::try_from(whole).unwrap()) as u64).collect();
            cuts.extend([0, whole]);
            cuts.sort_unstable();
            let mut frames = Vec::new();
            for pair in cuts.windows(2) {
                content.frames(End::Client, &(pair[0]..pair[1]), pair[1] == whole, &mut frames);
            }
            let (mut next, mut others, mut ended) = (0, 0, false);
            for frame in frames {
                match frame {
                    Frame::Stream { offset, length, fin, .. } => {
                        prop_assert_eq!(offset, next);
                        next += u64::from(length);
                        ended |= fin;
                    }
                    Frame::Crypto { length, .. } => others += u64::from(length),
                    _ => unreachable!(),
                }
            }
            let data: u64 = lengths.iter().map(|(_, data)| data).sum();
            prop_assert_eq!((next, others, ended), (data, whole - data, true));
        }
    }
}
