//! `hq-interop`, HTTP/0.9 over QUIC streams (contract, section 2), over any
//! [`Stack`](crate::Stack).

mod client;
mod files;
mod request;
mod server;
mod upload;

use std::time::Duration;

use crate::contract::Bye;
use crate::error::EndpointError;
use crate::setup::{Role, Setup};
use crate::stack::{Closing, Event, Stack};

pub use client::Client;
pub use server::Server;

/// The application error code for requests that cannot be answered, and for replies nobody wants.
pub const REFUSED: u32 = 1;

/// The application on top of a stack: one side of `hq-interop`.
#[derive(Debug)]
pub enum Application {
    /// Asks.
    Client(Client),
    /// Answers.
    Server(Server),
}

impl Application {
    /// The side that `setup` asks for.
    pub fn new(setup: &Setup) -> Result<Self, EndpointError> {
        Ok(match setup.role {
            Role::Client => Self::Client(Client::new(setup)?),
            Role::Server => Self::Server(Server::new(setup)?),
        })
    }

    /// Lets it act for the first time; a server has nothing to do.
    pub fn start(&mut self, stack: &mut impl Stack, now: Duration) -> Result<(), EndpointError> {
        match self {
            Self::Client(client) => client.start(stack, now),
            Self::Server(_) => Ok(()),
        }
    }

    /// Tells it what happened at `now`.
    pub fn handle(
        &mut self,
        stack: &mut impl Stack,
        now: Duration,
        event: &Event,
    ) -> Result<(), EndpointError> {
        match self {
            Self::Client(client) => client.handle(stack, now, event),
            Self::Server(server) => server.handle(stack, now, event),
        }
    }

    /// Whether it has nothing more to do (contract, section 4).
    #[must_use]
    pub fn is_done(&self) -> bool {
        match self {
            Self::Client(client) => client.is_done(),
            Self::Server(server) => server.is_done(),
        }
    }

    /// Completes the files and says what happened.
    pub fn finish(self) -> Result<Bye, EndpointError> {
        match self {
            Self::Client(client) => client.finish(),
            Self::Server(server) => server.finish(),
        }
    }
}

/// What a side cannot do without.
fn missing(field: &'static str) -> EndpointError {
    EndpointError::Field {
        field,
        value: String::new(),
        problem: "this side needs it (endpoints/CONTRACT.md)".into(),
    }
}

/// The words of `Bye::error`.
fn describe(closing: &Closing) -> String {
    match closing {
        Closing::Application { code, reason } if reason.is_empty() => {
            format!("closed by peer: application error {code}")
        }
        Closing::Application { code, reason } => {
            format!("closed by peer: application error {code}, {reason}")
        }
        Closing::IdleTimeout => "idle timeout".into(),
        Closing::Error(words) => words.clone(),
    }
}

/// Whole nanoseconds.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).expect("a trial ends within 584 years")
}
