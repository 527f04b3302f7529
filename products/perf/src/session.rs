//! One test on one connection, seen from one side: no socket, no clock.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use bentpipe_endpoint::Clock;
use bentpipe_noq_options::Report;
use bytes::Bytes;
use noq_proto::{Connection, ConnectionError, Dir, Event, PathId, StreamEvent, VarInt};

use crate::control_stream::ControlStream;
use crate::protocol::{
    Direction, Interval, Message, ReceiverCounters, Request, SenderTotals, TestEnd,
};
use crate::receiver::Receiver;
use crate::sender::{self, Sender};

/// How long an interrupted test may take to come to an end in order.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// The application error code of a test that went wrong.
const WRONG: u32 = 1;

/// The side of a test that this program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

/// A test on one connection, seen from one side.
pub struct Session {
    side: Side,
    pub request: Option<Request>,
    /// Why a server does not want it, whatever it asks.
    refusal: Option<String>,
    /// The options with which a server has made the connection.
    options: BTreeMap<String, String>,
    control: ControlStream,
    sender: Option<Sender>,
    receiver: Option<Receiver>,
    /// The report of congestion control.
    report: Option<Rc<Report>>,
    clock: Clock,
    /// The program's CPU time at the beginning.
    cpu_before: Duration,
    started: Duration,
    pub connected: Option<Duration>,
    /// When the first byte of any stream came.
    first_byte: Option<Duration>,
    pub zero_rtt: ZeroRtt,
    /// The program at the other side.
    pub peer: Option<String>,
    /// The events, interval by interval, as far as they are known.
    pub rows: Vec<Interval>,
    pub own_end: Option<TestEnd>,
    pub peer_end: Option<TestEnd>,
    interrupted: bool,
    give_up: Option<Duration>,
    /// How it ended: as it should, or why not.
    pub result: Option<Result<(), String>>,
}

/// The outcome of early data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZeroRtt {
    NotTried,
    Sent,
    Accepted,
    Rejected,
}

impl ZeroRtt {
    pub fn name(self) -> &'static str {
        match self {
            Self::NotTried => "not_tried",
            Self::Sent => "unanswered",
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
        }
    }
}

impl Session {
    fn new(side: Side, clock: Clock, now: Duration, report: Option<Rc<Report>>) -> Self {
        Self {
            side,
            clock,
            request: None,
            refusal: None,
            options: BTreeMap::new(),
            control: ControlStream::default(),
            sender: None,
            receiver: None,
            report,
            cpu_before: crate::cpu_time(),
            started: now,
            connected: None,
            first_byte: None,
            zero_rtt: ZeroRtt::NotTried,
            peer: None,
            rows: Vec::new(),
            own_end: None,
            peer_end: None,
            interrupted: false,
            give_up: None,
            result: None,
        }
    }

    /// A client's, which asks for `request`.
    pub fn client(
        request: Request,
        clock: Clock,
        now: Duration,
        report: Option<Rc<Report>>,
    ) -> Self {
        let mut session = Self::new(Side::Client, clock, now, report);
        session.take_up(request);
        session
    }

    /// A server's, which waits for a request, and refuses it if there is a `refusal`.
    pub fn server(
        clock: Clock,
        now: Duration,
        report: Option<Rc<Report>>,
        options: BTreeMap<String, String>,
        refusal: Option<String>,
    ) -> Self {
        let mut session = Self::new(Side::Server, clock, now, report);
        session.options = options;
        session.refusal = refusal;
        session
    }

    /// A client's that asks for nothing.
    pub fn greeting(clock: Clock, now: Duration) -> Self {
        Self::new(Side::Client, clock, now, None)
    }

    /// Ends a greeting.
    pub fn leave(&mut self, connection: &mut Connection, now: Duration) {
        self.close(connection, now);
    }

