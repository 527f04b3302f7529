//! Removes the protection of packets of one sender at one encryption level, through key updates.
//!
//! Source: RFC 9001 section 5.4 (header protection), section 6 (key update).

use std::fmt;
use std::ops::Range;

use ring::aead::quic::HeaderProtectionKey;

use super::keys::{PacketKey, Secret, TAG};
use super::packet_number::reconstruct;

/// A packet as it came.
#[derive(Debug, Clone, Copy)]
pub(super) struct Protected<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) number_offset: usize,
    pub(super) is_long: bool,
}

/// A packet with its protection removed.
#[derive(Debug, Clone)]
pub(super) struct Opened {
    pub(super) number: u64,
    /// Where in the scratch space the frames are.
    pub(super) payload: Range<usize>,
}

/// Where packets are decrypted; kept from packet to packet.
pub(super) type Scratch = Vec<u8>;

/// The keys of one sender at one encryption level.
pub(super) struct Keys {
    header: HeaderProtectionKey,
    /// The key phase bit that goes with `current`.
    phase: bool,
    /// The smallest packet number that was seen with `current`.
    phase_start: u64,
    previous: Option<PacketKey>,
    current: PacketKey,
    /// Made when it is first needed.
    next: Option<(Secret, PacketKey)>,
    secret: Secret,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

/// What header protection hid.
struct Header {
    length: usize,
    number: u64,
    phase: bool,
}

impl Keys {
    pub(super) fn new(secret: Secret) -> Self {
        Self {
            header: secret.header_key(),
            phase: false,
            phase_start: u64::MAX,
            previous: None,
            current: secret.packet_key(),
            next: None,
            secret,
        }
    }

    /// Decrypts a packet into `scratch`. `largest` is the largest packet number that was seen in its packet number
    /// space from this sender. None if the packet is not authentic.
    pub(super) fn open(
        &mut self,
        packet: Protected<'_>,
        largest: Option<u64>,
        scratch: &mut Scratch,
    ) -> Option<Opened> {
        scratch.clear();
        scratch.extend_from_slice(packet.bytes);
        let header = self.unprotect_header(packet, largest, scratch)?;
        let number = header.number;
        let mut attempt = |key: &PacketKey| {
            let (head, payload) = scratch.split_at_mut(header.length);
            payload.copy_from_slice(&packet.bytes[header.length..]);
            let plain = key.open(number, head, payload)?;
            Some(header.length..header.length + plain)
        };
        let payload = if header.phase == self.phase {
            let payload = attempt(&self.current)?;
            self.phase_start = self.phase_start.min(number);
            payload
        } else {
            // RFC 9001 section 6.5: a number below those of the current phase belongs to the one before.
            let earlier = self.previous.as_ref();
            let earlier = earlier.filter(|_| number < self.phase_start);
            match earlier.and_then(&mut attempt) {
                Some(payload) => payload,
                None => self.open_with_next(number, attempt)?,
            }
        };
        Some(Opened { number, payload })
    }

    /// Tries the key after the next key update, and takes it for the current one if it fits.
    fn open_with_next(
        &mut self,
        number: u64,
        mut attempt: impl FnMut(&PacketKey) -> Option<Range<usize>>,
    ) -> Option<Range<usize>> {
        let (secret, key) = self.next.take().unwrap_or_else(|| {
            let secret = self.secret.updated();
            let key = secret.packet_key();
            (secret, key)
        });
        let Some(payload) = attempt(&key) else {
            self.next = Some((secret, key));
            return None;
        };
        self.previous = Some(std::mem::replace(&mut self.current, key));
        self.secret = secret;
        self.phase = !self.phase;
        self.phase_start = number;
        Some(payload)
    }

    /// Removes header protection in `scratch`, RFC 9001 section 5.4.1.
    fn unprotect_header(
        &self,
        packet: Protected<'_>,
        largest: Option<u64>,
        scratch: &mut Scratch,
    ) -> Option<Header> {
        let at = packet.number_offset;
        let sample = packet.bytes.get(at + 4..at + 4 + TAG)?;
        let mask = self.header.new_mask(sample).ok()?;
        scratch[0] ^= mask[0] & if packet.is_long { 0x0f } else { 0x1f };
        let first = scratch[0];
        let length = usize::from(first & 0x03) + 1;
        let mut truncated = 0;
        for (byte, mask) in scratch[at..at + length].iter_mut().zip(&mask[1..]) {
            *byte ^= mask;
            truncated = truncated << 8 | u32::from(*byte);
        }
        Some(Header {
            length: at + length,
            number: reconstruct(largest, truncated, length),
            phase: !packet.is_long && first & 0x04 != 0,
        })
    }
}
