//! The controller of `bentpipe-congestion` as a plug-in for noq.
//!
//! noq reports the events of packets that [`Controller`] needs, with these differences (noq-proto
//! 1.4): it names no ACK delay and no packet number space, and its signal `app_limited` means that
//! the last attempt to send found nothing to send: no data, or no flow control credit, which cannot
//! be told apart. There is no timer: what is to happen later happens with the next packet or ACK.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use bentpipe_congestion::{Algorithms, CongestionEvent, Controller, Settings, SharedEventLog};
use bentpipe_units::Time;
use noq_proto::RttEstimator;
use noq_proto::congestion::{self, ControllerFactory, ControllerMetrics};

use crate::living_path::LivingPath;

/// The factory of a [`Plugin`] for each path.
#[derive(Clone)]
pub struct Factory {
    /// The algorithms.
    pub algorithms: Algorithms,
    /// The other settings.
    pub settings: Settings,
    /// The instant of time 0.
    pub origin: Instant,
    /// Gives each path what is remembered of an earlier one, which replaces that in the settings,
    /// and what it shares with the memory while it lives.
    pub resume: Option<Arc<dyn Fn() -> Option<LivingPath> + Send + Sync>>,
    /// Makes the log of each path; takes the place of that in the settings.
    pub log: Option<Arc<dyn Fn() -> SharedEventLog + Send + Sync>>,
}

impl fmt::Debug for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(f)
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn congestion::Controller> {
        let time = since(self.origin, now);
        let mut settings = self.settings.clone();
        let living = self.resume.as_ref().and_then(|resume| resume());
        if let Some(living) = &living {
            settings.resume = living.take_resume();
        }
        if let Some(log) = &self.log {
            settings.log = Some(log());
        }
        let controller = self
            .algorithms
            .controller(settings, current_mtu.into(), time);
        Box::new(Plugin {
            controller,
            origin: self.origin,
            living,
        })
    }
}

fn since(origin: Instant, now: Instant) -> Time {
    let nanos = now.saturating_duration_since(origin).as_nanos();
    Time::from_nanos(u64::try_from(nanos).expect("a connection does not last for 584 years"))
}

/// A [`Controller`] that noq can use.
#[derive(Debug, Clone)]
pub struct Plugin {
    controller: Controller,
    origin: Instant,
    /// The state that it shares with the memory of paths; clones share it.
    living: Option<LivingPath>,
}

impl Plugin {
    /// The controller that it plugs in.
    #[must_use]
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// The state that it shares with the memory of paths, if there is one.
    pub(crate) fn living(&self) -> Option<&LivingPath> {
        self.living.as_ref()
    }

    /// Resumes what the memory has found since the controller was made, and nothing for which it is
    /// too late.
    fn resume_late(&mut self) {
        let Some(living) = self.living.as_ref() else {
            return;
        };
        let is_told = self.controller.resumption().saved.is_some();
        if self.controller.may_resume() {
            if let Some(resume) = living.take_resume() {
                self.controller.resume(resume);
            }
        } else if is_told && !self.controller.path().is_used() && living.is_late() {
            self.controller.forget();
        }
    }

    fn time(&self, now: Instant) -> Time {
        since(self.origin, now)
    }
}

impl congestion::Controller for Plugin {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        self.resume_late();
        if let Some(living) = &self.living
            && self.controller.path().is_used()
        {
            living.send();
        }
        self.controller.on_sent(self.time(now), pn, bytes.into());
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        _bytes: u64,
        pn: u64,
        _app_limited: bool,
        _rtt: &RttEstimator,
    ) {
        self.controller.on_ack(self.time(now), pn, self.time(sent));
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        self.controller
            .on_acks_end(self.time(now), in_flight, app_limited);
        if let Some(living) = &self.living {
            living.publish(&self.controller);
        }
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        self.controller
            .on_lost(self.time(now), pn, lost_bytes.into());
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        self.controller.on_congestion(&CongestionEvent {
            now: self.time(now),
            sent: self.time(sent),
            lost: lost_bytes,
            ecn: is_ecn,
            persistent: is_persistent_congestion,
        });
    }

    fn on_spurious_congestion_event(&mut self) {
        self.controller.on_spurious_congestion();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.controller.on_datagram_size(new_mtu.into());
    }

    /// The extension counts the packets that need no ACK.
    fn wanted_ack_eliciting_threshold(&self) -> Option<u64> {
        let packets = self.controller.packets_per_ack()?;
        Some(packets.saturating_sub(1))
    }

    fn window(&self) -> u64 {
        self.controller.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        metrics.ssthresh = self.controller.path().ssthresh;
        metrics.pacing_rate = Some(self.controller.pacing_rate());
        metrics
    }

    fn clone_box(&self) -> Box<dyn congestion::Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.controller.path().initial_window
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
