//! The packets of one direction in the order in which they were sent, and which of them were lost.
//!
//! A step of the sequence is an IP packet, as it is for the loss models of links. Left out are
//! packets that a queue dropped, where the capture says so: they never reached what loses packets.
//! Left out are also those of which it is not known what became of them: they were not seen
//! leaving, they were seen twice, or they were under way when the capture of the receiver's side
//! ended.

use bentpipe_wire::quic::End;

use crate::connection::{Connection, Fate, Nanos, Packet, Vantage};

/// The packets of one direction that were delivered or lost, by the time at which they were sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LossSequence {
    /// The time at which each was sent, since the first.
    pub sent: Vec<Nanos>,
    /// Whether each was lost.
    pub lost: Vec<bool>,
    /// The number of packets that a queue dropped.
    pub queue_drops: u64,
    /// The number of losses that the capture does not tell from drops by a queue.
    pub unexplained: u64,
    /// The number of packets whose fate is not known.
    pub undecided: u64,
}

impl LossSequence {
    /// The packets that `sender` sent over all connections that were captured at both sides.
    #[must_use]
    pub fn of(connections: &[Connection], sender: End) -> Self {
        let both = connections.iter().filter(|it| it.vantage == Vantage::Both);
        let mut sequence = Self::default();
        let mut steps = Vec::new();
        for connection in both {
            let own = connection.packets.iter().filter(|it| it.sender == sender);
            for packet in own.filter(|it| it.ip_size.is_some()) {
                match (sent(connection, packet), packet.fate) {
                    _ if packet.copy => sequence.undecided += 1,
                    (_, Fate::QueueDrop) => sequence.queue_drops += 1,
                    (Some(sent), fate) if fate != Fate::Unknown => steps.push((sent, fate)),
                    _ => sequence.undecided += 1,
                }
            }
        }
        // Packets of the same instant keep their order.
        steps.sort_by_key(|(sent, _)| *sent);
        sequence.leave_out_last(&mut steps);
        let first = steps.first().map_or(0, |(sent, _)| *sent);
        for (sent, fate) in steps {
            sequence.unexplained += u64::from(fate == Fate::NotReceived);
            let since = Nanos::try_from(sent - first);
            sequence.sent.push(since.unwrap_or(Nanos::MAX));
            sequence.lost.push(fate != Fate::Delivered);
        }
        sequence
    }

    /// Leaves out packets behind the last that was delivered which may have been under way when
    /// the capture ended: a queue may have held them for long.
    fn leave_out_last(&mut self, steps: &mut Vec<(i128, Fate)>) {
        while steps
            .last()
            .is_some_and(|(_, fate)| *fate == Fate::NotReceived)
        {
            steps.pop();
            self.undecided += 1;
        }
    }

    /// The number of losses.
    #[must_use]
    pub fn losses(&self) -> u64 {
        self.lost.iter().map(|lost| u64::from(*lost)).sum()
    }

    /// The sequence as runs of packets that met the same.
    #[must_use]
    pub fn runs(&self) -> Vec<LossRun> {
        let chunks = self.lost.chunk_by(|one, next| one == next);
        let runs = chunks.map(|chunk| LossRun {
            lost: chunk[0],
            length: chunk.len() as u64,
        });
        runs.collect()
    }
}

/// A run of packets one after the other that all were lost, or all delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossRun {
    /// Whether they were lost: a burst.
    pub lost: bool,
    /// The number of its packets.
    pub length: u64,
}

/// When a packet was sent, by the clock of its sender's side, which all connections share.
fn sent(connection: &Connection, packet: &Packet) -> Option<i128> {
    let ahead = match packet.sender {
        End::Client => 0,
        End::Server => connection.clock_ahead,
    };
    let since = packet.sent()? + ahead;
    Some(i128::from(connection.start) + i128::from(since))
}
