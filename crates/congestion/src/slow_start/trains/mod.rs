//! Packet trains: the first flight measures the path, and the second one uses it.
//!
//! Source: our own. [`dispersion`] has the measure, [`trial`] what is made of it;
//! `docs/design/packet-trains.md` explains it and shows what it does.
//!
//! 1. *Trains.* After the handshake up to five trains of 20 packets leave back to back, with
//!    growing gaps between them. Their ACKs come a round trip later, spread out by the bottleneck:
//!    its rate is the bytes acknowledged after each train's first ACK, divided by the time that
//!    this took.
//! 2. *Trial.* As soon as two trains agree, or three are complete, 95 % of this rate is sent for a
//!    round trip, and 98 % for two more, in a window of rate · (smallest RTT + ACK delay). If the
//!    trains did not agree, the rate grows by a quarter per round trip meanwhile, since what
//!    disturbs them, jitter above all, makes them look slow.
//! 3. *Handing over.* Avoidance begins with 0.98 · rate · smallest RTT, paced at 1.02 windows per
//!    RTT until its first reduction, so that a queue of a few packets does not overflow.
//!
//! What can go wrong, and what then happens:
//!
//! | hazard | answer |
//! |---|---|
//! | loss at random (up to 2 %) | does not count, neither in the trains nor in the trial |
//! | a queue that is shorter than a train | what is left of a train shows the rate as well; it is sent again |
//! | a slow path, filled by the trains alone | no trial: the window is set to what the path holds, and the queue drains |
//! | the estimate is too high, or the link becomes slower: queue | RTT samples longer than 9/8 of the smallest: down to what is delivered, and the queue drains |
//! | the same, without a queue: losses beyond 2 % | down to 0.85 of what is delivered |
//! | the estimate is too low, since the return path holds the first ACKs up: more has arrived than it explains ([`trial::Begin`]) | none is used: `HyStart++`, as below |
//! | an estimate that is absurd (ACKs that come compressed) | no window beyond 256 times what has been delivered |
//! | ACKs for a timer's sake, at the end of a train | do not count ([`dispersion`]) |
//! | so few ACKs that a train has but one; a sender that cannot send a burst | no estimate: `HyStart++`, from the window that the trains had |
//! | a full queue that leaves nothing of the trains | no estimate, and losses beyond 2 %: avoidance, with the bytes that have arrived |
//! | the application has too little to send | short trains do not count, the next ones do, and the flight is over; losses count after a round trip; what was not sent in the trial is not taken for granted |
//! | short round trips | below 100 ms `HyStart++` |
//! | congestion marks (ECN) | in the trains as a loss in slow start; in the trial as too many losses, from its 32nd packet on |
//!
//! What is sent without any knowledge is bounded by the trains, 105 packets over half a round trip;
//! what is sent on an estimate that has not been tried out, by one round trip at 0.95 of it.
//!
//! What it does not see: an estimate that is too low though the trains agree, as a return path that
//! spreads all ACKs gives it (the peer should then send fewer), is left for avoidance to raise.

mod dispersion;
mod flight;
mod trial;

use bentpipe_units::{Span, Time};

use crate::acks::{Acks, CongestionEvent, per_second};
use crate::log::{LogEvent, Value};
use crate::pacing::Pacing;
use crate::path::PathState;
use crate::saved::SavedPath;
use crate::slow_start::{HyStartPlusPlus, Response, SlowStart, Step};
use dispersion::{Dispersion, Estimate};
use flight::Flight;
use trial::{Begin, RateTrial};

