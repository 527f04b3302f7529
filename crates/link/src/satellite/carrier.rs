//! The forward carrier of DVB-S2 and DVB-S2X: packets in BBFRAMEs, for one terminal or several.
//!
//! The carrier sends frames without a break. A frame carries packets of one terminal, with the
//! MODCOD that this terminal's reception allows, and they all arrive when it ends. One that is not
//! received loses all that it carries, parts of packets among them. Where nothing waits, the
//! carrier sends dummy frames; what arrives meanwhile waits for the end of the present one. A frame
//! goes to the terminal that has had the least of the carrier's time for its weight, among those
//! for which something waits (start-time fair queueing: P. Goyal et al., SIGCOMM 1996).
//!
//! Simplifications: a frame begins as soon as something waits, however little; whatever Es/N0 is
//! when it begins holds until it ends; it is received if that reaches the MODCOD's threshold, and
//! is not if it does not.

use std::collections::VecDeque;

use bentpipe_units::{Rate, Size, SymbolRate, Time};

use super::acm::Adaptation;
use super::backlog::Backlog;
use super::dvb_s2::{DvbS2, Terminal};
use super::gse::Gse;
use super::modcod::{DUMMY_FRAME, Framing, Modcod};
use crate::aqm::{Discipline, discipline_of_any};
use crate::node::{Node, Step, Transit};
use crate::random::LinkSeed;
use crate::rate::LinkRate;
use crate::scenario::DirectionConfig;

/// Parts of a symbol in which terminals' shares are counted.
const SHARE: u64 = 1 << 10;

/// The carrier, with a queue for each terminal.
pub(crate) struct Carrier {
    symbols: SymbolRate,
    framing: Framing,
    /// The trial's terminal is the first.
    terminals: Vec<Station>,
    /// The symbols that have been sent when the next frame begins, from time 0 on.
    sent: u64,
    /// The share at which the last frame's terminal stood.
    share: u64,
    dropped: VecDeque<Transit>,
    /// Packets of frames that have begun.
    leaving: VecDeque<(Transit, Step)>,
    max_queue_bytes: u64,
}

/// The gateway's state of one terminal.
struct Station {
    backlog: Backlog<Gse>,
    adaptation: Adaptation<Modcod>,
    weight: u64,
    /// The time of the carrier that it has had for its weight.
    share: u64,
}

impl Carrier {
    /// The carrier of a link; None if it has another kind of rate.
    pub fn new(config: &DirectionConfig, bdp: Size, seed: LinkSeed) -> Option<Self> {
        let Some(LinkRate::DvbS2(carrier)) = &config.rate else {
            return None;
        };
        let rate = carrier.nominal();
        let stations = carrier.terminals().enumerate().map(|(number, terminal)| {
            let dice = seed.terminal(number);
            let queue = discipline_of_any(&config.queue, rate, bdp, dice);
            Station::new(queue, carrier, terminal)
        });
        Some(Self {
            symbols: carrier.symbol_rate,
            framing: carrier.framing,
            terminals: stations.collect(),
            sent: 0,
            share: 0,
            dropped: VecDeque::new(),
            leaving: VecDeque::new(),
            max_queue_bytes: 0,
        })
    }

    fn is_idle(&self) -> bool {
        self.terminals.iter().all(Station::is_idle)
    }

    /// When `symbols` symbols have been sent, rounded up.
    fn time_of(&self, symbols: u64) -> Time {
        let nanos = u128::from(symbols) * 1_000_000_000;
        let nanos = nanos.div_ceil(u128::from(self.symbols.baud()));
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Sends dummy frames until one ends that is not over before a time.
    fn idle_until(&mut self, now: Time) {
        let nanos = u128::from(now.as_nanos());
        let begun = (nanos * u128::from(self.symbols.baud())).div_ceil(1_000_000_000);
        let begun = u64::try_from(begun).unwrap_or(u64::MAX);
        let missing = begun.saturating_sub(self.sent).div_ceil(DUMMY_FRAME);
        self.sent += missing * DUMMY_FRAME;
    }

    /// Where nothing waits, nobody has a claim from before.
    fn forget_shares(&mut self) {
        self.share = 0;
        self.terminals.iter_mut().for_each(|it| it.share = 0);
    }

    /// When the next frame with packets begins; NEVER if nothing waits.
    fn next_frame(&self) -> Time {
        if self.is_idle() {
            return Time::NEVER;
        }
        self.time_of(self.sent)
    }

    /// Sends a frame for the terminal whose turn it is.
    fn send_frame(&mut self) {
        let begin = self.time_of(self.sent);
        let waiting = self.terminals.iter_mut().filter(|it| !it.is_idle());
        let station = waiting
            .min_by_key(|it| it.share)
            .expect("something waits for a frame");
        self.share = station.share;
        let (modcod, _) = station.adaptation.at(begin);
        let symbols = modcod.symbols(self.framing);
        station.share += symbols * SHARE / station.weight;
        let is_lost = !station.adaptation.is_received(modcod, begin);
        let room = modcod.payload_bytes(self.framing.length);
        let complete = station
            .backlog
            .fill(begin, room, is_lost, &mut self.dropped);
        self.sent += symbols;
        let end = self.time_of(self.sent);
        let steps = complete.into_iter().map(|it| it.ends(end));
        self.leaving.extend(steps);
    }
}

impl Station {
    fn new(queue: Box<dyn Discipline>, carrier: &DvbS2, terminal: &Terminal) -> Self {
        Self {
            backlog: Backlog::new(queue),
            adaptation: carrier.adaptation(terminal),
            weight: terminal.weight,
            share: 0,
        }
    }

    fn is_idle(&self) -> bool {
        self.backlog.is_empty()
    }
}

impl Node for Carrier {
    fn enqueue(&mut self, now: Time, transit: &mut Transit) -> Step {
        if self.is_idle() {
            self.idle_until(now);
            self.forget_shares();
        }
        let number = transit.terminal;
        let station = &mut self.terminals[number];
        if station.is_idle() {
            // It has no claim to what it did not use.
            station.share = station.share.max(self.share);
        }
        station.backlog.enqueue(now, *transit, &mut self.dropped);
        if number == 0 {
            let waiting = station.backlog.queue_bytes();
            self.max_queue_bytes = self.max_queue_bytes.max(waiting);
        }
        Step::Hold
    }

    fn reorders(&self) -> bool {
        self.terminals[0].backlog.reorders()
    }

    fn is_shared(&self) -> bool {
        self.terminals.len() > 1
    }

    fn holds(&self) -> bool {
        true
    }

    fn next_event(&self) -> Time {
        self.next_frame()
    }

    fn release(&mut self, until: Time) -> Option<(Transit, Step)> {
        loop {
            if let Some(transit) = self.dropped.pop_front() {
                return Some((transit, Step::Drop));
            }
            if let Some(leaving) = self.leaving.pop_front() {
                return Some(leaving);
            }
            if self.next_frame() > until || self.is_idle() {
                return None;
            }
            self.send_frame();
        }
    }

    fn queue_bytes(&self, _: Time) -> u64 {
        self.terminals[0].backlog.queue_bytes()
    }

    fn max_queue_bytes(&self) -> u64 {
        self.max_queue_bytes
    }
}

impl DvbS2 {
    /// The most that the carrier gives the trial's terminal while nobody else uses it, with the
    /// MODCOD of its best reception.
    #[must_use]
    pub fn nominal(&self) -> Rate {
        let (highest, _) = self.own.reception.extremes();
        self.rate_at(highest)
    }
}
