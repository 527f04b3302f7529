//! The transport parameters that decoding needs.
//!
//! Source: RFC 9000 section 18.2; draft-ferrieuxhamchaoui-quic-lossbits-03 section 5.1. Values that
//! the RFC forbids are shown as they are.

use serde::Serialize;

use crate::cursor::Cursor;

use super::{ConnectionId, End};

/// The transport parameters of an end, as far as they help to understand its packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransportParameters {
    /// The delays in its ACK frames are in units of 2 to the power of this many microseconds.
    pub ack_delay_exponent: u64,
    /// The longest time for which it may delay an ACK, in milliseconds.
    pub max_ack_delay: u64,
    /// The connection ID to use at the server's preferred address.
    pub preferred_address: Option<ConnectionId>,
    /// The use of the loss bits in short headers: 1, it would send them, 0, it understands them.
    /// None: it does not know them.
    pub loss_bits: Option<u64>,
    /// The flow-control credit that it gives before any frame does.
    pub credit: InitialCredit,
}

/// The flow-control limits that an end gives its peer in the handshake, in bytes. Those that are
/// not given are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct InitialCredit {
    /// Over all streams.
    pub initial_max_data: u64,
    /// On a bidirectional stream that the giving end opened.
    pub initial_max_stream_data_bidi_local: u64,
    /// On one that its peer opened.
    pub initial_max_stream_data_bidi_remote: u64,
    /// On a unidirectional stream of its peer.
    pub initial_max_stream_data_uni: u64,
}

impl InitialCredit {
    /// The limit on a stream for the peer of `giver`, by the two lowest bits of the stream's ID
    /// (RFC 9000 section 2.1).
    #[must_use]
    pub fn on_stream(&self, giver: End, id: u64) -> u64 {
        let opener = if id & 0x01 == 0 {
            End::Client
        } else {
            End::Server
        };
        match id & 0x02 {
            0 if opener == giver => self.initial_max_stream_data_bidi_local,
            0 => self.initial_max_stream_data_bidi_remote,
            _ => self.initial_max_stream_data_uni,
        }
    }
}

impl TransportParameters {
    /// None if they are damaged.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut parameters = Self {
            ack_delay_exponent: 3,
            max_ack_delay: 25,
            preferred_address: None,
            loss_bits: None,
            credit: InitialCredit::default(),
        };
        let credit = &mut parameters.credit;
        let mut cursor = Cursor::new(bytes);
        while !cursor.rest().is_empty() {
            let number = cursor.varint()?;
            let mut value = Cursor::new(cursor.counted()?);
            match number {
                0x04 => credit.initial_max_data = value.varint()?,
                0x05 => credit.initial_max_stream_data_bidi_local = value.varint()?,
                0x06 => credit.initial_max_stream_data_bidi_remote = value.varint()?,
                0x07 => credit.initial_max_stream_data_uni = value.varint()?,
                0x0a => parameters.ack_delay_exponent = value.varint()?,
                0x0b => parameters.max_ack_delay = value.varint()?,
                0x0d => {
                    value.take(4 + 2 + 16 + 2)?; // addresses of both families
                    let length = usize::from(value.u8()?);
                    parameters.preferred_address = Some(ConnectionId::new(value.take(length)?)?);
                }
                0x1057 => parameters.loss_bits = value.varint(),
                _ => {}
            }
        }
        Some(parameters)
    }

    /// The delay of an ACK frame in microseconds. None if it is beyond 2^64.
    #[must_use]
    pub fn ack_delay_us(&self, delay: u64) -> Option<u64> {
        let unit = 1_u64.checked_shl(u32::try_from(self.ack_delay_exponent).ok()?)?;
        delay.checked_mul(unit)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_parameters_or_damaged(bytes in vec(any::<u8>(), 0..64)) {
            let behind = [&bytes[..], &[0x50, 0x57, 1, 1]].concat();
            let parsed = TransportParameters::parse(&bytes);
            let with_loss_bits = parsed.map(|it| TransportParameters { loss_bits: Some(1), ..it });
            prop_assert!(parsed.is_none() || TransportParameters::parse(&behind) == with_loss_bits);
        }
    }

    #[test]
    fn defaults_are_those_of_rfc_9000() {
        let found = TransportParameters::parse(&[0x0e, 0x01, 0x09]).unwrap();
        assert_eq!((found.ack_delay_exponent, found.max_ack_delay), (3, 25));
        assert_eq!((found.preferred_address, found.loss_bits), (None, None));
        assert_eq!(found.credit, InitialCredit::default());
        assert_eq!(found.ack_delay_us(5), Some(40));
    }

    #[test]
    fn what_is_given_is_found() {
        let mut bytes = vec![0x0a, 1, 10, 0x0b, 2, 0x41, 0x00, 0x0d, 24 + 1 + 3 + 16];
        bytes.extend_from_slice(&[7; 24]);
        bytes.extend_from_slice(&[3, 1, 2, 3]);
        bytes.extend_from_slice(&[9; 16]);
        let found = TransportParameters::parse(&bytes).unwrap();
        assert_eq!((found.ack_delay_exponent, found.max_ack_delay), (10, 256));
        assert_eq!(found.preferred_address, ConnectionId::new(&[1, 2, 3]));
        assert_eq!(found.ack_delay_us(u64::MAX >> 9), None);
        for length in [1, 2, 4, 6, 8, 20, 34] {
            assert_eq!(TransportParameters::parse(&bytes[..length]), None);
        }
        let marking = TransportParameters::parse(&[0x50, 0x57, 1, 1]).unwrap();
        assert_eq!(marking.loss_bits, Some(1));
        let other = TransportParameters::parse(&[0x50, 0x57, 0, 0x0a, 1, 10]).unwrap();
        assert_eq!((other.loss_bits, other.ack_delay_exponent), (None, 10));
        let large = TransportParameters::parse(&[0x0a, 2, 0x40, 64]).unwrap();
        assert_eq!(large.ack_delay_us(1), None);
    }

    #[test]
    fn credit_depends_on_who_opened_the_stream() {
        let bytes = [4, 2, 0x50, 0, 5, 1, 11, 6, 1, 12, 7, 1, 13];
        let credit = TransportParameters::parse(&bytes).unwrap().credit;
        assert_eq!(credit.initial_max_data, 4096);
        let given_by = |end| [0, 1, 2, 3].map(|id| credit.on_stream(end, id));
        assert_eq!(given_by(End::Client), [11, 12, 13, 13]);
        assert_eq!(given_by(End::Server), [12, 11, 13, 13]);
    }
}
