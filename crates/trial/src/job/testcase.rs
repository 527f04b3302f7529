//! The meaning of test cases for measures.

use bentpipe_link::Direction;
use bentpipe_wire::quic::End;
use serde::Deserialize;

use crate::job::Role;

/// The facts of a test case: who sends, over how many connections, and what an ideal sender needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestCaseFacts {
    /// The side that has the files.
    pub sender: Role,
    /// 1; or 2: then the first request has a separate connection, and the others the second one,
    /// over HTTP/1.1 several behind it, which is what is measured.
    pub connections: u8,
    /// Round trips that an ideal sender needs beside the time that the files take on the link.
    pub round_trips: u64,
    /// Round trips that options of both ends save; `round_trips` does not have them.
    pub saved_round_trips: u64,
}

impl TestCaseFacts {
    /// Whether the second connection is measured, and not the only one.
    #[must_use]
    pub fn has_two_connections(self) -> bool {
        self.connections > 1
    }

    /// The part that is measured of a list with an entry for each request.
    pub fn measured<T>(self, requests: &[T]) -> &[T] {
        &requests[usize::from(self.has_two_connections()).min(requests.len())..]
    }

    /// The side that stores the files.
    #[must_use]
    pub fn receiver(self) -> Role {
        match self.sender {
            Role::Client => Role::Server,
            Role::Server => Role::Client,
        }
    }

    /// The end of the connection that has the files.
    #[must_use]
    pub fn sending_end(self) -> End {
        match self.sender {
            Role::Client => End::Client,
            Role::Server => End::Server,
        }
    }

    /// The way that they go.
    #[must_use]
    pub fn direction(self) -> Direction {
        match self.sender {
            Role::Client => Direction::Return,
            Role::Server => Direction::Forward,
        }
    }
}
