//! Slow start and congestion avoidance, put together.

use bentpipe_units::Time;

use crate::acks::{Acks, CongestionEvent};
use crate::avoidance::{Avoidance, Reduction};
use crate::log::{LogEvent, SharedEventLog, Value};
use crate::observer::Observer;
use crate::pacing::{LINE_RATE, Pacing};
use crate::path::PathState;
use crate::saved::SavedPath;
use crate::sent_packets::SentPackets;
use crate::slow_start::{
    CarefulResume, Exit, Jump, Response, Resume, SlowStart, Standard, Step, Trains,
};

/// The settings of a controller, beside its algorithms.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The initial congestion window in bytes; `None`: that of RFC 9002, section 7.2.
    pub initial_window: Option<u64>,
    /// The congestion window grows no larger than so many bytes.
    pub maximum_window: u64,
    /// Whether the window is sent at the pace that the algorithms ask for. Else it leaves in
    /// bursts.
    pub pacing: bool,
    /// No more than so many bytes per second are sent.
    pub maximum_rate: u64,
    /// Whether the algorithms say how often the peer is to send ACKs.
    pub adapts_acks: bool,
    /// The path as an earlier connection knew it, and what is to be made of it.
    pub resume: Option<Resume>,
    /// Where events are logged.
    pub log: Option<SharedEventLog>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            initial_window: None,
            maximum_window: u64::MAX,
            pacing: true,
            maximum_rate: LINE_RATE,
            adapts_acks: true,
            resume: None,
            log: None,
        }
    }
}

/// The outcome of resuming a path that an earlier connection knew.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resumption {
    /// The path as it was known.
    pub saved: Option<SavedPath>,
    /// The window that was jumped to; `None`: there was nothing known, the path was not confirmed,
    /// or the window was never filled.
    pub jump: Option<u64>,
    /// It was too large.
    pub retreated: bool,
}

/// > Endpoints SHOULD use an initial congestion window of ten times the maximum datagram size
/// > (max_datagram_size), while limiting the window to the larger of 14,720 bytes or twice the
/// > maximum datagram size. (RFC 9002, section 7.2)
fn initial_window(datagram: u64) -> u64 {
    (10 * datagram).min(14_720.max(2 * datagram))
}

