//! Removes the protection of packets of one sender at one encryption level, through key updates.
//!
//! Source: RFC 9001 section 5.4 (header protection), section 6 (key update);
//! draft-ferrieuxhamchaoui-quic-lossbits-03 section 5.3 (header protection that spares loss bits).

use std::fmt;
use std::ops::Range;

use ring::aead::quic::HeaderProtectionKey;

use super::keys::{KeyIdentity, PacketKey, Secret, TAG};
use super::packet_number::reconstruct;

/// The bits of a short header that are 0, once its protection is removed.
const RESERVED_BITS: u8 = 0x18;
/// Up to here packet numbers are tried of which only the end is known…
const LARGEST_MIDWAY: u64 = 1 << 24;
/// …but no more than this many, where the end is a single byte.
const MOST_WINDOWS: u64 = 1024;

/// A packet as it came.
#[derive(Debug, Clone, Copy)]
pub(super) struct Protected<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) number_offset: usize,
    pub(super) form: Form,
    /// The path that its connection ID belongs to (draft-ietf-quic-multipath-20); 0 where there is
    /// one.
    pub(super) path_id: u32,
}

/// The form of a header: which bits of its first byte are protected, and whether one is the key
/// phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Long,
    Short,
    /// With loss bits in place of the reserved ones: everybody may read these.
    ShortWithLossBits,
}

impl Form {
    /// The form of a short header, with loss bits or without.
    pub(super) fn of_short(has_loss_bits: bool) -> Self {
        if has_loss_bits {
            Self::ShortWithLossBits
        } else {
            Self::Short
        }
    }

    /// The bits that header protection covers.
    pub(super) fn protected_bits(self) -> u8 {
        match self {
            Self::Long => 0x0f,
            Self::Short => 0x1f,
            Self::ShortWithLossBits => 0x1f & !RESERVED_BITS,
        }
    }
}

/// A packet with its protection removed.
#[derive(Debug, Clone)]
pub(super) struct Opened {
    pub(super) number: u64,
    /// The place of the frames in the scratch space.
    pub(super) payload: Range<usize>,
}

/// The memory in which packets are decrypted; kept from packet to packet.
///
/// Several observers may share it. A packet that passes one after the other is then decrypted once:
/// if all that decryption depends on is the same as it was the last time, so is its outcome.
#[derive(Debug, Default)]
pub struct Scratch(Box<Memory>);

#[derive(Debug, Default)]
struct Memory {
    /// The packet that is being decrypted, or was decrypted last.
    bytes: Vec<u8>,
    is_shared: bool,
    /// The packet that was decrypted last, as it came; empty if there is none.
    sealed: Vec<u8>,
    last: Option<Decrypted>,
}

/// The rest of what the decryption of a packet depended on, and the place of its outcome.
#[derive(Debug, Clone)]
struct Decrypted {
    key: KeyIdentity,
    header: Header,
    payload: Range<usize>,
}

impl Scratch {
    /// Memory that several observers share.
    #[must_use]
    pub fn shared() -> Self {
        Self(Box::new(Memory {
            is_shared: true,
            ..Memory::default()
        }))
    }

    /// The frames of a packet that was opened last.
    pub(super) fn payload(&self, opened: &Opened) -> &[u8] {
        &self.0.bytes[opened.payload.clone()]
    }
}

impl Memory {
    /// Decrypts a packet whose header is known, and tells where its frames are. None if it is not
    /// authentic.
    fn decrypt(
        &mut self,
        packet: Protected<'_>,
        header: Header,
        key: &PacketKey,
    ) -> Option<Range<usize>> {
        if let Some(last) = &self.last
            && last.header == header
            && last.key == key.identity()
            && self.sealed == packet.bytes
        {
            return Some(last.payload.clone());
        }
        self.last = None;
        self.bytes.clear();
        self.bytes.extend_from_slice(packet.bytes);
        let (head, payload) = self.bytes.split_at_mut(header.length);
        head[0] = header.first;
        head[packet.number_offset..].copy_from_slice(header.number_bytes());
        let plain = key.open(packet.path_id, header.number, head, payload)?;
        let payload = header.length..header.length + plain;
        if self.is_shared {
            self.sealed.clear();
            self.sealed.extend_from_slice(packet.bytes);
            self.last = Some(Decrypted {
                key: key.identity(),
                header,
                payload: payload.clone(),
            });
        }
        Some(payload)
    }
}

/// The keys of one sender at one encryption level.
pub(super) struct Keys {
    header: HeaderProtectionKey,
    /// The key phase bit that goes with `current`.
    phase: bool,
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

/// A header without its protection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    /// Bytes of it, the packet number included.
    length: usize,
    first: u8,
    /// The bytes of the packet number, the last ones of these.
    truncated: [u8; 4],
    number_length: u8,
    number: u64,
    phase: bool,
}

impl Header {
    /// The packet number, as the header has it.
    fn number_bytes(&self) -> &[u8] {
        &self.truncated[4 - usize::from(self.number_length)..]
    }
}

impl Keys {
    pub(super) fn new(secret: Secret) -> Self {
        Self {
            header: secret.header_key(),
            phase: false,
            previous: None,
            current: secret.packet_key(),
            next: None,
            secret,
        }
    }

