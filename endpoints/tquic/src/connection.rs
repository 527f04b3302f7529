//! Events of one connection for the application.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use bentpipe_endpoint::{Closing, ConnectionKey, Event, StreamKey};
use tquic::Connection;

/// The events of a connection that the application already knows.
#[derive(Default)]
pub struct Known {
    connected: bool,
    /// Replies may arrive before the end of its handshake is sent.
    pub early_data: bool,
    /// The application knows of the end, or has caused it.
    pub closed: bool,
    /// Streams of the peer that were reported to it.
    pub opened: BTreeSet<u64>,
    /// Streams whose last write was blocked.
    pub blocked: BTreeSet<u64>,
    /// The time before which it is not to try to open a stream again, after it was refused one.
    refused: Option<Duration>,
    /// Something has come since, so that it is to ask again at that time.
    pub again: Option<Duration>,
}

/// tquic does not tell that the peer allows more streams: one has to ask for one, and for each that
/// is refused it sends `STREAMS_BLOCKED`. So the application asks when something has come that may
/// be the permission, and not more often than this.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

impl Known {
    /// Reports the events that it does not know yet.
    ///
    /// tquic would tell by callbacks, right before it sends. That is too late for an application
    /// that answers between receiving and sending, so the connection is looked at instead.
    pub fn catch_up(
        &mut self,
        now: Duration,
        key: ConnectionKey,
        connection: &mut Connection,
        events: &mut VecDeque<Event>,
    ) {
        self.again = None;
        if self.closed {
            return;
        }
        if !self.connected && connection.is_established() {
            self.connected = true;
            events.push_back(Event::Connected(key));
        }
        // tquic keeps streams in hash sets: by number, what comes first does not hang on how they
        // hash.
        for stream in connection.stream_readable_iter().collect::<BTreeSet<_>>() {
            if self.is_new(connection, stream) {
                events.push_back(Event::Opened(key, StreamKey(stream)));
            }
            events.push_back(Event::Readable(key, StreamKey(stream)));
        }
        self.blocked.retain(|stream| {
            // An error is what the next write says.
            let still = connection.stream_capacity(*stream) == Ok(0);
            if !still {
                events.push_back(Event::Writable(key, StreamKey(*stream)));
            }
            still
        });
        self.again = self.refused.filter(|time| *time > now);
        if self.again.is_none() && self.refused.take().is_some() {
            events.push_back(Event::MoreStreams(key));
        }
        if let Some(closing) = closing(connection) {
            self.closed = true;
            events.push_back(Event::Closed(key, closing));
        }
    }

    /// The application was refused a stream.
    pub fn refuse_stream(&mut self, now: Duration) {
        self.refused = Some(now + RETRY_INTERVAL);
    }

    /// Whether this is a bidirectional stream of the peer that was not reported to it.
    fn is_new(&mut self, connection: &Connection, stream: u64) -> bool {
        let by_server = stream & 1 == 1;
        let bidirectional = stream & 2 == 0;
        by_server != connection.is_server() && bidirectional && self.opened.insert(stream)
    }
}

/// Why the connection has ended, if it has.
pub fn closing(connection: &Connection) -> Option<Closing> {
    if connection.is_handshake_timeout() {
        return Some(Closing::Error("handshake timeout".into()));
    }
    if connection.is_idle_timeout() {
        return Some(Closing::IdleTimeout);
    }
    if connection.is_reset() {
        return Some(Closing::Error("stateless reset by peer".into()));
    }
    if let Some(error) = connection.peer_error() {
        let reason = String::from_utf8_lossy(&error.reason).into_owned();
        let code = error.error_code;
        return Some(if error.is_app {
            Closing::Application { code, reason }
        } else {
            Closing::Error(format!("closed by peer: error {code:#x} {reason}"))
        });
    }
    let error = connection.local_error()?;
    let reason = String::from_utf8_lossy(&error.reason);
    Some(Closing::Error(format!(
        "error {:#x} {reason}",
        error.error_code
    )))
}
