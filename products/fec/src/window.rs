//! The sliding window of a sender: the latest symbols, over all of which a repair is.

use std::collections::VecDeque;
use std::time::Duration;

use crate::coefficients::{Combination, FULL};
use crate::gf256;

/// The latest symbols.
#[derive(Debug)]
pub struct Window {
    most: usize,
    age: Duration,
    /// Each with the time at which it was sent; the last is that of the latest ESI.
    symbols: VecDeque<(Duration, Vec<u8>)>,
    next_key: u16,
}

impl Window {
    /// An empty window of at most so many symbols, none older than `age`.
    pub fn new(most: usize, age: Duration) -> Self {
        Self {
            most,
            age,
            symbols: VecDeque::new(),
            next_key: 0,
        }
    }

    /// Adds the symbol of the next ESI.
    pub fn push(&mut self, now: Duration, symbol: Vec<u8>) {
        self.symbols.push_back((now, symbol));
        self.forget(now);
    }

    /// Drops what is older than anybody wants.
    pub fn forget(&mut self, now: Duration) {
        let is_old = |sent: Duration| now.saturating_sub(sent) > self.age;
        let symbols = &mut self.symbols;
        while symbols.len() > self.most || symbols.front().is_some_and(|(sent, _)| is_old(*sent)) {
            symbols.pop_front();
        }
    }

    /// The number of symbols, the combination of a repair over them, and the repair symbol; None if
    /// there are none.
    pub fn repair(&mut self) -> Option<(u16, Combination, Vec<u8>)> {
        let count = u16::try_from(self.symbols.len()).expect("a window has at most 4095 symbols");
        if count == 0 {
            return None;
        }
        let (key, density) = (self.next_key, FULL);
        self.next_key = key.wrapping_add(1);
        let combination = Combination::Sliding {
            key,
            density,
            count,
        };
        let mut sum = Vec::new();
        for (at, factor) in combination.factors() {
            gf256::add_scaled(&mut sum, &self.symbols[at as usize].1, factor);
        }
        Some((count, combination, sum))
    }
}

#[cfg(test)]
mod tests {
    use cu_fec::{DensityThreshold, EncodingSymbolId, Field};
    use cu_fec::{RepairParameters, RlcConfig, RlcEncoder};
    use proptest::prelude::*;

    use super::*;

    const SIZE: usize = 40;
    const MOST: usize = 30;

    proptest! {
        /// cu-fec is another implementation of RFC 8681, whose symbols have one size.
        #[test]
        fn repairs_are_those_of_another_implementation(
            symbols in prop::collection::vec(prop::collection::vec(any::<u8>(), SIZE), 1..60),
        ) {
            let config = RlcConfig::new(SIZE, MOST, Field::Gf256).unwrap();
            let start = EncodingSymbolId::new(7);
            let mut theirs = RlcEncoder::<SIZE, MOST>::new(config, start).unwrap();
            let mut ours = Window::new(MOST, Duration::from_secs(1));
            for (key, symbol) in (0..).zip(symbols) {
                theirs.push_source(&symbol).unwrap();
                ours.push(Duration::ZERO, symbol);
                let mut expected = [0; SIZE];
                let parameters = RepairParameters::new(key, DensityThreshold::FULL);
                let id = theirs.encode_repair(parameters, &mut expected).unwrap();
                let (count, _, sum) = ours.repair().unwrap();
                prop_assert_eq!((count, &sum[..]), (id.source_symbols(), &expected[..]));
            }
        }
    }
}
