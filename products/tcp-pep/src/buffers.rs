//! The memory in which bytes wait between two connections, bounded for all of them together.
//!
//! A direction has a buffer only while bytes wait in it, which is seldom: what comes in is written
//! on at once. So thousands of connections share a few buffers, and what they take together has
//! a limit. Beyond it a direction waits, unread, until another one is empty.

/// The buffers of a relay.
#[derive(Debug)]
pub struct Buffers {
    free: Vec<Box<[u8]>>,
    /// Bytes of each.
    size: usize,
    /// Buffers that directions have.
    used: usize,
    /// The number of buffers, at most.
    most: usize,
}

/// Empty buffers that are kept for who comes next; the memory of others is given back.
const KEPT: usize = 64;

impl Buffers {
    /// Buffers of `size` bytes each, with `memory` bytes in all, or two at least.
    pub fn new(size: usize, memory: usize) -> Self {
        Self {
            free: Vec::new(),
            size,
            used: 0,
            most: (memory / size).max(2),
        }
    }

    /// An empty one, if there may be one more.
    pub fn take(&mut self) -> Option<Box<[u8]>> {
        if self.used >= self.most {
            return None;
        }
        self.used += 1;
        Some(self.free.pop().unwrap_or_else(|| vec![0; self.size].into()))
    }

    /// Takes one back.
    pub fn give(&mut self, buffer: Box<[u8]>) {
        self.used -= 1;
        if self.free.len() < KEPT && buffer.len() == self.size {
            self.free.push(buffer);
        }
    }

    /// Changes the size of buffers to come, and how many bytes there may be.
    pub fn resize(&mut self, size: usize, memory: usize) {
        if size != self.size {
            self.free.clear();
        }
        self.size = size;
        self.most = (memory / size).max(2);
    }

    /// Whether there may be one more.
    pub fn has_room(&self) -> bool {
        self.used < self.most
    }

    /// How many directions have one.
    pub fn used(&self) -> usize {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_given_than_there_may_be() {
        let mut buffers = Buffers::new(4096, 3 * 4096 + 1);
        let taken: Vec<_> = std::iter::from_fn(|| buffers.take()).collect();
        assert_eq!((taken.len(), buffers.used()), (3, 3));
        for buffer in taken {
            buffers.give(buffer);
        }
        assert!(buffers.take().is_some());
        assert_eq!(Buffers::new(4096, 0).most, 2, "one for each direction");
    }

    #[test]
    fn those_of_another_size_are_not_given_again() {
        let mut buffers = Buffers::new(4096, 1 << 20);
        let old = buffers.take().unwrap();
        buffers.resize(8192, 1 << 20);
        buffers.give(old);
        assert_eq!(buffers.take().unwrap().len(), 8192);
    }
}
