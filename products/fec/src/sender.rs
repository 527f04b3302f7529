//! The sending end of a direction: numbers datagrams, keeps the latest, and sends repair symbols
//! over them.

use std::time::Duration;

use crate::blocks::{Block, Blocks};
use crate::coefficients::Combination;
use crate::packet::{Packet, Repair, Report, symbol};
use crate::requests::MOST_ASKED;
use crate::settings::{Code, CodeRate, Settings};
use crate::store::Store;
use crate::window::Window;

/// Repair packets are counted in millionths.
const ONE: i64 = 1_000_000;
/// The code rate of `rate=adaptive`: so many repairs for each packet, and so many more for each
/// that is lost, but at most so many for each packet.
const LEAST: f64 = 0.03;
const PER_LOSS: f64 = 10.0;
const MOST: f64 = 0.5;
/// The loss that is assumed before any report, as if of so many packets.
const FIRST_LOSS: f64 = 0.007;
const MEMORY: f64 = 1000.0;

/// The sending end.
#[derive(Debug)]
pub struct Sender {
    settings: Settings,
    next_esi: u32,
    latest: Latest,
    store: Store,
    /// Repairs that are due, in millionths.
    due: i64,
    /// Whether a symbol of the window is in no repair so far.
    is_uncovered: bool,
    /// The time at which a repair is sent even if none is due, since nothing else was sent.
    flush_at: Option<Duration>,
    loss: Loss,
    /// Its counts.
    pub sent: SenderCounts,
}

/// The latest symbols, of which repairs are.
#[derive(Debug)]
enum Latest {
    Window(Window),
    Blocks(Blocks),
}

/// The counts of a sender.
#[derive(Debug, Default, Clone, Copy)]
pub struct SenderCounts {
    /// Datagrams.
    pub source_packets: u64,
    /// Bytes in them.
    pub source_bytes: u64,
    /// Repairs.
    pub repair_packets: u64,
    /// Datagrams that were sent again, since they were asked for.
    pub resent_packets: u64,
    /// Bytes that were sent beyond these: headers, repairs, and what was sent again.
    pub overhead_bytes: u64,
    /// Datagrams that are too large for the tunnel, and were dropped.
    pub too_large_packets: u64,
}

/// The loss that the receiver reports.
#[derive(Debug)]
struct Loss {
    last: Report,
    share: f64,
}

