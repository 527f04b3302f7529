//! The server: makes a frame in every interval, and sends it at once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};

use super::header::Header;
use super::{Carrier, EXPIRED, FrameStream, QUESTION, REFUSED};
use crate::contract::{Bye, Statistics};
use crate::error::EndpointError;
use crate::files::ServedFolder;
use crate::setup::Setup;
use crate::stack::{Closing, ConnectionKey, Event, Read, Stack, StreamKey};
use crate::words::{describe, missing, nanos, path_of, wrong_request};

/// After so long it is asked again whether parts of frames still wait: nothing tells when they do
/// not any more.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// For so long the end waits for them: with a congestion window of two packets, which losses leave,
/// it would take minutes.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// A publisher of frames.
#[derive(Debug)]
pub struct Publisher {
    stream: FrameStream,
    frames: Vec<Bytes>,
    /// The trial's time zero, since 1970.
    zero: Duration,
    /// The viewers' requests, as far as they have arrived.
    questions: BTreeMap<(ConnectionKey, StreamKey), Vec<u8>>,
    viewings: BTreeMap<ConnectionKey, Viewing>,
    connected_at: Option<Duration>,
    open: BTreeSet<ConnectionKey>,
    had_any: bool,
    error: Option<String>,
}

/// The state of sending to one viewer.
#[derive(Debug)]
struct Viewing {
    /// The stream of its question, which ends when all frames are over.
    question: StreamKey,
    began: Duration,
    /// The next frame to be made.
    next: usize,
    /// Frames that no stream could be opened for yet.
    waiting: VecDeque<(usize, Duration)>,
    /// The unsent rest of the frames on streams.
    sending: BTreeMap<StreamKey, Bytes>,
    /// Streams, and when the time of their frames is over, the first first.
    expiring: VecDeque<(Duration, StreamKey)>,
    /// When the time of the last frame is over.
    end: Duration,
    /// When the stream of the question is to end; `None`: it has.
    ends_at: Option<Duration>,
}

impl Publisher {
    /// A publisher of the files in `setup.www` that `setup.requests` name.
    pub fn new(setup: &Setup, stream: FrameStream) -> Result<Self, EndpointError> {
        let www = setup.www.as_deref().ok_or_else(|| missing("www"))?;
        let mut folder = ServedFolder::new(www)?;
        let mut load = |url: &String| {
            let path = path_of(url);
            let found = path.and_then(|path| folder.load(&path[1..]));
            let frame = found.filter(|bytes| !bytes.is_empty());
            frame.ok_or_else(|| wrong_request(url, "its path must name a file in www with bytes"))
        };
        let frames = setup.requests.iter().map(&mut load);
        Ok(Self {
            stream,
            frames: frames.collect::<Result<_, _>>()?,
            zero: setup.clock.start_unix(),
            questions: BTreeMap::new(),
            viewings: BTreeMap::new(),
            connected_at: None,
            open: BTreeSet::new(),
            had_any: false,
            error: None,
        })
    }

    /// Tells it what happened at `now`.
    pub fn handle(&mut self, stack: &mut impl Stack, now: Duration, event: &Event) {
        match *event {
            Event::Connected(connection) => {
                self.connected_at.get_or_insert(now);
                self.had_any = true;
                self.open.insert(connection);
            }
            Event::Opened(connection, stream) => {
                self.questions.insert((connection, stream), Vec::new());
                self.listen(stack, now, connection, stream);
            }
            Event::Readable(connection, stream) => self.listen(stack, now, connection, stream),
            Event::Writable(connection, stream) => {
                if let Some(viewing) = self.viewings.get_mut(&connection) {
                    viewing.send(stack, connection, stream);
                }
            }
            Event::MoreStreams(connection) => self.advance_one(stack, now, connection),
            Event::OpenedOneWay(connection, stream) => stack.stop(connection, stream, REFUSED),
            Event::Closed(connection, ref closing) => self.close(connection, closing),
            Event::Ticket(_) | Event::EarlyDataRejected(_) | Event::DatagramFrame(..) => {}
        }
    }

    /// Makes and gives up frames whose time has come.
    pub fn advance(&mut self, stack: &mut impl Stack, now: Duration) {
        for connection in self.viewings.keys().copied().collect::<Vec<_>>() {
            self.advance_one(stack, now, connection);
        }
    }

