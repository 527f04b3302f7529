//! A stream's pieces, put back into their order (RFC 9000, section 2.2).
//!
//! For a library that hands out stream data as they come. A piece costs one insertion into a map,
//! so tens of thousands of gaps, which a queue that overflows leaves, are no burden. What a peer
//! can make this side hold is limited, in bytes that its pieces occupy: reading at once gives flow
//! control credit at once, so the window does not limit it.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use bytes::Bytes;
use thiserror::Error;

/// The most memory for pieces that wait for gaps to be filled, in bytes: far more than any path
/// holds.
const MOST_HELD: usize = 1 << 30;
/// The memory of a piece beside its bytes.
const PIECE_OVERHEAD: usize = 128;
/// A piece that is smaller than this is copied, so that it does not keep its whole datagram.
const WORTH_ITS_DATAGRAM: usize = 512;

/// The data of a stream that have come, in whatever order.
#[derive(Debug, Default)]
pub struct Reassembly {
    /// All bytes before this offset have come.
    next: u64,
    /// The data that come next, in order.
    ready: VecDeque<Bytes>,
    /// Bytes in these.
    ready_bytes: usize,
    /// Pieces beyond the first gap, by their offsets.
    waiting: BTreeMap<u64, Bytes>,
    /// The memory that these take.
    held: usize,
}

/// The reason for which a piece cannot be taken.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ReassemblyError {
    /// The library hands out a byte for the second time.
    #[error("bytes {0:?} come twice")]
    Twice(Range<u64>),
    /// The peer leaves a gap open and goes on sending.
    #[error("too much waits for bytes {0:?}")]
    TooMuch(Range<u64>),
}

impl Reassembly {
    /// Takes a piece that begins at `offset`.
    pub fn insert(&mut self, offset: u64, bytes: Bytes) -> Result<(), ReassemblyError> {
        let end = offset + bytes.len() as u64;
        let before = self.waiting.range(..end).next_back();
        let overlap = before.is_some_and(|(start, piece)| start + piece.len() as u64 > offset);
        if overlap || offset < self.next {
            return Err(ReassemblyError::Twice(offset..end));
        }
        if bytes.is_empty() {
            return Ok(());
        }
        if offset == self.next {
            self.append(bytes);
            return Ok(());
        }
        self.held += bytes.len() + PIECE_OVERHEAD;
        let small = bytes.len() < WORTH_ITS_DATAGRAM;
        let bytes = if small {
            Bytes::copy_from_slice(&bytes)
        } else {
            bytes
        };
        self.waiting.insert(offset, bytes);
        match self.gap() {
            Some(gap) if self.held > MOST_HELD => Err(ReassemblyError::TooMuch(gap)),
            _ => Ok(()),
        }
    }

    /// Takes what continues the bytes in order, and what has waited for it.
    fn append(&mut self, bytes: Bytes) {
        self.make_ready(bytes);
        while let Some(piece) = self.waiting.first_entry()
            && *piece.key() == self.next
        {
            let bytes = piece.remove();
            self.held -= bytes.len() + PIECE_OVERHEAD;
            self.make_ready(bytes);
        }
    }

    fn make_ready(&mut self, bytes: Bytes) {
        self.next += bytes.len() as u64;
        self.ready_bytes += bytes.len();
        self.ready.push_back(bytes);
    }

    /// The bytes that come next in order, if they are here.
    pub fn pop(&mut self) -> Option<Bytes> {
        let bytes = self.ready.pop_front()?;
        self.ready_bytes -= bytes.len();
        Some(bytes)
    }

    /// All bytes before this offset have come.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The number of bytes that have not been taken out, in order or waiting for a gap to be
    /// filled.
    #[must_use]
    pub fn occupied(&self) -> usize {
        self.ready_bytes + self.held
    }

    /// The first bytes that are missing although later ones have come.
    #[must_use]
    pub fn gap(&self) -> Option<Range<u64>> {
        let (start, _) = self.waiting.first_key_value()?;
        Some(self.next..*start)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Takes out all that is in order.
    fn drain(reassembly: &mut Reassembly) -> Vec<u8> {
        std::iter::from_fn(|| reassembly.pop()).flatten().collect()
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(
            sizes in prop::collection::vec(1_usize..2000, 1..200),
            keys in prop::collection::vec(any::<u32>(), 200),
            reads in prop::collection::vec(any::<bool>(), 200),
        ) {
            let content: Vec<u8> = (0..sizes.iter().sum::<usize>()).map(
                |n| (n * 31).to_le_bytes()[0]).collect();
            let mut pieces = Vec::new();
            let mut start = 0;
            for (size, key) in sizes.iter().zip(keys) {
                pieces.push((key, start, Bytes::copy_from_slice(&content[start..start + size])));
                start += size;
            }
            pieces.sort_by_key(|(key, ..)| *key);
            let mut reassembly = Reassembly::default();
            let mut out = Vec::new();
            for ((_, start, bytes), read) in pieces.into_iter().zip(reads) {
                reassembly.insert(start as u64, bytes).unwrap();
                if read {
                    out.extend(drain(&mut reassembly));
                }
                prop_assert!(content.starts_with(&out));
            }
            out.extend(drain(&mut reassembly));
            prop_assert!(out == content);
            prop_assert_eq!((reassembly.gap(), reassembly.occupied()), (None, 0));
            prop_assert_eq!(reassembly.next(), content.len() as u64);
        }
    }

    #[test]
    fn gaps_are_named_until_they_are_filled() {
        let mut reassembly = Reassembly::default();
        reassembly.insert(4, Bytes::from_static(b"ef")).unwrap();
        assert_eq!(reassembly.gap(), Some(0..4));
        reassembly.insert(0, Bytes::from_static(b"ab")).unwrap();
        assert_eq!(reassembly.gap(), Some(2..4));
        assert_eq!(drain(&mut reassembly), b"ab");
        reassembly.insert(2, Bytes::from_static(b"cd")).unwrap();
        assert_eq!(drain(&mut reassembly), b"cdef");
        assert_eq!(reassembly.gap(), None);
    }

    #[test]
    fn a_byte_that_comes_twice_is_an_error_and_an_empty_piece_is_nothing() {
        let mut reassembly = Reassembly::default();
        reassembly.insert(0, Bytes::from_static(b"abc")).unwrap();
        reassembly.insert(10, Bytes::from_static(b"klm")).unwrap();
        reassembly.insert(6, Bytes::new()).unwrap();
        for (offset, bytes) in [(0, "a"), (2, "cd"), (9, "jk"), (8, "hijklmn"), (12, "mn")] {
            let error = reassembly.insert(offset, Bytes::from_static(bytes.as_bytes()));
            let end = offset + bytes.len() as u64;
            assert_eq!(error, Err(ReassemblyError::Twice(offset..end)));
        }
        assert_eq!(reassembly.waiting.len(), 1);
    }

    #[test]
    fn what_waits_is_limited_by_the_memory_it_takes() {
        let mut reassembly = Reassembly::default();
        let piece = Bytes::from(vec![0; 1 << 24]);
        let room = MOST_HELD / (piece.len() + PIECE_OVERHEAD);
        for index in 0..room {
            reassembly
                .insert(1 + ((index as u64) << 25), piece.clone())
                .unwrap();
        }
        let error = reassembly.insert(1 << 40, piece);
        assert_eq!(error, Err(ReassemblyError::TooMuch(0..1)));
    }
}