/// Packets in a train. A queue of 25 packets, as many networks and the scenarios of the literature
/// have it, must hold one; and it has to be twice as long as the peer's ACK interval, of which ten
/// packets are the most that is usual.
const LENGTH: u64 = 20;
/// Trains that are sent: enough to fill the time until more is known, and few enough for a path of
/// 1 Mbit/s, which needs a second for them.
const TRAINS: u64 = 5;
/// Complete trains that suffice if they agree. One could be disturbed; each further one costs its
/// gap.
const ENOUGH: usize = 2;
/// They agree if the fastest is no faster than so many percent of the slowest: more than what
/// packets that grow meanwhile (path MTU discovery) change.
const AGREEMENT: u64 = 110;
/// Complete trains that are used even if they do not. With 2 or 4 no path of the sweep takes 1 %
/// longer.
const MORE: usize = 3;
/// The first gap between trains as a part of the round trip; the second one is twice as long, and
/// so on. The first one costs everybody time; the later ones give a slow path time to drain. All
/// trains leave before the first ACK can come.
const GAPS_PER_RTT: u64 = 16;
/// Longer than a train takes at 10 Mbit/s; and no longer than what is a small part of any transfer.
const SHORTEST_GAP: Span = Span::from_millis(25);
/// A pause of that length ends a train: half of the shortest gap. Down to a quarter nothing
/// changes; one that is longer than that behind a train of the flight ends none.
const LONGEST_PAUSE_WITHIN: Span = Span::from_nanos(SHORTEST_GAP.as_nanos() / 2);
/// No gap is longer, which would be more than a small part of a transfer. From 105 to 300 ms no
/// path of the sweep takes 3 % longer.
const LONGEST_GAP: Span = Span::from_millis(150);
/// Percent of the rate that the flight was told: if the trains show less, the path has changed.
const STILL_KNOWN: u64 = 80;
/// On shorter paths slow start is quick, and trains would meet the ACKs of the ones before: four
/// gaps do not fit.
const SHORTEST_RTT: Span = Span::from_millis(100);

/// Slow start by packet trains; the head of this file describes it.
#[derive(Debug, Clone)]
pub struct Trains {
    state: State,
    flight: Option<Flight>,
    dispersion: Dispersion,
    /// When the first train began to leave.
    begun: Option<Begin>,
    fallback: HyStartPlusPlus,
    news: bool,
}

#[derive(Debug, Clone)]
enum State {
    Measuring,
    Trying(RateTrial),
    /// Nothing could be measured.
    GivenUp,
}

impl Default for Trains {
    fn default() -> Self {
        Self::with(None)
    }
}

impl Trains {
    /// Bytes per second at which a flight leaves that knows nothing of the path.
    pub const FLIGHT_RATE: u64 = flight::RATE;

    /// More has been lost than chance loses.
    pub(crate) fn lost_too_much(path: &PathState) -> bool {
        RateTrial::too_much(path, path.lost, path.lost + path.delivered)
    }

    /// Trains with data between them: the first flight.
    #[must_use]
    pub fn in_a_flight() -> Self {
        Self::with(Some(Flight::default()))
    }

    fn with(flight: Option<Flight>) -> Self {
        Self {
            state: State::Measuring,
            flight,
            dispersion: Dispersion::new(LENGTH, LONGEST_PAUSE_WITHIN),
            begun: None,
            fallback: HyStartPlusPlus::default(),
            news: false,
        }
    }

    /// Room for all trains, for what is left of the handshake, and for the flight.
    fn window(&self, path: &PathState) -> u64 {
        let trains = TRAINS * (LENGTH + 1) * path.datagram;
        let flight = self.flight.map_or(0, |flight| flight.window(path));
        trains.max(flight).max(path.initial_window)
    }

    fn gap(&self, path: &PathState) -> Span {
        let part = Span::from_nanos(path.rtt.min.as_nanos() / GAPS_PER_RTT);
        (part * self.dispersion.trains()).clamp(SHORTEST_GAP, LONGEST_GAP)
    }

    /// Whether a packet sent now lies between two trains of a flight, or behind the last one.
    fn between_trains(&self, path: &PathState) -> bool {
        let sent = self.dispersion.trains();
        let Some(last) = self
            .dispersion
            .last_sent()
            .filter(|_| self.flight.is_some())
        else {
            return false;
        };
        // The pacer may keep what one more packet costs when the rate falls.
        let pause = path.now - last;
        let behind = self.dispersion.packets_of_last() >= LENGTH && pause >= LONGEST_PAUSE_WITHIN;
        behind && (sent >= TRAINS || pause < self.gap(path))
    }

