//! The packets that a sender keeps, in case they are asked for.

use std::collections::VecDeque;
use std::time::Duration;

/// The most packets that are kept, and for how long: longer than three requests take.
const MOST: usize = 8192;
const AGE: Duration = Duration::from_secs(4);

/// Source packets, by ESI.
#[derive(Debug, Default)]
pub struct Store {
    first: u32,
    /// The packets, each with the time at which it was sent and its ECN bits.
    kept: VecDeque<(Duration, u8, Vec<u8>)>,
}

impl Store {
    /// Keeps the packet of an ESI, which is the one behind that of the last.
    pub fn keep(&mut self, now: Duration, esi: u32, ecn: u8, packet: Vec<u8>) {
        if self.kept.is_empty() {
            self.first = esi;
        }
        self.kept.push_back((now, ecn, packet));
        let is_old = |sent: Duration| now.saturating_sub(sent) > AGE;
        while self.kept.len() > MOST || self.kept.front().is_some_and(|it| is_old(it.0)) {
            self.kept.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }

    /// The packet of an ESI, and its ECN bits, if it is kept.
    pub fn find(&self, esi: u32) -> Option<(u8, &[u8])> {
        let at = usize::try_from(esi.wrapping_sub(self.first)).ok()?;
        let (_, ecn, packet) = self.kept.get(at)?;
        Some((*ecn, packet))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_found_until_they_are_old_across_the_end_of_numbers() {
        let mut store = Store::default();
        for (at, esi) in (0..10_000).map(|it: u32| (it, (u32::MAX - 5).wrapping_add(it))) {
            store.keep(
                Duration::from_micros(at.into()),
                esi,
                1,
                at.to_be_bytes().to_vec(),
            );
        }
        let found = |at: u32| store.find((u32::MAX - 5).wrapping_add(at));
        assert_eq!(found(9_999), Some((1, &9_999_u32.to_be_bytes()[..])));
        assert_eq!(
            found(10_000 - 8192),
            Some((1, &(10_000_u32 - 8192).to_be_bytes()[..]))
        );
        assert_eq!((found(10_000 - 8193), found(10_000)), (None, None));
        store.keep(Duration::from_secs(5), 9_994, 0, Vec::new());
        assert_eq!((store.kept.len(), store.find(9_993)), (1, None));
    }
}
