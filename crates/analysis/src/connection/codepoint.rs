//! The ECN field of an IP packet.

/// An ECN codepoint: the meaning of the two ECN bits of an IP packet (RFC 3168 section 5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Codepoint {
    /// Its sender does not take part in ECN.
    #[default]
    NotEct,
    /// ECT(1): for senders of L4S (RFC 9331).
    Ect1,
    /// ECT(0): the packet may be marked in place of dropped.
    Ect0,
    /// Congestion Experienced: a queue on the way marked it.
    Ce,
}

impl Codepoint {
    /// The codepoint of these two bits; higher bits are ignored.
    #[must_use]
    pub fn of_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Whether a queue may mark the packet, or has.
    #[must_use]
    pub fn is_capable(self) -> bool {
        self != Self::NotEct
    }

    /// Its name in RFC 3168.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NotEct => "Not-ECT",
            Self::Ect1 => "ECT(1)",
            Self::Ect0 => "ECT(0)",
            Self::Ce => "CE",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_are_those_of_rfc_3168() {
        let names = [0, 1, 2, 3].map(|bits| Codepoint::of_bits(bits).name());
        assert_eq!(names, ["Not-ECT", "ECT(1)", "ECT(0)", "CE"]);
        assert_eq!(Codepoint::of_bits(0b1110), Codepoint::Ect0);
        assert!(!Codepoint::NotEct.is_capable() && Codepoint::Ce.is_capable());
    }
}
