//! The engine between ports and a clock that the test makes up.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use bentpipe_link::{Fate, Outcome, PacketMeta, Path, Scenario};
use bentpipe_wire::{ecn, flow_hash, is_udp};
use proptest::prelude::*;

use super::*;
use bentpipe_analysis::connection as trace;

use crate::capture::{Wanted, record};
use crate::links::forwarder::link;
use crate::links::link_positions::link_positions;
use crate::timing::clock::Stamps;

const ALL: [SegmentName; 3] = [
    SegmentName::Access,
    SegmentName::Satellite,
    SegmentName::Ground,
];

/// A clock that goes when the test says so.
#[derive(Clone, Default)]
struct HandSet(Rc<Cell<Time>>);

impl Clock for HandSet {
    fn now(&self) -> Time {
        self.0.get()
    }

    fn stamps(&self) -> Stamps {
        Stamps {
            now: self.0.get(),
            unix: self.0.get().as_nanos(),
        }
    }
}

/// A direction of a wire: frames with the times at which they were put there.
type Wire = Rc<RefCell<VecDeque<(Time, Vec<u8>)>>>;

struct FakePort {
    clock: HandSet,
    incoming: Wire,
    outgoing: Wire,
    /// Frames that it sends at a time.
    takes: usize,
    /// Calls of `send` until the kernel's buffer overflows.
    full_in: Option<u32>,
}

impl FakePort {
    fn new(clock: &HandSet) -> Self {
        Self {
            clock: clock.clone(),
            incoming: Wire::default(),
            outgoing: Wire::default(),
            takes: usize::MAX,
            full_in: None,
        }
    }
}

impl Port for FakePort {
    fn receive(&mut self, take: &mut dyn FnMut(Received<'_>)) -> bool {
        let mut incoming = self.incoming.borrow_mut();
        let Some((stamp, _)) = incoming.front() else {
            return false;
        };
        if *stamp > self.clock.now() {
            return false;
        }
        let (stamp, frame) = incoming.pop_front().expect("it is at the front");
        take(Received {
            stamp: stamp.as_nanos(),
            length: frame.len(),
            frame: &frame[..frame.len().min(2000)],
            unfinished: frame.ends_with(b"open"),
        });
        true
    }

    fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
        match &mut self.full_in {
            Some(0) => {
                self.full_in = None;
                return Err(io::Error::from_raw_os_error(libc::ENOBUFS));
            }
            Some(calls) => *calls -= 1,
            None => {}
        }
        let sent = frames.len().min(self.takes);
        let now = self.clock.now();
        let mut outgoing = self.outgoing.borrow_mut();
        outgoing.extend(frames[..sent].iter().map(|frame| (now, frame.to_vec())));
        Ok(sent)
    }
}

/// A frame with an IPv4 packet of `ip_bytes` bytes, numbered.
fn frame(number: usize, ip_bytes: usize) -> Vec<u8> {
    let mut frame = vec![0; ETHERNET + ip_bytes];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[ETHERNET..ETHERNET + 8].copy_from_slice(&number.to_le_bytes());
    // Where the number makes it look like IPv4, every second one is UDP.
    frame[ETHERNET + 9] = if number.is_multiple_of(2) {
        bentpipe_wire::UDP
    } else {
        0
    };
    frame
}

fn number(frame: &[u8]) -> usize {
    usize::from_le_bytes(frame[ETHERNET..ETHERNET + 8].try_into().unwrap())
}

fn emulated_segment(
    scenario: &Scenario,
    name: SegmentName,
    seed: u64,
    clock: &HandSet,
) -> EmulatedSegment<FakePort> {
    let [forward, return_] = Direction::BOTH.map(|direction| {
        let emulated = EmulatedLink::new(link(scenario, name, direction, seed));
        MeteredLink::new(emulated, Arc::new(Meter::new(0, name, direction)))
    });
    EmulatedSegment {
        path: 0,
        name,
        client_side: FakePort::new(clock),
        server_side: FakePort::new(clock),
        forward,
        return_,
    }
}

