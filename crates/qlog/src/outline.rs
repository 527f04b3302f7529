//! An outline of a trace, from its events.

use std::collections::BTreeSet;

use crate::clock::Clock;
use crate::event::Event;
use crate::trace::{Trace, VantagePoint};

/// The outline of a trace, complete once all its events were seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// Where it was logged: as the file says or, where it does not, as the first packet tells. A
    /// client sends it, a server receives it. quinn leaves it out.
    pub vantage: VantagePoint,
    /// Whether it was inferred from the first packet.
    pub vantage_inferred: bool,
    /// The clock of its times.
    pub clock: Clock,
    /// Time of the earliest event and of the latest, in nanoseconds on that clock.
    pub span: Option<(i64, i64)>,
    /// When the first packet was logged that was sent or received: ties an unknown clock to that of
    /// a capture.
    pub first_packet: Option<i64>,
    /// The events of several groups alternate: there is more than one connection.
    pub groups_alternate: bool,
    groups: BTreeSet<String>,
    group: Option<String>,
}

impl Outline {
    /// The outline of a trace, before its first event.
    #[must_use]
    pub fn new(trace: &Trace) -> Self {
        Self {
            vantage: trace.vantage,
            vantage_inferred: false,
            clock: trace.clock,
            span: None,
            first_packet: None,
            groups_alternate: false,
            groups: BTreeSet::new(),
            group: None,
        }
    }

    /// Takes the next event of the trace.
    pub fn add(&mut self, event: &Event<'_>) {
        let (first, last) = self.span.unwrap_or((event.time, event.time));
        self.span = Some((first.min(event.time), last.max(event.time)));
        if self.first_packet.is_none() {
            match event.name.as_ref() {
                "quic:packet_sent" => self.begin(event.time, VantagePoint::Client),
                "quic:packet_received" => self.begin(event.time, VantagePoint::Server),
                _ => {}
            }
        }
        if let Some(group) = event.group
            && !self.groups_alternate
        {
            self.add_group(group.get());
        }
    }

    fn begin(&mut self, time: i64, vantage: VantagePoint) {
        self.first_packet = Some(time);
        if self.vantage == VantagePoint::Unknown {
            self.vantage = vantage;
            self.vantage_inferred = true;
        }
    }

    /// A group that comes again after another one was not over.
    fn add_group(&mut self, group: &str) {
        if self.group.as_deref() != Some(group) {
            self.groups_alternate = !self.groups.insert(group.to_owned());
            self.group = Some(group.to_owned());
        }
    }
}
