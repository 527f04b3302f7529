//! The test cases of the contract, and what differs between them in a trial.

use bentpipe_link::Direction;
use bentpipe_wire::quic::End;
use serde::Deserialize;

use crate::job::Role;

/// A test case of section 2 of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the contract describes them")]
pub enum TestCase {
    Transfer,
    Handshake,
    Longrtt,
    Multiplexing,
    Resumption,
    Zerortt,
    Upload,
}

impl TestCase {
    /// The word of the contract.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Transfer => "transfer",
            Self::Handshake => "handshake",
            Self::Longrtt => "longrtt",
            Self::Multiplexing => "multiplexing",
            Self::Resumption => "resumption",
            Self::Zerortt => "zerortt",
            Self::Upload => "upload",
        }
    }

    /// Whether the first request has a connection of its own, and the others a second one, which is what is measured.
    #[must_use]
    pub fn has_two_connections(self) -> bool {
        matches!(self, Self::Resumption | Self::Zerortt)
    }

    /// Those of all requests, or of what belongs to them, that are measured.
    pub fn measured<T>(self, requests: &[T]) -> &[T] {
        &requests[usize::from(self.has_two_connections()).min(requests.len())..]
    }

    /// The side that has the files.
    #[must_use]
    pub fn sender(self) -> Role {
        match self {
            Self::Upload => Role::Client,
            _ => Role::Server,
        }
    }

    /// The side that stores them.
    #[must_use]
    pub fn receiver(self) -> Role {
        match self.sender() {
            Role::Client => Role::Server,
            Role::Server => Role::Client,
        }
    }

    /// The end of the connection that has the files.
    #[must_use]
    pub fn sending_end(self) -> End {
        match self.sender() {
            Role::Client => End::Client,
            Role::Server => End::Server,
        }
    }

    /// The way that they go.
    #[must_use]
    pub fn direction(self) -> Direction {
        match self.sender() {
            Role::Client => Direction::Return,
            Role::Server => Direction::Forward,
        }
    }

    /// Round trips that an ideal sender needs beside the time that the files take on the link: one for the handshake, unless
    /// the requests go with the client's first packets, and one from the request to the end of the answer.
    #[must_use]
    pub fn round_trips(self) -> u64 {
        if self == Self::Zerortt { 1 } else { 2 }
    }
}
