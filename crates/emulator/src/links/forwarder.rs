//! The thread that forwards, and what other threads see of it.
//!
//! One thread moves the packets of all segments, both ways. It sleeps until a port has something or
//! the next packet is due, by a timer of the kernel that is set to an instant, not to a span: what
//! delays the thread before it sleeps does not add up. On request it stays awake for the last
//! moments before a packet is due.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use bentpipe_link::{
    Direction, DirectionConfig, HostName, LinkSeed, Path, Scenario, SegmentName, path_seed,
};
use bentpipe_units::{Span, Time};
use rustix::event::{EventfdFlags, eventfd};

use crate::capture::{HopPacket, Record, Recording, Wanted, record};
use crate::error::{Doing, EmulatorError};
use crate::hosts::device::SegmentPorts;
use crate::links::emulated_link::EmulatedLink;
use crate::links::engine::{EmulatedSegment, Engine, MeteredLink};
use crate::links::fidelity::{Fidelity, Measured, Pressure, most_late};
use crate::links::link_positions::{LinkPosition, link_positions};
use crate::links::segment_counters::{Meter, SegmentCounters};
use crate::links::wakeup::WakeupSources;
use crate::packet_socket::packet_port::PacketPort;
use crate::timing::clock::{Clock, TrialClock, thread_cpu_time};
use crate::timing::real_time_priority::raise_priority;

/// The options of a forwarder.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A pcapng file that gets what passes the two ends of the path.
    pub capture: Option<PathBuf>,
    /// Whether the report has the packets that passed the ends of hops.
    pub keep_packets: bool,
    /// Hosts between client and server where programs take the packets: there a hop ends, and the
    /// next begins.
    pub stops: Vec<HostName>,
    /// The time before a packet is due in which the thread stays awake. That costs a processor.
    pub spin: Span,
    /// Whether the thread does without a real-time priority where it may have one.
    pub normal_priority: bool,
}

/// Starts to forward.
#[derive(Debug)]
pub struct Forwarder;

/// A thread that forwards.
#[derive(Debug)]
pub struct Running {
    stop: Arc<Stop>,
    meters: Vec<Arc<Meter>>,
    clock: TrialClock,
    recording: Option<Recording>,
    pressure: Option<Pressure>,
    thread: JoinHandle<Measured>,
}

/// The report of a forwarder that has ended.
#[derive(Clone, Debug)]
pub struct Report {
    /// Whether the trial is to be trusted.
    pub fidelity: Fidelity,
    /// The counters of each direction of each segment.
    pub passed: Vec<SegmentCounters>,
    /// The packets that passed the ends of hops, if they were asked for.
    pub packets: Vec<HopPacket>,
    /// Packets in the capture, each counted at both ends.
    pub captured: u64,
    /// The trial's time zero, in nanoseconds since the Unix epoch.
    pub start_unix_ns: u64,
}

/// How other threads end it.
#[derive(Debug)]
struct Stop {
    asked: AtomicBool,
    event: OwnedFd,
}

impl Forwarder {
    /// Starts a thread that forwards the packets of all emulated segments, as `scenario` says.
    /// Trial time starts now. The devices are looked for in the network namespace of the calling
    /// thread; which one the new thread is in does not matter.
    pub fn start(
        segments: &[SegmentPorts],
        scenario: &Scenario,
        seed: u64,
        options: &Options,
    ) -> Result<Running, EmulatorError> {
        let clock = TrialClock::start();
        let paths = scenario.each_path();
        let mut emulated = Vec::new();
        let mut meters = Vec::new();
        for ports in segments {
            let seed = path_seed(seed, ports.path);
            let segment = emulated_segment(ports, &paths[ports.path], seed)?;
            meters.extend(segment.1);
            emulated.push(segment.0);
        }
        let wanted = Wanted {
            positions: positions(segments, &options.stops),
            file: options.capture.as_deref(),
            keep: options.keep_packets,
            unix: clock.unix(),
        };
        let is_wanted = wanted.keep || wanted.file.is_some();
        let (record, recording) = is_wanted.then(|| record(&wanted)).transpose()?.unzip();
        let stop = Arc::new(Stop::new().doing("making an event")?);
        let forwarding = Forwarding {
            wakeup: wakeup_sources(options.spin, &emulated).doing("making a timer")?,
            engine: Engine::new(emulated, record),
            clock,
            stop: Arc::clone(&stop),
            most_late: most_late(scenario),
            normal_priority: options.normal_priority,
        };
        let pressure = Pressure::now();
        let thread = thread::Builder::new()
            .name("forward".into())
            .spawn(move || forwarding.run())
            .doing("starting a thread that forwards")?;
        Ok(Running {
            stop,
            meters,
            clock,
            recording,
            pressure,
            thread,
        })
    }
}

impl Running {
    /// The counters of each direction of each segment so far.
    #[must_use]
    pub fn segment_counters(&self) -> Vec<SegmentCounters> {
        self.meters.iter().map(|meter| meter.read()).collect()
    }

    /// The time since the start.
    #[must_use]
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// The trial's time zero, in nanoseconds since the Unix epoch.
    #[must_use]
    pub fn start_unix_ns(&self) -> u64 {
        self.clock.unix()
    }

    /// Its clock.
    pub(crate) fn clock(&self) -> TrialClock {
        self.clock
    }

