//! Two stacks over a path that loses, delays and repeats datagrams at random, and a stream that is
//! written in pieces.

use std::collections::BTreeMap;
use std::time::Duration;

use bentpipe_endpoint::contract::{Hello, hq_interop};
use bentpipe_endpoint::{
    Closing, Event, Options, Read, Received, Resume, Setup, Stack, StreamKey, Transmit,
    seed_entropy_of_thread,
};
use bytes::{Bytes, BytesMut};

const ONE_WAY: Duration = Duration::from_millis(50);
/// The longest virtual time: long enough for an idle timeout after a transfer through heavy loss.
const LONGEST: Duration = Duration::from_secs(1000);

/// A path that loses, delays and repeats datagrams: what it does to each.
pub struct ImpairedPath {
    /// Each is lost with this probability, in percent.
    pub loss: u64,
    /// The most that one takes longer, so that they overtake each other.
    pub jitter: Duration,
    /// Each comes twice with this probability, in percent.
    pub duplication: u64,
    /// Of this number of the server's first datagrams after the request, every other one is lost.
    pub alternate: usize,
    /// Where randomness starts from.
    pub seed: u64,
}

/// Small and good enough (Marsaglia's xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit.max(1)
    }
}

/// Both sides and what is under way.
struct Transfer<S> {
    sides: [S; 2],
    path: ImpairedPath,
    random: Random,
    now: Duration,
    /// By time of arrival and number: the side that it comes to, and the datagram.
    under_way: BTreeMap<(Duration, usize), (usize, u8, Vec<u8>)>,
    sent: usize,
    /// Data that the server still has to write.
    unsent: Bytes,
    asked: Option<StreamKey>,
    piece: usize,
    finished: bool,
    received: Vec<u8>,
    result: Option<Result<(), Closing>>,
}

/// Sends `content` from the server to the client, in writes of up to `piece` bytes, each with
/// separate datagrams.
///
/// Says what the client had when the stream or the connection ended, and how that ended.
pub fn carry<S: Stack>(
    reading: &str,
    content: &[u8],
    piece: usize,
    path: ImpairedPath,
) -> (Vec<u8>, Result<(), Closing>) {
    seed_entropy_of_thread(path.seed);
    let side = |role: &str| -> S {
        let mut options = Options::parse(&format!("reading={reading}")).unwrap();
        let setup = Setup::from_hello(hello(role)).unwrap();
        S::new(&setup, &mut options).unwrap()
    };
    let mut transfer = Transfer {
        sides: [side("client"), side("server")],
        random: Random(path.seed | 1),
        path,
        now: Duration::ZERO,
        under_way: BTreeMap::new(),
        sent: 0,
        unsent: Bytes::copy_from_slice(content),
        asked: None,
        piece,
        finished: false,
        received: Vec::new(),
        result: None,
    };
    let server = "198.51.100.1:443".parse().unwrap();
    transfer.sides[0]
        .connect(Duration::ZERO, server, Resume::Nothing)
        .unwrap();
    transfer.transmit(0);
    while transfer.result.is_none() {
        transfer.step();
    }
    (transfer.received, transfer.result.unwrap())
}

fn hello(role: &str) -> Hello {
    let (client, server) = ("192.0.2.1:50000".to_owned(), "198.51.100.1:443".to_owned());
    let is_client = role == "client";
    let certs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../endpoints/certs");
    Hello {
        contract: 1,
        role: role.into(),
        testcase: "transfer".into(),
        requests: Vec::new(),
        options: [].into(),
        seed: "0".into(),
        epoch_unix_s: 946_684_800,
        local: if is_client { &client } else { &server }.clone(),
        remote: if is_client { &server } else { &client }.clone(),
        www: None,
        downloads: None,
        certs,
        keylog: None,
        qlog: None,
        alpn: hq_interop(),
        page: Vec::new(),
        live: None,
        frames: None,
        shared_memory: None,
        paths: Vec::new(),
    }
}

