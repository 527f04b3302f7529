//! The adapter between the two: noq's trait for congestion control, implemented by
//! `bentpipe-congestion`.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use bentpipe_congestion::{Algorithms, CongestionEvent, Controller, Settings};
use bentpipe_units::Time;
use noq_proto::RttEstimator;
use noq_proto::congestion::{self, ControllerFactory, ControllerMetrics};

/// Makes a controller for each path of a connection.
pub struct Factory(pub Algorithms);

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn congestion::Controller> {
        let settings = Settings::default();
        let controller = self.0.controller(settings, mtu.into(), Time::default());
        Box::new(Glue(controller, now))
    }
}

/// A controller, and the instant that is its time 0.
#[derive(Debug, Clone)]
struct Glue(Controller, Instant);

impl Glue {
    fn time(&self, at: Instant) -> Time {
        let nanos = at.saturating_duration_since(self.1).as_nanos();
        Time::from_nanos(nanos.try_into().expect("less than 584 years"))
    }
}

impl congestion::Controller for Glue {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, number: u64) {
        self.0.on_sent(self.time(now), number, bytes.into());
    }

    #[rustfmt::skip]
    fn on_ack(&mut self, now: Instant, sent: Instant, _: u64, number: u64, _: bool, _: &RttEstimator) {
        self.0.on_ack(self.time(now), number, self.time(sent));
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, limited: bool, _: Option<u64>) {
        self.0.on_acks_end(self.time(now), in_flight, limited);
    }

    fn on_packet_lost(&mut self, bytes: u16, number: u64, now: Instant) {
        self.0.on_lost(self.time(now), number, bytes.into());
    }

    #[rustfmt::skip]
    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, ecn: bool, lost: u64, _: u64) {
        let (now, sent) = (self.time(now), self.time(sent));
        self.0.on_congestion(&CongestionEvent { now, sent, lost, ecn, persistent });
    }

    fn on_spurious_congestion_event(&mut self) {
        self.0.on_spurious_congestion();
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.0.on_datagram_size(mtu.into());
    }

    fn window(&self) -> u64 {
        self.0.window()
    }

    fn initial_window(&self) -> u64 {
        self.0.path().initial_window
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.0.window();
        metrics.ssthresh = self.0.path().ssthresh;
        metrics.pacing_rate = Some(self.0.pacing_rate()); // noq's pacer obeys it, in bytes per second
        metrics
    }

    fn clone_box(&self) -> Box<dyn congestion::Controller> {
        Box::new(self.clone())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
