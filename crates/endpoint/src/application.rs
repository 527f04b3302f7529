//! What uses a stack: a client or a server of files, in the protocol of the trial.

use std::time::Duration;

use crate::contract::{Bye, H3, HQ_INTEROP};
use crate::error::EndpointError;
use crate::options::Options;
use crate::setup::{Role, Setup};
use crate::stack::{Event, Stack};
use crate::test_case::TestCase;
use crate::{h3, hq};

/// The application on top of a stack.
pub enum Application {
    /// Asks in `hq-interop`.
    HqClient(hq::Client),
    /// Answers in `hq-interop`.
    HqServer(hq::Server),
    /// Asks in HTTP/3.
    H3Client(h3::Client),
    /// Answers in HTTP/3.
    H3Server(h3::Server),
}

impl Application {
    /// The side that `setup` asks for; takes those of the options that are its own.
    pub fn new(setup: &Setup, options: &mut Options) -> Result<Self, EndpointError> {
        check(setup)?;
        Ok(match (setup.role, setup.alpn.as_str()) {
            (Role::Client, H3) => Self::H3Client(h3::Client::new(setup, options)?),
            (Role::Server, H3) => Self::H3Server(h3::Server::new(setup)?),
            (Role::Client, _) => Self::HqClient(hq::Client::new(setup)?),
            (Role::Server, _) => Self::HqServer(hq::Server::new(setup)?),
        })
    }

    /// Lets it act for the first time; a server has nothing to do.
    pub fn start(&mut self, stack: &mut impl Stack, now: Duration) -> Result<(), EndpointError> {
        match self {
            Self::HqClient(client) => client.start(stack, now),
            Self::H3Client(client) => client.start(stack, now),
            Self::HqServer(_) | Self::H3Server(_) => Ok(()),
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
            Self::HqClient(client) => client.handle(stack, now, event),
            Self::HqServer(server) => server.handle(stack, now, event),
            Self::H3Client(client) => client.handle(stack, now, event),
            Self::H3Server(server) => {
                server.handle(stack, now, event);
                Ok(())
            }
        }
    }

    /// When it wants [`Application::wake`] to be called, though nothing happens.
    #[must_use]
    pub fn next_wake(&self) -> Option<Duration> {
        match self {
            Self::H3Client(client) => client.next_wake(),
            Self::HqClient(_) | Self::HqServer(_) | Self::H3Server(_) => None,
        }
    }

    /// The time has come that it waited for.
    pub fn wake(&mut self, stack: &mut impl Stack, now: Duration) -> Result<(), EndpointError> {
        match self {
            Self::H3Client(client) => client.advance(stack, now),
            Self::HqClient(_) | Self::HqServer(_) | Self::H3Server(_) => Ok(()),
        }
    }

    /// Whether it has nothing more to do (contract, section 4).
    #[must_use]
    pub fn is_done(&self) -> bool {
        match self {
            Self::HqClient(client) => client.is_done(),
            Self::HqServer(server) => server.is_done(),
            Self::H3Client(client) => client.is_done(),
            Self::H3Server(server) => server.is_done(),
        }
    }

    /// Completes the files and says what happened.
    pub fn finish(self) -> Result<Bye, EndpointError> {
        match self {
            Self::HqClient(client) => client.finish(),
            Self::HqServer(server) => server.finish(),
            Self::H3Client(client) => client.finish(),
            Self::H3Server(server) => Ok(server.finish()),
        }
    }
}

/// Whether there is this application protocol in this test case (contract, sections 2 and 3).
fn check(setup: &Setup) -> Result<(), EndpointError> {
    use TestCase::{Handshake, Live, LongRtt, Multiplexing, Page, Transfer};
    let (alpn, case) = (setup.alpn.as_str(), setup.test_case);
    let is_there = match alpn {
        HQ_INTEROP => !matches!(case, Page | Live),
        H3 => matches!(
            case,
            Transfer | Handshake | LongRtt | Multiplexing | Page | Live
        ),
        _ => false,
    };
    if is_there {
        return Ok(());
    }
    let what = format!(
        "application protocol {alpn:?} in test case {:?}",
        case.name()
    );
    Err(EndpointError::Unsupported(what))
}
