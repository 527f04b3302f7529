//! The receiving end of a direction: hands datagrams on, in their order where it can, and brings
//! those back that were lost.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::coefficients::coefficients;
use crate::equations::Equations;
use crate::gf256;
use crate::packet::{MOST_SYMBOLS, Repair, Report, datagram, symbol};
use crate::requests::Requests;
use crate::settings::Settings;

/// Symbols are known for so long behind the latest: no repair is of older ones.
const KEPT: u64 = MOST_SYMBOLS as u64 + 1;
/// So far ahead of the latest packet one may be: more is another sender, or a hostile one.
const MOST_AHEAD: u64 = 1 << 20;
/// A report is sent at most so often.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// The receiving end.
#[derive(Debug)]
pub struct Receiver {
    hold: Duration,
    /// Datagrams that came or were brought back, by ESI, for the equations.
    symbols: BTreeMap<u64, Vec<u8>>,
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
    /// None: it asks for nothing.
    requests: Option<Requests>,
    report_at: Option<Duration>,
    reported: Option<Duration>,
    /// Its counts.
    pub seen: ReceiverCounts,
}

/// The counts of a receiver.
#[derive(Debug, Default, Clone)]
pub struct ReceiverCounts {
    /// Datagrams that came by themselves.
    pub received_packets: u64,
    /// Repairs that came.
    pub repair_packets: u64,
    /// Datagrams that were brought back before they were given up.
    pub repaired_packets: u64,
    /// Datagrams that came late: they were asked for, or overtaken.
    pub answered_packets: u64,
    /// Those of both that were handed on after later ones.
    pub late_packets: u64,
    /// The times that this took, from when they were found missing.
    pub repair_delays: Vec<Duration>,
    /// The most datagrams that waited behind a gap.
    pub most_waiting: usize,
    /// Bytes that are no packet of the tunnel.
    pub odd_packets: u64,
}

