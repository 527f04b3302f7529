//! Datagrams that leave together: those of one size to one address are one call to the kernel.

/// The most that UDP over IPv4 carries, and so the most that one call can send, in bytes.
const MOST_BYTES: usize = 65_507;

/// The sizes of datagrams in one buffer: all have that of the first, but the last may be shorter.
#[derive(Debug, Default, Clone, Copy)]
pub struct Segments {
    size: usize,
    count: usize,
    bytes: usize,
}

impl Segments {
    /// Adds a datagram of `length` bytes, if it can leave with the others, of which there may be
    /// `most`.
    #[must_use]
    pub fn add(&mut self, length: usize, most: usize) -> bool {
        if self.count > 0 {
            let is_next = self.bytes == self.size * self.count
                && (1..=self.size).contains(&length)
                && self.count < most
                && self.bytes + length <= MOST_BYTES;
            if !is_next {
                return false;
            }
        } else {
            self.size = length;
        }
        self.bytes += length;
        self.count += 1;
        true
    }

    /// Datagrams.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The size of all but the last, if there are several.
    #[must_use]
    pub fn size(&self) -> Option<usize> {
        (self.count > 1).then_some(self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_one_size_leave_together_and_a_shorter_one_ends_them() {
        let mut some = Segments::default();
        assert!(some.add(100, 64) && some.add(100, 64));
        assert!(!some.add(101, 64), "a longer one");
        assert!(some.add(99, 64));
        assert!(!some.add(99, 64), "what follows a shorter one");
        assert_eq!((some.count(), some.size()), (3, Some(100)));
        let mut empty = Segments::default();
        assert!(empty.add(0, 64) && !empty.add(0, 64));
        let mut large = Segments::default();
        assert!(large.add(40_000, 64) && !large.add(40_000, 64));
        let mut few = Segments::default();
        assert!(few.add(10, 2) && few.add(10, 2) && !few.add(10, 2));
    }
}