    /// The time at which the next frame is to be made or given up.
    #[must_use]
    pub fn next_wake(&self) -> Option<Duration> {
        let wakes = self.viewings.values();
        wakes.filter_map(|it| self.next_wake_of(it)).min()
    }

    /// Whether there was a connection and there is none any more.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.had_any && self.open.is_empty()
    }

    /// Says what happened.
    #[must_use]
    pub fn finish(self) -> Bye {
        Bye {
            handshake_ns: self.connected_at.map(nanos),
            requests: Vec::new(),
            error: self.error,
            statistics: Statistics::default(),
        }
    }

    fn close(&mut self, connection: ConnectionKey, closing: &Closing) {
        self.had_any = true;
        self.open.remove(&connection);
        self.viewings.remove(&connection);
        self.questions.retain(|(owner, _), _| *owner != connection);
        if !matches!(closing, Closing::Application { code: 0, .. }) {
            self.error.get_or_insert(describe(closing));
        }
    }

    /// Reads a question; one that is none is refused, and so is a second one.
    fn listen(
        &mut self,
        stack: &mut impl Stack,
        now: Duration,
        connection: ConnectionKey,
        stream: StreamKey,
    ) {
        let Some(asked) = self.questions.get_mut(&(connection, stream)) else {
            return;
        };
        let read = stack.read(connection, stream, &mut |bytes| asked.extend(bytes));
        let is_wrong = !QUESTION.starts_with(asked) || self.viewings.contains_key(&connection);
        match read {
            Ok(Read::Blocked) if !is_wrong => return,
            Ok(Read::Finished) if !is_wrong && *asked == QUESTION => {
                let end = now + self.stream.end(self.frames.len());
                let viewing = Viewing::new(stream, now, end);
                self.viewings.insert(connection, viewing);
                self.advance_one(stack, now, connection);
            }
            _ => {
                stack.stop(connection, stream, REFUSED);
                stack.reset(connection, stream, REFUSED);
            }
        }
        self.questions.remove(&(connection, stream));
    }

    fn next_wake_of(&self, viewing: &Viewing) -> Option<Duration> {
        let is_more = viewing.next < self.frames.len();
        let made = is_more.then(|| self.made(viewing, viewing.next));
        let expires = viewing.expiring.front().map(|(at, _)| *at);
        [made, expires, viewing.ends_at].into_iter().flatten().min()
    }

    /// When a frame is made.
    fn made(&self, viewing: &Viewing, number: usize) -> Duration {
        viewing.began + self.stream.made(number)
    }

    fn advance_one(&mut self, stack: &mut impl Stack, now: Duration, connection: ConnectionKey) {
        let Some(mut viewing) = self.viewings.remove(&connection) else {
            return;
        };
        viewing.give_up(stack, now, connection);
        self.make(&mut viewing, now);
        match self.send_waiting(stack, connection, &mut viewing) {
            Ok(()) => {
                viewing.end_if_over(stack, now, connection);
                self.viewings.insert(connection, viewing);
            }
            Err(words) => {
                self.error.get_or_insert(words);
                self.open.remove(&connection);
                stack.close(now, connection, REFUSED);
            }
        }
    }

    /// Makes the frames whose time has come; those whose time is over before they could be sent
    /// are lost.
    fn make(&self, viewing: &mut Viewing, now: Duration) {
        while viewing.next < self.frames.len() && self.made(viewing, viewing.next) <= now {
            let made = self.made(viewing, viewing.next);
            viewing.waiting.push_back((viewing.next, made));
            viewing.next += 1;
        }
        let deadline = self.stream.deadline();
        viewing.waiting.retain(|(_, made)| *made + deadline > now);
    }

    /// Sends what waits, the oldest first, as far as that goes. The error says why nothing can be
    /// sent at all.
    fn send_waiting(
        &self,
        stack: &mut impl Stack,
        connection: ConnectionKey,
        viewing: &mut Viewing,
    ) -> Result<(), String> {
        while let Some(&(number, made)) = viewing.waiting.front() {
            let is_sent = match self.stream.over {
                Carrier::Streams => self.send_on_stream(stack, connection, viewing, number, made),
                Carrier::Datagrams => self.send_in_datagrams(stack, connection, number, made)?,
            };
            if !is_sent {
                break;
            }
            viewing.waiting.pop_front();
        }
        Ok(())
    }

    fn header(&self, number: usize, made: Duration) -> Header {
        Header {
            number: u32::try_from(number).expect("a stream has fewer frames"),
            made_ns: nanos(self.zero + made),
            size: u32::try_from(self.frames[number].len()).expect("a frame is smaller"),
            offset: 0,
        }
    }

    /// Whether a stream could be opened for the frame.
    fn send_on_stream(
        &self,
        stack: &mut impl Stack,
        connection: ConnectionKey,
        viewing: &mut Viewing,
        number: usize,
        made: Duration,
    ) -> bool {
        let Some(stream) = stack.open_one_way(connection) else {
            return false;
        };
        // The oldest first: side by side none of them would come whole in time.
        let later = i32::try_from(number).expect("a stream has fewer frames");
        stack.set_priority(connection, stream, -later);
        let mut whole = BytesMut::from(&self.header(number, made).encode()[..]);
        whole.put(self.frames[number].clone());
        viewing.sending.insert(stream, whole.freeze());
        viewing
            .expiring
            .push_back((made + self.stream.deadline(), stream));
        viewing.send(stack, connection, stream);
        true
    }

    /// Sends a frame in parts; what does not fit into the stack's buffer is lost. The error says
    /// why there can be no parts.
    fn send_in_datagrams(
        &self,
        stack: &mut impl Stack,
        connection: ConnectionKey,
        number: usize,
        made: Duration,
    ) -> Result<bool, String> {
        let largest = stack.largest_datagram_frame(connection);
        let Some(room) = largest.and_then(|it| it.checked_sub(Header::LENGTH + 1)) else {
            return Err("the client takes no DATAGRAM frames, or too small ones".to_owned());
        };
        let mut header = self.header(number, made);
        for part in self.frames[number].chunks(room + 1) {
            let mut whole = BytesMut::from(&header.encode()[..]);
            whole.put(part);
            stack.send_datagram_frame(connection, whole.freeze());
            header.offset += u32::try_from(part.len()).expect("it is part of a frame");
        }
        Ok(true)
    }
}