    fn measure(&mut self, path: &PathState, acks: &Acks<'_>) -> Step {
        self.dispersion.on_acks(acks);
        let complete = self.dispersion.complete();
        let ends = self.all_are_heard_of() || self.flight_is_past(path, acks);
        match self.dispersion.estimate() {
            _ if path.rtt.min < SHORTEST_RTT => self.give_up(path, acks),
            Some(estimate) if complete >= MORE || agree(&estimate) || ends => {
                self.use_it(path, &estimate)
            }
            None if complete as u64 >= TRAINS || self.all_are_heard_of() => {
                self.give_up(path, acks)
            }
            None if ends && Self::lost_too_much(path) => self.give_up(path, acks),
            None if ends => self.go_on_without_a_flight(path),
            _ => Step::Window(self.window(path)),
        }
    }

    /// No more trains of the flight leave, and nothing more is to be heard of any. Short ones, such
    /// as what is left of a handshake, are among them: there may never be so many complete ones.
    fn all_are_heard_of(&self) -> bool {
        let all_sent = self.dispersion.trains() >= TRAINS;
        self.flight.is_some() && all_sent && self.dispersion.all_are_complete()
    }

    /// The ACKs of what left a round trip after the flight began are coming in.
    fn flight_is_past(&self, path: &PathState, acks: &Acks<'_>) -> bool {
        self.flight.is_some() && self.is_past(path, acks.newest().sent)
    }

    fn is_past(&self, path: &PathState, sent: Time) -> bool {
        self.begun
            .is_some_and(|begun| sent - begun.at >= path.rtt.min)
    }

    /// A flight is to begin with this packet though the connection is old: nothing has left for a
    /// round trip, nothing else is on its way, and what was sent before is what a handshake takes,
    /// and keep-alives. A proxy that keeps connections ready has such ones.
    fn has_waited(&self, path: &PathState, bytes: u64) -> bool {
        let is_new = self
            .flight
            .is_some_and(|flight| flight.sent <= path.little());
        let last = self.dispersion.last_sent();
        let is_idle = path.in_flight <= bytes;
        let has_room = !Self::lost_too_much(path);
        is_new && is_idle && has_room && last.is_some_and(|last| path.now - last >= path.rtt.min)
    }

    /// The application has had too little to send for a flight: the next trains are to measure,
    /// with nothing between them.
    fn go_on_without_a_flight(&mut self, path: &PathState) -> Step {
        *self = Self::with(None);
        Step::Window(self.window(path))
    }

    fn give_up(&mut self, path: &PathState, acks: &Acks<'_>) -> Step {
        self.state = State::GivenUp;
        if Self::lost_too_much(path) {
            // The flight met a full queue. What of it has arrived fits beside the others.
            return trial::leave(path.delivered.min(path.window), "loss");
        }
        self.fallback.on_acks(path, acks)
    }

    fn use_it(&mut self, path: &PathState, estimate: &Estimate) -> Step {
        self.news = true;
        // A queue that overflows was never empty: then what is left of a train shows the bottleneck
        // well.
        let share = self
            .flight
            .map_or(trial::HANDED_OVER, |_| flight::HANDED_OVER);
        let overflown = Self::lost_too_much(path);
        let mut trial = RateTrial::new(path, estimate.rate, agree(estimate) || overflown, share);
        trial.begun = self.begun;
        let known = self.flight.and_then(|flight| flight.known_rate(path));
        // At a rate that the path is known to bear a small file is sent long before it fills that.
        let filled = trial.sure
            && trial.handed_over(path) <= self.window(path)
            && (known.is_none() || !path.limited);
        let waits = self.flight.map_or(0, |_| flight::WAITS * path.datagram);
        let trial = if filled {
            trial.filled(path, waits)
        } else {
            trial
        };
        let window = trial.window(path);
        let sure = trial.sure;
        self.state = State::Trying(trial);
        // One train says too little against what a connection has seen.
        if sure && known.is_some_and(|known| estimate.rate < known / 100 * STILL_KNOWN) {
            return Step::Retreat(window);
        }
        Step::Window(window)
    }
}

fn agree(estimate: &Estimate) -> bool {
    let [fastest, slowest] = [estimate.fastest, estimate.slowest].map(u128::from);
    estimate.trains >= ENOUGH && fastest * 100 <= slowest * u128::from(AGREEMENT)
}