/// Hosts between the segments that hand on at once: what comes out of one goes into the next.
fn chain(segments: &mut [EmulatedSegment<FakePort>]) {
    for index in 1..segments.len() {
        let (before, behind) = segments.split_at_mut(index);
        let (left, right) = (
            &mut before[index - 1].server_side,
            &mut behind[0].client_side,
        );
        right.incoming = Rc::clone(&left.outgoing);
        left.incoming = Rc::clone(&right.outgoing);
    }
}

/// Steps until nothing more happens at this instant. Tells when something will.
fn settle(engine: &mut Engine<FakePort>, clock: &HandSet) -> Option<Time> {
    loop {
        let mut next = engine.step(clock).unwrap();
        for segment in &engine.segments {
            for port in [&segment.client_side, &segment.server_side] {
                let coming = port.incoming.borrow().front().map(|(time, _)| *time);
                next = [next, coming].into_iter().flatten().min();
            }
        }
        if next.is_none_or(|next| next > clock.now()) {
            return next;
        }
    }
}

/// Lives until nothing more happens; each time, it wakes up too late by the next of `late`.
fn live(engine: &mut Engine<FakePort>, clock: &HandSet, late: &[u64]) {
    let mut late = late.iter().copied().cycle();
    while let Some(next) = settle(engine, clock) {
        clock
            .0
            .set(next + Span::from_nanos(late.next().unwrap_or(0)));
    }
}

fn scenario(segments: &[SegmentName]) -> impl Strategy<Value = Scenario> + use<> {
    let disciplines = prop::sample::select(vec![
        "",
        ", aqm = \"head-drop\"",
        ", aqm = \"codel\", target = \"1 ms\", interval = \"5 ms\"",
        ", aqm = \"fq-codel\", target = \"1 ms\", interval = \"5 ms\"",
        ", aqm = \"pie\", target = \"1 ms\", update = \"1 ms\", max_burst = \"2 ms\"",
        ", aqm = \"pi2\", target = \"1 ms\", rtt_max = \"5 ms\"",
        ", aqm = \"dualpi2\", target = \"1 ms\", rtt_max = \"5 ms\", mark_above = \"1 ms\"",
    ]);
    let further = prop::sample::select(vec![
        "",
        "policer = { rate = \"9 Mbit/s\", burst = \"5 kB\" }\n",
        "shaper = { rate = \"9 Mbit/s\", burst = \"5 kB\", queue = \"20 packets\" }\n",
        "outages = { every = \"20 ms\", for = \"5 ms\" }\n",
        "outages = { every = \"20 ms\", for = \"5 ms\", queue = \"flush\" }\n",
        "udp = { rate = \"1 Mbit/s\", burst = \"3 kB\", drop = \"20 %\" }\n",
        "order = [\"delay\", \"loss\", \"queue\"]\n",
        "order = [\"queue\", \"delay\", \"loss\"]\n",
        "reorder = { share = \"20 %\", distance = \"2 packets\", wait = \"9 ms\" }\n",
        "reorder = { share = \"20 %\", by = \"3 ms\" }\n",
        "bit_errors = \"1e-5\"\n",
        "duplicate = \"30 %\"\n",
        "duplicate = { share = \"30 %\", after = \"4 ms\" }\n",
        "duplicate = { share = \"30 %\", after = \"2 ms\" }\norder = [\"duplicate\", \"delay\", \
         \"loss\", \"queue\"]\n",
        "aggregate = { hold = \"5 ms\", packets = 4 }\n",
        "handovers = { every = \"50 ms\", phase = \"random\", gap = \"5 ms\", in_flight = \"lost\" \
         }\n",
        "aggregate = { hold = \"5 ms\" }\nreorder = { share = \"20 %\", by = \"3 ms\" }\n",
    ]);
    let half = (
        1_u64..300,
        1_u64..30,
        1_u64..40,
        0_u64..4,
        disciplines,
        further,
    );
    let half = half.prop_map(|(rate, delay, queue, loss, discipline, further)| {
        format!(
            "rate = \"{rate}00 kbit/s\"\ndelay = \"{delay} ms\"\nloss = \"{loss}0 %\"\nqueue = {{ \
             size = \"{queue} packets\"{discipline} }}\n{further}"
        )
    });
    let names: Vec<_> = segments
        .iter()
        .map(|name| format!("{name:?}").to_lowercase())
        .collect();
    proptest::collection::vec(half, 2 * names.len()).prop_map(move |halves| {
        let parts = names.iter().zip(halves.chunks(2)).map(|(name, halves)| {
            format!(
                "[{name}.forward]\n{}[{name}.return]\n{}",
                halves[0], halves[1]
            )
        });
        let head = "title = \"t\"\nsource = \"s\"\ntimeout = \"9 s\"\n".to_owned();
        Scenario::parse(&(head + &parts.collect::<String>()), "test.toml", &[]).unwrap()
    })
}