    /// Ends it. What is still under way stays there.
    pub fn stop(self) -> Result<Report, EmulatorError> {
        self.stop.ask().doing("ending the thread that forwards")?;
        let mut measured = self.thread.join().expect("the forwarding thread panicked");
        measured.pressure = [self.pressure, Pressure::now()];
        let recorded = self.recording.map(Recording::finish).transpose()?;
        let recorded = recorded.unwrap_or_default();
        Ok(Report {
            fidelity: measured.judge(),
            passed: self.meters.iter().map(|meter| meter.read()).collect(),
            packets: recorded.packets,
            captured: recorded.written,
            start_unix_ns: self.clock.unix(),
        })
    }
}

/// The places of the links of all paths, in the order of the segments, of which those of a path
/// stand together.
fn positions(segments: &[SegmentPorts], stops: &[HostName]) -> Vec<LinkPosition> {
    let paths = segments.chunk_by(|one, next| one.path == next.path);
    let of_path = |path: &[SegmentPorts]| {
        let names: Vec<SegmentName> = path.iter().map(|ports| ports.name).collect();
        link_positions(path[0].path, &names, stops)
    };
    paths.flat_map(of_path).collect()
}

/// The ports of a segment, with its links between them, and their meters.
fn emulated_segment(
    ports: &SegmentPorts,
    scenario: &Scenario,
    seed: u64,
) -> Result<(EmulatedSegment<PacketPort>, [Arc<Meter>; 2]), EmulatorError> {
    let metered = |direction| {
        let meter = Arc::new(Meter::new(ports.path, ports.name, direction));
        let emulated = EmulatedLink::new(link(scenario, ports.name, direction, seed));
        (MeteredLink::new(emulated, Arc::clone(&meter)), meter)
    };
    let [forward, return_] = Direction::BOTH.map(metered);
    let segment = EmulatedSegment {
        path: ports.path,
        name: ports.name,
        client_side: PacketPort::open(&ports.client_side)?,
        server_side: PacketPort::open(&ports.server_side)?,
        forward: forward.0,
        return_: return_.0,
    };
    Ok((segment, [forward.1, return_.1]))
}

fn wakeup_sources(
    spin: Span,
    segments: &[EmulatedSegment<PacketPort>],
) -> io::Result<WakeupSources> {
    let ports = segments
        .iter()
        .flat_map(|it| [&it.client_side, &it.server_side]);
    WakeupSources::new(spin, ports)
}

/// A link of a scenario, as [`bentpipe_link::Path`] makes it.
pub(crate) fn link(
    scenario: &Scenario,
    segment: SegmentName,
    direction: Direction,
    seed: u64,
) -> Path {
    let transparent = DirectionConfig::default();
    let config = scenario
        .segment(segment)
        .map_or(&transparent, |segment| segment.direction(direction));
    let seed = LinkSeed {
        seed,
        direction,
        segment,
    };
    Path::of_link(config, scenario.rtt(), seed)
}

impl Stop {
    fn new() -> io::Result<Self> {
        Ok(Self {
            asked: AtomicBool::new(false),
            event: eventfd(0, EventfdFlags::CLOEXEC)?,
        })
    }

    fn ask(&self) -> io::Result<()> {
        self.asked.store(true, Ordering::Relaxed);
        rustix::io::write(&self.event, &1_u64.to_ne_bytes())?;
        Ok(())
    }
}

/// The state of the thread.
struct Forwarding {
    engine: Engine<PacketPort>,
    clock: TrialClock,
    wakeup: WakeupSources,
    stop: Arc<Stop>,
    most_late: Span,
    normal_priority: bool,
}

impl Forwarding {
    fn run(mut self) -> Measured {
        let scheduling = if self.normal_priority {
            "normal"
        } else {
            raise_priority()
        };
        let result = self.forward();
        let kernel_drops = self.take_kernel_drops();
        let failure = result.and(kernel_drops.as_ref().map(drop).map_err(copy));
        let now = self.clock.now();
        self.engine.show(now);
        let links = self.engine.segments.iter().flat_map(|segment| {
            Direction::BOTH.map(|direction| {
                (
                    (segment.path, segment.name, direction),
                    segment.metered_link(direction).release_delays().clone(),
                )
            })
        });
        Measured {
            links: links.collect(),
            most_late: self.most_late,
            anomalies: self.engine.anomalies(),
            kernel_drops: kernel_drops.unwrap_or(0),
            failure: failure.err().map(|it| format!("forwarding failed: {it}")),
            capture_losses: self.engine.record.take().map_or(0, Record::finish),
            pressure: [None, None],
            cpu: thread_cpu_time(),
            duration: now - Time::ZERO,
            scheduling,
        }
    }

    fn forward(&mut self) -> io::Result<()> {
        while !self.stop.asked.load(Ordering::Relaxed) {
            let next = self.engine.step(&self.clock)?;
            self.wakeup.wait(next, &self.clock, &self.stop.event)?;
        }
        Ok(())
    }

    fn take_kernel_drops(&mut self) -> io::Result<u64> {
        let mut drops = 0;
        for segment in &mut self.engine.segments {
            for port in [&mut segment.client_side, &mut segment.server_side] {
                drops += port.take_kernel_drops()?;
            }
        }
        Ok(drops)
    }
}

fn copy(error: &io::Error) -> io::Error {
    io::Error::other(error.to_string())
}