impl Sender {
    /// A sender that has sent nothing.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            next_esi: 0,
            latest: Latest::of(&settings),
            store: Store::default(),
            due: ONE / 2,
            is_uncovered: false,
            flush_at: None,
            loss: Loss {
                // Before the first packet, whose number is 0.
                last: Report {
                    highest: u32::MAX,
                    received: 0,
                },
                share: FIRST_LOSS,
            },
            sent: SenderCounts::default(),
        }
    }

    /// Sends a datagram: `out` takes the packets, each with its ECN bits.
    pub fn send(
        &mut self,
        now: Duration,
        ecn: u8,
        payload: &[u8],
        out: &mut impl FnMut(u8, &[u8]),
    ) {
        if payload.len() > self.settings.most_payload {
            self.sent.too_large_packets += 1;
            return;
        }
        let esi = self.next_esi;
        self.next_esi = esi.wrapping_add(1);
        let packet = Packet::Source { esi, ecn, payload }.write();
        self.sent.source_packets += 1;
        self.sent.source_bytes += payload.len() as u64;
        self.sent.overhead_bytes += (packet.len() - payload.len()) as u64;
        out(ecn, &packet);
        if self.settings.asks {
            self.store.keep(now, esi, ecn, packet);
        }
        self.is_uncovered = true;
        let symbol = symbol(ecn, payload);
        match &mut self.latest {
            Latest::Window(window) => {
                window.push(now, symbol);
                self.due += self.per_packet();
                if self.due >= ONE {
                    self.repair_window(out);
                }
            }
            Latest::Blocks(blocks) => {
                if let Some(full) = blocks.push(esi, symbol) {
                    self.repair_block(full, false, out);
                }
            }
        }
        self.flush_at = self.may_flush().then(|| now + self.settings.flush);
    }

    /// The time at which something is to be sent though no datagram comes.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        self.flush_at
    }

    /// Sends a repair if it is time for one.
    pub fn handle_timeout(&mut self, now: Duration, out: &mut impl FnMut(u8, &[u8])) {
        if self.flush_at.is_some_and(|at| at <= now) {
            self.flush_at = None;
            match &mut self.latest {
                Latest::Window(window) => {
                    window.forget(now);
                    self.repair_window(out);
                }
                Latest::Blocks(blocks) => {
                    let open: Vec<Block> = blocks.close().collect();
                    for block in open {
                        self.repair_block(block, true, out);
                    }
                }
            }
        }
    }

    /// Sends again what is asked for, and kept.
    pub fn resend(&mut self, esis: &[[u8; 4]], out: &mut impl FnMut(u8, &[u8])) {
        for esi in esis.iter().take(MOST_ASKED) {
            let Some((ecn, packet)) = self.store.take(u32::from_be_bytes(*esi)) else {
                continue;
            };
            self.sent.resent_packets += 1;
            self.sent.overhead_bytes += packet.len() as u64;
            out(ecn, packet);
        }
    }

    /// Takes note of a report of the receiver.
    pub fn report(&mut self, report: Report) {
        self.loss.take(report);
    }

    /// The share of loss that receivers have reported lately.
    #[must_use]
    pub fn reported_loss(&self) -> f64 {
        self.loss.share
    }

    /// Whether a pause is filled with a repair: if some are due, and something is in none so far.
    fn may_flush(&self) -> bool {
        let is_due = match &self.latest {
            Latest::Window(_) => self.is_uncovered && self.due > 0,
            Latest::Blocks(blocks) => !blocks.is_empty(), // each counts when it is closed
        };
        is_due && self.per_packet() > 0
    }

    /// Repairs for each datagram, in millionths.
    fn per_packet(&self) -> i64 {
        let share = match self.settings.rate {
            CodeRate::Fixed(share) => share,
            CodeRate::Adaptive => (LEAST + PER_LOSS * self.loss.share).min(MOST),
        };
        #[expect(clippy::cast_possible_truncation, reason = "shares are from 0 to 1")]
        let millionths = (share * 1e6).round() as i64;
        millionths
    }

    /// Sends a repair over the window.
    fn repair_window(&mut self, out: &mut impl FnMut(u8, &[u8])) {
        let Latest::Window(window) = &mut self.latest else {
            return;
        };
        if let Some((count, combination, symbol)) = window.repair() {
            let first_esi = self.next_esi.wrapping_sub(u32::from(count));
            self.send_repair(combination, first_esi, &symbol, out);
        }
    }

    /// Sends the repairs of a block that is closed. If that was `early`, and less than one is due,
    /// one is sent all the same, and counts against those that follow.
    fn repair_block(&mut self, mut block: Block, early: bool, out: &mut impl FnMut(u8, &[u8])) {
        let count = i64::try_from(block.len()).expect("a block is short");
        self.due += self.per_packet() * count;
        let first_esi = block.first_esi;
        let mut least = usize::from(early && self.due > 0);
        while self.due >= ONE || least > 0 {
            least = 0;
            let Some((combination, symbol)) = block.repair() else {
                self.due = 0; // more would repair nothing
                return;
            };
            self.send_repair(combination, first_esi, &symbol, out);
        }
    }

    fn send_repair(
        &mut self,
        combination: Combination,
        first_esi: u32,
        symbol: &[u8],
        out: &mut impl FnMut(u8, &[u8]),
    ) {
        let repair = Repair {
            combination,
            first_esi,
            symbol,
        };
        let packet = Packet::Repair(repair).write();
        self.sent.repair_packets += 1;
        self.sent.overhead_bytes += packet.len() as u64;
        self.due -= ONE;
        self.is_uncovered = false;
        out(0, &packet);
    }
}

impl Latest {
    fn of(settings: &Settings) -> Self {
        match settings.code {
            Code::Sliding => Self::Window(Window::new(settings.window, settings.age)),
            Code::ReedSolomon { stride } => Self::Blocks(Blocks::new(settings.window, stride)),
        }
    }
}

impl Loss {
    /// Estimates the loss from what came since the last report.
    fn take(&mut self, report: Report) {
        let last = std::mem::replace(&mut self.last, report);
        let passed = report.highest.wrapping_sub(last.highest);
        let came = report.received.wrapping_sub(last.received);
        // Reports may overtake each other, and a hostile receiver may say anything.
        if passed == 0 || passed > u32::MAX / 2 {
            return;
        }
        let passed = f64::from(passed);
        let missing = (passed - f64::from(came)).max(0.0);
        // Few packets say little.
        self.share = (self.share * MEMORY + missing) / (MEMORY + passed);
    }
}