/// Times and sizes of packets that arrive.
fn arrivals() -> impl Strategy<Value = Vec<(Time, usize)>> {
    let packet = (0_u64..3_000_000, 20_usize..=MTU);
    proptest::collection::vec(packet, 1..150).prop_map(|packets| {
        let mut at = Time::ZERO;
        let arrive = |(gap, bytes)| {
            at += Span::from_nanos(gap);
            (at, bytes)
        };
        packets.into_iter().map(arrive).collect()
    })
}

fn put(wire: &Wire, arrivals: &[(Time, usize)]) {
    let frames = arrivals.iter().enumerate();
    let frames = frames.map(|(index, (at, bytes))| (*at, frame(index, (*bytes).max(20))));
    wire.borrow_mut().extend(frames);
}

/// The outcomes on the path of virtual time of packets with these times and sizes, in the order in
/// which it decides.
fn outcomes(
    scenario: &Scenario,
    direction: Direction,
    seed: u64,
    arrivals: &[(Time, usize)],
) -> Vec<Outcome> {
    let mut path = Path::new(scenario, direction, seed);
    for (number, (at, bytes)) in arrivals.iter().enumerate() {
        // The numbers in the frames look like headers of different flows.
        let packet = &frame(number, *bytes)[ETHERNET..];
        let packet = PacketMeta {
            id: number as u64,
            ip_bytes: u32::try_from(*bytes).unwrap(),
            ecn: ecn(packet),
            flow: flow_hash(packet),
            is_udp: is_udp(packet),
        };
        path.enqueue(*at, packet);
    }
    path.advance(Time::NEVER);
    std::iter::from_fn(|| path.outcome()).collect()
}

/// The packets that come out of the path of virtual time, in their order.
fn expected(
    scenario: &Scenario,
    direction: Direction,
    seed: u64,
    arrivals: &[(Time, usize)],
) -> Vec<(usize, Time)> {
    let outcomes = outcomes(scenario, direction, seed, arrivals);
    let came_out = outcomes.iter().filter_map(|it| match it.fate {
        Fate::Delivered { at } => Some((usize::try_from(it.packet.id).unwrap(), at)),
        Fate::QueueDrop | Fate::Loss => None,
    });
    came_out.collect()
}

fn came_out(wire: &Wire) -> Vec<(usize, Time)> {
    let out = wire.borrow();
    out.iter().map(|(at, frame)| (number(frame), *at)).collect()
}

/// A thread that wakes late finds more packets than it takes in at once. The link's queue must not
/// decide about those that it holds before these are in it.
#[test]
fn a_queue_that_holds_packets_waits_for_all_that_arrived() {
    let direction = |aqm| {
        format!("rate = \"8 Mbit/s\"\ndelay = \"1 ms\"\nqueue = {{ size = \"9 packets\"{aqm} }}\n")
    };
    let text = format!(
        "title = \"t\"\nsource = \"s\"\ntimeout = \"9 s\"\n[satellite.forward]\n{}\
         [satellite.return]\n{}",
        direction(""),
        direction(", aqm = \"head-drop\"")
    );
    let scenario = Scenario::parse(&text, "test.toml", &[]).unwrap();
    let up: Vec<(Time, usize)> = (0..400)
        .map(|number| (Time::from_nanos(number * 500_000), 1000))
        .collect();
    let clock = HandSet::default();
    let segment = emulated_segment(&scenario, SegmentName::Satellite, 1, &clock);
    put(&segment.client_side.incoming, &up);
    let mut engine = Engine::new(vec![segment], None);
    live(&mut engine, &clock, &[150_000_000]);
    let out = came_out(&engine.segments[0].server_side.outgoing);
    let numbers = |it: &[(usize, Time)]| it.iter().map(|it| it.0).collect::<Vec<_>>();
    let expected = expected(&scenario, Direction::Return, 1, &up);
    assert!((150..300).contains(&expected.len()), "{}", expected.len());
    assert_eq!(numbers(&out), numbers(&expected));
}

