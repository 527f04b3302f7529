//! Leaves out packets with damaged times.
//!
//! No transfer takes a month, so a time that is a month away from the others of its connection is damaged. What is
//! measured from the rest then stays far from the limits of [`super::Nanos`], which is what arithmetic relies on.

use super::recorder::{Recording, Sighting};

/// A month, in nanoseconds.
pub(super) const FAR: u64 = 30 * 24 * 3600 * 1_000_000_000;

impl Recording {
    /// Leaves out the packets that are a month or more away from the middle one of their connection, and notes that.
    pub fn leave_out_strays(&mut self) {
        let mut strays = Vec::new();
        for connection in &mut self.connections {
            let Some(middle) = middle(&connection.sightings) else {
                continue;
            };
            let is_stray = |it: &mut Sighting| it.time.abs_diff(middle) >= FAR;
            strays.extend(connection.sightings.extract_if(.., is_stray));
        }
        for stray in strays {
            let what = "packets whose time is a month or more away from their connection's";
            self.miss(stray.frame.into(), what.to_owned());
        }
    }
}

/// The middle one of all times.
fn middle(sightings: &[Sighting]) -> Option<u64> {
    let mut times: Vec<u64> = sightings.iter().map(|it| it.time).collect();
    let middle = times.len() / 2;
    (!times.is_empty()).then(|| *times.select_nth_unstable(middle).1)
}
