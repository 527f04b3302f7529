//! A terminal's requests for capacity.
//!
//! A request names a rate, that at which packets have arrived since the last request and which the
//! constant rate does not cover; and a volume, that of the bursts which all that waits takes, less
//! what is assigned or requested already, and what its rates carry beside new packets until the
//! grant. A terminal without requests for volumes asks for the same by a rate that carries it in as
//! long as a grant takes.
//!
//! Chosen here: a terminal learns with the superframe in which a request would be granted whether
//! it was received, as if the plan of that superframe said so. If not, it asks again; one that
//! contended waits before for a number of superframes that is drawn.

use std::collections::VecDeque;

use bentpipe_units::{Rate, Span, Time};

use super::rcs2::{ControlChannel, Rcs2, ReturnTerminal, Signalling, Volume};
use super::rle::burst_bytes;
use crate::events::{EVENTS_KEPT, RequestWait};
use crate::packet::CapacityRequests;
use crate::random::Dice;

/// The capacity that a terminal requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Demand {
    /// The rate that it shall have from now on.
    pub bps: u64,
    /// The bytes that it requests.
    volume: u64,
    /// Bytes among them that it had not requested before.
    more: u64,
}

impl Demand {
    /// The bytes that it requests; None: no volume.
    pub fn volume(self) -> Option<u64> {
        (self.more > 0).then_some(self.volume)
    }
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOutcome {
    Received,
    Lost,
    Denied,
    Collided,
}

impl RequestOutcome {
    pub fn of(is_received: bool) -> Self {
        if is_received {
            Self::Received
        } else {
            Self::Lost
        }
    }
}

/// A request on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub demand: Demand,
    pub outcome: RequestOutcome,
    sent: Time,
    /// The bytes of volumes that had been assigned before it was sent.
    assigned_before: u64,
    /// The superframe with which it takes effect.
    pub effective: u64,
    contended: bool,
}

/// The sending of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    pub at: Time,
    pub superframe: u64,
    /// Its fate on the way.
    pub outcome: RequestOutcome,
    /// Whether it is in a slot for which others may contend, too.
    pub contended: bool,
}

/// The bytes and packets that wait at a terminal, for which it may request capacity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub bytes: u64,
    pub packets: u64,
    /// The bytes that a burst of its carries.
    pub payload: u64,
    /// Its slots in what is left of the superframe.
    pub slots: u64,
}

/// A terminal that asks.
pub(crate) struct Requester {
    cra_bps: u64,
    rbdc_bps: u64,
    volume: Volume,
    superframe: Span,
    granted_after: Span,
    signalling: Signalling,
    rbdc_timeout: u64,
    /// The rate of the last request, and the first superframe in which it does not hold.
    rate: (u64, u64),
    /// The rate that is in effect, and the first superframe in which it does not hold.
    in_effect: (u64, u64),
    /// Bytes that it has requested and that are not assigned.
    asked: u64,
    /// Bytes of volumes that were ever assigned.
    assigned: u64,
    /// Bytes that have arrived since a time, and their packets.
    arrived: (u64, u64),
    since: Time,
    on_the_way: VecDeque<Request>,
    /// When requests were sent that were received, and for which nothing is assigned.
    ungranted: VecDeque<Time>,
    /// The superframe from which on it contends again.
    contends_from: u64,
    dice: Dice,
    counts: CapacityRequests,
    /// The first that were answered, at most [`EVENTS_KEPT`] and one more.
    answered: Vec<RequestWait>,
}

impl Requester {
    pub fn new(carrier: &Rcs2, terminal: &ReturnTerminal, dice: Dice) -> Self {
        Self {
            cra_bps: terminal.cra.bps(),
            rbdc_bps: terminal.rbdc.bps(),
            volume: terminal.volume,
            superframe: carrier.superframe,
            granted_after: carrier.granted_after,
            signalling: carrier.signalling,
            rbdc_timeout: carrier.rbdc_timeout,
            rate: (0, 0),
            in_effect: (0, 0),
            asked: 0,
            assigned: 0,
            arrived: (0, 0),
            since: Time::ZERO,
            on_the_way: VecDeque::new(),
            ungranted: VecDeque::new(),
            contends_from: 0,
            dice,
            counts: CapacityRequests::default(),
            answered: Vec::new(),
        }
    }

