//! The largest segment that both ends of a TCP connection ask for, where packets would be too large
//! for the tunnel.
//!
//! Source: RFC 9293, section 3.7.1 (option 2, in SYNs). Without this the first flight of full
//! segments is lost, and Linux's TCP ends its slow start with that. What changes no address and no
//! payload is not seen by TLS.

use bentpipe_wire::TCP;

const NO_OPERATION: u8 = 1;
const MSS: u8 = 2;
const SYN: u8 = 0x02;
/// Bytes of a TCP header without options.
const LEAST: usize = 20;

/// Lowers the segment size that a SYN asks for to what packets of `most` bytes carry.
pub fn clamp(packet: &mut [u8], most: usize) {
    let Some(at) = option(packet) else {
        return;
    };
    let headers = if packet[0] >> 4 == 4 { 20 } else { 40 } + LEAST;
    let most = u16::try_from(most.saturating_sub(headers)).unwrap_or(u16::MAX);
    let asked = u16::from_be_bytes([packet[at], packet[at + 1]]);
    if asked <= most {
        return;
    }
    packet[at..at + 2].copy_from_slice(&most.to_be_bytes());
    let tcp = transport(packet).expect("it has options");
    // An option may begin at an odd place: what is summed up are its bytes in their words.
    let swap = |it: u16| {
        if (at - tcp) % 2 == 1 {
            it.swap_bytes()
        } else {
            it
        }
    };
    let checksum = u16::from_be_bytes([packet[tcp + 16], packet[tcp + 17]]);
    let mended = changed(checksum, swap(asked), swap(most));
    packet[tcp + 16..tcp + 18].copy_from_slice(&mended.to_be_bytes());
}

/// The checksum of a segment of which one word has changed (RFC 1624, equation 3).
fn changed(checksum: u16, before: u16, after: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    !u16::try_from(sum).expect("two carries are added")
}

/// Where the TCP header of a whole packet begins; `None`: it has none, or extension headers.
fn transport(packet: &[u8]) -> Option<usize> {
    let (protocol, at) = match packet.first()? >> 4 {
        4 if u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) << 3 == 0 => {
            (*packet.get(9)?, usize::from(packet[0] & 0xf) * 4)
        }
        6 => (*packet.get(6)?, 40),
        _ => return None,
    };
    (protocol == TCP && packet.len() >= at + LEAST).then_some(at)
}

/// Where the value of the option is.
fn option(packet: &[u8]) -> Option<usize> {
    let tcp = transport(packet)?;
    if packet[tcp + 13] & SYN == 0 {
        return None;
    }
    let end = tcp + usize::from(packet[tcp + 12] >> 4) * 4;
    let mut at = tcp + LEAST;
    let packet = packet.get(..end)?;
    loop {
        match packet.get(at..)? {
            [NO_OPERATION, ..] => at += 1,
            [MSS, 4, _, _, ..] => return Some(at + 2),
            [kind, length, ..] if *kind > MSS && *length >= 2 => at += usize::from(*length),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_wire::IpHeader;
    use proptest::prelude::*;

    use super::super::packet::Header;
    use super::*;

    fn syn(source: &str, destination: &str, flags: u8, options: &[u8]) -> Vec<u8> {
        assert_eq!(options.len() % 4, 0);
        let words = u8::try_from(5 + options.len() / 4).unwrap();
        let mut segment = vec![0; LEAST];
        segment[12] = words << 4;
        segment[13] = flags;
        segment.extend_from_slice(options);
        let mut packet = Vec::new();
        let header = IpHeader {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            ecn: 0,
            identification: 0,
            protocol: TCP,
        };
        header.write(&mut packet, &segment);
        let at = packet.len() - segment.len();
        let checksum = !sum(&packet[at..]);
        packet[at + 16..at + 18].copy_from_slice(&checksum.to_be_bytes());
        packet
    }

    /// The sum of a segment, without the pseudo-header, which does not change.
    fn sum(segment: &[u8]) -> u16 {
        let words = segment
            .chunks(2)
            .map(|it| u32::from(it[0]) << 8 | u32::from(it[1]));
        let mut sum: u32 = words.sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        u16::try_from(sum).unwrap()
    }

    #[test]
    fn a_syn_asks_for_what_fits() {
        let first = [2, 4, 5, 180, 1, 1, 4, 2];
        let odd = [1, 2, 4, 5, 180, 1, 4, 2];
        let later = [8, 10, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 5, 180, 0];
        for (options, at) in [(&first[..], 2), (&odd, 3), (&later, 13)] {
            for (source, destination, tcp, fits) in [
                ("192.0.2.1", "198.51.100.1", 20, 1372),
                ("2001:db8::1", "2001:db8::2", 40, 1352),
            ] {
                for flags in [0x02, 0x12] {
                    let mut packet = syn(source, destination, flags, options);
                    clamp(&mut packet, 1412);
                    let found = &packet[tcp + LEAST + at..];
                    assert_eq!(u16::from_be_bytes([found[0], found[1]]), fits);
                    assert_eq!(sum(&packet[tcp..]), 0xffff, "{options:?}: its checksum");
                    assert!(Header::read(&packet).is_ok());
                }
            }
        }
    }

    #[test]
    fn what_fits_or_is_no_syn_stays_as_it_is() {
        for (flags, options) in [
            (0x02, &[2, 4, 5, 92][..]),
            (0x10, &[2, 4, 5, 180]),
            (0x02, &[]),
            (0x02, &[2, 3, 5, 180]),
            (0x02, &[1, 1, 2, 4]),
            (0x02, &[8, 1, 1, 1]),
            (0x02, &[8, 0, 1, 1]),
            (0x02, &[0, 2, 4, 5]),
        ] {
            let packet = syn("192.0.2.1", "198.51.100.1", flags, options);
            let mut clamped = packet.clone();
            clamp(&mut clamped, 1412);
            assert_eq!(clamped, packet, "{options:?}");
        }
    }

    proptest! {
        #[test]
        fn any_packet_keeps_its_length(
            mut packet in prop::collection::vec(any::<u8>(), 0..120),
            version in prop::sample::select(vec![4_u8, 6]),
        ) {
            if let Some(first) = packet.first_mut() {
                *first = version << 4 | 5;
            }
            for at in [9, 6] {
                if let Some(protocol) = packet.get_mut(at) {
                    *protocol = if at == 9 || version == 6 { TCP } else { 0 };
                }
            }
            let before = packet.len();
            clamp(&mut packet, 100);
            prop_assert_eq!(packet.len(), before);
        }
    }
}
