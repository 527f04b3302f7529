//! Late acceptance: a client's SYN waits until the connection to the next hop stands.
//!
//! The kernel answers a SYN for a socket that listens, and asks no program. So the listener has a
//! filter that lets no SYN through but those that this program has marked. A packet socket has seen
//! the client's: when the connection to where it goes stands, the same packet is sent once more
//! with the mark, by which it is routed to the host itself, and the kernel answers as it always
//! does. A client whose server refuses is refused, too (RFC 9293, section 3.5.2). A SYN that is
//! repeated meanwhile counts once.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use bentpipe_linux_tcp::{Instruction, attach_filter, detach_filter, set_mark};
use rustix::io::{Errno, read};
use rustix::net::{
    AddressFamily, Protocol, RawProtocol, SendFlags, SocketFlags, SocketType, sendto, socket_with,
};

use crate::pair::Ends;

/// The mark of a SYN that is sent once more.
pub const MARK: u32 = 0x0062_7070;
/// The number of TCP (RFC 9293).
const TCP: u8 = 6;
/// The protocol number of a socket that sends whole IP packets (raw(7)).
const RAW: u32 = 255;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const TCP_HEADER: usize = 20;
/// The largest packet that a SYN comes in.
const PACKET: usize = 2048;
const HOPS: u8 = 64;

/// The SYN of a client: the packet, and who wants to go where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Syn {
    pub ends: Ends,
    packet: Vec<u8>,
}

/// The sockets through which SYNs of one version of IP are received, sent once more, and refused.
#[derive(Debug)]
pub struct SynGate {
    is_ipv6: bool,
    heard: OwnedFd,
    again: OwnedFd,
    refusal: OwnedFd,
}

impl SynGate {
    /// A gate for IPv4 or for IPv6, for the packets of a device. It takes `CAP_NET_RAW` and
    /// `CAP_NET_ADMIN`.
    pub fn open(device: u32, is_ipv6: bool) -> Result<Self, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (family, ethertype, program) = if is_ipv6 {
            (AddressFamily::INET6, ETHERTYPES[1], SYNS_OF_IPV6)
        } else {
            (AddressFamily::INET, ETHERTYPES[0], SYNS_OF_IPV4)
        };
        let protocol = RawProtocol::new(u32::from(ethertype.to_be())).expect("it is not 0");
        let protocol = Some(Protocol::from_raw(protocol));
        let heard = socket_with(AddressFamily::PACKET, SocketType::DGRAM, flags, protocol)?;
        let from_device = [
            (LOAD_WORD, 0, 0, DEVICE_OF_PACKET),
            (EQUALS, 1, 0, device),
            (RETURN, 0, 0, 0),
        ];
        attach_filter(&heard, &[&from_device, program].concat())?;
        // Packets that came before there was a filter may be of any device.
        while read(&heard, &mut [0; 1]).is_ok() {}
        let raw = || {
            let whole = Protocol::from_raw(RawProtocol::new(RAW).expect("it is not 0"));
            socket_with(family, SocketType::RAW, flags, Some(whole))
        };
        let gate = Self {
            is_ipv6,
            heard,
            again: raw()?,
            refusal: raw()?,
        };
        set_mark(&gate.again, MARK)?;
        Ok(gate)
    }

    /// The version of IP.
    pub fn is_ipv6(&self) -> bool {
        self.is_ipv6
    }

    /// The socket on which SYNs arrive.
    pub fn socket(&self) -> &OwnedFd {
        &self.heard
    }

    /// The next SYN; None: there is none now.
    pub fn next(&self) -> Option<Syn> {
        let mut packet = [0; PACKET];
        loop {
            match read(&self.heard, &mut packet) {
                Ok(count) => {
                    if let Some(syn) = parse(&packet[..count]) {
                        return Some(syn);
                    }
                }
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
        }
    }

    /// Has the kernel answer it.
    pub fn admit(&self, syn: &Syn) -> Result<(), Errno> {
        let mut packet = syn.packet.clone();
        complete_checksum(&mut packet, syn.ends.client.is_ipv6());
        send(&self.again, &packet, syn.ends.server)
    }

    /// Says that there is nobody.
    pub fn refuse(&self, syn: &Syn) -> Result<(), Errno> {
        send(&self.refusal, &refusal(syn), syn.ends.client)
    }
}

/// Filters all SYNs of a listening socket but those that are sent once more.
pub fn close_for_others(listener: &OwnedFd) -> Result<(), Errno> {
    attach_filter(listener, MARKED_SYNS)
}

/// A connection that was accepted has no use for that filter.
pub fn open_for_all(accepted: &OwnedFd) -> Result<(), Errno> {
    detach_filter(accepted)
}

