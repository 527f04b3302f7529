//! The change of a forwarded packet between client and proxy.

use std::fmt;

use aes::Aes128;
use aes::cipher::generic_array::GenericArray;
use aes::cipher::{BlockDecrypt, BlockEncrypt, InnerIvInit, KeyInit, StreamCipher};
use ctr::{Ctr128BE, CtrCore};

/// Bytes of the key of [`Transform::Scramble`].
pub const KEY: usize = 32;
/// The key of [`Transform::Scramble`].
pub type Key = [u8; KEY];

/// Bytes of a block of AES.
const BLOCK: usize = 16;
/// The header's first byte comes before the connection ID.
const FIRST: usize = 1;
/// The bit of a long header.
const LONG: u8 = 0x80;

/// The name of a transform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransformKind {
    /// The packet stays as it is but for its connection ID: who sees both sides of the proxy can
    /// tell which packets belong together.
    Identity,
    /// The packet is encrypted once more, without authentication and in the same length.
    Scramble,
}

impl TransformKind {
    /// The value of the option `forward`.
    pub fn option(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Scramble => "scramble",
        }
    }

    /// The name in HTTP fields. That of `Scramble` is reserved for the final text of the draft;
    /// until then it has a name of its own.
    pub fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Scramble => "scramble-dt",
        }
    }
}

/// A transform with its key, in one direction.
#[derive(Clone)]
pub enum Transform {
    Identity,
    Scramble(Box<Scramble>),
}

/// The transforms of a request: of what is sent, and of what comes.
#[derive(Debug, Clone)]
pub struct Transforms {
    pub sending: Transform,
    pub receiving: Transform,
}

/// The ciphers of the transform: of the packet, and of the packet's initialization vector.
#[derive(Clone)]
pub struct Scramble {
    payload: Aes128,
    vector: Aes128,
}

impl fmt::Debug for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Identity => "Identity",
            Self::Scramble(_) => "Scramble(..)",
        })
    }
}

impl Transform {
    /// The transform of this name with this key.
    pub fn new(kind: TransformKind, key: &Key) -> Self {
        match kind {
            TransformKind::Identity => Self::Identity,
            TransformKind::Scramble => {
                let (payload, vector) = key.split_at(BLOCK);
                Self::Scramble(Box::new(Scramble {
                    payload: Aes128::new(GenericArray::from_slice(payload)),
                    vector: Aes128::new(GenericArray::from_slice(vector)),
                }))
            }
        }
    }

    /// Whether a packet with a connection ID of `id` bytes is long enough.
    pub fn takes(&self, packet: &[u8], id: usize) -> bool {
        let least = match self {
            Self::Identity => FIRST + id,
            Self::Scramble(_) => FIRST + id + BLOCK,
        };
        packet.len() >= least
    }

    /// Changes a packet with a virtual connection ID of `id` bytes, which is [long
    /// enough](Self::takes), as it is sent.
    pub fn encode(&self, packet: &mut [u8], id: usize) {
        let Self::Scramble(ciphers) = self else {
            return;
        };
        let mut vector = GenericArray::clone_from_slice(vector_of(packet, id));
        ciphers.apply(packet, id);
        ciphers.vector.encrypt_block(&mut vector);
        vector_of(packet, id).copy_from_slice(&vector);
    }

    /// Changes a packet back.
    pub fn decode(&self, packet: &mut [u8], id: usize) {
        let Self::Scramble(ciphers) = self else {
            return;
        };
        let vector = GenericArray::from_mut_slice(vector_of(packet, id));
        ciphers.vector.decrypt_block(vector);
        ciphers.apply(packet, id);
    }
}

/// The 16 bytes behind the connection ID, of which each packet has others.
fn vector_of(packet: &mut [u8], id: usize) -> &mut [u8] {
    &mut packet[FIRST + id..][..BLOCK]
}

impl Scramble {
    /// Encrypts, or decrypts, all but connection ID and initialization vector, which is there in
    /// the clear.
    fn apply(&self, packet: &mut [u8], id: usize) {
        let vector = GenericArray::clone_from_slice(vector_of(packet, id));
        let core = CtrCore::inner_iv_init(&self.payload, &vector);
        let mut stream = Ctr128BE::from_core(core);
        stream.apply_keystream(&mut packet[..FIRST]);
        packet[0] &= !LONG;
        stream.apply_keystream(&mut packet[FIRST + id + BLOCK..]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<_> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let pairs = digits.chunks(2).map(|it| std::str::from_utf8(it).unwrap());
        pairs
            .map(|it| u8::from_str_radix(it, 16).unwrap())
            .collect()
    }

    /// Appendix A of the draft: the packet with its virtual connection ID, and what is sent.
    const WITH_VIRTUAL_ID: &str =
        "500123456789abcdef0123456789abcd ef012345671ba3bed7043a2163202304
         8def32f4f8f260c290490413d24ea6";
    const KEY_OF_EXAMPLE: &str =
        "f13a915f96fb8919d9d8655488ffea57 78cac8cffbc27cd38c173bcbad955cff";
    const SCRAMBLED: &str = "320123456789abcdef0123456789abcd ef012345678ebe6906e16ec5fc90a02c
         0109994c3fed03f9d5d88c5f408bb6";
    const ID: usize = 20;

    #[test]
    fn the_example_of_the_draft() {
        let packet = bytes(WITH_VIRTUAL_ID);
        let key: Key = bytes(KEY_OF_EXAMPLE).try_into().unwrap();
        for (kind, sent) in [
            (TransformKind::Identity, WITH_VIRTUAL_ID),
            (TransformKind::Scramble, SCRAMBLED),
        ] {
            let transform = Transform::new(kind, &key);
            let mut changed = packet.clone();
            assert!(transform.takes(&changed, ID));
            transform.encode(&mut changed, ID);
            assert_eq!(changed, bytes(sent), "{kind:?}");
            transform.decode(&mut changed, ID);
            assert_eq!(changed, packet, "{kind:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_changed_comes_back(
            key in any::<[u8; KEY]>(),
            id in 0..=ID,
            first in 0..LONG,
            rest in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let transform = Transform::new(TransformKind::Scramble, &key);
            let packet = [&[first][..], &rest].concat();
            if transform.takes(&packet, id) {
                let mut changed = packet.clone();
                transform.encode(&mut changed, id);
                prop_assert!(changed[0] & LONG == 0);
                prop_assert_eq!(&changed[1..=id], &packet[1..=id]);
                transform.decode(&mut changed, id);
                prop_assert_eq!(changed, packet);
            }
        }
    }
}
