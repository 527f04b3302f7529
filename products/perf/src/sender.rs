//! The side that sends: fills its streams, and watches what the connection makes of it.

use std::time::Duration;

use bytes::Bytes;
use noq_proto::{Connection, Dir, PathId, StreamId, VarInt, WriteError};

use crate::interval_timer::IntervalTimer;
use crate::protocol::{Amount, Interval, Request, SenderCounters};

/// The data that is sent, over and over. Large: the library looks through the pieces in its buffer
/// for each packet.
const BLOCK_BYTES: usize = 8 << 20;
/// The bytes buffered beyond two windows. Enough never to run dry; more would be more pieces to
/// look through.
const SPARE_BYTES: u64 = 4 << 20;

/// The sending side of a test.
#[derive(Debug)]
pub struct Sender {
    request: Request,
    block: Bytes,
    streams: Vec<Outgoing>,
    /// When the streams were opened.
    begun: Option<Duration>,
    ended: Option<Duration>,
    stopped: bool,
    timer: Option<IntervalTimer>,
    /// The report.
    reported: SenderCounters,
}

#[derive(Debug)]
struct Outgoing {
    id: StreamId,
    /// `None`: as much as goes.
    left: Option<u64>,
    blocked: bool,
    open: bool,
}

impl Sender {
    pub fn new(request: Request) -> Self {
        Self {
            request,
            block: Bytes::from(vec![0; BLOCK_BYTES]),
            streams: Vec::new(),
            begun: None,
            ended: None,
            stopped: false,
            timer: None,
            reported: SenderCounters::default(),
        }
    }

    /// Opens the streams, if the peer allows it by now.
    fn begin(&mut self, connection: &mut Connection, now: Duration) {
        let count = u64::from(self.request.streams);
        while self.streams.len() < self.request.streams as usize {
            let Some(id) = connection.streams().open(Dir::Uni) else {
                return;
            };
            let index = self.streams.len() as u64;
            let left = match self.request.amount {
                Amount::TimeS(_) => None,
                // The first streams take what cannot be shared.
                Amount::Bytes(all) => Some(all / count + u64::from(index < all % count)),
            };
            self.streams.push(Outgoing {
                id,
                left,
                blocked: false,
                open: true,
            });
        }
        self.begun = Some(now);
        let length = Duration::from_secs_f64(self.request.interval_s);
        self.timer = Some(IntervalTimer::new(now, length));
    }

    /// Writes what fits, and ends what has come to its end.
    pub fn drive(&mut self, connection: &mut Connection, now: Duration) {
        if self.begun.is_none() && !self.stopped {
            self.begin(connection, now);
        }
        if let Some(deadline) = self.deadline().filter(|deadline| now >= *deadline) {
            self.stop(connection, deadline);
        }
        let window = connection
            .congestion_state(PathId::ZERO)
            .map_or(0, noq_proto::congestion::Controller::window);
        connection.set_send_window(window.saturating_mul(2).saturating_add(SPARE_BYTES));
        let block = &self.block;
        for stream in &mut self.streams {
            if stream.open && !stream.blocked {
                stream.write(connection, block);
            }
        }
    }

    /// When time ends it.
    fn deadline(&self) -> Option<Duration> {
        match self.request.amount {
            Amount::TimeS(time) if !self.stopped => {
                Some(self.begun? + Duration::from_secs_f64(time))
            }
            _ => None,
        }
    }

    pub fn wake(&self) -> Option<Duration> {
        let tick = match self.ended {
            None => self.timer.as_ref().map(IntervalTimer::wake),
            Some(_) => None,
        };
        tick.into_iter().chain(self.deadline()).min()
    }

    /// Sends no more: what is on its way may arrive, what waits is dropped.
    pub fn stop(&mut self, connection: &mut Connection, now: Duration) {
        self.stopped = true;
        self.ended.get_or_insert(now);
        for stream in self.streams.iter_mut().filter(|stream| stream.open) {
            stream.open = false;
            // One that is closed already needs no reset.
            let _ = connection.send_stream(stream.id).reset(VarInt::from_u32(0));
        }
    }

    /// The other side has all of it.
    pub fn end(&mut self, now: Duration) {
        self.ended.get_or_insert(now);
    }

    /// How long it took.
    pub fn seconds(&self) -> f64 {
        let begun = self.begun.unwrap_or_default();
        let ended = self.ended.unwrap_or(begun);
        ended.saturating_sub(begun).as_secs_f64()
    }

    pub fn writable(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.id == id) {
            stream.blocked = false;
        }
    }

    /// The intervals that have ended.
    pub fn intervals(&mut self, connection: &mut Connection, now: Duration) -> Vec<Interval> {
        let Some(timer) = &mut self.timer else {
            return Vec::new();
        };
        let mut found = Vec::new();
        let last_tick = self.ended.unwrap_or(now);
        while let Some(index) = timer.ended(last_tick) {
            found.push((index, self.request.interval_s));
        }
        if self.ended.is_some() {
            let rest = timer.last(last_tick);
            found.extend(rest.map(|(index, rest)| (index, rest.as_secs_f64())));
            self.timer = None;
        }
        if found.is_empty() {
            return Vec::new();
        }
        let totals = totals(connection);
        let mut intervals: Vec<_> = found.into_iter().map(of_nothing(&totals)).collect();
        // Of several at once, the program slept through all but the first.
        if let Some(sent) = intervals.first_mut().and_then(|it| it.sent.as_mut()) {
            sent.packets = totals.packets - self.reported.packets;
            sent.lost_packets = totals.lost_packets - self.reported.lost_packets;
        }
        self.reported = totals;
        intervals
    }
}

/// An interval in which nothing was sent.
fn of_nothing(totals: &SenderCounters) -> impl Fn((u32, f64)) -> Interval {
    let sent = SenderCounters {
        packets: 0,
        lost_packets: 0,
        ..*totals
    };
    move |(index, seconds)| Interval {
        index,
        seconds,
        received: None,
        sent: Some(sent),
    }
}

/// The connection's counts of sending so far.
pub fn totals(connection: &mut Connection) -> SenderCounters {
    let path = connection.path_stats(PathId::ZERO).unwrap_or_default();
    SenderCounters {
        cwnd_bytes: path.cwnd,
        rtt_ms: path.rtt.as_secs_f64() * 1e3,
        packets: path.sent_packets,
        lost_packets: path.lost_packets,
    }
}

impl Outgoing {
    fn write(&mut self, connection: &mut Connection, block: &Bytes) {
        let mut sender = connection.send_stream(self.id);
        loop {
            let most = self.left.unwrap_or(u64::MAX).min(block.len() as u64);
            if most == 0 {
                self.open = false;
                // Stopped: the other side wants no more.
                let _ = sender.finish();
                return;
            }
            let mut piece = block.slice(..usize::try_from(most).expect("no more than a block"));
            match sender.write_chunks(&mut std::slice::from_mut(&mut piece)) {
                Ok(written) => {
                    if let Some(left) = &mut self.left {
                        *left -= written as u64;
                    }
                }
                Err(WriteError::Blocked) => {
                    self.blocked = true;
                    return;
                }
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => {
                    self.open = false;
                    return;
                }
            }
        }
    }
}
