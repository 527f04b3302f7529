//! Leaves out packets with damaged times.
//!
//! No transfer takes a month, so a time that is a month away from the others of its connection is
//! damaged. What is measured from the rest then stays far from the limits of [`super::Nanos`],
//! which is what arithmetic relies on.

use super::observed::PacketObservation;
use super::recorder::Recording;

/// A month, in nanoseconds.
pub(super) const MONTH: u64 = 30 * 24 * 3600 * 1_000_000_000;

impl Recording {
    /// Leaves out the packets that are a month or more away from the middle one of their
    /// connection, and notes that.
    pub fn leave_out_outliers(&mut self) {
        let mut outliers = Vec::new();
        for connection in &mut self.connections {
            let Some(middle) = middle(&connection.observations) else {
                continue;
            };
            let is_outlier = |it: &mut PacketObservation| it.time.abs_diff(middle) >= MONTH;
            outliers.extend(connection.observations.extract_if(.., is_outlier));
        }
        for outlier in outliers {
            let what = "packets whose time is a month or more away from their connection's";
            self.note_undecodable(outlier.frame.into(), what.to_owned());
        }
    }
}

/// The middle one of all times.
fn middle(observations: &[PacketObservation]) -> Option<u64> {
    let mut times: Vec<u64> = observations.iter().map(|it| it.time).collect();
    let middle = times.len() / 2;
    (!times.is_empty()).then(|| *times.select_nth_unstable(middle).1)
}
