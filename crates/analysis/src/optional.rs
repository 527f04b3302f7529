//! Numbers that may be missing, in no more memory than those that are there.

use std::fmt;

/// A number below 2^63, or none: in eight bytes, where an [`Option`] takes sixteen. Analyses hold
/// several for every packet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Optional(i64);

impl Optional {
    const NONE: Self = Self(i64::MIN);

    /// The number, if there is one.
    #[must_use]
    pub fn nanos(self) -> Option<i64> {
        (self != Self::NONE).then_some(self.0)
    }

    /// The count, if there is one.
    #[must_use]
    pub fn count(self) -> Option<u64> {
        self.nanos().map(i64::cast_unsigned)
    }

    /// Whether there is one.
    #[must_use]
    pub fn is_some(self) -> bool {
        self != Self::NONE
    }
}

impl Default for Optional {
    fn default() -> Self {
        Self::NONE
    }
}

impl From<Option<i64>> for Optional {
    fn from(time: Option<i64>) -> Self {
        time.map_or(Self::NONE, Self)
    }
}

impl From<Option<u64>> for Optional {
    fn from(count: Option<u64>) -> Self {
        let count = count.map(|it| i64::try_from(it).expect("counts are below 2^63"));
        count.into()
    }
}

impl fmt::Debug for Optional {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.nanos().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_is_no_number() {
        for time in [None, Some(-1), Some(0), Some(i64::MAX)] {
            assert_eq!(Optional::from(time).nanos(), time);
        }
        for count in [None, Some(0), Some((1 << 63) - 1)] {
            assert_eq!(Optional::from(count).count(), count);
        }
        assert!(!Optional::default().is_some() && size_of::<Optional>() == 8);
    }
}