    pub fn counts(&self) -> CapacityRequests {
        self.counts
    }

    /// The requests that were answered.
    pub fn answered(&self) -> &[RequestWait] {
        &self.answered
    }

    /// Takes note of an answer.
    fn note(&mut self, sent: Time, answered: Time, granted: bool) {
        if self.answered.len() <= EVENTS_KEPT {
            self.answered.push(RequestWait {
                sent,
                answered,
                granted,
            });
        }
    }

    /// A packet arrives; `is_first`: nothing waited.
    pub fn arrive(&mut self, now: Time, ip_bytes: u32, is_first: bool) {
        if is_first {
            (self.arrived, self.since) = ((0, 0), now);
        }
        self.arrived.0 += u64::from(ip_bytes);
        self.arrived.1 += 1;
    }

    /// The capacity that it needs at a time in a superframe; None: nothing that it has not
    /// requested.
    pub fn demand(&self, now: Time, superframe: u64, waiting: Waiting) -> Option<Demand> {
        let old = if superframe < self.rate.1 {
            self.rate.0
        } else {
            0
        };
        let needed = burst_bytes(waiting.bytes, waiting.packets, waiting.payload);
        let needed = needed.saturating_sub(waiting.slots * waiting.payload);
        let span = (now - self.since).max(self.superframe);
        let arrived = burst_bytes(self.arrived.0, self.arrived.1, waiting.payload);
        let arriving = bps_for(arrived, span);
        let carried = bytes_in(self.cra_bps, self.granted_after) + self.carried_from(superframe);
        let spare = carried.saturating_sub(bytes_in(arriving, self.granted_after));
        let late = needed.saturating_sub(spare);
        let bps = arriving.saturating_sub(self.cra_bps);
        let (bps, more) = match self.volume {
            Volume::Off => {
                let more = bps_for(late, self.granted_after.max(self.superframe));
                (bps.saturating_add(more), 0)
            }
            Volume::Adds | Volume::Replaces => (bps, late.saturating_sub(self.asked)),
        };
        let bps = bps.min(self.rbdc_bps);
        let volume = match self.volume {
            Volume::Replaces if more > 0 => self.asked + more,
            _ => more,
        };
        (more > 0 || bps > 0 || old > 0).then_some(Demand { bps, volume, more })
    }

    /// The bytes that requested rates carry from a superframe on until a request would take effect
    /// that is sent in it.
    fn carried_from(&self, superframe: u64) -> u64 {
        let after = self.granted_after.as_nanos();
        let end = superframe + after.div_ceil(self.superframe.as_nanos());
        let (mut at, mut bytes) = (superframe, 0);
        let (mut bps, mut ends) = self.in_effect;
        let mut carry = |bps, ends: u64, from: u64, to: u64| {
            let superframes = to.min(ends).saturating_sub(from);
            bytes += bytes_in(bps, self.superframe * superframes);
        };
        for request in &self.on_the_way {
            let next = request.effective.clamp(at, end);
            carry(bps, ends, at, next);
            (bps, at) = (request.demand.bps, next);
            ends = request.effective + self.rbdc_timeout;
        }
        carry(bps, ends, at, end);
        bytes
    }

    /// Whether it contends in a superframe for a demand.
    pub fn contends(&self, superframe: u64, demand: Demand) -> bool {
        let asks = demand.more > 0 || demand.bps > 0;
        asks && self.on_the_way.is_empty() && self.contends_from <= superframe
    }

    /// The slot for which it contends.
    pub fn draw_slot(&mut self, slots: u64) -> u64 {
        self.dice.up_to(slots - 1)
    }

