//! BDP frames: a server tells its client what it has learnt of the path, and the client returns it
//! in its next connection, so that the server need not remember any client.
//!
//! Source: draft-kuhn-quic-bdpframe-extension; numbers and layout are those of picoquic.
//! Deviations: the lifetime is a time of the server's clock, in seconds since 1970, so that a
//! client's word does not make it longer; and in place of an address the frame ends with a token,
//! the server's HMAC-SHA256 of all of it and of the client's address. A client that changes
//! anything, or another client, has a frame that is worth nothing.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use bentpipe_congestion::{LIFETIME, RememberedPath, SavedPath};
use bentpipe_endpoint::contract::Statistics;
use bentpipe_units::Span;
use bytes::Bytes;
use noq_proto::{BdpFrame, VarInt};
use ring::{hmac, rand};

/// The peers whose frames a client keeps, and those whose frames a server doubts.
const MOST: usize = 4096;

/// The frames of one program.
#[derive(Debug)]
pub struct BdpFrames {
    /// A server's.
    key: hmac::Key,
    /// Those that a client keeps, by server.
    held: BTreeMap<String, BdpFrame>,
    /// Clients whose frame was wrong, with when it was sealed: it is not taken again, nor are older
    /// ones.
    doubted: BTreeMap<IpAddr, Duration>,
    counts: Counts,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    sent: u64,
    taken: u64,
    refused: u64,
}

/// The reason for which a server does not take a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It is not the server's, or was for another client.
    Forged,
    /// Its lifetime is over.
    Expired,
    /// One as old was wrong.
    Doubted,
}

impl BdpFrames {
    /// No frame yet, and a new key; `None`: the system has no random bytes.
    pub fn new() -> Option<Self> {
        let random = rand::SystemRandom::new();
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &random).ok()?;
        Some(Self {
            key,
            held: BTreeMap::new(),
            doubted: BTreeMap::new(),
            counts: Counts::default(),
        })
    }

    /// A server's frame for the client at `ip`.
    pub fn seal(&mut self, ip: IpAddr, path: SavedPath, now: Duration) -> Option<BdpFrame> {
        let integer = |value: u64| VarInt::from_u64(value).ok();
        let mut frame = BdpFrame {
            lifetime: integer((now + LIFETIME).as_secs())?,
            capacity: integer(path.window)?,
            rtt: integer(path.rtt.as_nanos() / 1000)?,
            token: Bytes::new(),
        };
        let tag = hmac::sign(&self.key, &signed(ip, &frame));
        frame.token = Bytes::copy_from_slice(tag.as_ref());
        self.counts.sent += 1;
        Some(frame)
    }

    /// The path that a server told the client at `ip`, which returns this frame, and when.
    pub fn open(
        &mut self,
        ip: IpAddr,
        frame: &BdpFrame,
        now: Duration,
    ) -> Result<RememberedPath, Refusal> {
        let opened = self.check(ip, frame, now);
        match opened {
            Ok(_) => self.counts.taken += 1,
            Err(_) => self.counts.refused += 1,
        }
        opened
    }

    fn check(
        &self,
        ip: IpAddr,
        frame: &BdpFrame,
        now: Duration,
    ) -> Result<RememberedPath, Refusal> {
        let verified = hmac::verify(&self.key, &signed(ip, frame), &frame.token);
        verified.map_err(|_| Refusal::Forged)?;
        let until = Duration::from_secs(frame.lifetime.into_inner());
        if now > until {
            return Err(Refusal::Expired);
        }
        let sealed = until.saturating_sub(LIFETIME);
        if self.doubted.get(&ip).is_some_and(|since| sealed <= *since) {
            return Err(Refusal::Doubted);
        }
        Ok(RememberedPath {
            path: SavedPath {
                window: frame.capacity.into_inner(),
                rtt: Span::from_nanos(frame.rtt.into_inner().saturating_mul(1000)),
            },
            filled: true,
            seen: sealed,
        })
    }

    /// A frame that the client at `ip` returned was wrong, which was sealed then: it may keep
    /// copies.
    pub fn doubt(&mut self, ip: IpAddr, sealed: Duration) {
        let before = self.doubted.remove(&ip);
        if self.doubted.len() >= MOST {
            // The copies of the oldest expire first.
            let oldest = self.doubted.iter().min_by_key(|(_, sealed)| **sealed);
            let oldest = oldest.map(|(ip, _)| *ip);
            oldest.map(|ip| self.doubted.remove(&ip));
        }
        self.doubted
            .insert(ip, before.map_or(sealed, |it| it.max(sealed)));
    }

    /// A client keeps what a server tells it, unless it has something later.
    pub fn hold(&mut self, server: String, frame: BdpFrame) {
        if self
            .held
            .get(&server)
            .is_some_and(|old| old.lifetime > frame.lifetime)
        {
            return;
        }
        if self.held.len() >= MOST && !self.held.contains_key(&server) {
            let oldest = self.held.iter().min_by_key(|(_, frame)| frame.lifetime);
            let oldest = oldest.map(|(server, _)| server.clone());
            oldest.map(|server| self.held.remove(&server));
        }
        self.held.insert(server, frame);
    }

    /// The frame that a client returns to a server, once.
    pub fn give_back(&mut self, server: &str) -> Option<BdpFrame> {
        let frame = self.held.remove(server);
        self.counts.sent += u64::from(frame.is_some());
        frame
    }

    /// Its columns of a record.
    pub fn say(&self, said: &mut Statistics) {
        said.say("bdp_frames_sent", self.counts.sent);
        said.say("bdp_frames_taken", self.counts.taken);
        said.say("bdp_frames_refused", self.counts.refused);
    }
}

