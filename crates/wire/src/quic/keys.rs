//! From TLS secrets to packet protection keys.
//!
//! Source: RFC 8446 section 7.1 (HKDF-Expand-Label), RFC 9001 sections 5.1 and 5.2, RFC 9369
//! section 3.3. The cryptography is that of `ring`.

use ring::aead::quic::HeaderProtectionKey;
use ring::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{self, KeyType, Prk, Salt};

use super::version::Version;
use super::{ConnectionId, End};

/// The bytes that authentication adds to a packet: 16 with each cipher, RFC 9001 section 5.3.
pub(super) const TAG: usize = 16;

/// A cipher suite of TLS 1.3 that QUIC packets may be protected with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suite {
    Aes128Gcm,
    Aes256Gcm,
    ChaCha20Poly1305,
}

impl Suite {
    /// By its number in a `ServerHello`, RFC 8446 appendix B.4.
    pub(crate) fn from_tls(number: u16) -> Option<Self> {
        match number {
            0x1301 => Some(Self::Aes128Gcm),
            0x1302 => Some(Self::Aes256Gcm),
            0x1303 => Some(Self::ChaCha20Poly1305),
            _ => None,
        }
    }

    /// The suites whose secrets have this length: that of their hash.
    pub(super) fn of_secret_length(length: usize) -> &'static [Self] {
        match length {
            32 => &[Self::Aes128Gcm, Self::ChaCha20Poly1305],
            48 => &[Self::Aes256Gcm],
            _ => &[],
        }
    }

    fn hkdf(self) -> hkdf::Algorithm {
        match self {
            Self::Aes128Gcm | Self::ChaCha20Poly1305 => hkdf::HKDF_SHA256,
            Self::Aes256Gcm => hkdf::HKDF_SHA384,
        }
    }

    fn aead(self) -> &'static aead::Algorithm {
        match self {
            Self::Aes128Gcm => &aead::AES_128_GCM,
            Self::Aes256Gcm => &aead::AES_256_GCM,
            Self::ChaCha20Poly1305 => &aead::CHACHA20_POLY1305,
        }
    }

    fn header_protection(self) -> &'static aead::quic::Algorithm {
        match self {
            Self::Aes128Gcm => &aead::quic::AES_128,
            Self::Aes256Gcm => &aead::quic::AES_256,
            Self::ChaCha20Poly1305 => &aead::quic::CHACHA20,
        }
    }
}

/// The labels of what a secret is expanded to.
#[derive(Debug)]
struct Labels {
    key: &'static str,
    iv: &'static str,
    header_protection: &'static str,
    update: &'static str,
}

/// RFC 9001 sections 5.1 and 6.1.
const V1: Labels = Labels {
    key: "quic key",
    iv: "quic iv",
    header_protection: "quic hp",
    update: "quic ku",
};
/// RFC 9369 section 3.3.2.
const V2: Labels = Labels {
    key: "quicv2 key",
    iv: "quicv2 iv",
    header_protection: "quicv2 hp",
    update: "quicv2 ku",
};
/// RFC 8446 sections 7.2 and 7.3; records have no header protection.
const RECORDS: Labels = Labels {
    key: "key",
    iv: "iv",
    header_protection: "",
    update: "traffic upd",
};

/// A secret that the keys of packets or records are made of.
#[derive(Debug, Clone)]
pub(crate) struct Secret {
    suite: Suite,
    labels: &'static Labels,
    prk: Prk,
}

impl Secret {
    pub(super) fn new(suite: Suite, version: Version, secret: &[u8]) -> Self {
        let labels = match version {
            Version::V1 | Version::Draft(_) => &V1,
            Version::V2 => &V2,
        };
        Self::with(suite, labels, secret)
    }

    /// The keys of the records of TLS over TCP.
    pub(crate) fn of_records(suite: Suite, secret: &[u8]) -> Self {
        Self::with(suite, &RECORDS, secret)
    }

    fn with(suite: Suite, labels: &'static Labels, secret: &[u8]) -> Self {
        Self {
            suite,
            labels,
            prk: Prk::new_less_safe(suite.hkdf(), secret),
        }
    }

    /// The secret of `sender`'s Initial packets, RFC 9001 section 5.2.
    pub(super) fn initial(version: Version, destination: &ConnectionId, sender: End) -> Self {
        // RFC 9001 section 5.2, RFC 9369 section 3.3.1, and draft-ietf-quic-tls-29 to -32 section
        // 5.2
        let salt: [u8; 20] = match version {
            Version::Draft(..=32) => [
                0xaf, 0xbf, 0xec, 0x28, 0x99, 0x93, 0xd2, 0x4c, 0x9e, 0x97, 0x86, 0xf1, 0x9c, 0x61,
                0x11, 0xe0, 0x43, 0x90, 0xa8, 0x99,
            ],
            Version::V1 | Version::Draft(_) => [
                0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8,
                0x0c, 0xad, 0xcc, 0xbb, 0x7f, 0x0a,
            ],
            Version::V2 => [
                0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26,
                0x9d, 0xcb, 0xf9, 0xbd, 0x2e, 0xd9,
            ],
        };
        let initial = Salt::new(hkdf::HKDF_SHA256, &salt).extract(destination.as_bytes());
        let label = match sender {
            End::Client => "client in",
            End::Server => "server in",
        };
        let mut secret = [0; 32];
        expand_label(&initial, label, &mut secret);
        Self::new(Suite::Aes128Gcm, version, &secret)
    }