    fn take_up(&mut self, request: Request) {
        if self.side == Side::Client {
            self.control.send(&Message::Request(request.clone()));
        }
        if (self.side == Side::Client) == (request.direction == Direction::Upload) {
            self.sender = Some(Sender::new(request.clone()));
        } else {
            self.receiver = Some(Receiver::new(request.clone()));
        }
        self.request = Some(request);
    }

    pub fn started(&self) -> Duration {
        self.started
    }

    /// Connection establishment: until this side knows that the handshake is complete.
    pub fn handshake(&self) -> Option<Duration> {
        Some(self.connected?.saturating_sub(self.started))
    }

    /// Until the first byte of any stream came.
    pub fn time_to_first_byte(&self) -> Option<Duration> {
        Some(self.first_byte?.saturating_sub(self.started))
    }

    /// When it wants to be driven again, whatever the connection does.
    pub fn wake(&self) -> Option<Duration> {
        if self.result.is_some() {
            return None;
        }
        let sender = self.sender.as_ref().and_then(Sender::wake);
        let receiver = self.receiver.as_ref().and_then(Receiver::wake);
        [sender, receiver, self.give_up].into_iter().flatten().min()
    }

    /// The user wants it to end: in order, if that is soon.
    pub fn interrupt(&mut self, connection: &mut Connection, now: Duration) {
        if self.result.is_some() {
            return;
        }
        let again = self.give_up.is_some();
        self.interrupted = true;
        self.give_up = Some(now + SHUTDOWN_TIMEOUT);
        if again || self.request.is_none() || self.connected.is_none() {
            self.fail(connection, now, "interrupted".into());
        } else if let Some(sender) = &mut self.sender {
            sender.stop(connection, now);
        } else {
            self.control.send(&Message::Stop);
        }
    }

    /// Handles all that has happened, and does what there is to do.
    pub fn drive(&mut self, connection: &mut Connection, now: Duration) {
        let asks = self.side == Side::Client && self.request.is_some();
        if asks && self.control.stream().is_none() {
            self.open_control(connection);
        }
        while let Some(event) = connection.poll() {
            self.handle(connection, now, event);
        }
        if self.result.is_some() {
            return;
        }
        if let Err(why) = self.exchange_messages(connection, now) {
            self.fail(connection, now, why);
            return;
        }
        if self.give_up.is_some_and(|time| now >= time) {
            self.fail(connection, now, "interrupted".into());
        }
    }

    fn open_control(&mut self, connection: &mut Connection) {
        if let Some(stream) = connection.streams().open(Dir::Bi) {
            if connection.is_handshaking() {
                self.zero_rtt = ZeroRtt::Sent;
            }
            self.control.attach(connection, stream);
        }
    }

    fn exchange_messages(
        &mut self,
        connection: &mut Connection,
        now: Duration,
    ) -> Result<(), String> {
        self.control.read(connection)?;
        while let Some(message) = self.control.next() {
            self.handle_message(connection, now, message)?;
        }
        if self.control.stream().is_some()
            && let Some(sender) = &mut self.sender
            && self.own_end.is_none()
        {
            // Reports go first where there is little room.
            self.control.flush(connection)?;
            sender.drive(connection, now);
        }
        self.report(connection, now);
        self.control.flush(connection)
    }

    fn handle(&mut self, connection: &mut Connection, now: Duration, event: Event) {
        match event {
            Event::Connected => self.connect(connection, now),
            Event::ConnectionLost { reason } => self.connection_lost(&reason),
            Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                if self.control.stream().is_none()
                    && let Some(stream) = connection.streams().accept(Dir::Bi)
                {
                    self.control.attach(connection, stream);
                    self.first_byte.get_or_insert(now);
                }
            }
            Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                if let Some(receiver) = &mut self.receiver {
                    receiver.accept(connection, now);
                    self.first_byte = self.first_byte.or(receiver.first_byte());
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => {
                self.first_byte.get_or_insert(now);
                if let Some(receiver) = &mut self.receiver {
                    receiver.read(connection, now, id);
                }
            }
            Event::Stream(StreamEvent::Writable { id }) => {
                if let Some(sender) = &mut self.sender {
                    sender.writable(id);
                }
            }
            // The other side has heard all of it; whether its close comes does not matter.
            Event::Stream(StreamEvent::Finished { id })
                if Some(id) == self.control.stream() && self.peer_end.is_some() =>
            {
                self.close(connection, now);
            }
            _ => {}
        }
    }

