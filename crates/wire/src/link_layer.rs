//! From a captured packet to the network layer in it: the link types that tcpdump, Wireshark and
//! ns-3 write for IP.
//!
//! Source: the link types of tcpdump.org; IEEE 802.1Q (VLAN tags, one in the other too), IEEE 802.2
//! with SNAP (RFC 1042), RFC 1661 and 1662 (PPP), RFC 2516 (PPP over Ethernet), RFC 3032 (MPLS).

use crate::cursor::Cursor;
use crate::decapsulation_error::DecapsulationError;

/// `EtherType` of IPv4.
pub(crate) const IPV4: u16 = 0x0800;
/// `EtherType` of IPv6.
pub(crate) const IPV6: u16 = 0x86dd;
/// A placeholder for every protocol that has no `EtherType`; it is none itself.
const OTHER: u16 = 0;
/// PPP protocol numbers, RFC 1332, 5072 and 3032.
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;
const PPP_MPLS: u16 = 0x0281;
/// The header in which a packet of PPP over Ethernet has its session: version, code, session,
/// length.
const PPPOE_SESSION: usize = 6;

/// `EtherType` of the network layer, and what follows.
pub(crate) type NetworkLayer<'a> = (u16, Cursor<'a>);

/// The network layer of a captured packet.
pub(crate) fn network_layer(
    link_type: u16,
    packet: &[u8],
) -> Result<NetworkLayer<'_>, DecapsulationError> {
    let cursor = Cursor::new(packet);
    let found = match link_type {
        0 | 108 => loopback(cursor),
        1 => ethernet(cursor),
        9 | 50 => ppp(cursor),
        // PPP behind a byte that tells the direction; in the second, it is the address field.
        204 => behind(1, cursor).and_then(ppp),
        166 => behind(2, cursor).and_then(ppp),
        51 => behind(PPPOE_SESSION, cursor).and_then(ppp),
        // Cisco's HDLC: an address, a control field, an EtherType.
        104 => behind(2, cursor).and_then(tagged),
        // RAW (two historic numbers too), IPV4, IPV6
        12 | 14 | 101 | 228 | 229 => by_version(cursor),
        // LINUX_SLL
        113 => behind(14, cursor).and_then(tagged),
        276 => linux_cooked_2(cursor),
        other => return Err(DecapsulationError::LinkType(other)),
    };
    found.ok_or(DecapsulationError::Damaged)
}

/// A frame of Ethernet from its addresses on. None if it ends early.
pub(crate) fn ethernet(cursor: Cursor<'_>) -> Option<NetworkLayer<'_>> {
    tagged(behind(12, cursor)?)
}

/// A frame of PPP: address and control field may be left out, and so may the first byte of the
/// protocol (RFC 1661 section 6.5, RFC 1662 section 3.2).
pub(crate) fn ppp(mut cursor: Cursor<'_>) -> Option<NetworkLayer<'_>> {
    if cursor.rest().starts_with(&[0xff, 0x03]) {
        cursor.take(2)?;
    }
    // The last byte of a protocol is odd, and the one before it is even.
    let is_compressed = cursor.rest().first()? & 1 == 1;
    let protocol = if is_compressed {
        cursor.u8()?.into()
    } else {
        cursor.u16()?
    };
    match protocol {
        PPP_IPV4 => Some((IPV4, cursor)),
        PPP_IPV6 => Some((IPV6, cursor)),
        PPP_MPLS => mpls(cursor),
        _ => Some((OTHER, cursor)),
    }
}

/// The network layer behind an `EtherType` and behind tags such as those of VLANs. It ends where
/// the packet does: each step takes bytes of it.
pub(crate) fn of_type(mut protocol: u16, mut cursor: Cursor<'_>) -> Option<NetworkLayer<'_>> {
    loop {
        match protocol {
            0x8100 | 0x88a8 | 0x9100 => {
                cursor.take(2)?;
                protocol = cursor.u16()?;
            }
            0x8864 => return ppp(behind(PPPOE_SESSION, cursor)?),
            0x8847 | 0x8848 => return mpls(cursor),
            // A length in place of the type: LLC, and with SNAP an EtherType behind it.
            0..0x0600 => {
                if !cursor.rest().starts_with(&[0xaa, 0xaa, 3, 0, 0, 0]) {
                    return Some((OTHER, cursor));
                }
                cursor.take(6)?;
                protocol = cursor.u16()?;
                if protocol < 0x0600 {
                    return Some((OTHER, cursor));
                }
            }
            _ => return Some((protocol, cursor)),
        }
    }
}

fn tagged(mut cursor: Cursor<'_>) -> Option<NetworkLayer<'_>> {
    let protocol = cursor.u16()?;
    of_type(protocol, cursor)
}

/// NULL and LOOP: an address family in the byte order of the host or of the network. That of IPv6
/// depends on the system.
fn loopback(mut cursor: Cursor<'_>) -> Option<NetworkLayer<'_>> {
    let family = cursor.u32()?;
    match family.min(family.swap_bytes()) {
        2 => Some((IPV4, cursor)),
        10 | 24 | 28 | 30 => Some((IPV6, cursor)),
        _ => Some((OTHER, cursor)),
    }
}

fn linux_cooked_2(mut cursor: Cursor<'_>) -> Option<NetworkLayer<'_>> {
    let protocol = cursor.u16()?;
    of_type(protocol, behind(18, cursor)?)
}

/// A stack of labels, the last of which is marked. It does not say what follows: IP, if it looks so
/// (RFC 4928 section 3).
fn mpls(mut cursor: Cursor<'_>) -> Option<NetworkLayer<'_>> {
    while cursor.u32()? & 0x100 == 0 {}
    by_version(cursor)
}

/// IP without anything that names it.
fn by_version(cursor: Cursor<'_>) -> Option<NetworkLayer<'_>> {
    let protocol = match cursor.rest().first()? >> 4 {
        4 => IPV4,
        6 => IPV6,
        _ => OTHER,
    };
    Some((protocol, cursor))
}

fn behind(count: usize, mut cursor: Cursor<'_>) -> Option<Cursor<'_>> {
    cursor.take(count)?;
    Some(cursor)
}
