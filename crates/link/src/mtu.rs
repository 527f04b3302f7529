//! The largest packet that a link carries.

use bentpipe_units::{Size, Time};

use crate::fields::{Entry, Problem};
use crate::node::{Node, Step, Transit};

/// The least MTU of IPv4 (RFC 791, section 3.2).
const LEAST: u64 = 68;
/// Bytes of the largest IP packet.
const MOST: u64 = 65_535;

pub(crate) fn read(entry: &Entry) -> Result<Size, Problem> {
    let mtu: Size = entry.parse()?;
    if (LEAST..=MOST).contains(&mtu.bytes()) {
        return Ok(mtu);
    }
    Err(entry.problem("no MTU of IP; write 68 B to 65535 B, as in \"1400 B\""))
}

/// Loses what is larger than the MTU.
pub(crate) struct Mtu(u32);

impl Mtu {
    pub fn new(mtu: Size) -> Self {
        Self(u32::try_from(mtu.bytes()).unwrap_or(u32::MAX))
    }
}

impl Node for Mtu {
    fn enqueue(&mut self, now: Time, transit: &mut Transit) -> Step {
        if transit.packet.ip_bytes > self.0 {
            return Step::LoseForSize { mtu: self.0 };
        }
        Step::Leave { at: now }
    }
}
