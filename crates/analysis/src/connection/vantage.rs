//! Where a capture was taken.

use bentpipe_wire::quic::End;

use super::Protocol;
use super::observed::ObservedConnection;

/// The vantage point of a connection: the ends at which it was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vantage {
    /// At both ends.
    Both,
    /// At one end.
    At(End),
    /// At one place that lies at neither end, or cannot be told. Packets count as sent and received
    /// when they passed.
    Between,
}

/// One end answers this many times as quickly as the other before a capture counts as taken at that
/// end.
const QUICKER: u64 = 4;

impl Vantage {
    /// "both", "client", "server" or "between".
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::At(end) => end.name(),
            Self::Between => "between",
        }
    }

    /// The vantage point of a single capture: by the name of its interface, or by who answers
    /// quickly in the handshake.
    pub(super) fn of(name: Option<&str>, recorded: &ObservedConnection) -> Self {
        if let Some(end) = end_named(name) {
            return Self::At(end);
        }
        // Midway, the first packets that are seen answer nothing.
        let delays = answer_delays(recorded).filter(|_| recorded.protocol != Protocol::Quic(0));
        match delays {
            Some((client, server)) if client.saturating_mul(QUICKER) < server => {
                Self::At(End::Client)
            }
            Some((client, server)) if server.saturating_mul(QUICKER) < client => {
                Self::At(End::Server)
            }
            _ => Self::Between,
        }
    }
}

/// The end whose side a place with this name is at, if it names just one.
pub(super) fn end_named(name: Option<&str>) -> Option<End> {
    let is_in = |end: End| name.is_some_and(|name| name.contains(end.name()));
    match (is_in(End::Client), is_in(End::Server)) {
        (true, false) => Some(End::Client),
        (false, true) => Some(End::Server),
        _ => None,
    }
}

/// How long the client and the server took for their first answers: the server's to the first
/// packet that is seen, and the client's to that.
fn answer_delays(recorded: &ObservedConnection) -> Option<(u64, u64)> {
    let observations = &recorded.observations;
    let asked = observations
        .iter()
        .position(|it| it.sender == End::Client)?;
    let replied = asked
        + observations[asked..]
            .iter()
            .position(|it| it.sender == End::Server)?;
    let answered = replied
        + observations[replied..]
            .iter()
            .position(|it| it.sender == End::Client)?;
    // A client that waited repeats itself; the last of these is probably the one that was answered.
    let time = |at: usize| observations[at].time;
    Some((
        time(answered).saturating_sub(time(replied)),
        time(replied).saturating_sub(time(replied - 1)),
    ))
}