fn resuming(mut slow_start: Box<dyn SlowStart>, resume: Option<Resume>) -> Box<dyn SlowStart> {
    match resume {
        None => slow_start,
        Some(Resume {
            saved,
            jump: Jump::Flight,
        }) => {
            slow_start.on_saved(saved);
            slow_start
        }
        Some(resume) => Box::new(CarefulResume::new(slow_start, resume)),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    SlowStart,
    Avoidance,
}

/// A congestion controller: told of packets, it says how much may be in flight, and how fast that
/// is sent.
#[derive(Debug)]
pub struct Controller {
    path: PathState,
    sent_packets: SentPackets,
    observer: Observer,
    resumption: Resumption,
    slow_start: Box<dyn SlowStart>,
    avoidance: Box<dyn Avoidance>,
    phase: Phase,
    /// Slow start left it, for avoidance to keep until its first reduction.
    pacing: Option<Pacing>,
    /// When the last congestion event was noticed (RFC 9002, section 7.3.2).
    recovery: Option<Time>,
    /// The state that a spurious congestion event gives back.
    before: Option<Before>,
    settings: Settings,
    /// The phase that was logged last.
    told: &'static str,
    /// The window before the event that is being handled.
    window_before: u64,
}

#[derive(Debug)]
struct Before {
    slow_start: Box<dyn SlowStart>,
    avoidance: Box<dyn Avoidance>,
    phase: Phase,
    pacing: Option<Pacing>,
    recovery: Option<Time>,
    resumption: Resumption,
    window: u64,
    ssthresh: Option<u64>,
}

impl Controller {
    /// A controller for a path that nothing has been sent over yet. `datagram` is the UDP payload
    /// of full packets in bytes.
    #[must_use]
    pub fn new(
        slow_start: Box<dyn SlowStart>,
        avoidance: Box<dyn Avoidance>,
        settings: Settings,
        datagram: u64,
        now: Time,
    ) -> Self {
        let initial_window = settings
            .initial_window
            .unwrap_or_else(|| initial_window(datagram));
        let path = PathState {
            now,
            datagram,
            rtt: crate::path::Rtt::default(),
            window: initial_window,
            initial_window,
            ssthresh: None,
            in_flight: 0,
            sent: 0,
            burst: 0,
            delivered: 0,
            lost: 0,
            round: 0,
            limited: false,
            paced: settings.pacing,
        };
        let slow_start = resuming(slow_start, settings.resume);
        Self {
            path,
            sent_packets: SentPackets::default(),
            observer: Observer::default(),
            resumption: Resumption {
                saved: settings.resume.map(|resume| resume.saved),
                ..Resumption::default()
            },
            slow_start,
            avoidance,
            phase: Phase::SlowStart,
            pacing: None,
            recovery: None,
            before: None,
            settings,
            told: "initial",
            window_before: initial_window,
        }
    }

    /// The path as it is known now.
    #[must_use]
    pub fn path(&self) -> &PathState {
        &self.path
    }

    /// The path, for a later connection; `None`: too little was sent to tell.
    #[must_use]
    pub fn observed(&self) -> Option<SavedPath> {
        self.observer.observed(&self.path)
    }

    /// Whether this is the window of the path, as far as the connection can tell: it has left slow
    /// start and has delivered as much. A rate above that of a first flight without any knowledge
    /// is worth to be known in any case.
    #[must_use]
    pub fn fills(&self, seen: &SavedPath) -> bool {
        let is_full = self.path.ssthresh.is_some() && self.path.delivered >= seen.window;
        is_full || seen.rate() > Trains::FLIGHT_RATE
    }

    /// Whether what an earlier connection knew may still be right: nothing contradicts it, and this
    /// connection had less to send. One that has sent as much knows better.
    #[must_use]
    pub fn confirms(&self, known: &SavedPath) -> bool {
        let path = &self.path;
        let is_same = path.rtt.samples == 0 || known.fits(&path.rtt);
        let is_slower = self.observer.has_slowed_from(known.window);
        is_same && !is_slower && !self.contradicts() && path.delivered < known.window
    }

    /// Whether what an earlier connection knew has proved too large.
    #[must_use]
    pub fn contradicts(&self) -> bool {
        // A flight never retreats: what it loses shows that it was too fast.
        let is_flight = self
            .settings
            .resume
            .is_some_and(|it| it.jump == Jump::Flight);
        self.resumption.retreated || is_flight && Trains::lost_too_much(&self.path)
    }

    /// Whether it is not too late to tell it of the path as an earlier connection knew it: it knows
    /// of none, and has sent little.
    #[must_use]
    pub fn may_resume(&self) -> bool {
        let is_new = !self.path.is_used() && self.path.lost == 0;
        is_new && self.phase == Phase::SlowStart && self.resumption.saved.is_none()
    }

    /// Withdraws what it was told of the path, unless it has sent by that.
    pub fn forget(&mut self) {
        if !self.path.is_used() && self.phase == Phase::SlowStart {
            self.settings.resume = None;
            self.resumption.saved = None;
            self.slow_start.forget_saved();
        }
    }

    /// Tells it of the path as an earlier connection knew it, later than its settings could; see
    /// [`Self::may_resume`], without which nothing happens.
    pub fn resume(&mut self, resume: Resume) {
        if !self.may_resume() {
            return;
        }
        self.settings.resume = Some(resume);
        self.resumption.saved = Some(resume.saved);
        let slow_start = std::mem::replace(&mut self.slow_start, Box::new(Standard));
        self.slow_start = resuming(slow_start, Some(resume));
    }

    /// The outcome of what an earlier connection knew.
    #[must_use]
    pub fn resumption(&self) -> Resumption {
        self.resumption
    }

    /// How many bytes may be in flight.
    #[must_use]
    pub fn window(&self) -> u64 {
        self.path.window
    }

    /// Bytes per second at which they may be sent.
    #[must_use]
    pub fn pacing_rate(&self) -> u64 {
        let pacing = match self.phase {
            _ if !self.settings.pacing => Pacing::Unpaced,
            Phase::SlowStart => self.slow_start.pacing(&self.path),
            Phase::Avoidance => self
                .pacing
                .unwrap_or_else(|| self.avoidance.pacing(&self.path)),
        };
        let rate = pacing.per_second(&self.path);
        rate.min(self.settings.maximum_rate)
    }

    /// The ack-eliciting packets that the peer best receives before it sends an ACK; `None`: what
    /// the stack has for all.
    #[must_use]
    pub fn packets_per_ack(&self) -> Option<u64> {
        let wanted = self.avoidance.packets_per_ack(&self.path);
        wanted.filter(|_| self.settings.adapts_acks)
    }

    /// The datagrams become so many bytes long.
    pub fn on_datagram_size(&mut self, bytes: u64) {
        self.path.datagram = bytes;
        self.set_window(self.path.window);
    }

    /// An ack-eliciting packet leaves.
    pub fn on_sent(&mut self, now: Time, number: u64, bytes: u64) {
        self.path.now = now;
        self.sent_packets.send(&self.path, number, bytes);
        self.path.send(bytes);
        if self.phase == Phase::SlowStart {
            self.slow_start.on_sent(&self.path, bytes);
        }
        let reason = self.fill();
        self.tell(reason);
    }

    /// Asks slow start for another window if no packet more fits into this one. Says why it has
    /// changed.
    fn fill(&mut self) -> &'static str {
        let full = self.path.in_flight + self.path.datagram > self.path.window;
        if self.phase != Phase::SlowStart || !full {
            return "sent";
        }
        if let Some(window) = self.slow_start.on_full(&self.path) {
            self.set_window(window);
            self.resumption.jump = self.resumption.jump.max(Some(self.path.window));
        }
        self.slow_start.trigger()
    }

    /// A packet that was sent at `sent` is acknowledged; [`Controller::on_acks_end`] follows.
    pub fn on_ack(&mut self, now: Time, number: u64, sent: Time) {
        self.path.now = now;
        self.sent_packets.acknowledge(&mut self.path, number, sent);
    }

    /// That was all of an ACK. `limited`: the sender had run out of data or of flow control credit
    /// before it came. `in_flight`: bytes on their way, as the stack counts them.
    pub fn on_acks_end(&mut self, now: Time, in_flight: u64, limited: bool) {
        self.path.now = now;
        self.path.limited = limited;
        self.path.in_flight = in_flight;
        let (slow_start, avoidance) = (&mut self.slow_start, &mut self.avoidance);
        let observer = &mut self.observer;
        let phase = self.phase;
        let hear = |path: &PathState, acks: &Acks<'_>| {
            observer.on_acks(path, acks);
            match phase {
                Phase::SlowStart => {
                    avoidance.on_acks_in_slow_start(path, acks);
                    slow_start.on_acks(path, acks)
                }
                Phase::Avoidance => Step::Window(avoidance.on_acks(path, acks)),
            }
        };
        let Some(step) = self
            .sent_packets
            .read_acks(&mut self.path, self.recovery, hear)
        else {
            return;
        };
        let reason = match step {
            Step::Grow(bytes) => {
                self.set_window(self.path.window.saturating_add(bytes));
                self.slow_start.trigger()
            }
            Step::Window(bytes) => {
                self.set_window(bytes);
                match self.phase {
                    Phase::SlowStart => self.slow_start.trigger(),
                    Phase::Avoidance => "ack",
                }
            }
            Step::Retreat(bytes) => {
                self.retreat(bytes);
                self.slow_start.trigger()
            }
            Step::Leave(exit) => {
                self.leave(exit);
                exit.reason
            }
        };
        self.tell(reason);
    }

    /// A packet of so many bytes is lost; [`Controller::on_congestion`] follows.
    pub fn on_lost(&mut self, now: Time, number: u64, bytes: u64) {
        self.path.now = now;
        let Some(lost) = self.sent_packets.lose(&mut self.path, number, bytes) else {
            return;
        };
        if self.path.lost == lost.bytes {
            self.tell_of_first_loss();
        }
        self.avoidance.on_lost(&self.path, &lost);
        if self.phase == Phase::SlowStart {
            self.slow_start.on_lost(&self.path, &lost);
        }
    }

    /// Packets were lost or marked.
    pub fn on_congestion(&mut self, event: &CongestionEvent) {
        self.path.now = event.now;
        // > A recovery period ends and the sender enters congestion avoidance when a packet sent
        // > during the recovery period is acknowledged. (RFC 9002, section 7.3.2) So there is one
        // > reduction for each round trip; persistent congestion collapses the window in a recovery
        // > period too (section B.8).
        if !event.persistent && self.recovery.is_some_and(|start| event.sent <= start) {
            return;
        }
        let may_be_chance = !event.ecn && !event.persistent;
        if may_be_chance && self.avoidance.forgives(&self.path, event) {
            // The stack does not say which losses were spurious: it may mean these.
            self.before = None;
            self.tell("forgiven");
            return;
        }
        let before = self.remember();
        let response = match self.phase {
            Phase::SlowStart => self.slow_start.on_congestion(&self.path, event),
            Phase::Avoidance => Response::Reduce,
        };
        let reason = match response {
            Response::Ignore if !event.persistent => "ignored",
            Response::Window(bytes) if !event.persistent => {
                self.recovery = Some(event.now);
                self.set_window(bytes);
                "recovery"
            }
            Response::Retreat(window) if !event.persistent => {
                self.retreat(window);
                if event.ecn { "ecn" } else { "loss" }
            }
            Response::Leave(exit) if !event.persistent => {
                self.recovery = Some(event.now);
                self.leave(exit);
                exit.reason
            }
            _ => {
                self.recovery = Some(event.now);
                let reduction = self.avoidance.on_congestion(&self.path, event);
                self.reduce(reduction, event.persistent);
                if event.ecn { "ecn" } else { "loss" }
            }
        };
        // A mark cannot be spurious, and what has been ignored leaves nothing to be taken back.
        let undoable = !event.ecn && reason != "ignored" && self.avoidance.undoes_spurious();
        self.before = undoable.then_some(before);
        self.tell(reason);
    }

    /// All packets that caused the last congestion event have arrived after all.
    pub fn on_spurious_congestion(&mut self) {
        let Some(before) = self.before.take() else {
            return;
        };
        if before.window <= self.path.window {
            return;
        }
        self.slow_start = before.slow_start;
        self.avoidance = before.avoidance;
        self.phase = before.phase;
        self.pacing = before.pacing;
        self.recovery = before.recovery;
        self.resumption = before.resumption;
        self.path.ssthresh = before.ssthresh;
        self.set_window(before.window);
        self.tell("spurious_loss");
    }

    fn remember(&self) -> Before {
        Before {
            slow_start: self.slow_start.clone_box(),
            avoidance: self.avoidance.clone_box(),
            phase: self.phase,
            pacing: self.pacing,
            recovery: self.recovery,
            resumption: self.resumption,
            window: self.path.window,
            ssthresh: self.path.ssthresh,
        }
    }

    /// Losses of what was sent before mean nothing more.
    fn retreat(&mut self, window: u64) {
        self.recovery = Some(self.path.now);
        self.resumption.retreated = true;
        self.set_window(window);
    }

    fn leave(&mut self, exit: Exit) {
        self.path.ssthresh = Some(exit.ssthresh.max(self.path.minimum_window()));
        self.set_window(exit.window);
        let afterwards = self.slow_start.pacing_afterwards();
        self.pacing = afterwards.filter(|_| !self.avoidance.paces_from_the_start());
        self.phase = Phase::Avoidance;
        self.avoidance.begin(&self.path);
    }

    fn reduce(&mut self, reduction: Reduction, persistent: bool) {
        self.path.ssthresh = Some(reduction.ssthresh.max(self.path.minimum_window()));
        self.phase = Phase::Avoidance;
        self.pacing = None;
        if persistent {
            // > When persistent congestion is declared, the sender's congestion window MUST be
            // > reduced to the minimum congestion window (kMinimumWindow) … (RFC 9002, section
            // > 7.6.2)
            self.set_window(0);
            self.slow_start = Box::new(Standard);
            self.phase = Phase::SlowStart;
            // Figure 1: there is no recovery period after it.
            self.recovery = None;
        } else {
            self.set_window(reduction.window);
        }
    }

    fn set_window(&mut self, bytes: u64) {
        let least = self.path.minimum_window();
        self.path.window = bytes.clamp(least, self.settings.maximum_window.max(least));
    }

    /// The controller's present phase, in a word.
    #[must_use]
    pub fn phase(&self) -> &'static str {
        match self.phase {
            Phase::SlowStart => self.slow_start.phase(),
            Phase::Avoidance => self.avoidance.phase(),
        }
    }

    /// Logs what is new.
    fn tell(&mut self, reason: &'static str) {
        let Some(log) = &self.settings.log else {
            return;
        };
        let phase = self.phase();
        let change = (phase != self.told).then(|| self.phase_event(phase, reason));
        // Slow start is asked even when it has just been left: what it saw last is why.
        let events = [self.slow_start.take_event(&self.path), change];
        if events.iter().any(Option::is_some) {
            let mut log = log.lock().expect("a log does not panic");
            events.iter().flatten().for_each(|it| log.log(it));
        }
        self.told = phase;
        self.window_before = self.path.window;
    }

    fn tell_of_first_loss(&self) {
        let Some(log) = &self.settings.log else {
            return;
        };
        let event = LogEvent {
            now: self.path.now,
            name: "first_loss",
            data: vec![
                ("latest_rtt", Value::milliseconds(self.path.rtt.latest)),
                ("min_rtt", Value::milliseconds(self.path.rtt.min)),
                ("congestion_window", Value::Integer(self.path.window)),
                ("bytes_in_flight", Value::Integer(self.path.in_flight)),
            ],
        };
        let mut log = log.lock().expect("a log does not panic");
        log.log(&event);
    }

    fn phase_event(&self, phase: &'static str, reason: &'static str) -> LogEvent {
        LogEvent {
            now: self.path.now,
            name: "phase",
            data: vec![
                ("old", Value::Text(self.told)),
                ("new", Value::Text(phase)),
                ("trigger", Value::Text(reason)),
                ("window_before", Value::Integer(self.window_before)),
                ("congestion_window", Value::Integer(self.path.window)),
                (
                    "ssthresh",
                    Value::Integer(self.path.ssthresh.unwrap_or(u64::MAX)),
                ),
                ("pacing_rate", Value::Integer(self.pacing_rate())),
                ("bytes_in_flight", Value::Integer(self.path.in_flight)),
                ("latest_rtt", Value::milliseconds(self.path.rtt.latest)),
                ("min_rtt", Value::milliseconds(self.path.rtt.min)),
            ],
        }
    }
}

impl Clone for Controller {
    fn clone(&self) -> Self {
        Self {
            path: self.path,
            sent_packets: self.sent_packets.clone(),
            observer: self.observer.clone(),
            resumption: self.resumption,
            slow_start: self.slow_start.clone_box(),
            avoidance: self.avoidance.clone_box(),
            phase: self.phase,
            pacing: self.pacing,
            recovery: self.recovery,
            before: None,
            settings: self.settings.clone(),
            told: self.told,
            window_before: self.window_before,
        }
    }
}
