//! The sans-IO endpoint inside s2n-quic, taken out by way of its IO provider.
//!
//! s2n-quic hands its endpoint to whatever does its IO, and asks nothing of it but datagrams and
//! the time. So what is a tokio task for others is here a value that the program's own driver
//! calls.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::mpsc::Sender;
use std::task::{Context, Waker};
use std::time::Duration;

use s2n_quic::provider::{io, mtu};
use s2n_quic_core::endpoint::Endpoint;
use s2n_quic_core::event::{self, IntoEvent};
use s2n_quic_core::inet::SocketAddress;
use s2n_quic_core::path::Tuple;
use s2n_quic_core::time::{Clock, NoopClock, Timestamp};

use crate::queues::{Arrival, Departures, NoRoom};

/// The endpoint, whatever its providers. Times are since the start of the trial.
pub trait Machine: Send {
    /// A datagram has arrived.
    fn receive(&mut self, now: Duration, arrival: Arrival);

    /// Handles the timers that are due.
    fn expire(&mut self, now: Duration);

    /// Writes datagrams while there are any, and the queue takes them.
    fn transmit(&mut self, now: Duration, departures: &mut Departures);

    /// When the next timer is due.
    fn timeout(&self) -> Option<Duration>;
}

impl<E: Endpoint<PathHandle = Tuple>> Machine for E {
    fn receive(&mut self, now: Duration, mut arrival: Arrival) {
        Endpoint::receive(self, &mut arrival, &timestamp(now));
    }

    /// With a full queue, `transmit` handles timers and returns.
    fn expire(&mut self, now: Duration) {
        Endpoint::transmit(self, &mut NoRoom, &timestamp(now));
    }

    fn transmit(&mut self, now: Duration, departures: &mut Departures) {
        let now = timestamp(now);
        // Takes up the application's latest calls. It is asked each time, so nobody has to be
        // woken; an endpoint that has nothing left to do says so by an error, and has nothing to
        // send either.
        let _ = self.poll_wakeups(&mut Context::from_waker(Waker::noop()), &now);
        Endpoint::transmit(self, departures, &now);
    }

    fn timeout(&self) -> Option<Duration> {
        Some(Endpoint::timeout(self)?.saturating_duration_since(origin()))
    }
}

/// s2n-quic's time has no zero, and counts whole microseconds.
fn origin() -> Timestamp {
    NoopClock.get_time()
}

fn timestamp(now: Duration) -> Timestamp {
    origin() + now
}

/// The time of an event.
pub fn since_start(event: event::Timestamp) -> Duration {
    event.saturating_duration_since(origin().into_event())
}

/// An IO provider that passes the endpoint on.
pub struct Handover {
    pub to: Sender<Box<dyn Machine>>,
    pub local: SocketAddr,
    pub mtu: mtu::Config,
}

impl io::Provider for Handover {
    type PathHandle = Tuple;
    type Error = Infallible;

    fn start<E: Endpoint<PathHandle = Tuple>>(
        self,
        mut endpoint: E,
    ) -> Result<SocketAddress, Infallible> {
        endpoint.set_mtu_config(self.mtu);
        self.to
            .send(Box::new(endpoint))
            .expect("whoever starts the endpoint waits for it");
        Ok(self.local.into())
    }
}
