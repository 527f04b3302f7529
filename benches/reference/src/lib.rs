//! Two ends of a connection in one process, the link between them and the virtual time they live
//! in: a transfer that costs what its library costs.
//!
//! As `pico_sim` does it: no files, no pipes, no packet log. 20 Mbit/s each way, 600 ms, a queue of
//! 600 ms. The ends take their settings from the same HELLO as an endpoint program, and live as
//! `endpoints/CONTRACT.md` has it: at each instant all arrivals, then timers, then the application,
//! then what is to be sent.

use std::collections::{BTreeMap, VecDeque};
use std::env;
use std::error::Error;
use std::time::Duration;

use bentpipe_endpoint::contract::{CONTRACT, Hello, hq_interop};
use bentpipe_endpoint::{Clock, Setup, keep_freed_memory, seed_entropy};
use bytes::{Bytes, BytesMut};

/// Anything that ends the program early.
pub type Failure = Box<dyn Error>;

const BITS_PER_SECOND: u64 = 20_000_000;
const DELAY: Duration = Duration::from_millis(300);
/// The most that a packet waits for its turn.
const QUEUE: Duration = Duration::from_millis(600);
/// IPv4 and UDP, which the link carries, too.
const HEADER_BYTES: usize = 28;
/// A timer that is due again right after it was handled waits this long, so that time goes on.
const TIMER_RESOLUTION: Duration = Duration::from_micros(1);
const CLIENT: &str = "192.0.2.1:50000";
const SERVER: &str = "198.51.100.1:443";
/// The reply is made of copies of this many bytes, which share their memory.
const PIECE_BYTES: usize = 1 << 20;

/// One end of the connection, in its library's calls.
pub trait End {
    /// A datagram has arrived.
    fn receive(&mut self, now: Duration, ecn: u8, datagram: BytesMut);

    /// When [`End::handle_timeout`] wants to be called.
    fn next_timeout(&mut self) -> Option<Duration>;

    /// Handles the timers that are due.
    fn handle_timeout(&mut self, now: Duration);

    /// Lets the application act: open, read, write and close.
    fn act(&mut self, now: Duration);

    /// Fills the empty `buffer` with datagrams to be sent; returns the ECN bits, and the size of
    /// all but the last.
    fn poll_transmit(&mut self, now: Duration, buffer: &mut Vec<u8>) -> Option<(u8, usize)>;

    /// Whether it has closed the connection, or knows that the other one has.
    fn is_done(&self) -> bool;
}

/// The settings of both ends.
pub struct Job {
    /// Those of the client and of the server.
    pub setups: [Setup; 2],
    /// The bytes that the server sends.
    pub reply: Reply,
}

impl Job {
    /// Reads the program's arguments: the folder of certificates, the bytes of the transfer, and
    /// options of the variant such as `cc=cubic`.
    pub fn from_arguments() -> Result<Self, Failure> {
        keep_freed_memory();
        let mut words = env::args().skip(1);
        let (Some(certs), Some(bytes)) = (words.next(), words.next()) else {
            return Err("usage: CERTS BYTES [OPTION=VALUE ...]".into());
        };
        let pairs = words.map(|word| {
            let pair = word.split_once('=');
            pair.map(|(name, value)| (name.to_owned(), value.to_owned()))
        });
        let options: Option<BTreeMap<_, _>> = pairs.collect();
        let options = options.ok_or("write options as NAME=VALUE")?;
        seed_entropy("1", 0)?;
        let setup = |role: &str, local: &str, remote: &str| {
            Setup::from_hello(Hello {
                contract: CONTRACT,
                role: role.to_owned(),
                testcase: "transfer".to_owned(),
                requests: Vec::new(),
                options: options.clone(),
                seed: "1".to_owned(),
                epoch_unix_s: 946_684_800,
                local: local.to_owned(),
                remote: remote.to_owned(),
                www: None,
                downloads: None,
                certs: certs.clone().into(),
                keylog: None,
                qlog: None,
                alpn: hq_interop(),
                page: Vec::new(),
                live: None,
                frames: None,
                paths: Vec::new(),
                shared_memory: None,
            })
        };
        let mut client = setup("client", CLIENT, SERVER)?;
        let server = setup("server", SERVER, CLIENT)?;
        // There is one time: where libraries read clocks, the one that was made last.
        client.clock = server.clock.clone();
        Ok(Self {
            setups: [client, server],
            reply: Reply::of(bytes.parse()?),
        })
    }
}

