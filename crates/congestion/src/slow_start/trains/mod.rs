//! Packet trains.
//!
//! HEAD

mod dispersion;
mod trial;

use bentpipe_units::Span;

use crate::acks::{Acks, Congestion};
use crate::note::{Note, Value};
use crate::pacing::Pacing;
use crate::path::Path;
use crate::slow_start::{Exit, Response, SlowStart, Standard, Step};
use dispersion::{Dispersion, Estimate};
use trial::Trial;

/// Packets in a train.
const LENGTH: u64 = 20;
/// Trains that are sent.
const TRAINS: u64 = 5;
/// Complete trains that suffice if they agree.
const ENOUGH: usize = 2;
/// They agree if the fastest is no faster than so many percent of the slowest.
const AGREEMENT: u64 = 110;
/// From the last packet of a train to the first of the next: a part of the round trip, within bounds.
const GAPS_PER_RTT: u64 = 16;
const SHORTEST_GAP: Span = Span::from_millis(25);
const LONGEST_GAP: Span = Span::from_millis(60);
/// On shorter paths slow start is quick, and trains would meet the ACKs of the ones before.
const SHORTEST_RTT: Span = Span::from_millis(100);

/// See the head of this file.
#[derive(Debug, Clone)]
pub struct Trains {
    state: State,
    dispersion: Dispersion,
    fallback: Standard,
    news: bool,
}

#[derive(Debug, Clone)]
enum State {
    Measuring,
    Trying(Trial),
    /// Nothing could be measured.
    GivenUp,
}

impl Default for Trains {
    fn default() -> Self {
        let longest_pause_within = Span::from_nanos(SHORTEST_GAP.as_nanos() / 2);
        Self {
            state: State::Measuring,
            dispersion: Dispersion::new(LENGTH, longest_pause_within),
            fallback: Standard,
            news: false,
        }
    }
}

impl Trains {
    /// Room for all trains, and for what is left of the handshake.
    fn window(path: &Path) -> u64 {
        let trains = TRAINS * (LENGTH + 1) * path.datagram;
        trains.max(path.initial_window)
    }

    fn gap(path: &Path) -> Span {
        let part = Span::from_nanos(path.rtt.min.as_nanos() / GAPS_PER_RTT);
        part.clamp(SHORTEST_GAP, LONGEST_GAP)
    }

    fn measure(&mut self, path: &Path, acks: &Acks<'_>) -> Step {
        self.dispersion.on_acks(acks);
        let all = self.dispersion.complete() as u64 >= TRAINS;
        match self.dispersion.estimate() {
            _ if path.rtt.min < SHORTEST_RTT => self.give_up(path, acks),
            Some(estimate) if all || agree(&estimate) => self.use_it(path, &estimate),
            None if all => self.give_up(path, acks),
            _ => Step::Window(Self::window(path)),
        }
    }

    fn give_up(&mut self, path: &Path, acks: &Acks<'_>) -> Step {
        self.state = State::GivenUp;
        self.fallback.on_acks(path, acks)
    }

    fn use_it(&mut self, path: &Path, estimate: &Estimate) -> Step {
        self.news = true;
        let trial = Trial::new(path, estimate.rate, agree(estimate));
        if trial.sure && Path::bytes_in(estimate.rate, path.rtt.min) <= Self::window(path) {
            // The trains themselves have filled the path: there is nothing to try out.
            let window = trial.handed_over(path);
            return Step::Leave(Exit {
                window,
                ssthresh: window,
                drain_to: Some(window),
                reason: "trains_fill_path",
            });
        }
        let window = trial.window(path);
        self.state = State::Trying(trial);
        Step::Window(window)
    }
}

fn agree(estimate: &Estimate) -> bool {
    estimate.trains >= ENOUGH && estimate.fastest * 100 <= estimate.slowest * AGREEMENT
}

impl SlowStart for Trains {
    fn name(&self) -> &'static str {
        "trains"
    }

    fn phase(&self) -> &'static str {
        match self.state {
            State::Measuring => "packet_trains",
            State::Trying(_) => "packet_trains_trial",
            State::GivenUp => "slow_start",
        }
    }

    fn on_sent(&mut self, path: &Path, bytes: u64) {
        if path.rtt.samples > 0 {
            self.dispersion.on_sent(path.now, path.sent, bytes);
        }
    }

    fn on_acks(&mut self, path: &Path, acks: &Acks<'_>) -> Step {
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
                trial.on_acks(path, acks)
            }
        }
    }

    fn on_congestion(&mut self, path: &Path, event: &Congestion) -> Response {
        match &mut self.state {
            // All trains have left before the first loss can be known, and what they say is worth more than what is lost of them.
            State::Measuring if !event.ecn => Response::Ignore,
            State::Trying(trial) => trial.on_congestion(path, event),
            _ => Response::Reduce,
        }
    }

    fn pacing(&self, path: &Path) -> Pacing {
        match &self.state {
            State::Measuring if path.rtt.samples == 0 => Pacing::Unpaced,
            // The pacer keeps what one more packet costs when the rate falls: the last of the train.
            State::Measuring if self.dispersion.packets_of_last() < LENGTH - 1 => Pacing::Unpaced,
            State::Measuring => Pacing::Rate(crate::acks::per_second(path.datagram, Self::gap(path))),
            State::Trying(trial) => trial.pacing(),
            State::GivenUp => self.fallback.pacing(path),
        }
    }

    fn take_note(&mut self, path: &Path) -> Option<Note> {
        if !std::mem::take(&mut self.news) {
            return None;
        }
        let estimate = self.dispersion.estimate()?;
        Some(Note {
            now: path.now,
            name: "packet_trains",
            data: vec![
                ("rate_bytes_per_second", Value::Integer(estimate.rate)),
                ("trains", Value::Integer(estimate.trains as u64)),
                ("fastest", Value::Integer(estimate.fastest)),
                ("slowest", Value::Integer(estimate.slowest)),
                ("lost_bytes", Value::Integer(path.lost)),
            ],
        })
    }

    fn pacing_afterwards(&self) -> Option<Pacing> {
        Some(Pacing::Gain(trial::PACE_AFTER))
    }

    fn clone_box(&self) -> Box<dyn SlowStart> {
        Box::new(self.clone())
    }
}
