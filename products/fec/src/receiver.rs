//! The receiving end of a direction: hands datagrams on, in their order where it can, and brings
//! those back that were lost.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::equations::Equations;
use crate::gf256;
use crate::packet::{Repair, Report, datagram, symbol};
use crate::requests::Requests;
use crate::settings::Settings;
use crate::store;

/// Symbols are known for so long behind the latest: nothing older is in a repair, or sent again.
const KEPT: u64 = store::MOST as u64;
/// So far ahead of the latest packet one may be: more is another sender, or a hostile one.
const MOST_AHEAD: u64 = 1 << 20;
/// A report is sent at most so often.
const REPORT_EVERY: Duration = Duration::from_millis(100);
/// A repair in time: soon enough for frames with deadlines.
const IN_TIME: Duration = Duration::from_millis(50);
/// The most repairs whose delays are kept.
const MOST_DELAYS: usize = 1 << 16;
/// Congestion Experienced (RFC 3168 section 5).
const CE: u8 = 3;

/// The receiving end.
#[derive(Debug)]
pub struct Receiver {
    hold: Duration,
    most_payload: usize,
    /// Datagrams that came or were brought back, by ESI.
    symbols: BTreeMap<u64, Known>,
    equations: Equations,
    /// The largest ESI that came, of those that are counted from the first one on.
    highest: Option<u64>,
    /// All before this one were handed on or given up.
    next: u64,
    /// The datagrams that wait behind a gap, by ESI.
    waiting: BTreeSet<u64>,
    /// The time at which the gap at `next` is given up.
    give_up_at: Option<Duration>,
    /// The missing ESIs, each with the time at which that was found.
    missed: BTreeMap<u64, Duration>,
    /// Whether an ESI is missing that nobody has asked for.
    is_new_missed: bool,
    /// None: it asks for nothing.
    requests: Option<Requests>,
    report_at: Option<Duration>,
    reported: Option<Duration>,
    /// Its counts.
    pub seen: ReceiverCounts,
}

/// A datagram that is known.
#[derive(Debug)]
struct Known {
    /// As the sender has it in repairs.
    symbol: Vec<u8>,
    /// Whether links marked it on its way.
    is_marked: bool,
}

/// The counts of a receiver.
#[derive(Debug, Default, Clone)]
pub struct ReceiverCounts {
    /// Datagrams that came by themselves, each once.
    pub received_packets: u64,
    /// Datagrams that came again, or after they had been brought back.
    pub copied_packets: u64,
    /// Repairs that came.
    pub repair_packets: u64,
    /// Datagrams that equations brought back.
    pub repaired_packets: u64,
    /// Datagrams that came late: they were asked for, or overtaken.
    pub answered_packets: u64,
    /// Those of both that were handed on after later ones.
    pub late_packets: u64,
    /// Those of both that were handed on in their order: whoever receives them can tell of no loss,
    /// be it by chance or by congestion (RFC 9265).
    pub hidden_losses: u64,
    /// Those of both that came within 50 ms after they were found missing.
    pub in_time_packets: u64,
    /// Marks of congestion that were handed on.
    pub marks: u64,
    /// Datagrams that links marked, and that were dropped since they cannot carry a mark.
    pub dropped_for_marks: u64,
    /// The times that both took, from when they were found missing.
    pub repair_delays: Vec<Duration>,
    /// The most datagrams that waited behind a gap.
    pub most_waiting: usize,
    /// Packets with numbers that are too old to be of use.
    pub stale_packets: u64,
    /// Packets that are none of the tunnel.
    pub odd_packets: u64,
}

