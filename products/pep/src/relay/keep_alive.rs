//! Handing on that a peer wants the connection to live (RFC 9000, section 10.1.2).
//!
//! Who keeps one hop alive by PING means all. And who has sent all that it has must not take the
//! connection for dead while the other side is still receiving it: without proxies it would know
//! that.

use std::time::{Duration, Instant};

use noq_proto::Connection;

use super::ends::BothConnections;

/// In an idle time it is looked so often for activity.
const LOOKS: u32 = 4;

/// The watch on the activity of a pair's connections. Every now and then is enough.
#[derive(Debug, Default)]
pub struct KeepAlive {
    next: Option<NextCheck>,
}

/// The next look at them.
#[derive(Debug, Clone, Copy)]
struct NextCheck {
    time: Instant,
    /// How active they were before.
    activity: [u64; 2],
}

impl KeepAlive {
    /// Sends PING on one side if there was activity on the other, should it be time for that;
    /// whether there was any.
    pub fn forward(&mut self, now: Instant, idle: Duration, both: BothConnections<'_>) -> bool {
        let [Some(client), Some(server)] = both else {
            return false;
        };
        let activity = [activity(client), activity(server)];
        let next = NextCheck {
            time: now + idle / LOOKS,
            activity,
        };
        let Some(look) = self.next else {
            self.next = Some(next);
            return false;
        };
        if look.time > now {
            return false;
        }
        if activity[0] > look.activity[0] {
            server.ping();
        }
        if activity[1] > look.activity[1] {
            client.ping();
        }
        self.next = Some(next);
        activity != look.activity
    }

    /// When [`Self::forward`] wants to be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.next.map(|look| look.time)
    }
}

/// The signs so far that the connection is in use on this side: PINGs of the peer, and data that it
/// was sent. A PING that is relayed adds to neither.
fn activity(connection: &mut Connection) -> u64 {
    let stats = connection.stats();
    stats.frame_rx.ping + stats.frame_tx.stream
}