impl Viewing {
    fn new(question: StreamKey, began: Duration, end: Duration) -> Self {
        Self {
            question,
            began,
            next: 0,
            waiting: VecDeque::new(),
            sending: BTreeMap::new(),
            expiring: VecDeque::new(),
            end,
            ends_at: Some(end),
        }
    }

    /// Sends what the stack takes of a frame.
    fn send(&mut self, stack: &mut impl Stack, connection: ConnectionKey, stream: StreamKey) {
        let Some(left) = self.sending.get_mut(&stream) else {
            return;
        };
        let written = stack.write(connection, stream, left);
        if written.is_ok() && !left.is_empty() {
            return;
        }
        self.sending.remove(&stream);
        if written.is_ok() {
            // A stream that the viewer has stopped needs no end.
            let _ = stack.finish(connection, stream);
        }
    }

    /// Abandons frames whose time is over. Of those that came it changes nothing.
    fn give_up(&mut self, stack: &mut impl Stack, now: Duration, connection: ConnectionKey) {
        while let Some(&(at, stream)) = self.expiring.front()
            && at <= now
        {
            self.expiring.pop_front();
            self.sending.remove(&stream);
            stack.reset(connection, stream, EXPIRED);
        }
    }
    /// Ends the stream of the question, when the time of the last frame is over and nothing of a
    /// frame waits, or has waited for too long: its viewer closes the connection then.
    fn end_if_over(&mut self, stack: &mut impl Stack, now: Duration, connection: ConnectionKey) {
        if self.ends_at.is_none_or(|at| at > now) {
            return;
        }
        if now < self.end + DRAIN_TIMEOUT && stack.has_waiting_datagram_frames(connection) {
            self.ends_at = Some(now + LOOK_AGAIN);
            return;
        }
        self.ends_at = None;
        // A viewer that has gone needs no end.
        let _ = stack.finish(connection, self.question);
    }
}
