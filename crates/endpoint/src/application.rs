//! The application above a stack: a client or a server of files, in the protocol of the trial.

use std::time::Duration;

use crate::contract::{Bye, H3, HQ_INTEROP};
use crate::error::EndpointError;
use crate::frames::FrameStream;
use crate::options::Options;
use crate::setup::{Role, Setup};
use crate::stack::{Event, Stack};
use crate::test_case::TestCase;
use crate::{frames, h3, hq};

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
    /// Watches frames.
    Viewer(frames::Viewer),
    /// Makes them.
    Publisher(frames::Publisher),
}

impl Application {
    /// The side that `setup` asks for; takes those of the options that are its own.
    pub fn new(setup: &Setup, options: &mut Options) -> Result<Self, EndpointError> {
        check(setup)?;
        if let Some(stream) = of_frames(setup)? {
            return Ok(match setup.role {
                Role::Client => Self::Viewer(frames::Viewer::new(setup, &stream)?),
                Role::Server => Self::Publisher(frames::Publisher::new(setup, stream)?),
            });
        }
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
            Self::Viewer(viewer) => viewer.start(stack, now),
            Self::HqServer(_) | Self::H3Server(_) | Self::Publisher(_) => Ok(()),
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
            Self::Viewer(viewer) => viewer.handle(stack, now, event),
            Self::Publisher(publisher) => {
                publisher.handle(stack, now, event);
                Ok(())
            }
        }
    }

    /// The time of the next call of [`Application::wake`], if nothing arrives before.
    #[must_use]
    pub fn next_wake(&self) -> Option<Duration> {
        match self {
            Self::H3Client(client) => client.next_wake(),
            Self::Publisher(publisher) => publisher.next_wake(),
            Self::HqClient(_) | Self::HqServer(_) | Self::H3Server(_) | Self::Viewer(_) => None,
        }
    }

    /// The time has come that it waited for.
    pub fn wake(&mut self, stack: &mut impl Stack, now: Duration) -> Result<(), EndpointError> {
        match self {
            Self::H3Client(client) => client.advance(stack, now),
            Self::Publisher(publisher) => {
                publisher.advance(stack, now);
                Ok(())
            }
            Self::HqClient(_) | Self::HqServer(_) | Self::H3Server(_) | Self::Viewer(_) => Ok(()),
        }
    }

    /// Whether it has nothing more to do (`endpoints/CONTRACT.md`).
    #[must_use]
    pub fn is_done(&self) -> bool {
        match self {
            Self::HqClient(client) => client.is_done(),
            Self::HqServer(server) => server.is_done(),
            Self::H3Client(client) => client.is_done(),
            Self::H3Server(server) => server.is_done(),
            Self::Viewer(viewer) => viewer.is_done(),
            Self::Publisher(publisher) => publisher.is_done(),
        }
    }

    /// Completes the files and says what happened.
    pub fn finish(self) -> Result<Bye, EndpointError> {
        match self {
            Self::HqClient(client) => client.finish(),
            Self::HqServer(server) => server.finish(),
            Self::H3Client(client) => client.finish(),
            Self::H3Server(server) => Ok(server.finish()),
            Self::Viewer(viewer) => viewer.finish(),
            Self::Publisher(publisher) => Ok(publisher.finish()),
        }
    }
}

/// The stream of frames of `frames`; `None` in other test cases.
fn of_frames(setup: &Setup) -> Result<Option<FrameStream>, EndpointError> {
    let is_of_frames = setup.test_case == TestCase::Frames;
    let problem = match &setup.frames {
        None if !is_of_frames => return Ok(None),
        None => "it must be there in test case \"frames\"".to_owned(),
        Some(_) if !is_of_frames => "it is of test case \"frames\" alone".to_owned(),
        Some(it) => match it.problem(setup.requests.len()) {
            None => return Ok(Some(it.clone())),
            Some(problem) => problem,
        },
    };
    Err(EndpointError::Field {
        field: "frames",
        value: serde_json::to_string(&setup.frames).unwrap_or_default(),
        problem,
    })
}

/// Whether there is this application protocol in this test case (`endpoints/contract/http.md`).
fn check(setup: &Setup) -> Result<(), EndpointError> {
    use TestCase::{Handshake, LongRtt, Multiplexing, Transfer};
    let (alpn, case) = (setup.alpn.as_str(), setup.test_case);
    let is_there = match alpn {
        HQ_INTEROP => !case.is_of_http(),
        H3 => case.is_of_http() || matches!(case, Transfer | Handshake | LongRtt | Multiplexing),
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