// Words of the classic packet filter (linux/filter.h).
const LOAD_BYTE: u32 = 0x30;
const LOAD_HALF: u32 = 0x28;
const LOAD_WORD: u32 = 0x20;
/// With the index register added to the offset.
const LOAD_BYTE_AT: u32 = 0x50;
/// The index register: four times the lower half of a byte.
const LOAD_HEADER_LENGTH: u32 = 0xb1;
const AND: u32 = 0x54;
const EQUALS: u32 = 0x15;
const HAS_BITS: u32 = 0x45;
const RETURN: u32 = 0x06;
const ALL: u32 = u32::MAX;
/// Where the mark of a packet is found.
const MARK_OF_PACKET: u32 = 0xffff_f000 + 20;
/// Where its device's number is found.
const DEVICE_OF_PACKET: u32 = 0xffff_f000 + 8;
const FLAGS: u32 = 13;
const SYN_OR_ACK: u32 = 0x12;
const SYN_ALONE: u32 = 0x02;

/// A filter for packets that begin at the header of TCP.
const MARKED_SYNS: &[Instruction] = &[
    (LOAD_BYTE, 0, 0, FLAGS),
    (AND, 0, 0, SYN_OR_ACK),
    (EQUALS, 0, 2, SYN_ALONE),
    (LOAD_WORD, 0, 0, MARK_OF_PACKET),
    (EQUALS, 0, 1, MARK),
    (RETURN, 0, 0, ALL),
    (RETURN, 0, 0, 0),
];

/// A filter for packets that begin at the header of IPv4, and are no further fragment.
const SYNS_OF_IPV4: &[Instruction] = &[
    (LOAD_BYTE, 0, 0, 9),
    (EQUALS, 0, 7, TCP as u32),
    (LOAD_HALF, 0, 0, 6),
    (HAS_BITS, 5, 0, 0x1fff),
    (LOAD_HEADER_LENGTH, 0, 0, 0),
    (LOAD_BYTE_AT, 0, 0, FLAGS),
    (AND, 0, 0, SYN_OR_ACK),
    (EQUALS, 0, 1, SYN_ALONE),
    (RETURN, 0, 0, ALL),
    (RETURN, 0, 0, 0),
];

/// A filter for packets that begin at the header of IPv6, without extensions.
const SYNS_OF_IPV6: &[Instruction] = &[
    (LOAD_BYTE, 0, 0, 6),
    (EQUALS, 0, 4, TCP as u32),
    (LOAD_BYTE, 0, 0, 40 + FLAGS),
    (AND, 0, 0, SYN_OR_ACK),
    (EQUALS, 0, 1, SYN_ALONE),
    (RETURN, 0, 0, ALL),
    (RETURN, 0, 0, 0),
];

/// The `EtherType` numbers of IPv4 and IPv6 (`linux/if_ether.h`).
const ETHERTYPES: [u16; 2] = [0x0800, 0x86dd];

/// The SYN that is in an IP packet, which may have bytes behind it.
fn parse(packet: &[u8]) -> Option<Syn> {
    let (addresses, start, length) = match packet.first()? >> 4 {
        4 => {
            let address = |at: usize| Some(IpAddr::from(four(packet, at)?));
            let length = u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]);
            let start = usize::from(packet[0] & 0x0f) * 4;
            ([address(12)?, address(16)?], start, usize::from(length))
        }
        6 => {
            let address = |at: usize| {
                let bytes: [u8; 16] = packet.get(at..at + 16)?.try_into().ok()?;
                Some(IpAddr::V6(Ipv6Addr::from(bytes)))
            };
            let length = u16::from_be_bytes([*packet.get(4)?, *packet.get(5)?]);
            let whole = IPV6_HEADER + usize::from(length);
            ([address(8)?, address(24)?], IPV6_HEADER, whole)
        }
        _ => return None,
    };
    let packet = packet.get(..length)?;
    let header = packet.get(start..).filter(|it| it.len() >= TCP_HEADER)?;
    if header[13] & (SYN | ACK | RST) != SYN {
        return None;
    }
    let port = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    Some(Syn {
        ends: Ends {
            client: SocketAddr::new(addresses[0], port(0)),
            server: SocketAddr::new(addresses[1], port(2)),
        },
        packet: packet.to_vec(),
    })
}

fn four(packet: &[u8], at: usize) -> Option<Ipv4Addr> {
    let bytes: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
    Some(Ipv4Addr::from(bytes))
}

/// RST and ACK of a SYN, from whom it was for (RFC 9293, section 3.10.7.1).
fn refusal(syn: &Syn) -> Vec<u8> {
    let is_ipv6 = syn.ends.client.is_ipv6();
    let start = header_length(&syn.packet);
    let sequence: [u8; 4] = syn.packet[start + 4..start + 8]
        .try_into()
        .expect("parse has seen a header of TCP");
    let mut packet = match (syn.ends.server.ip(), syn.ends.client.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            // The kernel fills in the length, the checksum and the identification (raw(7)).
            let mut header = vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, HOPS, TCP, 0, 0];
            header.extend(from.octets());
            header.extend(to.octets());
            header
        }
        (from, to) => {
            let mut header = vec![0x60, 0, 0, 0, 0, 20, TCP, HOPS];
            for address in [from, to] {
                let IpAddr::V6(address) = address else {
                    unreachable!("both are of one packet");
                };
                header.extend(address.octets());
            }
            header
        }
    };
    packet.extend(syn.ends.server.port().to_be_bytes());
    packet.extend(syn.ends.client.port().to_be_bytes());
    packet.extend([0; 4]);
    packet.extend(u32::from_be_bytes(sequence).wrapping_add(1).to_be_bytes());
    packet.extend([0x50, RST | ACK, 0, 0, 0, 0, 0, 0]);
    complete_checksum(&mut packet, is_ipv6);
    packet
}