proptest! {
    /// However late the thread is woken, and however few frames the kernel takes at a time: the
    /// same packets come out as in virtual time, in order, none before its time, and not much later
    /// than the waking was late.
    #[test]
    fn fates_do_not_depend_on_the_threads_delays(
        scenario in scenario(&[SegmentName::Satellite]),
        seed: u64,
        up in arrivals(),
        down in arrivals(),
        late in proptest::collection::vec(0_u64..5_000_000, 1..20),
        takes in 1_usize..5,
    ) {
        let clock = HandSet::default();
        let mut segment = emulated_segment(&scenario, SegmentName::Satellite, seed, &clock);
        segment.client_side.takes = takes;
        put(&segment.client_side.incoming, &up);
        put(&segment.server_side.incoming, &down);
        let mut engine = Engine::new(vec![segment], None);
        live(&mut engine, &clock, &late);

        let segment = &engine.segments[0];
        let worst = Span::from_nanos(*late.iter().max().unwrap());
        let ways = [
            (Direction::Return, &up, &segment.server_side.outgoing),
            (Direction::Forward, &down, &segment.client_side.outgoing),
        ];
        for (direction, arrivals, wire) in ways {
            let expected = expected(&scenario, direction, seed, arrivals);
            let out = came_out(wire);
            let numbers = |it: &[(usize, Time)]| it.iter().map(|it| it.0).collect::<Vec<_>>();
            prop_assert_eq!(numbers(&out), numbers(&expected));
            for ((_, at), (_, due)) in out.iter().zip(&expected) {
                prop_assert!(at >= due && *at - *due <= worst, "{due} became {at}");
            }
            let metered = segment.metered_link(direction);
            prop_assert_eq!(metered.release_delays.count(), out.len() as u64);
            prop_assert!(metered.release_delays.longest() <= worst);
            // Packets that are lost at the end may still wait when the last one has come out.
            engine.show(clock.now() + Span::from_secs(10));
            let passed = metered.meter.read();
            prop_assert_eq!(passed.packets, arrivals.len() as u64);
            prop_assert_eq!(passed.released, out.len() as u64);
            prop_assert_eq!(passed.released, passed.delivered + passed.duplicated);
            prop_assert_eq!(passed.packets, passed.delivered + passed.queue_drops + passed.losses);
            prop_assert_eq!(passed.queue_bytes, 0);
        }
    }

    /// Woken on time, three segments in a row are the path of virtual time, to the nanosecond.
    #[test]
    fn three_segments_are_a_path(
        scenario in scenario(&ALL),
        seed: u64,
        up in arrivals(),
        down in arrivals(),
    ) {
        let clock = HandSet::default();
        let mut segments: Vec<_> =
            ALL.iter().map(|name| emulated_segment(&scenario, *name, seed, &clock)).collect();
        chain(&mut segments);
        put(&segments[0].client_side.incoming, &up);
        put(&segments[2].server_side.incoming, &down);
        let mut engine = Engine::new(segments, None);
        live(&mut engine, &clock, &[0]);
        let ends = [&engine.segments[2].server_side, &engine.segments[0].client_side];
        let [server, client] = ends.map(|port| came_out(&port.outgoing));
        prop_assert_eq!(server, expected(&scenario, Direction::Return, seed, &up));
        prop_assert_eq!(client, expected(&scenario, Direction::Forward, seed, &down));
    }

    /// The record of the packets at the ends has those that came and went, with their fates.
    #[test]
    fn the_record_tells_the_fates(
        scenario in scenario(&[SegmentName::Satellite]),
        seed: u64,
        up in arrivals(),
        late in 0_u64..2_000_000,
    ) {
        let clock = HandSet::default();
        let segment = emulated_segment(&scenario, SegmentName::Satellite, seed, &clock);
        put(&segment.client_side.incoming, &up);
        let wanted = Wanted { positions: link_positions(0, &[SegmentName::Satellite], &[]),
            file: None, keep: true, unix: 0 };
        let (record, recording) = record(&wanted).unwrap();
        let mut engine = Engine::new(vec![segment], Some(record));
        live(&mut engine, &clock, &[late]);
        prop_assert_eq!(engine.record.take().unwrap().finish(), 0);
        let packets = recording.finish().unwrap().packets;

        let sent: Vec<_> = packets.iter().map(|it| (it.sent.unwrap(), it.ip().len())).collect();
        prop_assert_eq!(&sent, &up);
        let mut outcomes = outcomes(&scenario, Direction::Return, seed, &up);
        let copies = outcomes.iter().filter(|it| it.is_copy);
        let copies = copies.filter(|it| matches!(it.fate, Fate::Delivered { .. })).count();
        prop_assert_eq!(packets.iter().map(|it| it.copies.len()).sum::<usize>(), copies);
        outcomes.retain(|it| !it.is_copy);
        outcomes.sort_by_key(|it| it.packet.id);
        for (packet, Outcome { fate, .. }) in packets.iter().zip(outcomes) {
            prop_assert!(packet.copies.is_sorted_by_key(|it| it.at));
            prop_assert!(packet.copies.iter().all(|it| packet.arrived <= Some(it.at)));
            prop_assert_eq!(packet.direction, Direction::Return);
            let (word, due) = match fate {
                Fate::Delivered { at } => (trace::Fate::Delivered, Some(at)),
                Fate::QueueDrop => (trace::Fate::QueueDrop, None),
                Fate::Loss => (trace::Fate::Loss, None),
            };
            prop_assert_eq!(packet.fate, word);
            prop_assert_eq!(packet.arrived.is_some(), due.is_some());
            prop_assert!(packet.arrived >= due);
        }
    }
}