/// The bytes that a token is of.
fn signed(ip: IpAddr, frame: &BdpFrame) -> Vec<u8> {
    let ip: Ipv6Addr = match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let mut bytes = ip.octets().to_vec();
    for value in [frame.lifetime, frame.capacity, frame.rtt] {
        bytes.extend(value.into_inner().to_be_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Duration = Duration::from_secs(946_684_800);
    const CLIENT: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);
    const PATH: SavedPath = SavedPath {
        window: 1_500_000,
        rtt: Span::from_millis(600),
    };

    const TOLD: RememberedPath = RememberedPath {
        path: PATH,
        filled: true,
        seen: NOW,
    };

    fn number(value: u64) -> VarInt {
        VarInt::from_u64(value).unwrap()
    }

    #[test]
    fn a_frame_that_comes_back_is_what_was_told() {
        let mut frames = BdpFrames::new().unwrap();
        let frame = frames.seal(CLIENT, PATH, NOW).unwrap();
        assert_eq!(frames.open(CLIENT, &frame, NOW + LIFETIME), Ok(TOLD));
        let late = NOW + LIFETIME + Duration::from_secs(1);
        assert_eq!(frames.open(CLIENT, &frame, late), Err(Refusal::Expired));
    }

    #[test]
    fn who_changes_a_frame_gains_nothing() {
        let mut frames = BdpFrames::new().unwrap();
        let frame = frames.seal(CLIENT, PATH, NOW).unwrap();
        let changed = [
            BdpFrame {
                capacity: number(15_000_000),
                ..frame.clone()
            },
            BdpFrame {
                rtt: number(60_000),
                ..frame.clone()
            },
            BdpFrame {
                lifetime: number(1 << 40),
                ..frame.clone()
            },
            BdpFrame {
                token: Bytes::new(),
                ..frame.clone()
            },
            BdpFrame {
                token: frame.token.slice(..frame.token.len() - 1),
                ..frame.clone()
            },
        ];
        for other in changed {
            assert_eq!(
                frames.open(CLIENT, &other, NOW),
                Err(Refusal::Forged),
                "{other}"
            );
        }
        let neighbour = "::2".parse().unwrap();
        assert_eq!(frames.open(neighbour, &frame, NOW), Err(Refusal::Forged));
        let mut another = BdpFrames::new().unwrap();
        assert_eq!(another.open(CLIENT, &frame, NOW), Err(Refusal::Forged));
    }

    #[test]
    fn a_copy_of_what_was_wrong_is_not_taken_and_a_later_one_is() {
        let mut frames = BdpFrames::new().unwrap();
        let frame = frames.seal(CLIENT, PATH, NOW).unwrap();
        frames.doubt(CLIENT, NOW);
        assert_eq!(frames.open(CLIENT, &frame, NOW), Err(Refusal::Doubted));
        let later = NOW + Duration::from_secs(1);
        let frame = frames.seal(CLIENT, PATH, later).unwrap();
        let opened = frames.open(CLIENT, &frame, later).unwrap();
        assert_eq!(
            opened,
            RememberedPath {
                seen: later,
                ..TOLD
            }
        );
        // The oldest makes room, whatever its address.
        for client in 0..2 * MOST as u64 {
            let later = later + Duration::from_secs(client);
            frames.doubt(IpAddr::V6((u128::MAX - u128::from(client)).into()), later);
        }
        assert_eq!(frames.doubted.len(), MOST);
        let newest = IpAddr::V6((u128::MAX - 2 * MOST as u128 + 1).into());
        assert!(frames.doubted.contains_key(&newest));
        assert!(!frames.doubted.contains_key(&CLIENT));
    }

    /// In virtual time every random byte of the process comes from the trial's seed.
    #[test]
    fn the_key_comes_from_the_seed() {
        let tokens = [7, 7, 8].map(|seed| {
            bentpipe_endpoint::seed_entropy_of_thread(seed);
            let mut frames = BdpFrames::new().unwrap();
            frames.seal(CLIENT, PATH, NOW).unwrap().token
        });
        assert_eq!(tokens[0], tokens[1]);
        assert_ne!(tokens[0], tokens[2]);
    }

    #[test]
    fn a_client_returns_the_latest_once_and_keeps_no_more_than_so_many() {
        let mut frames = BdpFrames::new().unwrap();
        let [old, new] = [0, 9].map(|it| {
            let now = NOW + Duration::from_secs(it);
            frames.seal(CLIENT, PATH, now).unwrap()
        });
        frames.hold("server".to_owned(), new.clone());
        frames.hold("server".to_owned(), old.clone());
        assert_eq!(frames.give_back("server"), Some(new));
        assert_eq!(frames.give_back("server"), None);
        for server in 0..2 * MOST {
            frames.hold(server.to_string(), old.clone());
        }
        assert_eq!(frames.held.len(), MOST);
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_parser(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let mut rest = Bytes::from(bytes.clone());
            if let Some(frame) = BdpFrame::decode(&mut rest) {
                prop_assert!(frame.token.len() <= BdpFrame::MAX_TOKEN);
                prop_assert!(bytes.ends_with(&rest));
            }
        }

        #[test]
        fn what_is_written_is_read_and_what_is_cut_short_is_not(
            numbers in prop::array::uniform3(0..1_u64 << 62),
            token in prop::collection::vec(any::<u8>(), 0..=BdpFrame::MAX_TOKEN),
        ) {
            let [lifetime, capacity, rtt] = numbers.map(number);
            let frame = BdpFrame { lifetime, capacity, rtt, token: token.into() };
            let mut bytes = Vec::new();
            frame.encode_body(&mut bytes);
            let read = BdpFrame::decode(&mut Bytes::from(bytes.clone()));
            prop_assert_eq!(read, Some(frame));
            for end in 0..bytes.len() {
                let cut = BdpFrame::decode(&mut Bytes::copy_from_slice(&bytes[..end]));
                prop_assert_eq!(cut, None);
            }
        }

        #[test]
        fn a_server_takes_nothing_but_its_own(
            numbers in prop::array::uniform3(0..1_u64 << 62),
            token in prop::collection::vec(any::<u8>(), 0..=BdpFrame::MAX_TOKEN),
        ) {
            let mut frames = BdpFrames::new().unwrap();
            let [lifetime, capacity, rtt] = numbers.map(number);
            let frame = BdpFrame { lifetime, capacity, rtt, token: token.into() };
            prop_assert_eq!(frames.open(CLIENT, &frame, NOW), Err(Refusal::Forged));
        }
    }
}