impl SlowStart for Trains {
    fn name(&self) -> &'static str {
        if self.flight.is_some() {
            "flight"
        } else {
            "trains"
        }
    }

    fn phase(&self) -> &'static str {
        match self.state {
            State::Measuring => "packet_trains",
            State::Trying(_) => "packet_trains_trial",
            State::GivenUp => self.fallback.phase(),
        }
    }

    fn on_saved(&mut self, saved: SavedPath) {
        if let Some(flight) = &mut self.flight {
            flight.saved = Some(saved);
        }
    }

    fn forget_saved(&mut self) {
        if let Some(flight) = &mut self.flight {
            flight.saved = None;
        }
    }

    fn on_sent(&mut self, path: &PathState, bytes: u64) {
        let measures = match &self.state {
            State::Measuring => path.rtt.samples > 0,
            State::Trying(trial) => !trial.judging(),
            State::GivenUp => false,
        };
        if !measures {
            return;
        }
        if matches!(self.state, State::Measuring) && self.has_waited(path, bytes) {
            self.dispersion = Dispersion::new(LENGTH, LONGEST_PAUSE_WITHIN);
            self.begun = None;
            // Else keep-alives over hours would use the flight up.
            if let Some(flight) = &mut self.flight {
                flight.sent = 0;
            }
        }
        let between = self.between_trains(path);
        if let Some(flight) = &mut self.flight {
            flight.between = between;
            flight.sent += bytes;
        }
        self.begun.get_or_insert(Begin::new(path));
        if !between {
            self.dispersion.on_sent(path.now, path.sent, bytes);
        }
    }

    fn on_acks(&mut self, path: &PathState, acks: &Acks<'_>) -> Step {
        match &mut self.state {
            State::Measuring => self.measure(path, acks),
            State::GivenUp => self.fallback.on_acks(path, acks),
            State::Trying(trial) => {
                if !trial.judging() {
                    // The other trains are still coming in.
                    self.dispersion.on_acks(acks);
                    if let Some(estimate) = self.dispersion.estimate() {
                        trial.correct(estimate.rate, agree(&estimate));
                    }
                }
                if trial.is_disproved(path, acks) && !Self::lost_too_much(path) {
                    self.state = State::GivenUp;
                    return Step::Window(self.window(path));
                }
                trial.on_acks(path, acks)
            }
        }
    }

    fn on_congestion(&mut self, path: &PathState, event: &CongestionEvent) -> Response {
        let is_past = self.is_past(path, event.sent);
        match &mut self.state {
            // All trains have left before the first loss can be known, and what they say is worth
            // more than what is lost of them.
            State::Measuring if !event.ecn && !is_past => Response::Ignore,
            State::Trying(trial) => trial.on_congestion(path, event),
            _ => Response::Reduce,
        }
    }

    fn pacing(&self, path: &PathState) -> Pacing {
        match &self.state {
            State::Measuring if path.rtt.samples == 0 => Pacing::Unpaced,
            // The pacer may keep what one more packet costs when the rate falls.
            State::Measuring if self.dispersion.packets_of_last() < LENGTH => Pacing::Unpaced,
            State::Measuring => match &self.flight {
                Some(flight) => flight.pacing(path),
                None => Pacing::Rate(per_second(path.datagram, self.gap(path))),
            },
            State::Trying(trial) => trial.pacing(path),
            State::GivenUp => self.fallback.pacing(path),
        }
    }

    fn take_event(&mut self, path: &PathState) -> Option<LogEvent> {
        if !std::mem::take(&mut self.news) {
            return None;
        }
        let estimate = self.dispersion.estimate()?;
        let mut data = vec![
            ("rate_bytes_per_second", Value::Integer(estimate.rate)),
            ("trains", Value::Integer(estimate.trains as u64)),
            ("fastest", Value::Integer(estimate.fastest)),
            ("slowest", Value::Integer(estimate.slowest)),
            ("lost_bytes", Value::Integer(path.lost)),
        ];
        if let Some(rate) = self.flight.and_then(|flight| flight.known_rate(path)) {
            data.push(("saved_bytes_per_second", Value::Integer(rate)));
        }
        Some(LogEvent {
            now: path.now,
            name: "packet_trains",
            data,
        })
    }

    fn pacing_afterwards(&self) -> Option<Pacing> {
        Some(Pacing::Gain(trial::PACE_AFTER))
    }

    fn clone_box(&self) -> Box<dyn SlowStart> {
        Box::new(self.clone())
    }
}
