//! The packets that passed the two ends of each hop: written as a trace while packets are on the
//! move, or kept in memory. Where no program stands between client and server, the only hop is the
//! path.
//!
//! At either end, a packet that the host sends is seen when the kernel gets it, one that the host
//! receives when the kernel is handed it. A trace is one pcapng file as `bentpipe-sim` writes it:
//! an interface per end, each packet followed by its arrival and those of its copies, in each
//! direction in the order of sending, and a comment on those that the link dropped or lost. Where
//! more than one segment is emulated, hosts route between them: there, departures and arrivals
//! stand on their own, and what the first segment that a packet meets did not drop has no comment.
//!
//! A thread of its own writes. If it cannot keep up, the record ends there, and all that is missing
//! is counted.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use bentpipe_analysis::connection::Fate;
use bentpipe_link::{self as link, Direction, FurtherArrival, Outcome};
use bentpipe_units::{Span, Time};
use bentpipe_wire::{Interface, Writer};

use crate::error::{Doing, EmulatorError};
use crate::links::emulated_link::{Frame, marked};
use crate::links::link_positions::LinkPosition;
use crate::packet_socket::packet_port::ETHERNET;

/// Batches between the two threads.
const BATCHES: usize = 256;
/// Events that are handed over together, unless they get old.
const BATCH: usize = 256;
const OLD: Span = Span::from_millis(20);
/// The most events that wait to be handed to the writing thread; beyond, the record ends.
const MOST_PENDING: usize = 100_000;

/// A packet that passed an end of a hop, or was dropped or lost where it was seen at neither.
#[derive(Clone, Debug)]
pub struct HopPacket {
    /// The number of the path, in the order of the scenario; the first is 0.
    pub path: usize,
    /// The number of the hop, from the client on.
    pub hop: usize,
    /// The way that it goes.
    pub direction: Direction,
    /// The time at which the sender's kernel handed it over. None: it was not seen there.
    pub sent: Option<Time>,
    /// The time at which it was handed to the receiver's kernel. None: it was not seen there.
    pub arrived: Option<Time>,
    /// Its fate, as far as this event tells.
    pub fate: Fate,
    /// Whether a queue has marked it with Congestion Experienced.
    pub marked: bool,
    /// Copies of it that came out of the link: further arrivals at the receiver's kernel, or, where
    /// a further link of the hop follows, what goes on to that.
    pub copies: Vec<FurtherArrival>,
    /// The Ethernet frame that it was seen in.
    pub frame: Frame,
}

impl HopPacket {
    /// The bytes of the IP packet.
    #[must_use]
    pub fn ip(&self) -> &[u8] {
        &self.frame[ETHERNET..]
    }
}

/// An event of a packet, for the thread that writes. Links are numbered.
#[derive(Debug)]
pub(crate) enum PacketEvent {
    /// A packet arrived at a link. Packets of a link are numbered in this order.
    Arrived { link: usize, at: Time, frame: Frame },
    /// The link has decided about a packet, or a copy.
    Decided { link: usize, outcome: Outcome },
    /// A packet, or a copy, came out, or did not for the kernel's sake. Those of a packet come out
    /// in the order in which they were decided about.
    Left {
        link: usize,
        number: u64,
        at: Option<Time>,
    },
}

/// The packets that are to be recorded.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub positions: Vec<LinkPosition>,
    pub file: Option<&'a Path>,
    pub keep: bool,
    /// The start of the trial, in nanoseconds since the Unix epoch.
    pub unix: u64,
}

/// The recorded packets.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    pub packets: Vec<HopPacket>,
    pub written: u64,
}

/// The forwarding thread's end.
#[derive(Debug)]
pub(crate) struct Record {
    batches: SyncSender<Vec<PacketEvent>>,
    pending: Vec<PacketEvent>,
    flushed: Time,
    lost: u64,
}

/// The end of the thread that writes.
#[derive(Debug)]
pub(crate) struct Recording {
    thread: JoinHandle<io::Result<Recorded>>,
    file: Option<PathBuf>,
}

/// Starts to record.
pub(crate) fn record(wanted: &Wanted<'_>) -> Result<(Record, Recording), EmulatorError> {
    let file = wanted.file.map(Path::to_path_buf);
    let trace = file.as_ref().map(|path| Trace::create(path, wanted.unix));
    let trace = trace.transpose().doing(writing(file.as_deref()))?;
    let (batches, received) = sync_channel(BATCHES);
    let mut joiner = EventJoiner {
        links: wanted
            .positions
            .iter()
            .map(|_| OpenPackets::default())
            .collect(),
        positions: wanted.positions.clone(),
        keep: wanted.keep,
        trace,
        recorded: Recorded::default(),
    };
    let thread = thread::Builder::new()
        .name("capture".into())
        .spawn(move || joiner.work(&received).map(|()| joiner.recorded))
        .doing("starting a thread that records")?;
    let record = Record {
        batches,
        pending: Vec::new(),
        flushed: Time::ZERO,
        lost: 0,
    };
    Ok((record, Recording { thread, file }))
}

