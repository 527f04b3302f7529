//! The last few bins of SEARCH.

/// A number of bytes for each of the last `N` bins.
#[derive(Debug, Clone)]
pub struct Ring<const N: usize>([u64; N]);

impl<const N: usize> Ring<N> {
    pub fn new() -> Self {
        Self([0; N])
    }

    fn slot(bin: u64) -> usize {
        usize::try_from(bin % N as u64).expect("below N")
    }

    pub fn get(&self, bin: u64) -> u64 {
        self.0[Self::slot(bin)]
    }

    pub fn set(&mut self, bin: u64, bytes: u64) {
        self.0[Self::slot(bin)] = bytes;
    }
}
