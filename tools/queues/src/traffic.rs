//! Packets to compare by: when each arrives, how large it is, and of which flow.

use std::ops::RangeInclusive;

/// When packets begin to arrive, in nanoseconds: later than 16 intervals of CoDel after the guest's
/// boot, which it takes for the end of its last drops.
const START: u64 = 5_000_000_000;
/// Headers of IPv4 and UDP, and a packet's number.
pub const SMALLEST: u64 = 20 + 8 + 8;

/// Packets of one flow, at random gaps.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Bytes of IP packets, all sizes alike.
    pub bytes: RangeInclusive<u64>,
    /// The mean gap in nanoseconds; each is between half of it and half as much again.
    pub gap_ns: u64,
    /// 0 Not-ECT, 2 ECT(0).
    pub ecn: u8,
    /// The lengths of its phases in milliseconds: it sends in the first, and pauses in the second;
    /// None: it always sends.
    pub on_off_ms: Option<(u64, u64)>,
}

/// A packet of the comparison. Its number is its place among all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// When it arrives at the queue, in nanoseconds.
    pub at: u64,
    /// Bytes of the IP packet.
    pub bytes: u32,
    /// 0 Not-ECT, 2 ECT(0).
    pub ecn: u8,
    /// The number of its flow.
    pub flow: u16,
}

/// All packets of these flows within `duration_ms` milliseconds, no two at one time.
pub fn packets(flows: &[Flow], duration_ms: u64, seed: u64) -> Vec<Packet> {
    let mut all = Vec::new();
    for (number, flow) in (0_u16..).zip(flows) {
        let mut random = Random(seed.wrapping_add(u64::from(number) << 32));
        let mut at = 0;
        loop {
            at += flow.gap_ns / 2 + random.below(flow.gap_ns);
            if let Some((on, off)) = flow.on_off_ms {
                let past = at % ((on + off) * 1_000_000);
                if past >= on * 1_000_000 {
                    at += (on + off) * 1_000_000 - past;
                }
            }
            if at >= duration_ms * 1_000_000 {
                break;
            }
            let spread = flow.bytes.end() - flow.bytes.start() + 1;
            all.push(Packet {
                at: START + at,
                bytes: u32::try_from(flow.bytes.start() + random.below(spread)).expect("a packet"),
                ecn: flow.ecn,
                flow: number,
            });
        }
    }
    all.sort_by_key(|it| (it.at, it.flow));
    for next in 1..all.len() {
        all[next].at = all[next].at.max(all[next - 1].at + 1);
    }
    all
}

/// `SplitMix64` (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let scaled = u128::from(word ^ (word >> 31)) * u128::from(limit);
        u64::try_from(scaled >> 64).expect("below the limit")
    }
}
