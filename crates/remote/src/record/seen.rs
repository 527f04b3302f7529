//! Packets where they were seen, each once: a capture of several devices shows what passes two of
//! them twice, as a bridge and what is plugged into it.
//!
//! No two datagrams of QUIC are alike. Segments of TCP may be, but no sender sends the same data
//! again at once; acknowledgements may well be sent so. Where a capture shows data twice, it does
//! so with all.

use std::collections::HashMap;

use bentpipe_trial::{IpPacket, Transport};
use bentpipe_units::Time;

/// Two devices see a packet within this time; nothing sends its data again so soon.
const AT_ONCE_NS: u64 = 1_000_000;

/// A packet where it was seen.
pub struct Seen {
    pub at: Time,
    pub ip: IpPacket,
}

impl Seen {
    /// The identity of the packet: of UDP its payload, of TCP its segment without the parts that a
    /// NAT rewrites, the ports and the checksum.
    pub fn identity(&self) -> Transport {
        match &self.ip.transport {
            Transport::Tcp(segment) => {
                let mut known = segment.to_vec();
                for part in [0..4, 16..18] {
                    if let Some(bytes) = known.get_mut(part) {
                        bytes.fill(0);
                    }
                }
                Transport::Tcp(known.into())
            }
            other => other.clone(),
        }
    }

    pub fn is_datagram(&self) -> bool {
        matches!(self.ip.transport, Transport::Udp(_))
    }

    /// Whether nothing like it is sent twice at once. A segment's header says how long that itself
    /// is.
    fn has_data(&self) -> bool {
        let Transport::Tcp(segment) = &self.ip.transport else {
            return self.is_datagram();
        };
        let header = segment.get(12).map(|byte| usize::from(byte >> 4) * 4);
        header.is_some_and(|header| segment.len() > header)
    }
}

/// The packets of a capture in both directions, each once, although a second device saw some again.
pub fn once(both: [Vec<Seen>; 2]) -> [Vec<Seen>; 2] {
    let again = [seen_again(&both[0]), seen_again(&both[1])];
    let is_double = |(seen, again): (&Seen, &bool)| *again && seen.has_data();
    let pairs = || both.iter().zip(&again);
    if !pairs().any(|(all, again)| all.iter().zip(again).any(is_double)) {
        return both;
    }
    let mut again = again.into_iter();
    both.map(|all| {
        let again = again.next().unwrap_or_default();
        let kept = all.into_iter().zip(again).filter(|(_, again)| !again);
        kept.map(|(seen, _)| seen).collect()
    })
}

/// Whether each is like one just before it.
fn seen_again(all: &[Seen]) -> Vec<bool> {
    let mut first: HashMap<Transport, Time> = HashMap::new();
    let again = all.iter().map(|seen| {
        let identity = seen.identity();
        let is_again = first.get(&identity).is_some_and(|first| {
            let since = seen.at.as_nanos().abs_diff(first.as_nanos());
            since < AT_ONCE_NS
        });
        if !is_again {
            first.insert(identity, seen.at);
        }
        is_again
    });
    again.collect()
}

#[cfg(test)]
pub mod tests {
    use bentpipe_wire::IpVersion;
    use bytes::Bytes;

    use super::*;

    pub fn datagram(ms: u64, content: &'static [u8]) -> Seen {
        Seen {
            at: Time::from_nanos(ms * 1_000_000),
            ip: IpPacket::udp(IpVersion::V4, 0, Bytes::from_static(content)),
        }
    }

    pub fn segment(ms: u64, data: &[u8]) -> Seen {
        let mut bytes = vec![0; 20];
        bytes[12] = 5 << 4; // words of its header
        bytes.extend_from_slice(data);
        let mut seen = datagram(ms, b"");
        seen.ip.transport = Transport::Tcp(bytes.into());
        seen
    }

    fn counts(both: [Vec<Seen>; 2]) -> [usize; 2] {
        once(both).map(|all| all.len())
    }

    #[test]
    fn what_two_devices_saw_counts_once() {
        let datagrams = vec![datagram(0, b"a"), datagram(0, b"a"), datagram(1, b"b")];
        assert_eq!(counts([datagrams, vec![]]), [2, 0]);
        let segments = || vec![segment(0, b"a"), segment(0, b"a"), segment(250, b"a")];
        assert_eq!(counts([segments(), vec![]]), [2, 0], "it is sent again");
        // Segments that look like data that was seen twice, also the other way.
        let acks = || vec![segment(0, b""), segment(0, b""), segment(5, b"")];
        assert_eq!(counts([segments(), acks()]), [2, 2]);
        assert_eq!(counts([acks(), segments()]), [2, 2]);
    }

    #[test]
    fn acknowledgements_may_be_alike() {
        let acks = vec![segment(0, b""), segment(0, b"")];
        let data = vec![segment(0, b"a"), segment(0, b"b"), segment(2, b"a")];
        assert_eq!(counts([acks, data]), [2, 3]);
    }

    #[test]
    fn what_a_nat_writes_anew_does_not_matter() {
        let translated = |ports: u8, checksum: u8| {
            let mut bytes = vec![0; 20];
            (bytes[0], bytes[16], bytes[7]) = (ports, checksum, 9);
            let mut seen = datagram(0, b"");
            seen.ip.transport = Transport::Tcp(bytes.into());
            seen.identity()
        };
        assert_eq!(translated(1, 2), translated(3, 4));
    }
}