impl<S: Stack> Transfer<S> {
    /// Goes on to the next arrival or timer.
    fn step(&mut self) {
        let arrival = self.under_way.first_key_value().map(|((time, _), _)| *time);
        let timers = self.sides.iter_mut().filter_map(S::next_timeout);
        let next = timers.chain(arrival).min().expect("somebody will act");
        self.now = self.now.max(next);
        assert!(self.now < LONGEST, "neither an end nor an error");
        while let Some(entry) = self.under_way.first_entry()
            && entry.key().0 <= self.now
        {
            let (to, ecn, payload) = entry.remove();
            let datagram = Received {
                remote: ["198.51.100.1:443", "192.0.2.1:50000"][to].parse().unwrap(),
                local_ip: None,
                ecn,
                payload: BytesMut::from(&payload[..]),
            };
            self.sides[to].handle_datagram(self.now, datagram);
        }
        for side in 0..2 {
            self.sides[side].handle_timeout(self.now);
            while let Some(event) = self.sides[side].poll_event() {
                self.handle(side, &event);
            }
            self.transmit(side);
        }
        self.write();
    }

    fn handle(&mut self, side: usize, event: &Event) {
        match (side, event) {
            (0, Event::Connected(connection)) => {
                let stream = self.sides[0].open(*connection).unwrap();
                let mut question = Bytes::from_static(b"?");
                self.sides[0]
                    .write(*connection, stream, &mut question)
                    .unwrap();
                self.sides[0].finish(*connection, stream).unwrap();
            }
            (0, Event::Readable(connection, stream)) => {
                let received = &mut self.received;
                let mut sink = |bytes: Bytes| received.extend_from_slice(&bytes);
                match self.sides[0].read(*connection, *stream, &mut sink) {
                    Ok(Read::Finished) => self.result = Some(Ok(())),
                    Ok(Read::Blocked) => {}
                    Err(_) => assert!(self.result.is_some(), "the stream ended by itself"),
                }
            }
            (0, Event::Closed(_, closing)) => self.result = Some(Err(closing.clone())),
            (1, Event::Opened(_, stream)) => self.asked = Some(*stream),
            _ => {}
        }
    }

    /// Lets the server write as much as it may, piece by piece.
    fn write(&mut self) {
        let Some(stream) = self.asked else { return };
        let key = bentpipe_endpoint::ConnectionKey(0);
        while !self.unsent.is_empty() {
            let most = self.unsent.len().min(self.piece) as u64;
            let size = usize::try_from(1 + self.random.below(most)).unwrap();
            let mut piece = self.unsent.slice(..size);
            if self.sides[1].write(key, stream, &mut piece).is_err() {
                return;
            }
            let written = size - piece.len();
            self.unsent = self.unsent.slice(written..);
            let before = self.sent;
            self.transmit(1);
            // Paced data go on later, so that pieces do not pile up into large ones.
            if written < size || self.sent == before {
                return;
            }
        }
        if !self.finished {
            self.finished = self.sides[1].finish(key, stream).is_ok();
            self.transmit(1);
        }
    }

    fn transmit(&mut self, side: usize) {
        let mut buffer = Vec::new();
        while let Some(Transmit {
            ecn, segment_size, ..
        }) = self.sides[side].poll_transmit(self.now, 10, &mut buffer)
        {
            for payload in buffer.chunks(segment_size.unwrap_or(buffer.len()).max(1)) {
                self.send(side, ecn, payload);
            }
            buffer.clear();
        }
    }

    fn send(&mut self, side: usize, ecn: u8, payload: &[u8]) {
        self.sent += 1;
        let alternate = side == 1 && self.asked.is_some() && self.path.alternate > 0;
        if alternate {
            self.path.alternate -= 1;
        }
        let lost = self.random.below(100) < self.path.loss;
        if lost || (alternate && self.path.alternate % 2 == 1) {
            return;
        }
        let copies = 1 + usize::from(self.random.below(100) < self.path.duplication);
        for copy in 0..copies {
            let jitter = u64::try_from(self.path.jitter.as_nanos()).unwrap();
            let delay = ONE_WAY + Duration::from_nanos(self.random.below(jitter));
            let key = (self.now + delay, 2 * self.sent + copy);
            let to = 1 - side;
            self.under_way.insert(key, (to, ecn, payload.to_owned()));
        }
    }
}
