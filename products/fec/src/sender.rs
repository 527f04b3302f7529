//! The sending end of a direction: numbers datagrams, keeps the latest, and sends repair symbols
//! over them.

use std::collections::VecDeque;
use std::time::Duration;

use crate::coefficients::coefficients;
use crate::gf256;
use crate::packet::{Packet, Repair, Report, symbol};
use crate::requests::MOST_ASKED;
use crate::settings::{CodeRate, Settings};
use crate::store::Store;

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
    /// The symbols that repairs are over, each with the time at which it was sent; the last is that
    /// of `next_esi` less one.
    window: VecDeque<(Duration, Vec<u8>)>,
    store: Store,
    /// Repairs that are due, in millionths.
    due: i64,
    /// Whether a symbol is in no repair so far.
    is_uncovered: bool,
    /// The time at which a repair is sent even if none is due, since nothing else was sent.
    flush_at: Option<Duration>,
    next_key: u16,
    loss: Loss,
    /// Its counts.
    pub sent: SenderCounts,
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
            window: VecDeque::new(),
            store: Store::default(),
            due: ONE / 2,
            is_uncovered: false,
            flush_at: None,
            next_key: 0,
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
        self.window.push_back((now, symbol(ecn, payload)));
        self.forget(now);
        self.is_uncovered = true;
        self.due += self.per_packet();
        if self.due >= ONE {
            self.repair(out);
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
            self.forget(now);
            self.repair(out);
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
        self.is_uncovered && self.due > 0 && self.per_packet() > 0
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

    /// Drops what is older than anybody wants.
    fn forget(&mut self, now: Duration) {
        let is_old = |sent: Duration| now.saturating_sub(sent) > self.settings.age;
        while self.window.len() > self.settings.window
            || self.window.front().is_some_and(|(sent, _)| is_old(*sent))
        {
            self.window.pop_front();
        }
    }

    fn repair(&mut self, out: &mut impl FnMut(u8, &[u8])) {
        let count = u16::try_from(self.window.len()).expect("a window has at most 4095 symbols");
        if count == 0 {
            return;
        }
        let key = self.next_key;
        self.next_key = key.wrapping_add(1);
        let first = self.next_esi.wrapping_sub(u32::from(count));
        let header = Repair::over(key, first, count, &[]);
        let mut sum = Vec::new();
        let factors = coefficients(key, count, header.density);
        for ((_, symbol), factor) in self.window.iter().zip(factors) {
            gf256::add_scaled(&mut sum, symbol, factor);
        }
        let symbol = &sum;
        let packet = Packet::Repair(Repair { symbol, ..header }).write();
        self.sent.repair_packets += 1;
        self.sent.overhead_bytes += packet.len() as u64;
        self.due -= ONE;
        self.is_uncovered = false;
        out(0, &packet);
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
