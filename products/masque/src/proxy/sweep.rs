//! Requests and connections that a proxy ends by itself.

use std::time::Duration;

use super::flow::Flow;
use super::{Client, MasqueProxy, SWEEP};
use crate::channel::Ending;
use crate::config::NO_ERROR;

/// The time within which a client has to show a token where connections are scarce.
const PROOF: Duration = Duration::from_secs(10);

impl MasqueProxy {
    /// Ends requests without datagrams for too long, and connections that others may need more.
    pub(super) fn sweep(&mut self, now: Duration) {
        self.next_sweep = now + SWEEP;
        self.end_unknown(now);
        let Some(idle) = self.settings.idle else {
            return;
        };
        // Who has an address keeps it as long as the connection.
        let is_silent = |it: &Flow| it.lease.is_none() && now >= it.touched + idle;
        let silent = self.flows.iter().filter(|(_, it)| is_silent(it));
        for flow in silent.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.end_flow(now, flow, Ending::Closed);
        }
    }

    /// Where half of the connections are in use, ends those whose clients have shown no token: they
    /// may be there to keep others out.
    fn end_unknown(&mut self, now: Duration) {
        if self.settings.tokens.is_empty() {
            return;
        }
        let is_late = |it: &Client| !it.is_known && now >= it.since + PROOF;
        let late = self.clients.iter().filter(|(_, it)| is_late(it));
        let late: Vec<_> = late
            .map(|(handle, it)| (*handle, it.address.ip()))
            .collect();
        for (handle, ip) in late {
            let (quota, limits) = (&self.settings.quota, self.settings.connections);
            if quota.is_half_used(ip, limits) {
                self.close_client(now, handle, NO_ERROR);
            }
        }
    }
}
