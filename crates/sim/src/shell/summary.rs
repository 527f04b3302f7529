//! The line that says what came of a shell.

use std::fmt;
use std::time::Duration;

use bentpipe_trial::TestbedObservation;
use bentpipe_units::Time;

/// The digits of the hash that tell any two shells apart that a user will see.
const HASH_DIGITS: usize = 16;

/// The summary of a shell: times, packets, and the hash by which one sees that it repeats.
pub struct Summary {
    virtual_time: Duration,
    wall_time: Duration,
    to_client: u64,
    to_server: u64,
    dropped: u64,
    lost: u64,
    hash: String,
}

impl Summary {
    /// The summary of a shell whose client's command ended at `end`.
    pub fn new(seen: &TestbedObservation, end: Time, wall_time: Duration) -> Self {
        let hop = &seen.hops[0];
        let ways = [&hop.forward, &hop.back];
        let hash = seen.hash();
        let mut hash = hash.rsplit(':').next().unwrap_or_default().to_owned();
        hash.truncate(HASH_DIGITS);
        Self {
            virtual_time: Duration::from_nanos(end.as_nanos()),
            wall_time,
            to_client: hop.forward.packets,
            to_server: hop.back.packets,
            dropped: ways.map(|way| way.queue_drops).iter().sum(),
            lost: ways.map(|way| way.losses).iter().sum(),
            hash,
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [passed, took] = [self.virtual_time, self.wall_time].map(|it| it.as_secs_f64());
        write!(f, "sim: {passed:.3} s of virtual time in {took:.2} s; ")?;
        write!(f, "{} packets to the client, ", self.to_client)?;
        write!(f, "{} to the server, ", self.to_server)?;
        write!(f, "{} dropped, {} lost; ", self.dropped, self.lost)?;
        write!(f, "hash {}", self.hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_one_line() {
        let summary = Summary {
            virtual_time: Duration::from_millis(3607),
            wall_time: Duration::from_millis(421),
            to_client: 34,
            to_server: 30,
            dropped: 1,
            lost: 0,
            hash: "0123456789abcdef".to_owned(),
        };
        assert_eq!(
            summary.to_string(),
            "sim: 3.607 s of virtual time in 0.42 s; 34 packets to the client, 30 to the server, \
             1 dropped, 0 lost; hash 0123456789abcdef"
        );
    }
}
