//! Streams deliver the bytes that were written, whatever the path does.

use std::time::Duration;

use bentpipe_endpoint::{Closing, Stack};
use proptest::prelude::*;

use crate::impaired_path::{ImpairedPath, carry};

/// Bytes of no pattern, so that a shifted or lost block shows.
fn content(size: usize) -> Vec<u8> {
    let byte = |index: usize| index.wrapping_mul(0x9e37_79b9).to_le_bytes()[1];
    (0..size).map(byte).collect()
}

/// Checks it for drawn paths, sizes of files and of writes.
pub fn what_is_written_is_read<S: Stack>() {
    let config = ProptestConfig {
        cases: 48,
        ..ProptestConfig::default()
    };
    proptest!(config, |(
        ordered in any::<bool>(),
        size in 1_usize..200_000,
        piece in prop_oneof![1_usize..100, 100_usize..3000, 3000_usize..100_000],
        loss in 0_u64..25,
        jitter_ms in 0_u64..60,
        duplication in 0_u64..20,
        alternate in 0_usize..300,
        seed in any::<u64>(),
    )| {
        let size = size.min(piece * 500);
        let jitter = Duration::from_millis(jitter_ms);
        let path = ImpairedPath { loss, jitter, duplication, alternate, seed };
        let content = content(size);
        let reading = if ordered { "ordered" } else { "unordered" };
        let (received, result) = carry::<S>(reading, &content, piece, path);
        prop_assert!(content.starts_with(&received), "other bytes than were written");
        // Under heavy loss eight answers in a row are lost now and then, which lasts longer than
        // the idle timeout of 30 s.
        let gave_up = loss > 10 && result == Err(Closing::IdleTimeout);
        if !gave_up {
            prop_assert_eq!((result, received.len()), (Ok(()), size));
        }
    });
}

/// Half of many small pieces is lost, and is sent again with tens of them in a datagram
/// (`docs/upstream/noq-unordered.md`).
pub fn small_pieces_that_are_sent_again_together_arrive<S: Stack>() {
    let content = content(4000);
    for reading in ["ordered", "unordered"] {
        let path = ImpairedPath {
            loss: 0,
            jitter: Duration::ZERO,
            duplication: 0,
            alternate: 170,
            seed: 1,
        };
        let (received, result) = carry::<S>(reading, &content, 20, path);
        assert_eq!(result, Ok(()), "{reading}, {} bytes", received.len());
        assert!(received == content, "{reading}");
    }
}