fn header_length(packet: &[u8]) -> usize {
    if packet[0] >> 4 == 4 {
        usize::from(packet[0] & 0x0f) * 4
    } else {
        IPV6_HEADER
    }
}

/// Completes the checksum of TCP: a device that computes it has left it open in what a packet
/// socket sees.
fn complete_checksum(packet: &mut [u8], is_ipv6: bool) {
    let start = header_length(packet);
    packet[start + 16..start + 18].fill(0);
    let addresses = if is_ipv6 { 8..40 } else { 12..IPV4_HEADER };
    let length = u32::try_from(packet.len() - start).expect("a packet");
    let pseudo = [0, TCP];
    let words = packet[addresses]
        .chunks(2)
        .chain(packet[start..].chunks(2))
        .chain([&pseudo[..]]);
    let word = |it: &[u8]| u32::from(it[0]) << 8 | it.get(1).map_or(0, |it| u32::from(*it));
    let mut sum: u32 = words.map(word).sum::<u32>() + length;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    let checksum = !u16::try_from(sum).expect("it was folded");
    packet[start + 16..start + 18].copy_from_slice(&checksum.to_be_bytes());
}

fn send(socket: &OwnedFd, packet: &[u8], to: SocketAddr) -> Result<(), Errno> {
    let place = SocketAddr::new(to.ip(), 0); // it has no ports
    sendto(socket, packet, SendFlags::empty(), &place).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From 192.0.2.1, port 40000, to 198.51.100.1, port 443, with a number of 7 and an open
    /// checksum.
    fn syn_of_ipv4() -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 40, 1, 2, 0x40, 0, 64, TCP, 0, 0];
        packet.extend([192, 0, 2, 1, 198, 51, 100, 1]);
        packet.extend([0x9c, 0x40, 0x01, 0xbb, 0, 0, 0, 7, 0, 0, 0, 0]);
        packet.extend([0x50, SYN, 0xff, 0xff, 0xab, 0xcd, 0, 0]);
        packet
    }

    /// The sum over the pseudo header and TCP, which is right if it is 0xffff.
    fn sum(packet: &[u8], addresses: std::ops::Range<usize>) -> u32 {
        let start = header_length(packet);
        let all = packet[addresses].chunks(2).chain(packet[start..].chunks(2));
        let words = all.map(|it| u32::from(it[0]) << 8 | it.get(1).map_or(0, |it| u32::from(*it)));
        let mut sum =
            words.sum::<u32>() + u32::from(TCP) + u32::try_from(packet.len() - start).unwrap();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum
    }

    #[test]
    fn a_syn_is_understood_and_refused_as_the_kernel_would() {
        let mut padded = syn_of_ipv4();
        padded.extend([0; 6]);
        let syn = parse(&padded).unwrap();
        assert_eq!(syn.ends.client, "192.0.2.1:40000".parse().unwrap());
        assert_eq!(syn.ends.server, "198.51.100.1:443".parse().unwrap());
        assert_eq!(syn.packet, syn_of_ipv4());
        let answer = refusal(&syn);
        assert_eq!(answer[12..20], [198, 51, 100, 1, 192, 0, 2, 1]);
        assert_eq!(answer[20..24], [0x01, 0xbb, 0x9c, 0x40]);
        assert_eq!(
            (&answer[28..32], answer[33]),
            (&[0, 0, 0, 8][..], RST | ACK)
        );
        assert_eq!(sum(&answer, 12..20), 0xffff);
    }

    #[test]
    fn the_same_of_ipv6() {
        let mut packet = vec![0x60, 0, 0, 0, 0, 21, TCP, 64];
        packet.extend("2001:db8::1".parse::<Ipv6Addr>().unwrap().octets());
        packet.extend("2001:db8::2".parse::<Ipv6Addr>().unwrap().octets());
        packet.extend(&syn_of_ipv4()[20..]);
        packet.push(9); // with a byte of data, so that its length is odd
        let syn = parse(&packet).unwrap();
        assert_eq!(syn.ends.client, "[2001:db8::1]:40000".parse().unwrap());
        let answer = refusal(&syn);
        assert_eq!(sum(&answer, 8..40), 0xffff);
        let mut again = packet;
        complete_checksum(&mut again, true);
        assert_eq!(sum(&again, 8..40), 0xffff);
    }

    #[test]
    fn what_is_no_syn_is_not_taken_for_one() {
        let whole = syn_of_ipv4();
        for length in 0..whole.len() {
            assert_eq!(parse(&whole[..length]), None);
        }
        for flags in [ACK, SYN | ACK, RST, SYN | RST] {
            let mut other = whole.clone();
            other[33] = flags;
            assert_eq!(parse(&other), None);
        }
    }
}
