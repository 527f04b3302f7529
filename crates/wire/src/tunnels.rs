//! IP packets inside IP packets, as tcpdump unwraps them: IP in IP, GRE and VXLAN.
//!
//! Source: RFC 2003 and 4213 (IP in IP, 6in4), RFC 2473 (over IPv6), RFC 2784 and 2890 (GRE, its
//! key and sequence number), RFC 2637 section 4.1 (PPP in GRE), RFC 7348 section 5 (VXLAN).
//!
//! The innermost addresses determine the connection of captured packets, and so what they count.
//! VXLAN is a payload of UDP, as QUIC is: it is unwrapped at its ports alone, where its header is
//! that of RFC 7348 bit for bit and has an IP packet behind it.

use crate::cursor::Cursor;
use crate::decapsulation_error::DecapsulationError;
use crate::ip::{UDP, UDP_HEADER};
use crate::ip_layer::IpLayer;
use crate::link_layer::{IPV4, IPV6, NetworkLayer, ethernet, of_type, ppp};

/// IP protocol numbers.
const IPV4_IN_IP: u8 = 4;
const IPV6_IN_IP: u8 = 41;
const GRE: u8 = 47;
/// `EtherType` of a whole frame of Ethernet, RFC 1701.
const ETHERNET_BRIDGING: u16 = 0x6558;
/// `EtherType` of PPP in GRE.
const PPP: u16 = 0x880b;
/// The port of RFC 7348, and the default of Linux.
const VXLAN_PORTS: [u16; 2] = [4789, 8472];
/// The most tunnels that may be one in the other.
const MOST: usize = 8;

/// The innermost IP packet of one, which is itself if it carries none.
pub(crate) fn innermost(mut ip: IpLayer<'_>) -> Result<IpLayer<'_>, DecapsulationError> {
    for _ in 0..=MOST {
        let Some((protocol, content)) = inside(&ip) else {
            return Ok(ip);
        };
        match IpLayer::read(protocol, content)? {
            Some(inner) => ip = inner,
            None => return Ok(ip),
        }
    }
    Err(DecapsulationError::Nested)
}

/// The packet in a tunnel's packet. None if the packet is no tunnel's, or is cut short.
fn inside<'a>(ip: &IpLayer<'a>) -> Option<NetworkLayer<'a>> {
    match ip.protocol {
        IPV4_IN_IP => Some((IPV4, ip.rest)),
        IPV6_IN_IP => Some((IPV6, ip.rest)),
        GRE => gre(ip.rest),
        UDP => vxlan(ip.rest),
        _ => None,
    }
}

fn gre(mut cursor: Cursor<'_>) -> Option<NetworkLayer<'_>> {
    let (flags, protocol) = (cursor.u16()?, cursor.u16()?);
    let has = |flag: u16| flags & flag != 0;
    // In the order in which they stand: checksum, key, sequence number, and of version 1 the number
    // that is acknowledged. A routing field (RFC 1701) is not known.
    let fields = match flags & 7 {
        0 if !has(0x4000) => [has(0x8000), has(0x2000), has(0x1000), false],
        1 => [false, has(0x2000), has(0x1000), has(0x0080)],
        _ => return None,
    };
    for _ in fields.into_iter().filter(|is_there| *is_there) {
        cursor.take(4)?;
    }
    match protocol {
        ETHERNET_BRIDGING => ethernet(cursor),
        PPP => ppp(cursor),
        _ => of_type(protocol, cursor),
    }
}

fn vxlan(mut cursor: Cursor<'_>) -> Option<NetworkLayer<'_>> {
    let [_, port] = [cursor.u16()?, cursor.u16()?];
    if !VXLAN_PORTS.contains(&port) {
        return None;
    }
    cursor.take(UDP_HEADER - 4)?;
    // A flag that there is an identifier, the identifier, and bits that are 0.
    let [flags, zeros @ .., last] = cursor.array::<8>()?;
    if flags != 0x08 || zeros[..3] != [0; 3] || last != 0 {
        return None;
    }
    let (protocol, content) = ethernet(cursor)?;
    let version = content.rest().first()? >> 4;
    matches!((protocol, version), (IPV4, 4) | (IPV6, 6)).then_some((protocol, content))
}
