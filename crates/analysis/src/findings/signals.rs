//! The signals that several rules look at, worked out once per connection.

use super::credit::{self, Blocked};
use super::deliveries::{self, Deliveries};
use super::pauses::{self, Pause};
use super::retransmissions::{self, Retransmissions};
use super::rounds::{self, Round};
use super::slow_start::{self, SlowStart, WindowHistory};
use super::transfer::{Missing, Transfer};
use super::view::View;
use crate::marks::Marks;

/// The transfer of a connection, and what it shows.
pub(super) struct Signals<'a> {
    pub transfer: Transfer<'a>,
    pub deliveries: Deliveries,
    pub retransmissions: Retransmissions,
    pub rounds: Vec<Round>,
    pub blocked: Blocked,
    /// The pauses that flow control does not explain.
    pub pauses: Vec<Pause>,
    pub slow_start: Result<SlowStart, Missing>,
    /// The marks on the data sender's packets.
    pub marks: Marks,
}

impl<'a> Signals<'a> {
    pub(super) fn of(view: &'a View<'a>) -> Self {
        let transfer = Transfer::of(view);
        let (mut rounds, mut pauses) = (Vec::new(), Vec::new());
        let mut blocked = Blocked::default();
        if transfer.sees_sender() {
            rounds = rounds::of(&transfer);
            pauses = pauses::of(&transfer);
            blocked = credit::of(&transfer, &pauses);
            let half = |pause: &Pause| pause.span.length() / 2;
            pauses.retain(|it| blocked.within(it.span) < half(it));
        }
        let slow_start = slow_start::of(&WindowHistory {
            transfer: &transfer,
            rounds: &rounds,
            blocked: &blocked,
            pauses: &pauses,
        });
        Self {
            deliveries: deliveries::of(view, transfer.sender),
            retransmissions: retransmissions::of(&transfer),
            rounds,
            blocked,
            pauses,
            slow_start,
            marks: Marks::of(view.connection, view.ledger, transfer.sender),
            transfer,
        }
    }
}
