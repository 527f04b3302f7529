//! What is read from a stream is what was written, whatever the path does; or there is an error that says why not.

use std::time::Duration;

use bentpipe_endpoint::Closing;
use proptest::prelude::*;

use crate::adversity::{Path, carry};
use crate::dialect;

/// Bytes of no pattern, so that a shifted or lost block shows.
fn content(size: usize) -> Vec<u8> {
    let byte = |index: usize| (index.wrapping_mul(0x9e37_79b9) >> 13) as u8;
    (0..size).map(byte).collect()
}

/// The words of an error that is the library's fault, known and reported.
fn says_why(closing: &Closing) -> bool {
    matches!(closing, Closing::Error(why) if why.contains("may have lost"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn what_is_written_is_read(
        ordered in any::<bool>(),
        size in 1_usize..200_000,
        piece in prop_oneof![1_usize..100, 100_usize..3000, 3000_usize..100_000],
        loss in 0_u64..25,
        jitter_ms in 0_u64..60,
        twice in 0_u64..20,
        alternate in 0_usize..300,
        seed in any::<u64>(),
    ) {
        let size = size.min(piece * 500);
        let path = Path { loss, jitter: Duration::from_millis(jitter_ms), twice, alternate, seed };
        let content = content(size);
        let reading = if ordered { "ordered" } else { "unordered" };
        let (received, result) = carry(reading, &content, piece, path);
        prop_assert!(content.starts_with(&received), "other bytes than were written");
        match result {
            Ok(()) => prop_assert_eq!(received.len(), size),
            Err(closing) => prop_assert!(
                !ordered && dialect::MAY_LOSE_PIECES && says_why(&closing), "{:?}", closing
            ),
        }
    }
}

/// `docs/upstream/noq-unordered.md` tells what happens here.
#[test]
fn small_pieces_sent_again_together_arrive_or_are_reported() {
    let content = content(4000);
    let small = |reading| {
        let path = Path {
            loss: 0,
            jitter: Duration::ZERO,
            twice: 0,
            alternate: 120,
            seed: 1,
        };
        carry(reading, &content, 20, path)
    };
    let (received, result) = small("ordered");
    assert!(received == content && result == Ok(()));
    let (received, result) = small("unordered");
    if dialect::MAY_LOSE_PIECES {
        let closing = result.expect_err("the defect is gone: MAY_LOSE_PIECES can go, too");
        assert!(says_why(&closing), "{closing:?}");
        assert!(content.starts_with(&received) && received.len() < content.len());
    } else {
        assert!(received == content && result == Ok(()));
    }
}
