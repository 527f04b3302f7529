//! Capacity that is assigned on demand.
//!
//! Source: the return link of DVB-RCS2 (ETSI EN 301 545-2), where a terminal has a small constant
//! assignment and asks the network control centre for more, by rate and by volume; and SEARCH in
//! QUIC, Worcester Polytechnic Institute, 2024, section 2.1.3, which describes what endpoints see
//! of it: a queue builds while a request is on its way, drains when it is granted, builds anew as
//! the sender goes on growing, and the RTT swings until all of the capacity is assigned.
//!
//! The model: a packet that has to wait makes the terminal ask, at the next opportunity (multiples
//! of `request_every`), for what it has and what empties the queue in the time from one opportunity
//! to the grant of the next, `request_every + granted_after`; never for more than `full`. The grant
//! holds from `granted_after` later on. With 1 s and 0.55 s what waits is granted after 0.55 to
//! 1.55 s.
//!
//! What is left out. Requests are never lost, denied or cut by other terminals. A grant is given
//! back only at once: when nothing was sent for `hold`, the floor is left. Since it decides on
//! admission, a packet counts on the grants that are requested when it arrives, its own among them:
//! a larger one that later packets ask for serves these, and does not speed up those before.

use bentpipe_units::{Span, Time};

use crate::events::{EVENTS_KEPT, RequestWait};
use crate::rate::OnDemand;
use crate::steps::holding;

/// The grants, current and future.
pub(crate) struct Allocation {
    demand: OnDemand,
    /// The rates that are granted, each with the time from which on it is: from 0 or the last
    /// silence on, in order, ever more.
    grants: Vec<(Time, u64)>,
    /// The first requests, at most [`EVENTS_KEPT`] and one more.
    requests: Vec<RequestWait>,
}

impl Allocation {
    pub fn new(demand: OnDemand) -> Self {
        let grants = vec![(Time::ZERO, demand.floor.bps())];
        Self {
            demand,
            grants,
            requests: Vec::new(),
        }
    }

    /// The grants of a link that asks for its full rate at `at`.
    pub fn all_asked(demand: OnDemand, at: Time) -> Self {
        let mut allocation = Self::new(demand);
        allocation.ask(at, demand.full.bps());
        allocation
    }

    /// The rate that is granted at a time, and until when.
    pub fn at(&self, at: Time) -> (u64, Time) {
        let index = holding(&self.grants, at.max(self.grants[0].0));
        let until = self
            .grants
            .get(index + 1)
            .map_or(Time::NEVER, |next| next.0);
        (self.grants[index].1, until)
    }

    /// Something waits: asks for more, if more is needed. Returns from when on there is more.
    pub fn wait(&mut self, now: Time, waiting_bytes: u64) -> Option<Time> {
        let within = self.demand.request_every + self.demand.granted_after;
        let bit_nanos = u128::from(waiting_bytes) * 8 * 1_000_000_000;
        let clears = bit_nanos.div_ceil(u128::from(within.as_nanos()));
        let wanted = u128::from(self.at(now).0) + clears;
        let wanted = wanted.min(u128::from(self.demand.full.bps()));
        self.ask(now, u64::try_from(wanted).unwrap_or(u64::MAX))
    }

    fn ask(&mut self, now: Time, wanted: u64) -> Option<Time> {
        let last = self.grants.len() - 1;
        if wanted <= self.grants[last].1 {
            return None;
        }
        let every = self.demand.request_every;
        let asked = Time::ZERO + every * now.as_nanos().div_ceil(every.as_nanos());
        let granted = asked + self.demand.granted_after;
        if self.grants[last].0 == granted {
            self.grants[last].1 = wanted;
        } else {
            self.grants.push((granted, wanted));
            if self.requests.len() <= EVENTS_KEPT {
                self.requests.push(RequestWait {
                    sent: asked,
                    answered: granted,
                    granted: true,
                });
            }
        }
        Some(granted)
    }

    /// The requests, and when each is granted.
    pub fn requests(&self) -> &[RequestWait] {
        &self.requests
    }

    /// Nothing has been sent for so long: back to the floor, if that is long enough.
    pub fn rest(&mut self, now: Time, silent: Span) {
        if silent >= self.demand.hold {
            self.grants = vec![(now, self.demand.floor.bps())];
        }
    }
}
