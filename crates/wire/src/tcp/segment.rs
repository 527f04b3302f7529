//! From a captured packet to the TCP segment in it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::header::Header;
use super::multipath::{self, Multipath};
use crate::capture::CapturedPacket;
use crate::cursor::Cursor;
use crate::decapsulation_error::DecapsulationError;
use crate::ip::TCP;
use crate::ip_layer::{IpLayer, Path};

/// A TCP segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Sender and receiver.
    pub path: Path,
    /// Its header.
    pub header: Header,
    /// Bytes of the header.
    pub header_bytes: u32,
    /// The identification field of IPv4.
    pub identification: Option<u16>,
}

impl Segment {
    /// The segment in a captured packet that is no UDP datagram, and what was captured of its
    /// payload.
    pub fn of<'a>(packet: &CapturedPacket<'a>) -> Result<(Self, &'a [u8]), DecapsulationError> {
        let ip = IpLayer::of(packet)?.ok_or(DecapsulationError::NotTcp)?;
        if ip.protocol != TCP {
            return Err(DecapsulationError::NotTcp);
        }
        let (segment, payload) = read(ip.rest, ip.length).ok_or(DecapsulationError::Damaged)?;
        let segment = Self {
            identification: ip.identification,
            ..segment
        };
        Ok((segment.between([ip.source, ip.destination]), payload))
    }

    /// The segment that `bytes` are, which went from one address to another, and its payload. None
    /// if it is damaged.
    #[must_use]
    pub fn parse([source, destination]: [IpAddr; 2], bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (segment, payload) = read(Cursor::new(bytes), Some(bytes.len()))?;
        Some((segment.between([source, destination]), payload))
    }

    fn between(self, [source, destination]: [IpAddr; 2]) -> Self {
        let path = Path {
            source: SocketAddr::new(source, self.path.source.port()),
            destination: SocketAddr::new(destination, self.path.destination.port()),
        };
        Self { path, ..self }
    }
}

/// A segment of `length` bytes, without its addresses, and what was captured of its payload.
fn read(mut cursor: Cursor<'_>, length: Option<usize>) -> Option<(Segment, &[u8])> {
    let captured = cursor.rest().len();
    let (source, destination) = (cursor.u16()?, cursor.u16()?);
    let (sequence, acknowledgment) = (cursor.u32()?, cursor.u32()?);
    let [offset, flags] = cursor.array()?;
    let window = cursor.u16()?;
    cursor.take(4)?; // checksum, urgent pointer
    let header_bytes = usize::from(offset >> 4) * 4;
    let options = header_bytes.checked_sub(20)?;
    // Where the header does not say how long the packet is, what was captured does.
    let length = length.unwrap_or(captured).checked_sub(header_bytes)?;
    let mut header = Header {
        sequence,
        acknowledgment: (flags & 0x10 != 0).then_some(acknowledgment),
        syn: flags & 0x02 != 0,
        fin: flags & 0x01 != 0,
        rst: flags & 0x04 != 0,
        ece: flags & 0x40 != 0,
        cwr: flags & 0x80 != 0,
        ae: offset & 0x01 != 0,
        window,
        length: u32::try_from(length).ok()?,
        ..Header::default()
    };
    // A capture may cut options off too.
    let options = cursor.take(options).unwrap_or(cursor.rest());
    read_options(options, &mut header);
    let payload = cursor.rest();
    let at_port = |port| SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port);
    let segment = Segment {
        path: Path {
            source: at_port(source),
            destination: at_port(destination),
        },
        header,
        header_bytes: u32::try_from(header_bytes).ok()?,
        identification: None,
    };
    Some((segment, &payload[..length.min(payload.len())]))
}

/// Takes what is needed of the options; of damaged ones, those before the damage.
fn read_options(options: &[u8], header: &mut Header) {
    let mut cursor = Cursor::new(options);
    while read_option(&mut cursor, header).is_some() {}
}

fn read_multipath(content: &[u8], before: Option<Box<Multipath>>) -> Option<Box<Multipath>> {
    multipath::read(content).map(Box::new).or(before)
}

/// None at the end.
fn read_option(cursor: &mut Cursor<'_>, header: &mut Header) -> Option<()> {
    let kind = cursor.u8()?;
    if kind <= 1 {
        // No operation, or the end of the list
        return (kind == 1).then_some(());
    }
    let length = usize::from(cursor.u8()?).checked_sub(2)?;
    let mut content = Cursor::new(cursor.take(length)?);
    match kind {
        2 => header.mss = Some(content.u16()?),
        // RFC 7323 section 2.3: at most 14
        3 => header.window_scale = Some(content.u8()?.min(14)),
        5 => {
            for at in 0..4 {
                let Some(left) = content.u32() else { break };
                let block = (left, content.u32()?);
                header.sack.get_or_insert_default()[at] = Some(block);
            }
        }
        8 => header.timestamps = Some((content.u32()?, content.u32()?)),
        // Beside one of data there may be others, of addresses.
        30 => header.multipath = read_multipath(content.rest(), header.multipath.take()),
        _ => {}
    }
    Some(())
}
