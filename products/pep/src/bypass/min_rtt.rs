//! The smallest round-trip times to other hosts (`min_rtt` of RFC 9002, section 5.2).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// They are forgotten after this: a path may have changed.
const MEMORY: Duration = Duration::from_mins(10);
/// Hosts of which one is known.
const MOST_HOSTS: usize = 1 << 12;

/// The smallest round-trip times to hosts that are known.
#[derive(Default)]
pub struct MinRtts {
    /// By host: the time, and until when it is believed.
    known: BTreeMap<IpAddr, (Duration, Instant)>,
}

impl MinRtts {
    /// A round trip to a host took so long.
    pub fn learn(&mut self, now: Instant, host: IpAddr, rtt: Duration) {
        if self.known.len() >= MOST_HOSTS && !self.known.contains_key(&host) {
            self.known.pop_first();
        }
        let (known, until) = self.known.entry(host).or_insert((rtt, now + MEMORY));
        if rtt <= *known || *until <= now {
            (*known, *until) = (rtt, now + MEMORY);
        }
    }

    /// The smallest that is known and still believed.
    pub fn of(&self, now: Instant, host: IpAddr) -> Option<Duration> {
        let (rtt, until) = self.known.get(&host)?;
        (*until > now).then_some(*rtt)
    }
}