    fn connect(&mut self, connection: &mut Connection, now: Duration) {
        self.connected = Some(now);
        if self.side == Side::Client && self.zero_rtt == ZeroRtt::Sent {
            if connection.accepted_0rtt() {
                self.zero_rtt = ZeroRtt::Accepted;
                return;
            }
            // The streams are no more. All begins again.
            self.zero_rtt = ZeroRtt::Rejected;
            self.control = ControlStream::default();
            if let Some(request) = self.request.take() {
                self.sender = None;
                self.receiver = None;
                self.take_up(request);
            }
            self.open_control(connection);
        }
    }

    fn connection_lost(&mut self, reason: &ConnectionError) {
        let whole = self.own_end.is_some() && self.peer_end.is_some();
        let result = match reason {
            ConnectionError::ApplicationClosed(close)
                if (whole || self.request.is_none()) && close.error_code == VarInt::from_u32(0) =>
            {
                Ok(())
            }
            ConnectionError::ApplicationClosed(close) if close.reason.is_empty() => {
                Err("the other side ended the connection early".into())
            }
            ConnectionError::ApplicationClosed(close) => {
                let words = String::from_utf8_lossy(&close.reason);
                Err(format!("the other side ended the test: {words}"))
            }
            ConnectionError::TimedOut if whole => Ok(()),
            ConnectionError::TimedOut if self.connected.is_none() => {
                Err("no answer to the handshake".into())
            }
            ConnectionError::TimedOut => {
                Err("nothing was heard from the other side for the whole idle timeout".into())
            }
            other => Err(other.to_string()),
        };
        self.result.get_or_insert(result);
    }

    /// Follows what the other side says.
    fn handle_message(
        &mut self,
        connection: &mut Connection,
        now: Duration,
        message: Message,
    ) -> Result<(), String> {
        match (message, self.side) {
            (Message::Request(request), Side::Server) if self.request.is_none() => {
                self.begin(connection, now, request);
            }
            (Message::Accepted(program), Side::Client) => self.peer = Some(program),
            (Message::Refused(why), Side::Client) => {
                return Err(format!("the server refuses the test: {why}"));
            }
            (Message::Interval(part), _) if self.request.is_some() => self.enter_interval(part)?,
            (Message::Stop, _) if self.request.is_some() => {
                self.interrupted = true;
                if let Some(sender) = &mut self.sender {
                    sender.stop(connection, now);
                }
            }
            (Message::End(end), _) if self.request.is_some() && self.peer_end.is_none() => {
                if let Some(sender) = &mut self.sender {
                    sender.end(now);
                }
                self.interrupted |= end.interrupted;
                self.peer_end = Some(end);
            }
            _ => return Err("a message came that makes no sense here".into()),
        }
        Ok(())
    }

    /// A server begins what it was asked for, or says why not.
    fn begin(&mut self, connection: &mut Connection, now: Duration, request: Request) {
        let checked = match self.refusal.take() {
            Some(why) => Err(why),
            None if request.options != self.options => {
                Err("the options in the ClientHello could not be read".into())
            }
            None => request.check(),
        };
        match checked {
            Ok(()) => {
                let program = format!("bentpipe {}, noq", env!("CARGO_PKG_VERSION"));
                self.control.send(&Message::Accepted(program));
                self.take_up(request);
                if let Some(receiver) = &mut self.receiver {
                    receiver.accept(connection, now);
                }
            }
            Err(why) => {
                self.control.send(&Message::Refused(why.clone()));
                self.control.finish();
                // The client closes, once it has read it.
                self.refusal = Some(why);
            }
        }
    }