/// A link that takes a nanosecond.
fn quick() -> (HandSet, Engine<FakePort>) {
    let text = "title = \"t\"\nsource = \"s\"\ntimeout = \"9 s\"\n[satellite.forward]\ndelay = \"1 \
                ns\"\n[satellite.return]\ndelay = \"1 ns\"\n";
    let scenario = Scenario::parse(text, "quick.toml", &[]).unwrap();
    let clock = HandSet::default();
    let segment = emulated_segment(&scenario, SegmentName::Satellite, 1, &clock);
    (clock, Engine::new(vec![segment], None))
}

#[test]
fn what_is_no_packet_of_a_host_is_counted() {
    let (clock, mut engine) = quick();
    let mut arp = frame(7, 28);
    arp[12..14].copy_from_slice(&[8, 6]);
    let mut report = frame(6, 90);
    report[..6].copy_from_slice(&[0x33, 0x33, 0, 0, 0, 0x16]);
    let mut open = frame(8, 100);
    open.splice(110.., *b"open");
    let merged = frame(9, 4000);
    let input = Rc::clone(&engine.segments[0].client_side.incoming);
    let frames = [arp, report, merged, open, vec![1, 2, 3], frame(10, 1500)];
    input
        .borrow_mut()
        .extend(frames.map(|frame| (Time::ZERO, frame)));
    live(&mut engine, &clock, &[0]);
    let expected = Anomalies {
        others: 3,
        merged: 1,
        unfinished: 1,
        refused: 0,
    };
    assert_eq!(engine.anomalies(), expected);
    let out = engine.segments[0].server_side.outgoing.borrow();
    let sizes: Vec<usize> = out.iter().map(|(_, frame)| frame.len()).collect();
    assert_eq!(
        sizes,
        [
            ETHERNET + 28,
            ETHERNET + 90,
            3,
            ETHERNET + 100,
            ETHERNET + 1500
        ]
    );
}

