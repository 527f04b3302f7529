//! The blocks of a sender, each of which has repairs of its own: Reed-Solomon codes, interleaved.

use std::collections::VecDeque;

use crate::coefficients::{Combination, MOST_OF_BLOCK};
use crate::gf256;

/// The blocks that are being filled.
#[derive(Debug)]
pub struct Blocks {
    /// Symbols of a block.
    most: usize,
    /// Of so many neighbours each is in another block.
    stride: u8,
    /// By their next ESIs.
    open: VecDeque<Block>,
}

/// The symbols of a block.
#[derive(Debug)]
pub struct Block {
    /// The ESI of the first; the others follow `stride` apart.
    pub first_esi: u32,
    stride: u8,
    symbols: Vec<Vec<u8>>,
    /// Repairs so far.
    sent: u8,
}

impl Blocks {
    /// No block so far.
    pub fn new(most: usize, stride: u8) -> Self {
        Self {
            most,
            stride,
            open: VecDeque::new(),
        }
    }

    /// Adds the symbol of the next ESI; returns the block that is full with it.
    pub fn push(&mut self, esi: u32, symbol: Vec<u8>) -> Option<Block> {
        let next = self.open.pop_front_if(|block| block.next_esi() == esi);
        let mut block = next.unwrap_or(Block {
            first_esi: esi,
            stride: self.stride,
            symbols: Vec::new(),
            sent: 0,
        });
        block.symbols.push(symbol);
        if block.symbols.len() == self.most {
            return Some(block);
        }
        self.open.push_back(block);
        None
    }

    /// Whether no block is being filled.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Takes the blocks that are not full.
    pub fn close(&mut self) -> impl Iterator<Item = Block> {
        std::mem::take(&mut self.open).into_iter()
    }
}

impl Block {
    /// The number of symbols.
    pub fn len(&self) -> usize {
        self.symbols.len()
    }

    fn next_esi(&self) -> u32 {
        let steps = u32::try_from(self.symbols.len()).expect("a block is short");
        self.first_esi.wrapping_add(steps * u32::from(self.stride))
    }

    /// The combination of the next repair, and the repair symbol; None if the block has all.
    pub fn repair(&mut self) -> Option<(Combination, Vec<u8>)> {
        let count = u8::try_from(self.symbols.len()).expect("a block has less than 256 symbols");
        let (row, stride) = (self.sent, self.stride);
        if usize::from(row) + usize::from(count) >= MOST_OF_BLOCK {
            return None;
        }
        self.sent = row + 1;
        let combination = Combination::Block { row, count, stride };
        let mut sum = Vec::new();
        for ((_, factor), symbol) in combination.factors().zip(&self.symbols) {
            gf256::add_scaled(&mut sum, symbol, factor);
        }
        Some((combination, sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_in_different_blocks_and_each_is_in_one() {
        let mut blocks = Blocks::new(3, 2);
        let start = u32::MAX - 4;
        let mut full = Vec::new();
        for number in 0..9 {
            let esi = start.wrapping_add(number);
            full.extend(blocks.push(esi, vec![number.to_le_bytes()[0]]));
        }
        full.extend(blocks.close());
        let found = full.iter().map(|block| block.symbols.concat());
        let found: Vec<Vec<u8>> = found.collect();
        assert_eq!(found, [vec![0, 2, 4], vec![1, 3, 5], vec![7], vec![6, 8]]);
        let first: Vec<u32> = full
            .iter()
            .map(|it| it.first_esi.wrapping_sub(start))
            .collect();
        assert_eq!(first, [0, 1, 7, 6]);
        assert_eq!(blocks.close().count(), 0);
    }

    #[test]
    fn a_block_has_as_many_repairs_as_the_field_allows() {
        let mut block = Blocks::new(250, 1);
        let mut full = (0..250).find_map(|esi| block.push(esi, vec![1])).unwrap();
        let repairs = std::iter::from_fn(|| full.repair());
        assert_eq!(repairs.count(), 6);
    }
}