    /// Says what is to be said by now.
    fn report(&mut self, connection: &mut Connection, now: Duration) {
        let mut parts = Vec::new();
        if let Some(sender) = &mut self.sender {
            parts = sender.intervals(connection, now);
        } else if let Some(receiver) = &mut self.receiver {
            parts = receiver.intervals(now);
        }
        for part in parts {
            self.control.send(&Message::Interval(part));
            // One's own are in order.
            let _ = self.enter_interval(part);
        }
        let is_due = match (&self.sender, &self.receiver) {
            (Some(_), _) => self.peer_end.is_some(),
            (_, Some(receiver)) => receiver.is_done(),
            _ => false,
        };
        if is_due && self.own_end.is_none() {
            let end = self.end(connection);
            self.control.send(&Message::End(end.clone()));
            self.control.finish();
            self.own_end = Some(end);
        }
        if self.receiver.is_some() && self.own_end.is_some() && self.peer_end.is_some() {
            self.close(connection, now);
        }
    }

    fn end(&self, connection: &mut Connection) -> TestEnd {
        let totals = sender::totals(connection);
        let path = connection.path_stats(PathId::ZERO).unwrap_or_default();
        let statistics = self.report.as_ref().map(|report| report());
        TestEnd {
            seconds: match (&self.sender, &self.receiver) {
                (Some(sender), _) => sender.seconds(),
                (_, Some(receiver)) => receiver.seconds(),
                _ => 0.0,
            },
            cpu_s: (crate::cpu_time().saturating_sub(self.cpu_before)).as_secs_f64(),
            interrupted: self.interrupted,
            received: self.receiver.as_ref().map(Receiver::received),
            sent: self.sender.as_ref().map(|_| SenderTotals {
                totals,
                mtu_bytes: path.current_mtu,
                statistics: statistics.unwrap_or_default(),
            }),
        }
    }

    /// Puts one side's part of an interval beside the other's.
    fn enter_interval(&mut self, part: Interval) -> Result<(), String> {
        let index = part.index as usize;
        if index > self.rows.len() {
            return Err("the report of an interval is missing".into());
        }
        if index == self.rows.len() {
            self.rows.push(part);
        }
        let row = &mut self.rows[index];
        row.seconds = row.seconds.max(part.seconds);
        row.received = row.received.or(part.received);
        row.sent = row.sent.or(part.sent);
        Ok(())
    }

    /// How many of the rows, from the first, are whole.
    pub fn whole_rows(&self) -> usize {
        let is_whole = |row: &&Interval| row.received.is_some() && row.sent.is_some();
        self.rows.iter().take_while(is_whole).count()
    }

    /// The bytes that have arrived, if this is known.
    pub fn received(&self) -> Option<(ReceiverCounters, f64)> {
        let ends = [&self.own_end, &self.peer_end];
        let end = ends
            .into_iter()
            .flatten()
            .find(|end| end.received.is_some())?;
        Some((end.received?, end.seconds))
    }

    pub fn sent(&self) -> Option<&SenderTotals> {
        let ends = [&self.own_end, &self.peer_end];
        ends.into_iter().flatten().find_map(|end| end.sent.as_ref())
    }

    pub fn was_interrupted(&self) -> bool {
        self.interrupted
    }

    fn close(&mut self, connection: &mut Connection, now: Duration) {
        self.result.get_or_insert(Ok(()));
        self.close_connection(connection, now, 0, "");
    }

    fn fail(&mut self, connection: &mut Connection, now: Duration, why: String) {
        self.close_connection(connection, now, WRONG, &why);
        self.result.get_or_insert(Err(why));
    }

    fn close_connection(&self, connection: &mut Connection, now: Duration, code: u32, why: &str) {
        let reason = Bytes::copy_from_slice(why.as_bytes());
        connection.close(self.clock.instant(now), VarInt::from_u32(code), reason);
    }
}
