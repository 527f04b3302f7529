//! Sequence numbers of 32 bits, made 64 bits wide: a transfer may be longer than 4 GiB.

/// A sequence number that does not wrap.
pub(super) type Position = i64;

/// No window is larger (RFC 7323 section 2.3), so ACKs are no further from the data than that.
const LARGEST_WINDOW: Position = 1 << 30;

/// The sequence numbers of one sender.
#[derive(Debug, Default)]
pub(super) struct Unwrapper {
    last: Option<Position>,
}

impl Unwrapper {
    /// The position of a segment of the sender: the one next to the last.
    pub(super) fn sent(&mut self, number: u32) -> Position {
        let position = self.near(number);
        self.last = Some(position);
        position
    }

    /// The position of an ACK to the sender. A number outside of any window does not move it:
    /// resets may carry any number.
    pub(super) fn acknowledged(&mut self, number: u32) -> Position {
        let position = self.near(number);
        if self
            .last
            .is_none_or(|last| (position - last).abs() <= LARGEST_WINDOW)
        {
            self.last = Some(position);
        }
        position
    }

    /// The position with this number that is nearest to the last.
    pub(super) fn near(&self, number: u32) -> Position {
        let Some(last) = self.last else {
            return Position::from(number);
        };
        let low = u32::try_from(last & 0xffff_ffff).expect("32 bits");
        last + Position::from(number.wrapping_sub(low).cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn steps_below_two_gib_are_followed(first: u32,
            steps in prop::collection::vec(any::<i32>(), 0..100)) {
            let mut unwrapper = Unwrapper::default();
            let mut position = unwrapper.sent(first);
            for step in steps {
                position += Position::from(step);
                let number = u32::try_from(position.rem_euclid(1 << 32)).unwrap();
                prop_assert_eq!(unwrapper.near(number), position);
                prop_assert_eq!(unwrapper.sent(number), position);
            }
        }
    }

    #[test]
    fn a_stray_ack_moves_nothing() {
        let mut unwrapper = Unwrapper::default();
        unwrapper.sent(10);
        unwrapper.acknowledged(0x7000_0000);
        assert_eq!(unwrapper.sent(0xc000_0000), 0xc000_0000 - (1 << 32));
        let mut unwrapper = Unwrapper::default();
        unwrapper.sent(10);
        unwrapper.acknowledged(0x1000);
        assert_eq!(unwrapper.sent(0x8000_0020), 0x8000_0020);
    }
}