    /// Sends a request, which may be lost or denied at random.
    pub fn send(&mut self, demand: Demand, sending: Sending) {
        let Sending {
            at: sent,
            superframe,
            outcome,
            contended,
        } = sending;
        let is_lost = self.dice.chance(self.signalling.loss);
        let is_denied = self.dice.chance(self.signalling.denial);
        let outcome = match outcome {
            RequestOutcome::Received if is_lost => RequestOutcome::Lost,
            RequestOutcome::Received if is_denied => RequestOutcome::Denied,
            other => other,
        };
        let granted = (sent + self.granted_after).as_nanos();
        let effective = granted.div_ceil(self.superframe.as_nanos());
        let effective = effective.max(superframe + 1);
        self.on_the_way.push_back(Request {
            demand,
            outcome,
            sent,
            assigned_before: self.assigned,
            effective,
            contended,
        });
        self.asked = self.asked.saturating_add(demand.more);
        self.rate = (demand.bps, effective + self.rbdc_timeout);
        (self.arrived, self.since) = ((0, 0), sent);
        self.counts.sent += 1;
        match outcome {
            RequestOutcome::Received => {}
            RequestOutcome::Lost => self.counts.lost += 1,
            RequestOutcome::Denied => self.counts.denied += 1,
            RequestOutcome::Collided => self.counts.collided += 1,
        }
    }

    /// The next request that takes effect with a superframe, or would have. `rate`: what the
    /// terminal has of those before, and until when.
    pub fn answer(&mut self, superframe: u64, rate: (u64, u64)) -> Option<Request> {
        let mut request = *self.on_the_way.front()?;
        if request.effective > superframe {
            return None;
        }
        self.on_the_way.pop_front();
        if request.outcome == RequestOutcome::Received {
            if request.demand.bps > 0 || request.demand.volume > 0 {
                self.ungranted.push_back(request.sent);
            }
            self.in_effect = (request.demand.bps, request.effective + self.rbdc_timeout);
            if self.volume == Volume::Replaces {
                // Of what it replaces, some has been assigned since.
                let since = self.assigned - request.assigned_before;
                request.demand.volume = request.demand.volume.saturating_sub(since);
            }
            return Some(request);
        }
        let known = Time::ZERO + self.superframe * superframe;
        self.note(request.sent, known, false);
        self.asked = self.asked.saturating_sub(request.demand.more);
        if self.on_the_way.is_empty() {
            self.rate = rate;
        }
        if let (true, ControlChannel::Contention { backoff, .. }) =
            (request.contended, self.signalling.channel)
        {
            self.contends_from = superframe + self.dice.up_to(backoff);
        }
        Some(request)
    }

    /// Bytes that it has requested are assigned in a superframe that begins now; `is_granted`: and
    /// so is something else of what it has requested.
    pub fn assigned(&mut self, now: Time, bytes: u64, is_granted: bool) {
        self.asked = self.asked.saturating_sub(bytes);
        self.assigned += bytes;
        if bytes == 0 && !is_granted {
            return;
        }
        while let Some(sent) = self.ungranted.pop_front() {
            self.counts.grant(now - sent);
            self.note(sent, now, true);
        }
    }

    /// Whether requests are on the way.
    pub fn is_waiting(&self) -> bool {
        !self.on_the_way.is_empty()
    }
}

/// The bit/s with which bytes are sent in a span, rounded up.
fn bps_for(bytes: u64, span: Span) -> u64 {
    let bit_nanos = u128::from(bytes) * 8_000_000_000;
    let bps = bit_nanos.div_ceil(u128::from(span.as_nanos()));
    u64::try_from(bps).unwrap_or(u64::MAX)
}

/// The bytes that a rate carries in a span, rounded down.
fn bytes_in(bps: u64, span: Span) -> u64 {
    Rate::from_bps(bps).bytes_in(span).bytes()
}