/// The reply to the client's question.
pub struct Reply {
    piece: Bytes,
    left: usize,
    /// The piece in hand.
    rest: Bytes,
}

impl Reply {
    fn of(bytes: usize) -> Self {
        Self {
            piece: vec![0x5a; PIECE_BYTES].into(),
            left: bytes,
            rest: Bytes::new(),
        }
    }

    /// The bytes that come next, to be advanced by what could be written; empty: that was all.
    pub fn front(&mut self) -> &mut Bytes {
        if self.rest.is_empty() {
            self.rest = self.piece.slice(..self.left.min(PIECE_BYTES));
            self.left -= self.rest.len();
        }
        &mut self.rest
    }
}

/// One direction: a queue of limited delay, a rate, a delay.
#[derive(Default)]
struct Link {
    /// When the transmitter is free.
    free: Duration,
    /// With the times of their arrival, and ECN bits.
    under_way: VecDeque<(Duration, u8, BytesMut)>,
    packets: u64,
}

impl Link {
    fn send(&mut self, now: Duration, ecn: u8, datagram: &[u8]) {
        self.packets += 1;
        let bits = (datagram.len() + HEADER_BYTES) as u64 * 8;
        let took = Duration::from_nanos(bits * 1_000_000_000 / BITS_PER_SECOND);
        let start = self.free.max(now);
        if start + took > now + QUEUE {
            return;
        }
        self.free = start + took;
        let datagram = BytesMut::from(datagram);
        self.under_way.push_back((self.free + DELAY, ecn, datagram));
    }

    fn next_arrival(&self) -> Option<Duration> {
        self.under_way.front().map(|(time, ..)| *time)
    }

    fn deliver(&mut self, now: Duration) -> Option<(u8, BytesMut)> {
        if self.next_arrival()? > now {
            return None;
        }
        let (_, ecn, datagram) = self.under_way.pop_front()?;
        Some((ecn, datagram))
    }
}

/// An end, and what it sends.
struct Party<E> {
    end: E,
    sent: Link,
    /// When it wants to live, if nothing arrives before.
    wake: Option<Duration>,
    /// Timers are not handled before this time.
    floor: Duration,
}

impl<E: End> Party<E> {
    fn new(end: E, wake: Option<Duration>) -> Self {
        Self {
            end,
            sent: Link::default(),
            wake,
            floor: Duration::ZERO,
        }
    }

    /// When it lives next, where `incoming` is what the other one sends.
    fn next(&self, incoming: &Link) -> Option<Duration> {
        incoming.next_arrival().into_iter().chain(self.wake).min()
    }

    /// Lives at `now`, if that is the time.
    fn live(&mut self, incoming: &mut Link, now: Duration, buffer: &mut Vec<u8>) {
        if self.next(incoming).is_none_or(|time| time > now) {
            return;
        }
        while let Some((ecn, datagram)) = incoming.deliver(now) {
            self.end.receive(now, ecn, datagram);
        }
        let is_due = |end: &mut E| end.next_timeout().is_some_and(|time| time <= now);
        if now >= self.floor && is_due(&mut self.end) {
            self.end.handle_timeout(now);
            self.floor = now + TIMER_RESOLUTION;
        }
        self.end.act(now);
        buffer.clear();
        while let Some((ecn, size)) = self.end.poll_transmit(now, buffer) {
            for datagram in buffer.chunks(size) {
                self.sent.send(now, ecn, datagram);
            }
            buffer.clear();
        }
        let timeout = self.end.next_timeout();
        self.wake = timeout.map(|time| time.max(self.floor));
    }
}

/// Runs the client and the server until both are done; prints the packets that each has sent, and
/// the virtual seconds, as JSON.
pub fn run<E: End>(client: E, server: E, clock: &Clock) -> Result<(), Failure> {
    let mut client = Party::new(client, Some(Duration::ZERO));
    let mut server = Party::new(server, None);
    let mut buffer = Vec::new();
    let mut now = Duration::ZERO;
    while !(client.end.is_done() && server.end.is_done()) {
        let wakes = [client.next(&server.sent), server.next(&client.sent)];
        let next = wakes.into_iter().flatten().min();
        now = now.max(next.ok_or("neither end has anything to wait for")?);
        clock.set(now);
        client.live(&mut server.sent, now, &mut buffer);
        server.live(&mut client.sent, now, &mut buffer);
    }
    println!(
        "{{\"forward_packets\": {}, \"return_packets\": {}, \"virtual_s\": {}}}",
        server.sent.packets,
        client.sent.packets,
        now.as_secs_f64()
    );
    Ok(())
}