fn writing(file: Option<&Path>) -> String {
    file.map_or_else(
        || "recording".into(),
        |file| format!("writing {}", file.display()),
    )
}

impl Record {
    /// Takes note of an event. After the first that is lost, none is taken.
    pub fn add(&mut self, event: PacketEvent) {
        if self.lost > 0 || self.pending.len() >= MOST_PENDING {
            self.lost += 1;
        } else {
            self.pending.push(event);
        }
    }

    /// Hands over what has gathered, if it is much or old.
    pub fn flush(&mut self, now: Time) {
        if self.pending.is_empty() || (self.pending.len() < BATCH && now < self.flushed + OLD) {
            return;
        }
        self.flushed = now;
        let batch = std::mem::take(&mut self.pending);
        match self.batches.try_send(batch) {
            Ok(()) => {}
            Err(TrySendError::Full(batch)) => self.pending = batch,
            // It could not write, and says so at the end.
            Err(TrySendError::Disconnected(batch)) => self.lost += batch.len() as u64,
        }
    }

    /// Hands over the rest, and tells how many events were lost.
    pub fn finish(mut self) -> u64 {
        let rest = self.pending.len() as u64;
        let result = self.batches.send(std::mem::take(&mut self.pending));
        self.lost + if result.is_err() { rest } else { 0 }
    }
}

impl Recording {
    /// Waits until all is written.
    pub fn finish(self) -> Result<Recorded, EmulatorError> {
        let result = self.thread.join().expect("the recording thread panicked");
        result.doing(writing(self.file.as_deref()))
    }
}

/// A packet of which the end of its way is not known yet, or which waits for one sent before it.
#[derive(Debug)]
struct Open {
    sent: Time,
    /// The packet's own.
    outcome: Option<Outcome>,
    /// Whether the link has decided about all that was under way of it.
    is_settled: bool,
    /// Whether each of its departures is marked, in their order.
    leaving: VecDeque<bool>,
    /// The departures so far, in their order.
    left: Option<FurtherArrival>,
    copies: Vec<FurtherArrival>,
    frame: Frame,
}

impl Open {
    fn note(&mut self, outcome: Outcome) {
        self.is_settled = outcome.copies_under_way == 0;
        if !outcome.is_copy {
            self.outcome = Some(outcome);
        }
        if let link::Fate::Delivered { .. } = outcome.fate {
            self.leaving.push_back(outcome.is_marked);
        }
    }

    /// The packet, or a copy, departed at a time. None: the kernel did not take it.
    fn leave(&mut self, at: Option<Time>) {
        let marked = self.leaving.pop_front().unwrap_or_default();
        match at.map(|at| FurtherArrival { at, marked }) {
            None => {}
            first if self.left.is_none() => self.left = first,
            further => self.copies.extend(further),
        }
    }

    fn has_ended(&self) -> bool {
        self.is_settled && self.leaving.is_empty()
    }
}

/// Packets of a link, in the order of arrival.
#[derive(Debug, Default)]
struct OpenPackets {
    packets: VecDeque<Open>,
    /// The number of the first of them.
    first: u64,
    /// When the last packet came out, and its number.
    last_out: Option<(Time, u64)>,
}

impl OpenPackets {
    /// A packet, or a copy, came out at a time, which is that of all that came out together. Where
    /// a link has reordered them, a nanosecond tells their order.
    fn leave(&mut self, number: u64, at: Option<Time>) {
        let ordered = at.map(|at| match self.last_out {
            Some((last, before)) if number < before => at.max(last + Span::from_nanos(1)),
            Some((last, _)) => at.max(last),
            None => at,
        });
        self.last_out = ordered.map(|at| (at, number)).or(self.last_out);
        self.get(number).leave(ordered);
    }

    fn get(&mut self, number: u64) -> &mut Open {
        let index = usize::try_from(number - self.first);
        &mut self.packets[index.expect("they are in memory")]
    }

    fn pop(&mut self) -> Option<Open> {
        let open = self.packets.pop_front()?;
        self.first += 1;
        Some(open)
    }
}

/// Joins the events of a packet, and keeps or writes it.
struct EventJoiner {
    links: Vec<OpenPackets>,
    positions: Vec<LinkPosition>,
    keep: bool,
    trace: Option<Trace>,
    recorded: Recorded,
}

