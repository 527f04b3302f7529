//! The clocks of two places, and what was captured at each for how long.

use std::ops::RangeInclusive;

use bentpipe_wire::quic::End;

use super::observed::{ObservedConnection, PacketObservation};
use super::{Fate, Nanos};

/// The relation of the clocks of two captures.
pub(super) struct Clocks {
    start: u64,
    /// The offset of the server's clock from the client's. Known to be wrong only if a packet
    /// arrives before it was sent; then the least delays of both directions are taken to be equal.
    pub(super) ahead: Nanos,
    /// From the first to the last packet that each side saw.
    captured: [RangeInclusive<Nanos>; 2],
    /// The least delay of packets from each end.
    delays: [Option<Nanos>; 2],
}

impl Clocks {
    /// `pairs` are the packets that both sides saw: as the client's side saw them, and as the
    /// server's did.
    pub(super) fn of<'a>(
        start: u64,
        client: &ObservedConnection,
        server: &ObservedConnection,
        pairs: impl Iterator<Item = (&'a PacketObservation, &'a PacketObservation)>,
    ) -> Self {
        let mut delays: [Option<Nanos>; 2] = [None, None];
        for (at_client, at_server) in pairs {
            let forth = since(at_client.time, at_server.time);
            let delay = match at_client.sender {
                End::Client => forth,
                End::Server => -forth,
            };
            let least = &mut delays[at_client.sender as usize];
            *least = Some(least.map_or(delay, |least| least.min(delay)));
        }
        let ahead = match delays {
            [Some(forth), Some(back)] if forth.min(back) < 0 => (forth - back) / 2,
            _ => 0,
        };
        let captured = [client, server].map(|place| {
            let times = place.observations.iter().map(|it| since(start, it.time));
            let (first, last) = (times.clone().min(), times.max());
            first.unwrap_or(0)..=last.unwrap_or(0)
        });
        let mut clocks = Self {
            start,
            ahead,
            captured,
            delays: [
                delays[0].map(|it| it - ahead),
                delays[1].map(|it| it + ahead),
            ],
        };
        let [_, at_server] = &mut clocks.captured;
        *at_server = at_server.start() - ahead..=at_server.end() - ahead;
        clocks
    }

    /// The times at which a packet was seen at the client's and at the server's side.
    pub(super) fn seen(
        &self,
        client: Option<&PacketObservation>,
        server: Option<&PacketObservation>,
    ) -> [Option<Nanos>; 2] {
        [
            client.map(|it| since(self.start, it.time)),
            server.map(|it| since(self.start, it.time) - self.ahead),
        ]
    }

    /// The fate of a packet. One that was under way when the capture of its receiver's side began
    /// or ended is not known to be lost.
    pub(super) fn fate(&self, sender: End, seen: [Option<Nanos>; 2], says: Option<Fate>) -> Fate {
        let receiver = sender.other() as usize;
        if seen[receiver].is_some() {
            return Fate::Delivered;
        }
        if let Some(fate) = says {
            return fate;
        }
        let arrival = seen[sender as usize].zip(self.delays[sender as usize]);
        let arrival = arrival.map(|(sent, delay)| sent + delay);
        if arrival.is_none_or(|arrival| self.captured[receiver].contains(&arrival)) {
            Fate::NotReceived
        } else {
            Fate::Unknown
        }
    }
}

/// Nanoseconds from `start` to `time`.
pub(super) fn since(start: u64, time: u64) -> Nanos {
    let ahead = i128::from(time) - i128::from(start);
    Nanos::try_from(ahead).expect("times that are far off were left out")
}
