//! Whether the wire shows what the test case asks for (third column of the table in
//! `endpoints/contract/test-cases.md`; of TCP, where each request has a connection,
//! `endpoints/contract/http.md`).
//!
//! Every file has arrived when this is asked. Connections, Retry, `ClientHello` and `ServerHello`
//! can be read by everybody, so they are judged with or without TLS secrets; streams and 0-RTT
//! packets need these.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use bentpipe_analysis::connection::{Connection, Frame, Protocol, Subflow};
use bentpipe_units::Span;
use bentpipe_wire::quic::End;

use crate::evidence::DecodedConnection;
use crate::verdict::resumption::{early, resumed};
use crate::verdict::verifier::{ProofFailure, completed, miscounted};

/// A first PTO is 999 ms (RFC 9002 section 6.2.2): a client that waits longer for an answer sends
/// its `ClientHello` again.
const LONG: Span = Span::from_millis(1000);

/// A test case of `endpoints/contract/test-cases.md` that transfers files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestCase {
    Transfer,
    Handshake,
    Longrtt,
    Multiplexing,
    Resumption,
    Zerortt,
    Upload,
}

/// The claim of a flow: what it was to do.
#[derive(Debug, Clone, Copy)]
pub struct Claim {
    pub testcase: TestCase,
    /// The number of its requests, and the bytes of all their files.
    pub requests: usize,
    pub size_bytes: u64,
    /// The round-trip time of the client's hop, without queueing and transmission.
    pub round_trip: Span,
}

impl Claim {
    /// Holds what was on the wire against it.
    pub fn judge(&self, seen: &[DecodedConnection]) -> Result<(), ProofFailure> {
        if seen.is_empty() && self.testcase == TestCase::Transfer {
            return Ok(()); // of a protocol that is not known here, the files are all there is
        }
        if seen.is_empty() {
            return Err(ProofFailure::Sealed("no connection could be made out"));
        }
        let made = completed(seen);
        match (self.testcase, &made[..]) {
            (TestCase::Resumption | TestCase::Zerortt, [_, second]) => {
                resumed(second)?;
                self.carries(second, self.requests - 1, "second connection")?;
                match self.testcase {
                    TestCase::Zerortt => early(second),
                    _ => Ok(()),
                }
            }
            (TestCase::Resumption | TestCase::Zerortt, _) => {
                Err(miscounted("two connections", &made, seen))
            }
            (_, [first, ..]) if first.connection.protocol == Protocol::Tcp => {
                self.over_tcp(&made, seen)
            }
            (_, [only]) => self.over_one(only),
            _ => Err(miscounted("one connection", &made, seen)),
        }
    }

    fn over_one(&self, only: &DecodedConnection) -> Result<(), ProofFailure> {
        match self.testcase {
            TestCase::Handshake => handshake(only),
            TestCase::Longrtt => self.long(only),
            TestCase::Multiplexing => self.carries(only, self.requests, "connection"),
            TestCase::Upload => self.upload(&[only]),
            _ => Ok(()),
        }
    }

    /// A connection for each request, which carries its reply.
    fn over_tcp(
        &self,
        made: &[&DecodedConnection],
        seen: &[DecodedConnection],
    ) -> Result<(), ProofFailure> {
        // Subflows that join one are no further connections.
        let joined = |it: &DecodedConnection| it.connection.subflow == Some(Subflow::Joined);
        let all = made;
        let made: Vec<_> = made.iter().copied().filter(|it| !joined(it)).collect();
        let made = &made[..];
        if made.len() != self.requests {
            let expected = match self.requests {
                1 => "one connection".to_owned(),
                many => format!("{many} connections, one for each request"),
            };
            return Err(miscounted(&expected, made, seen));
        }
        let mut each = made.iter();
        match self.testcase {
            TestCase::Upload => self.upload(all),
            TestCase::Multiplexing => each.try_for_each(|it| self.carries(it, 1, "connection")),
            _ => each.try_for_each(|it| self.over_one(it)),
        }
    }

    fn long(&self, seen: &DecodedConnection) -> Result<(), ProofFailure> {
        let hellos = seen.establishment.client_hellos;
        if self.round_trip > LONG && hellos < 2 {
            let round_trip = self.round_trip;
            let name = match seen.connection.protocol {
                Protocol::Quic(_) => "ClientHellos",
                Protocol::Tcp => "SYNs",
            };
            return other(format!(
                "expected two {name} or more, as the round trip takes {round_trip}; saw {hellos}"
            ));
        }
        Ok(())
    }

    /// Whether a connection answered that many requests. One that cannot be read is taken at its
    /// word, unless this is all that there is to prove.
    fn carries(
        &self,
        seen: &DecodedConnection,
        requests: usize,
        name: &str,
    ) -> Result<(), ProofFailure> {
        if !seen.is_readable() {
            let matters = self.testcase == TestCase::Multiplexing;
            let sealed = ProofFailure::Sealed("the connection's streams could not be decrypted");
            return if matters { Err(sealed) } else { Ok(()) };
        }
        let answered = answered(&seen.connection);
        if answered < requests {
            let replies = match requests {
                1 => "a reply".to_owned(),
                many => format!("{many} replies"),
            };
            return other(format!(
                "expected a {name} that carries {replies}; saw {answered} streams that the server \
                 ended"
            ));
        }
        Ok(())
    }

    fn upload(&self, made: &[&DecodedConnection]) -> Result<(), ProofFailure> {
        if !made.iter().all(|it| it.is_readable()) {
            return Err(ProofFailure::Sealed(
                "the connection's streams could not be decrypted",
            ));
        }
        let sent = |end| {
            let all = made
                .iter()
                .flat_map(|it| it.connection.packets.iter().zip(&it.entries));
            let own = all.filter(move |(packet, _)| packet.sender == end);
            own.map(|(_, it)| u64::from(it.stream_bytes - it.retransmitted))
                .sum::<u64>()
        };
        let [client, server] = [End::Client, End::Server].map(sent);
        if client < self.size_bytes || server > 0 {
            let size = self.size_bytes;
            return other(format!(
                "expected {size} stream bytes from the client and none from the server; \
                 saw {client} and {server}"
            ));
        }
        Ok(())
    }
}

fn handshake(seen: &DecodedConnection) -> Result<(), ProofFailure> {
    if seen.establishment.retry {
        return other("expected a handshake without Retry; saw one".to_owned());
    }
    Ok(())
}

fn other<T>(what: String) -> Result<T, ProofFailure> {
    Err(ProofFailure::Other(what))
}

/// How many of the client's streams for both ways the server ended.
fn answered(connection: &Connection) -> usize {
    let own = connection.packets.iter();
    let own = own.filter(|it| it.sender == End::Server && !it.copy);
    let ended = own.flat_map(|packet| connection.frames(packet));
    let ended = ended.filter_map(|frame| match frame {
        Frame::Stream { id, fin: true, .. } if id.is_multiple_of(4) => Some(*id),
        _ => None,
    });
    ended.collect::<HashSet<u64>>().len()
}