impl EventJoiner {
    fn work(&mut self, batches: &Receiver<Vec<PacketEvent>>) -> io::Result<()> {
        for batch in batches {
            for event in batch {
                self.note(event)?;
            }
        }
        for link in 0..self.links.len() {
            while let Some(open) = self.links[link].pop() {
                self.close(link, open)?;
            }
        }
        match self.trace.take() {
            Some(trace) => trace.writer.finish().map(drop),
            None => Ok(()),
        }
    }

    fn note(&mut self, event: PacketEvent) -> io::Result<()> {
        match event {
            PacketEvent::Arrived {
                link,
                at: sent,
                frame,
            } => {
                self.links[link].packets.push_back(Open {
                    sent,
                    outcome: None,
                    is_settled: false,
                    leaving: VecDeque::new(),
                    left: None,
                    copies: Vec::new(),
                    frame,
                });
                Ok(())
            }
            PacketEvent::Decided { link, outcome } => {
                self.links[link].get(outcome.packet.id).note(outcome);
                self.close_ended(link)
            }
            PacketEvent::Left { link, number, at } => {
                self.links[link].leave(number, at);
                self.close_ended(link)
            }
        }
    }

    /// Closes packets at the front whose fate is known. Packets behind one that is open wait, to
    /// keep the order.
    fn close_ended(&mut self, link: usize) -> io::Result<()> {
        while self.links[link]
            .packets
            .front()
            .is_some_and(Open::has_ended)
        {
            let open = self.links[link].pop().expect("it is at the front");
            self.close(link, open)?;
        }
        Ok(())
    }

    fn close(&mut self, link: usize, open: Open) -> io::Result<()> {
        let place = self.positions[link];
        let arrived = open.left.map(|it| it.at);
        let is_marked = open.outcome.is_some_and(|it| it.is_marked);
        let packet = HopPacket {
            path: place.path,
            hop: place.hop,
            direction: place.direction,
            sent: place.from_end.then_some(open.sent),
            arrived: arrived.filter(|_| place.to_end),
            fate: match (open.outcome.map(|it| it.fate), arrived) {
                (Some(link::Fate::QueueDrop), _) => Fate::QueueDrop,
                (Some(link::Fate::Loss), _) => Fate::Loss,
                (_, Some(_)) if place.to_end => Fate::Delivered,
                _ => Fate::Unknown,
            },
            marked: open.left.map_or(is_marked, |it| it.marked),
            copies: open.copies,
            frame: open.frame,
        };
        let ended = matches!(packet.fate, Fate::QueueDrop | Fate::Loss);
        let passed = packet.sent.is_none() && packet.arrived.is_none() && !ended;
        if passed && packet.copies.is_empty() {
            return Ok(());
        }
        if let Some(trace) = &mut self.trace {
            self.recorded.written += trace.write(&packet)?;
        }
        if self.keep {
            self.recorded.packets.push(packet);
        }
        Ok(())
    }
}

/// The file.
struct Trace {
    writer: Writer<BufWriter<File>>,
    client: Interface,
    server: Interface,
    unix: u64,
}

impl Trace {
    fn create(path: &Path, unix: u64) -> io::Result<Self> {
        let file = BufWriter::with_capacity(1 << 20, File::create(path)?);
        let mut writer = Writer::new(file, "bentpipe-emu")?;
        Ok(Self {
            client: writer.interface("client")?,
            server: writer.interface("server")?,
            writer,
            unix,
        })
    }

    /// Writes a packet where it was seen, and says how often that was.
    fn write(&mut self, packet: &HopPacket) -> io::Result<u64> {
        let (from, to) = match packet.direction {
            Direction::Return => (self.client, self.server),
            Direction::Forward => (self.server, self.client),
        };
        let comment = matches!(packet.fate, Fate::QueueDrop | Fate::Loss);
        let comment = comment.then_some(packet.fate.name());
        let is_marked = packet.marked || packet.copies.iter().any(|it| it.marked);
        let with_mark = is_marked.then(|| marked(&packet.frame));
        let received = |is_marked| match &with_mark {
            Some(frame) if is_marked => &frame[ETHERNET..],
            _ => packet.ip(),
        };
        let sent = packet.sent.map(|at| (from, at, comment, packet.ip()));
        let arrived = packet.arrived.map(|at| (at, packet.marked));
        // Copies that went on to another link are seen to arrive behind that.
        let further = packet.copies.iter().filter(|_| arrived.is_some());
        let arrivals = arrived
            .into_iter()
            .chain(further.map(|it| (it.at, it.marked)));
        let arrivals = arrivals.map(|(at, is_marked)| (to, at, None, received(is_marked)));
        let mut written = 0;
        for (interface, time, comment, ip) in sent.into_iter().chain(arrivals) {
            let unix = self.unix + time.as_nanos();
            self.writer.packet(interface, unix, ip, comment)?;
            written += 1;
        }
        Ok(written)
    }
}