#[test]
fn a_packet_that_the_kernel_does_not_take_is_counted_and_the_rest_goes_on() {
    let (clock, mut engine) = quick();
    engine.segments[0].server_side.takes = 2;
    engine.segments[0].server_side.full_in = Some(1);
    put(
        &engine.segments[0].client_side.incoming,
        &[(Time::ZERO, 100); 6],
    );
    live(&mut engine, &clock, &[0]);
    assert_eq!(engine.anomalies().refused, 1);
    let out = came_out(&engine.segments[0].server_side.outgoing);
    let numbers: Vec<usize> = out.iter().map(|it| it.0).collect();
    assert_eq!(numbers, [0, 1, 3, 4, 5]);
}

/// The sender of a packet that is too large gets a message on the wire that it came from, and
/// nobody else does.
#[test]
fn a_packet_above_the_mtu_is_answered() {
    let text = "title = \"t\"\nsource = \"s\"\ntimeout = \"9 s\"\n[satellite.forward]\ndelay = \"1 \
                ms\"\n[satellite.return]\ndelay = \"1 ms\"\nmtu = \"1400 B\"\n";
    let scenario = Scenario::parse(text, "mtu.toml", &[]).unwrap();
    let pairs = [
        ("192.0.2.1:5000", "198.51.100.1:443", [8, 0]),
        ("[2001:db8::1]:5000", "[2001:db8::2]:443", [0x86, 0xdd]),
    ];
    for (source, destination, kind) in pairs {
        let clock = HandSet::default();
        let segment = emulated_segment(&scenario, SegmentName::Satellite, 1, &clock);
        let ends = bentpipe_wire::Endpoints {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
        };
        let frame = |ip_bytes: usize| {
            let headers = if ends.source.is_ipv4() { 28 } else { 48 };
            let mut packet = Vec::new();
            bentpipe_wire::encapsulate(&mut packet, ends, 0, 1, &vec![7; ip_bytes - headers]);
            [&[2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4], &kind[..], &packet].concat()
        };
        let frames = [frame(1400), frame(1401)].map(|frame| (Time::ZERO, frame));
        segment.client_side.incoming.borrow_mut().extend(frames);
        // The other direction has no MTU.
        let down = (Time::ZERO, frame(1500));
        segment.server_side.incoming.borrow_mut().push_back(down);
        let mut engine = Engine::new(vec![segment], None);
        live(&mut engine, &clock, &[0]);

        let segment = &engine.segments[0];
        let lost = frame(1401);
        let message = bentpipe_wire::too_big(&lost[ETHERNET..], 1400).unwrap();
        let message = [&[4, 4, 4, 4, 4, 4, 2, 2, 2, 2, 2, 2], &kind[..], &message].concat();
        let at = Time::from_nanos(1_000_000);
        let to_client = [(Time::ZERO, message), (at, frame(1500))];
        assert_eq!(*segment.client_side.outgoing.borrow(), to_client);
        let to_server = [(at, frame(1400))];
        assert_eq!(*segment.server_side.outgoing.borrow(), to_server);
        assert_eq!(
            segment.metered_link(Direction::Return).meter.read().losses,
            1
        );
    }
}

#[test]
fn stamps_that_go_back_keep_the_order() {
    let (clock, mut engine) = quick();
    clock.0.set(Time::from_nanos(900));
    let input = &engine.segments[0].client_side.incoming;
    for (number, at) in [500, 400, 600].into_iter().enumerate() {
        let at = Time::from_nanos(at);
        input.borrow_mut().push_back((at, frame(number, 100)));
    }
    live(&mut engine, &clock, &[0]);
    let out = came_out(&engine.segments[0].server_side.outgoing);
    assert_eq!(out, [0, 1, 2].map(|number| (number, Time::from_nanos(900))));
}
