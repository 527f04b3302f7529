//! A policer: what finds no tokens is dropped.
//!
//! A drop counts as one of a full queue: it is caused by a rate that is exceeded, and losses are
//! caused by the path.

use bentpipe_units::Time;

use crate::node::{Node, Step, Transit};
use crate::token_bucket::{TokenBucket, TokenBucketConfig};

/// A token bucket that delays nothing.
pub(crate) struct Policer(TokenBucket);

impl Policer {
    pub fn new(config: TokenBucketConfig) -> Self {
        Self(TokenBucket::new(config))
    }
}

impl Node for Policer {
    fn enqueue(&mut self, now: Time, transit: &mut Transit) -> Step {
        let ip_bytes = transit.packet.ip_bytes;
        if !self.0.take_now(now, ip_bytes) {
            return Step::Drop;
        }
        Step::Leave { at: now }
    }
}