impl Receiver {
    /// A receiver to which nothing came.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self {
            hold: settings.hold,
            symbols: BTreeMap::new(),
            equations: Equations::default(),
            highest: None,
            next: 0,
            waiting: BTreeSet::new(),
            give_up_at: None,
            missed: BTreeMap::new(),
            requests: settings.asks.then(Requests::default),
            report_at: None,
            reported: None,
            seen: ReceiverCounts::default(),
        }
    }

    /// A datagram came by itself. `out` takes what is handed on, with ECN bits.
    pub fn source(
        &mut self,
        now: Duration,
        esi: u32,
        ecn: u8,
        payload: &[u8],
        out: &mut impl FnMut(u8, &[u8]),
    ) {
        let Some(esi) = self.place(esi) else {
            self.seen.odd_packets += 1;
            return;
        };
        self.seen.received_packets += 1;
        self.report_at
            .get_or_insert(self.reported.map_or(now, |at| (at + REPORT_EVERY).max(now)));
        self.advance(now, esi);
        let missed = self.missed.remove(&esi);
        if let Some(requests) = &mut self.requests {
            requests.came(now, esi);
        }
        if self.symbols.contains_key(&esi) {
            return; // a copy, or it was brought back before
        }
        if let Some(missed) = missed.filter(|at| *at < now) {
            self.seen.answered_packets += 1;
            self.seen.late_packets += u64::from(esi < self.next);
            self.seen.repair_delays.push(now.saturating_sub(missed));
        }
        let whole = symbol(ecn, payload);
        let found = self.equations.know(esi, &whole);
        self.symbols.insert(esi, whole);
        self.hand_on(esi, out);
        self.repaired(now, found, out);
        self.release(now, out);
    }

    /// A repair came.
    pub fn repair(&mut self, now: Duration, repair: &Repair<'_>, out: &mut impl FnMut(u8, &[u8])) {
        self.seen.repair_packets += 1;
        let last = repair
            .first_esi
            .wrapping_add(u32::from(repair.count).saturating_sub(1));
        let place = self.place(last).filter(|_| repair.count > 0);
        let Some(first) = place.and_then(|last| last.checked_sub(u64::from(repair.count) - 1))
        else {
            self.seen.odd_packets += 1;
            return;
        };
        self.advance(now, first + u64::from(repair.count) - 1);
        let mut sum = repair.symbol.to_vec();
        let mut unknown = BTreeMap::new();
        let factors = coefficients(repair.key, repair.count, repair.density);
        for (esi, factor) in (first..).zip(factors).filter(|(_, factor)| *factor != 0) {
            match self.symbols.get(&esi) {
                Some(symbol) => gf256::add_scaled(&mut sum, symbol, factor),
                None => drop(unknown.insert(esi, factor)),
            }
        }
        let found = self.equations.add(unknown, sum);
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

    /// The ESIs to ask for now; none if it asks for nothing.
    pub fn requests(&mut self, now: Duration) -> Vec<[u8; 4]> {
        let Some(requests) = &mut self.requests else {
            return Vec::new();
        };
        let due = requests.due(now, self.missed.keys().copied());
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
            self.give_up_at = None;
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

    /// The datagrams that never came.
    #[must_use]
    pub fn lost_packets(&self) -> u64 {
        let all = self.highest.map_or(0, |highest| highest + 1);
        all.saturating_sub(self.seen.received_packets + self.seen.repaired_packets)
    }

    /// The ESI, counted without end, that ends as this one does and is nearest to the latest.
    fn place(&self, esi: u32) -> Option<u64> {
        let Some(highest) = self.highest else {
            // A tunnel begins at 0; packets before may be lost.
            return Some(u64::from(esi)).filter(|esi| *esi < MOST_AHEAD);
        };
        let ahead = esi.wrapping_sub(truncated(highest));
        if u64::from(ahead) < MOST_AHEAD {
            return Some(highest + u64::from(ahead));
        }
        let behind = u64::from(ahead.wrapping_neg());
        highest.checked_sub(behind).filter(|_| behind < KEPT)
    }

    /// Takes note that all up to `esi` have been sent.
    fn advance(&mut self, now: Duration, esi: u64) {
        let from = self.highest.map_or(0, |highest| highest + 1);
        if esi < from {
            return;
        }
        let oldest = (esi + 1).saturating_sub(KEPT);
        self.missed
            .extend((from.max(oldest)..esi).map(|missing| (missing, now)));
        // This one too, if it was a repair that told of it.
        self.missed.insert(esi, now);
        self.highest = Some(esi);
        self.symbols = self.symbols.split_off(&oldest);
        self.missed = self.missed.split_off(&oldest);
        self.equations.forget(oldest);
        if let Some(requests) = &mut self.requests {
            requests.forget(oldest);
        }
        self.waiting = self.waiting.split_off(&oldest);
        self.next = self.next.max(oldest);
    }

    /// Symbols were brought back.
    fn repaired(
        &mut self,
        now: Duration,
        found: Vec<(u64, Vec<u8>)>,
        out: &mut impl FnMut(u8, &[u8]),
    ) {
        let mut found = found;
        while let Some((esi, whole)) = found.pop() {
            if self.symbols.contains_key(&esi) || datagram(&whole).is_none() {
                continue;
            }
            found.extend(self.equations.know(esi, &whole));
            self.symbols.insert(esi, whole);
            self.seen.repaired_packets += 1;
            self.seen.late_packets += u64::from(esi < self.next);
            let missed = self.missed.remove(&esi).unwrap_or(now);
            if let Some(requests) = &mut self.requests {
                requests.came(now, esi);
            }
            self.seen.repair_delays.push(now.saturating_sub(missed));
            self.hand_on(esi, out);
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
        if let Some((ecn, payload)) = self.symbols.get(&esi).and_then(|it| datagram(it)) {
            out(ecn, payload);
        }
        self.next = self.next.max(esi + 1);
    }

    /// Hands on what waits for nothing any more, and sees what is waited for next.
    fn release(&mut self, now: Duration, out: &mut impl FnMut(u8, &[u8])) {
        while let Some(first) = self.waiting.first()
            && *first <= self.next
        {
            let first = *first;
            self.waiting.remove(&first);
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