    /// Decrypts a packet into `scratch`. `largest` is the largest packet number that was seen in
    /// its packet number space from this sender. None if the packet is not authentic.
    pub(super) fn open(
        &mut self,
        packet: Protected<'_>,
        largest: Option<u64>,
        scratch: &mut Scratch,
    ) -> Option<Opened> {
        let header = self.unprotect_header(packet, largest)?;
        let number = header.number;
        let mut attempt = |key: &PacketKey| scratch.0.decrypt(packet, header, key);
        let payload = if header.phase == self.phase {
            attempt(&self.current)?
        } else {
            // The phase before, or the next one. Packet numbers do not tell which (RFC 9001 section
            // 6.5) where each path has its own.
            match self.previous.as_ref().and_then(&mut attempt) {
                Some(payload) => payload,
                None => self.open_with_next(attempt)?,
            }
        };
        Some(Opened { number, payload })
    }

    /// Decrypts a packet with a short header of which neither the number nor the key update is
    /// known, and takes up from there. Numbers up to [`LARGEST_MIDWAY`] are found, and up to three
    /// key updates.
    pub(super) fn open_midway(
        &mut self,
        packet: Protected<'_>,
        scratch: &mut Scratch,
    ) -> Option<Opened> {
        let header = self.unprotect_header(packet, None)?;
        if packet.form == Form::Short && header.first & RESERVED_BITS != 0 {
            return None; // RFC 9000 section 17.3.1: the header key is wrong
        }
        let window = 1_u64 << (8 * header.number_length);
        let tries = (LARGEST_MIDWAY / window).clamp(1, MOST_WINDOWS);
        let mut secret = self.secret.clone();
        for update in 0..4 {
            if (update % 2 == 1) == header.phase {
                let key = secret.packet_key();
                for number in (0..tries).map(|at| header.number + at * window) {
                    let header = Header { number, ..header };
                    if let Some(payload) = scratch.0.decrypt(packet, header, &key) {
                        self.phase = header.phase;
                        self.current = key;
                        self.secret = secret;
                        return Some(Opened { number, payload });
                    }
                }
            }
            secret = secret.updated();
        }
        None
    }

    /// Tries the key after the next key update, and takes it for the current one if it fits.
    fn open_with_next(
        &mut self,
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
        Some(payload)
    }

    /// Removes the protection of the header, RFC 9001 section 5.4.1.
    fn unprotect_header(&self, packet: Protected<'_>, largest: Option<u64>) -> Option<Header> {
        let at = packet.number_offset;
        let sample = packet.bytes.get(at + 4..at + 4 + TAG)?;
        let [mask_first, mask @ ..] = self.header.new_mask(sample).ok()?;
        let first = packet.bytes[0] ^ mask_first & packet.form.protected_bits();
        let number_length = (first & 0x03) + 1;
        let length = usize::from(number_length);
        let mut truncated = [0; 4];
        let number = packet.bytes[at..at + length].iter().zip(mask);
        for (bare, (byte, mask)) in truncated[4 - length..].iter_mut().zip(number) {
            *bare = byte ^ mask;
        }
        Some(Header {
            length: at + length,
            first,
            truncated,
            number_length,
            number: reconstruct(largest, u32::from_be_bytes(truncated), length),
            phase: packet.form != Form::Long && first & 0x04 != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::Suite;
    use super::super::version::Version;
    use super::*;

    /// The secret of the sample packets with a short header.
    const SECRET: [u8; 32] = [
        0x9a, 0xc3, 0x12, 0xa7, 0xf8, 0x77, 0x46, 0x8e, 0xbe, 0x69, 0x42, 0x27, 0x48, 0xad, 0x00,
        0xa1, 0x54, 0x43, 0xf1, 0x82, 0x03, 0xa0, 0x7d, 0x60, 0x60, 0xf6, 0x88, 0xf3, 0x0f, 0x21,
        0x63, 0x2b,
    ];

    fn short_header(version: Version, bytes: &[u8]) {
        let secret = Secret::new(Suite::ChaCha20Poly1305, version, &SECRET);
        let mut keys = Keys::new(secret);
        let packet = Protected {
            bytes,
            number_offset: 1,
            form: Form::Short,
            path_id: 0,
        };
        let mut scratch = Scratch::default();
        let opened = keys.open(packet, Some(654_360_563), &mut scratch).unwrap();
        assert_eq!(opened.number, 654_360_564);
        assert_eq!(scratch.0.bytes[..4], [0x42, 0x00, 0xbf, 0xf4]);
        assert_eq!(scratch.payload(&opened), [0x01]); // PING
    }

    #[test]
    fn chacha20_packet_of_rfc_9001_appendix_a5() {
        short_header(
            Version::V1,
            &[
                0x4c, 0xfe, 0x41, 0x89, 0x65, 0x5e, 0x5c, 0xd5, 0x5c, 0x41, 0xf6, 0x90, 0x80, 0x57,
                0x5d, 0x79, 0x99, 0xc2, 0x5a, 0x5b, 0xfb,
            ],
        );
    }

    #[test]
    fn chacha20_packet_of_rfc_9369_appendix_a5() {
        short_header(
            Version::V2,
            &[
                0x55, 0x58, 0xb1, 0xc6, 0x0a, 0xe7, 0xb6, 0xb9, 0x32, 0xbc, 0x27, 0xd7, 0x86, 0xf4,
                0xbc, 0x2b, 0xb2, 0x0f, 0x21, 0x62, 0xba,
            ],
        );
    }
}