    pub(crate) fn packet_key(&self) -> PacketKey {
        let algorithm = self.suite.aead();
        let mut key = [0; 32];
        let key = &mut key[..algorithm.key_len()];
        expand_label(&self.prk, self.labels.key, key);
        let mut iv = [0; aead::NONCE_LEN];
        expand_label(&self.prk, self.labels.iv, &mut iv);
        let key = UnboundKey::new(algorithm, key).expect("the key has the cipher's length");
        PacketKey {
            key: LessSafeKey::new(key),
            iv,
            suite: self.suite,
        }
    }

    pub(super) fn header_key(&self) -> HeaderProtectionKey {
        let algorithm = self.suite.header_protection();
        let mut key = [0; 32];
        let key = &mut key[..algorithm.key_len()];
        expand_label(&self.prk, self.labels.header_protection, key);
        HeaderProtectionKey::new(algorithm, key).expect("the key has the cipher's length")
    }

    /// The secret after a key update, RFC 9001 section 6.1.
    pub(crate) fn updated(&self) -> Self {
        let mut secret = [0; 48];
        let secret = &mut secret[..self.suite.hkdf().len()];
        expand_label(&self.prk, self.labels.update, secret);
        Self::with(self.suite, self.labels, secret)
    }
}

/// The key and the initialisation vector of one sender, between two key updates.
#[derive(Debug)]
pub(crate) struct PacketKey {
    key: LessSafeKey,
    iv: [u8; aead::NONCE_LEN],
    suite: Suite,
}

/// Tells a key from others. Key and initialisation vector are made of one secret: with the same
/// cipher, different keys do not have the same vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyIdentity {
    iv: [u8; aead::NONCE_LEN],
    suite: Suite,
}

impl PacketKey {
    pub(super) fn identity(&self) -> KeyIdentity {
        KeyIdentity {
            iv: self.iv,
            suite: self.suite,
        }
    }

    /// Decrypts `payload` in place and tells how many bytes of it remain. If it is not authentic,
    /// none, and what `payload` then holds is of no use.
    ///
    /// Where a connection has several paths, the identifier of the path is part of the nonce
    /// (draft-ietf-quic-multipath-20 section 2.4); else it is 0.
    pub(crate) fn open(
        &self,
        path_id: u32,
        number: u64,
        header: &[u8],
        payload: &mut [u8],
    ) -> Option<usize> {
        let mut nonce = self.iv;
        for (byte, of_path) in nonce.iter_mut().zip(path_id.to_be_bytes()) {
            *byte ^= of_path;
        }
        for (byte, of_number) in nonce[4..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= of_number; // RFC 9001 section 5.3
        }
        let nonce = Nonce::assume_unique_for_key(nonce);
        let plain = self
            .key
            .open_in_place(nonce, Aad::from(header), payload)
            .ok()?;
        Some(plain.len())
    }
}

#[cfg(test)]
impl PacketKey {
    /// Encrypts `payload` in place, and adds the authentication tag.
    pub(crate) fn seal(&self, path_id: u32, number: u64, header: &[u8], payload: &mut Vec<u8>) {
        let mut nonce = self.iv;
        for (byte, of_path) in nonce.iter_mut().zip(path_id.to_be_bytes()) {
            *byte ^= of_path;
        }
        for (byte, of_number) in nonce[4..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= of_number;
        }
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.key
            .seal_in_place_append_tag(nonce, Aad::from(header), payload)
            .expect("a short payload");
    }
}

/// Whether the tag at the end of a Retry packet says that it answers an Initial packet to
/// `original`.
pub(super) fn retry_is_authentic(version: Version, original: &ConnectionId, packet: &[u8]) -> bool {
    // RFC 9001 section 5.8, RFC 9369 section 3.3.3, and draft-ietf-quic-tls-29 to -32 section 5.8
    let (key, nonce) = match version {
        Version::Draft(..=32) => (
            0xccce_187e_d09a_09d0_5728_155a_6cb9_6be1,
            0xe549_30f9_7f21_36f0_530a_8c1c,
        ),
        Version::V1 | Version::Draft(_) => (
            0xbe0c_690b_9f66_575a_1d76_6b54_e368_c84e_u128,
            0x4615_99d3_5d63_2bf2_2398_25bb_u128,
        ),
        Version::V2 => (
            0x8fb4_b01b_56ac_48e2_60fb_cbce_ad7c_cc92,
            0xd869_69bc_2d7c_6d99_90ef_b04a,
        ),
    };
    let Some((head, tag)) = packet.split_last_chunk::<TAG>() else {
        return false;
    };
    let length = u8::try_from(original.len()).expect("at most 20 bytes");
    let pseudo_packet = [&[length], original.as_bytes(), head].concat();
    let key = UnboundKey::new(&aead::AES_128_GCM, &key.to_be_bytes()).expect("16 bytes");
    let nonce = Nonce::try_assume_unique_for_key(&nonce.to_be_bytes()[4..]).expect("12 bytes");
    LessSafeKey::new(key)
        .open_in_place(nonce, Aad::from(pseudo_packet), &mut tag.clone())
        .is_ok()
}

/// HKDF-Expand-Label with no context.
fn expand_label(secret: &Prk, label: &str, out: &mut [u8]) {
    struct Bytes(usize);
    impl KeyType for Bytes {
        fn len(&self) -> usize {
            self.0
        }
    }
    let length = u16::try_from(out.len()).expect("keys are short");
    let name = u8::try_from("tls13 ".len() + label.len()).expect("labels are short");
    let info = [
        &length.to_be_bytes()[..],
        &[name],
        b"tls13 ",
        label.as_bytes(),
        &[0],
    ];
    secret
        .expand(&info, Bytes(out.len()))
        .and_then(|keys| keys.fill(out))
        .expect("keys are far shorter than HKDF can make");
}