impl Receiver {
    /// A receiver to which nothing came.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self {
            hold: settings.hold,
            most_payload: settings.most_payload,
            symbols: BTreeMap::new(),
            equations: Equations::default(),
            highest: None,
            next: 0,
            waiting: BTreeSet::new(),
            give_up_at: None,
            missed: BTreeMap::new(),
            is_new_missed: false,
            requests: settings.asks.then(Requests::default),
            report_at: None,
            reported: None,
            seen: ReceiverCounts::default(),
        }
    }

    /// Takes a datagram that came by itself, in a packet with these ECN bits. `out` takes what is
    /// handed on, with ECN bits.
    pub fn source(
        &mut self,
        now: Duration,
        (esi, ecn, payload): (u32, u8, &[u8]),
        arriving: u8,
        out: &mut impl FnMut(u8, &[u8]),
    ) {
        if payload.len() > self.most_payload {
            self.seen.odd_packets += 1;
            return;
        }
        let Some(esi) = self.place(esi) else {
            return;
        };
        self.advance(now, esi, out);
        if self.symbols.contains_key(&esi) {
            self.seen.copied_packets += 1;
            return;
        }
        self.seen.received_packets += 1;
        let report_at = self.reported.map_or(now, |at| (at + REPORT_EVERY).max(now));
        self.report_at.get_or_insert(report_at);
        let missed = self.missed.remove(&esi).filter(|at| *at < now);
        if let Some(missed) = missed {
            self.seen.answered_packets += 1;
            self.seen.hidden_losses += u64::from(esi >= self.next);
            self.note_delay(now.saturating_sub(missed));
        }
        let known = Known {
            symbol: symbol(ecn, payload),
            is_marked: arriving == CE && ecn != CE,
        };
        let found = self.equations.know(esi, &known.symbol);
        self.know(now, esi, known, missed.is_some(), out);
        self.repaired(now, found, out);
        self.release(now, out);
    }

    /// Takes a repair that came.
    pub fn repair(&mut self, now: Duration, repair: &Repair<'_>, out: &mut impl FnMut(u8, &[u8])) {
        let span = repair.combination.span();
        let is_whole = repair.symbol.len() <= symbol(0, &[]).len() + self.most_payload;
        let Some(span) = span.filter(|_| is_whole) else {
            self.seen.odd_packets += 1;
            return;
        };
        let Some(last) = self.place(repair.first_esi.wrapping_add(span)) else {
            return;
        };
        self.seen.repair_packets += 1;
        self.advance(now, last, out);
        let first = last.checked_sub(u64::from(span));
        let Some(first) = first.filter(|first| *first >= self.oldest()) else {
            self.seen.stale_packets += 1;
            return;
        };
        let factors = repair.combination.factors();
        let factors = factors.map(|(behind, factor)| (first + u64::from(behind), factor));
        let (known, unknown): (Vec<_>, Vec<_>) =
            factors.partition(|(esi, _)| self.symbols.contains_key(esi));
        if unknown.is_empty() {
            return;
        }
        let mut sum = repair.symbol.to_vec();
        for (esi, factor) in known {
            gf256::add_scaled(&mut sum, &self.symbols[&esi].symbol, factor);
        }
        let found = self.equations.add(unknown.into_iter().collect(), sum);
        self.repaired(now, found, out);
        self.release(now, out);
    }

    /// The time at which something is to be done though nothing comes.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        let again = self.requests.as_ref().and_then(Requests::next_timeout);
        let times = [self.give_up_at, self.report_at, again];
        times.into_iter().flatten().min()
    }

    /// The ESIs to ask for now, as many as fit a packet; none if it asks for nothing.
    pub fn requests(&mut self, now: Duration) -> Vec<[u8; 4]> {
        let Some(requests) = &mut self.requests else {
            return Vec::new();
        };
        let is_late = requests.next_timeout().is_some_and(|at| at <= now);
        if !self.is_new_missed && !is_late {
            return Vec::new();
        }
        let due = requests.due(now, self.missed.keys().copied());
        self.is_new_missed = !due.is_empty();
        due.into_iter()
            .map(|esi| truncated(esi).to_be_bytes())
            .collect()
    }

    /// Gives up the gap that was waited for long enough; returns a report if one is due.
    pub fn handle_timeout(
        &mut self,
        now: Duration,
        out: &mut impl FnMut(u8, &[u8]),
    ) -> Option<Report> {
        if self.give_up_at.is_some_and(|at| at <= now) {
            if let Some(first) = self.waiting.first() {
                self.next = *first;
            }
            self.release(now, out);
        }
        self.report_at.filter(|at| *at <= now)?;
        self.report_at = None;
        self.reported = Some(now);
        let highest = self.highest?;
        Some(Report {
            highest: truncated(highest),
            received: truncated(self.seen.received_packets),
        })
    }

    /// The datagrams that never came, of those that anything later told of.
    #[must_use]
    pub fn lost_packets(&self) -> u64 {
        let all = self.highest.map_or(0, |highest| highest + 1);
        all.saturating_sub(self.seen.received_packets + self.seen.repaired_packets)
    }

    /// The ESI, counted without end, that ends as this one does and is nearest to the latest. None,
    /// and counted, if it is too far from that.
    fn place(&mut self, esi: u32) -> Option<u64> {
        // A tunnel begins at 0; packets before the first that comes may be lost.
        let highest = self.highest.unwrap_or(0);
        let ahead = esi.wrapping_sub(truncated(highest));
        if u64::from(ahead) < MOST_AHEAD {
            return Some(highest + u64::from(ahead));
        }
        let behind = u64::from(ahead.wrapping_neg());
        if behind >= MOST_AHEAD {
            self.seen.odd_packets += 1;
            return None;
        }
        let place = highest.checked_sub(behind);
        let place = place.filter(|place| *place >= self.oldest());
        self.seen.stale_packets += u64::from(place.is_none());
        place
    }

    /// The first ESI that is of use.
    fn oldest(&self) -> u64 {
        let next = self.highest.map_or(0, |highest| highest + 1);
        next.saturating_sub(KEPT)
    }

    /// Takes note that all up to `esi` have been sent.
    fn advance(&mut self, now: Duration, esi: u64, out: &mut impl FnMut(u8, &[u8])) {
        let from = self.highest.map_or(0, |highest| highest + 1);
        if esi < from {
            return;
        }
        self.highest = Some(esi);
        let oldest = self.oldest();
        // This one too: if a repair tells of it, it is missing.
        let missing = (from.max(oldest)..=esi).map(|missing| (missing, now));
        self.missed.extend(missing);
        self.is_new_missed = true;
        while self.waiting.first().is_some_and(|first| *first < oldest) {
            let first = self.waiting.pop_first().expect("it is there");
            self.next = first;
            self.hand_on(first, out);
        }
        self.symbols = self.symbols.split_off(&oldest);
        self.missed = self.missed.split_off(&oldest);
        self.equations.forget(oldest);
        if let Some(requests) = &mut self.requests {
            requests.forget(oldest);
        }
        self.next = self.next.max(oldest);
    }

    /// Takes symbols that were brought back.
    fn repaired(
        &mut self,
        now: Duration,
        mut found: Vec<(u64, Vec<u8>)>,
        out: &mut impl FnMut(u8, &[u8]),
    ) {
        while let Some((esi, symbol)) = found.pop() {
            if self.symbols.contains_key(&esi) || datagram(&symbol).is_none() {
                continue;
            }
            found.extend(self.equations.know(esi, &symbol));
            self.seen.repaired_packets += 1;
            let missed = self.missed.remove(&esi).unwrap_or(now);
            self.note_delay(now.saturating_sub(missed));
            let known = Known {
                symbol,
                is_marked: false,
            };
            self.seen.hidden_losses += u64::from(esi >= self.next);
            self.know(now, esi, known, false, out);
        }
    }

    /// A datagram is known now. `was_missed`: it came by itself after it was found missing.
    fn know(
        &mut self,
        now: Duration,
        esi: u64,
        known: Known,
        was_missed: bool,
        out: &mut impl FnMut(u8, &[u8]),
    ) {
        if let Some(requests) = &mut self.requests {
            requests.came(now, esi, was_missed);
        }
        self.seen.late_packets += u64::from(esi < self.next);
        self.symbols.insert(esi, known);
        self.hand_on(esi, out);
    }

    fn note_delay(&mut self, delay: Duration) {
        self.seen.in_time_packets += u64::from(delay <= IN_TIME);
        if self.seen.repair_delays.len() < MOST_DELAYS {
            self.seen.repair_delays.push(delay);
        }
    }

    /// Hands a datagram on, if nothing is missing before it or nobody waits for that; else it
    /// waits.
    fn hand_on(&mut self, esi: u64, out: &mut impl FnMut(u8, &[u8])) {
        if esi > self.next && !self.hold.is_zero() {
            self.waiting.insert(esi);
            self.seen.most_waiting = self.seen.most_waiting.max(self.waiting.len());
            return;
        }
        let known = self.symbols.get(&esi);
        if let Some(known) = known
            && let Some((ecn, payload)) = datagram(&known.symbol)
        {
            match (known.is_marked, ecn) {
                (false, ecn) => out(ecn, payload),
                // RFC 6040 section 4.2: who cannot be told of congestion is told by a loss.
                (true, 0) => self.seen.dropped_for_marks += 1,
                (true, _) => {
                    self.seen.marks += 1;
                    out(CE, payload);
                }
            }
        }
        self.next = self.next.max(esi + 1);
    }

    /// Hands on what waits for nothing any more, and sees what is waited for next.
    fn release(&mut self, now: Duration, out: &mut impl FnMut(u8, &[u8])) {
        while self
            .waiting
            .first()
            .is_some_and(|first| *first <= self.next)
        {
            let first = self.waiting.pop_first().expect("it is there");
            self.hand_on(first, out);
        }
        // Of gaps behind each other each is waited for since it was found, and not since the one
        // before was given up: else they would add up.
        let found = self.missed.get(&self.next).copied().unwrap_or(now);
        let is_gap = !self.waiting.is_empty();
        self.give_up_at = is_gap.then(|| (found + self.hold).max(now));
    }
}

/// The last 32 bits.
fn truncated(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).expect("32 bits are left")
}
