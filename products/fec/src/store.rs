//! The packets that a sender keeps, in case they are asked for.

use std::collections::VecDeque;
use std::time::Duration;

/// The most packets that are kept, and for how long: those of three round trips of 2 s.
pub const MOST: usize = 16_384;
const AGE: Duration = Duration::from_secs(8);
/// A packet is sent again at most so often: who asks for more is no receiver of ours.
const MOST_TIMES: u8 = 3;

/// Source packets, by ESI.
#[derive(Debug, Default)]
pub struct Store {
    first: u32,
    kept: VecDeque<Kept>,
}

/// A packet, and how often it was asked for.
#[derive(Debug)]
struct Kept {
    sent: Duration,
    ecn: u8,
    packet: Vec<u8>,
    times: u8,
}

impl Store {
    /// Keeps the packet of an ESI, which is the one behind that of the last.
    pub fn keep(&mut self, now: Duration, esi: u32, ecn: u8, packet: Vec<u8>) {
        if self.kept.is_empty() {
            self.first = esi;
        }
        self.kept.push_back(Kept {
            sent: now,
            ecn,
            packet,
            times: 0,
        });
        let is_old = |sent: Duration| now.saturating_sub(sent) > AGE;
        while self.kept.len() > MOST || self.kept.front().is_some_and(|it| is_old(it.sent)) {
            self.kept.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }

    /// Takes the packet of an ESI to be sent again, with its ECN bits; none if it is not kept, or
    /// was taken too often.
    pub fn take(&mut self, esi: u32) -> Option<(u8, &[u8])> {
        let at = usize::try_from(esi.wrapping_sub(self.first)).ok()?;
        let found = self.kept.get_mut(at).filter(|it| it.times < MOST_TIMES)?;
        found.times += 1;
        Some((found.ecn, &found.packet))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_found_until_they_are_old_across_the_end_of_numbers() {
        let mut store = Store::default();
        for (at, esi) in (0..20_000).map(|it: u32| (it, (u32::MAX - 5).wrapping_add(it))) {
            store.keep(
                Duration::from_micros(at.into()),
                esi,
                1,
                at.to_be_bytes().to_vec(),
            );
        }
        let mut found = |at: u32| {
            let taken = store.take((u32::MAX - 5).wrapping_add(at));
            taken.map(|(_, packet)| packet.to_vec())
        };
        let oldest = 20_000 - 16_384;
        for there in [19_999, oldest] {
            for _ in 0..3 {
                assert_eq!(found(there), Some(there.to_be_bytes().to_vec()));
            }
            assert_eq!(found(there), None, "the fourth time");
        }
        assert_eq!((found(oldest - 1), found(20_000)), (None, None));
        store.keep(Duration::from_secs(9), 19_994, 0, Vec::new());
        assert_eq!((store.kept.len(), store.take(19_993)), (1, None));
    }
}
