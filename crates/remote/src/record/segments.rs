//! Datagrams out of what the kernel handled as one: a sender's network card cuts up what it was
//! given (UDP segmentation offload), and a receiver's kernel puts together what came (GRO). A
//! capture shows the large ones.
//!
//! All datagrams in one are of the same size but for the last, which may be shorter. The size is
//! found where one of them was captured by itself at the other end, by its first bytes; else by the
//! connection ID, which stands behind the first byte of each.

use std::collections::{HashMap, HashSet};

use bentpipe_trial::{IpPacket, Transport};

/// The largest UDP payload that an Ethernet frame carries.
pub const LARGEST: usize = 1472;
/// Bytes that tell datagrams apart: they are encrypted, or a header with a packet number in it.
const HEAD: usize = 24;
/// No full-sized datagram is smaller (RFC 9000 section 14).
const SMALLEST: usize = 1200;
/// The bytes of a connection ID that are compared.
const ID: usize = 4;

/// The datagrams of an end that were captured by themselves: by their first bytes, with their
/// sizes.
#[derive(Default)]
pub struct SingleDatagrams {
    by_head: HashMap<Vec<u8>, usize>,
    sizes: HashSet<usize>,
}

impl SingleDatagrams {
    /// Takes note of one.
    pub fn add(&mut self, packet: &IpPacket) {
        if let Transport::Udp(payload) = &packet.transport
            && (HEAD..=LARGEST).contains(&payload.len())
        {
            self.by_head.insert(payload[..HEAD].to_vec(), payload.len());
            self.sizes.insert(payload.len());
        }
    }

    fn knows(&self, rest: &[u8]) -> Option<usize> {
        self.by_head.get(rest.get(..HEAD)?).copied()
    }

    /// The size of the datagrams in this one.
    fn size_in(&self, payload: &[u8]) -> Option<usize> {
        let fits = |size: &usize| (SMALLEST..=LARGEST).contains(size);
        if let Some(size) = self.knows(payload).filter(fits) {
            return Some(size);
        }
        let mut sizes: Vec<usize> = self.sizes.iter().copied().filter(fits).collect();
        sizes.sort_unstable();
        let at_any = |size: &usize| {
            let starts = (1..).map(|number| number * size);
            let mut starts = starts.take_while(|start| start + HEAD <= payload.len());
            starts.any(|start| self.knows(&payload[start..]).is_some())
        };
        sizes
            .into_iter()
            .find(at_any)
            .or_else(|| by_connection_id(payload))
    }
}

/// The size at whose multiples the same connection ID stands behind a byte of a short header.
fn by_connection_id(payload: &[u8]) -> Option<usize> {
    let id = payload.get(1..=ID)?;
    let is_short = |start: usize| payload[start] & 0xc0 == 0x40;
    let begins = |start: usize| {
        payload
            .get(start + 1..=start + ID)
            .is_none_or(|it| it == id)
    };
    let mut sizes = SMALLEST..=LARGEST.min(payload.len() - ID - 1);
    sizes.find(|size| {
        let mut starts = (0..payload.len() - 1).step_by(*size);
        starts.all(|start| is_short(start) && begins(start))
    })
}

/// The datagrams in a packet; the packet itself, if it is none of UDP, or not larger than one can
/// be. None: they could not be told apart.
pub fn apart(packet: &IpPacket, alone: &SingleDatagrams) -> Option<Vec<IpPacket>> {
    let payload = match &packet.transport {
        Transport::Udp(payload) if payload.len() > LARGEST => payload,
        _ => return Some(vec![packet.clone()]),
    };
    let size = alone.size_in(payload)?;
    let starts = (0..payload.len()).step_by(size);
    let parts = starts.map(|start| {
        let part = payload.slice(start..payload.len().min(start + size));
        IpPacket::udp(packet.version, packet.ecn, part)
    });
    Some(parts.collect())
}

#[cfg(test)]
mod tests {
    use bentpipe_wire::IpVersion;
    use bytes::Bytes;

    use super::*;

    /// A datagram with a short header, a connection ID, and a number.
    fn datagram(number: u8, length: usize) -> Vec<u8> {
        let mut bytes = vec![number; length];
        bytes[0] = 0x41;
        bytes[1..=8].copy_from_slice(b"conn-id!");
        bytes
    }

    fn packet(bytes: Vec<u8>) -> IpPacket {
        IpPacket::udp(IpVersion::V4, 0, Bytes::from(bytes))
    }

    fn merged() -> (Vec<IpPacket>, IpPacket) {
        let parts = [datagram(1, 1452), datagram(2, 1452), datagram(3, 700)];
        (
            parts.iter().cloned().map(packet).collect(),
            packet(parts.concat()),
        )
    }

    #[test]
    fn datagrams_are_told_by_the_other_end() {
        let (parts, whole) = merged();
        for seen in 0..3 {
            let mut alone = SingleDatagrams::default();
            alone.add(&parts[seen]);
            if seen == 2 {
                alone.add(&packet(datagram(9, 1452)));
            }
            assert_eq!(apart(&whole, &alone), Some(parts.clone()), "{seen}");
        }
    }

    #[test]
    fn datagrams_are_told_by_their_connection() {
        let (parts, whole) = merged();
        assert_eq!(
            apart(&whole, &SingleDatagrams::default()),
            Some(parts.clone())
        );
        assert_eq!(
            apart(&parts[0], &SingleDatagrams::default()),
            Some(parts[..1].to_vec())
        );
        let noise = packet(
            (0..4000_u32)
                .map(|it| it.wrapping_mul(it).to_le_bytes()[1] | 0x80)
                .collect(),
        );
        assert_eq!(apart(&noise, &SingleDatagrams::default()), None);
    }
}
