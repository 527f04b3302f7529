//! The drivers, which give a stack its time and its datagrams.

mod pipes;
mod sockets;
mod udp_socket;
mod virtual_time;

use std::time::Duration;

use crate::application::Application;
use crate::contract::Bye;
use crate::error::EndpointError;
use crate::log_file::{LogFile, LogFolder};
use crate::migration::Migration;
use crate::stack::{Stack, Transmit};

pub use pipes::Pipes;
pub use sockets::Sockets;
pub use udp_socket::{Port, ReceiveBuffer, Wakeup};
pub use virtual_time::VirtualTime;

/// Datagrams that one poll may return, as in quinn's own driver. A poll's datagrams share one
/// pacing decision.
pub const MAX_DATAGRAMS: usize = 10;

/// A stack and the application on top of it.
pub struct Endpoint<S> {
    /// The QUIC implementation.
    pub stack: S,
    /// The application that uses the stack.
    pub application: Application,
    /// The migration that a client was asked for.
    pub migration: Option<Migration>,
    /// The file for its TLS secrets.
    pub keylog: Option<LogFile>,
    /// The folder for its qlog.
    pub qlog: Option<LogFolder>,
}

impl<S: Stack> Endpoint<S> {
    /// Hands all that has happened to the application.
    fn handle_events(&mut self, now: Duration) -> Result<(), EndpointError> {
        while let Some(event) = self.stack.poll_event() {
            self.application.handle(&mut self.stack, now, &event)?;
        }
        Ok(())
    }

    /// When something is due that is not the stack's.
    fn next_wake(&self) -> Option<Duration> {
        let migration = self.migration.as_ref().and_then(Migration::next_wake);
        self.application
            .next_wake()
            .into_iter()
            .chain(migration)
            .min()
    }

    /// Lets the application act, and the connection migrate, if that is due.
    fn wake(&mut self, now: Duration) -> Result<(), EndpointError> {
        if self.application.next_wake().is_some_and(|time| time <= now) {
            self.application.wake(&mut self.stack, now)?;
        }
        if let Some(migration) = &mut self.migration {
            migration.act(&mut self.stack, now);
        }
        Ok(())
    }

    /// Handles the timers if they are due; says whether they were.
    fn handle_timers(&mut self, now: Duration) -> bool {
        let due = self.stack.next_timeout().is_some_and(|time| time <= now);
        if due {
            self.stack.handle_timeout(now);
        }
        due
    }

    /// Fills `buffer` with what is to be sent next, if anything.
    fn poll_transmit(
        &mut self,
        now: Duration,
        max_datagrams: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        buffer.clear();
        self.stack.poll_transmit(now, max_datagrams, buffer)
    }

    /// Completes all files and says what happened.
    fn finish(self) -> Result<Bye, EndpointError> {
        let statistics = self.stack.statistics();
        // A library writes what it still buffers when it is dropped.
        drop(self.stack);
        if let Some(qlog) = &self.qlog {
            qlog.complete()?;
        }
        if let Some(keylog) = &self.keylog {
            keylog.complete()?;
        }
        let bye = self.application.finish()?;
        Ok(Bye { statistics, ..bye })
    }
}
