//! How exact the emulator is on this machine, measured beside how exactly this machine wakes a
//! thread at all.
//!
//! Model: packets go from the gateway to the terminal over the satellite segment, through the same
//! devices, sockets and thread as in every trial. What the emulator says of itself is held against
//! when the kernel of the receiving host got each packet. All but the first of the timer's
//! measurements are made while idle processors are kept awake, as trials are in virtual machines.
//! Where a queue discipline may make a difference, drop-tail and FQ-CoDel are measured one after
//! the other: the former decides when a packet arrives, the latter when it is about to leave.

mod report;
mod traffic;

use std::fmt;
use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use bentpipe_link::{HostName, Scenario, SegmentName};
use bentpipe_units::{Rate, Size, Span, Time};
use serde::Serialize;

use crate::error::{Doing, EmulatorError};
use crate::hosts::topology::Topology;
use crate::links::fidelity::ReleaseError;
use crate::links::forwarder::{Forwarder, Options, Report};
use crate::timing::clock::{Clock, TrialClock, sleep_until};
use crate::timing::histogram::Histogram;
use crate::timing::idle_prevention::IdlePrevention;
use crate::timing::real_time_priority::raise_priority;
use crate::timing::timer::Timer;
use traffic::{ArrivedPackets, Load, receive, send};

/// Rates that a link must keep.
const RATES_MBPS: [u64; 3] = [20, 150, 250];
/// The delay at which the release error is measured, and its rate.
const DELAY: Span = Span::from_millis(300);
const DELAY_RATE_MBPS: u64 = 20;
const GIGABIT_MBPS: u64 = 1000;
/// Bytes of each IP packet, where nothing else is said.
const IP_BYTES: usize = 1200;
/// Bytes of the IP packets of a gigabit: 104,167 and 208,333 of them a second.
const GIGABIT_IP_BYTES: [usize; 2] = [IP_BYTES, 600];
/// How long a queue may get: it outlasts the time for which a busy machine may let the sender wait,
/// and holds the packets that it then makes up for.
const QUEUE: &str = "500 ms";
/// The disciplines that are held against each other.
const DISCIPLINES: [Discipline; 2] = [Discipline::DropTail, Discipline::FqCoDel];

/// The measurements of `bench`.
#[derive(Clone, Debug, Serialize)]
pub struct Bench {
    /// Processors.
    pub cpus: usize,
    /// The share of the processors' time that the hypervisor gave to others; null where the kernel
    /// does not tell.
    pub cpu_steal: Option<f64>,
    /// The release error of this machine's timer: how late it wakes a thread of the emulator's
    /// priority that sleeps until a given instant.
    pub timer: ReleaseError,
    /// The same, while idle processors are kept awake.
    pub timer_awake: ReleaseError,
    /// At 20 Mbit/s and 300 ms, behind each discipline.
    pub delays: Vec<Delay>,
    /// The rates of links to which more is sent than they carry.
    pub rates: Vec<RateKept>,
    /// 1 Gbit/s through one direction, in large packets and in small ones, behind each discipline.
    pub gigabits: Vec<Gigabit>,
}

/// The discipline of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Discipline {
    /// The queue decides at arrival.
    #[serde(rename = "drop-tail")]
    DropTail,
    /// The queue decides at departure (RFC 8290).
    #[serde(rename = "fq-codel")]
    FqCoDel,
}

/// The exactness of a delay.
#[derive(Clone, Debug, Serialize)]
pub struct Delay {
    /// The discipline of the queue.
    pub queue: Discipline,
    /// The emulator's report.
    pub release_error: ReleaseError,
    /// The delay of packets at the receiving host's kernel beyond that of the link, from the time
    /// of sending.
    pub seen_error: ReleaseError,
    /// The scheduling of the thread that forwards.
    pub scheduling: &'static str,
}

/// The exactness of a rate.
#[derive(Clone, Debug, Serialize)]
pub struct RateKept {
    /// The link's.
    pub asked_bps: u64,
    /// The rate that the receiving host's kernel saw.
    pub seen_bps: f64,
    /// By which share it is off.
    pub error: f64,
}

/// The measurement of a gigabit: whether it comes through a link that has a quarter to spare, so
/// that what the sender makes up for drains.
#[derive(Clone, Debug, Serialize)]
pub struct Gigabit {
    /// The discipline of the queue.
    pub queue: Discipline,
    /// Bytes of each IP packet.
    pub ip_bytes: usize,
    /// Packets sent.
    pub sent: u64,
    /// Packets that came through.
    pub received: u64,
    /// Packets that the kernel dropped.
    pub kernel_drops: u64,
    /// Packets that the link's queue dropped, since they were sent in bursts.
    pub queue_drops: u64,
    /// Packets that the measurement itself did not see in time.
    pub unseen: u64,
    /// The rate of the packets that came through.
    pub seen_bps: f64,
    /// The same in packets per second.
    pub seen_pps: f64,
    /// The lateness of packets that came out.
    pub release_error: ReleaseError,
    /// The share of a processor that the thread took.
    pub cpu: f64,
}

/// Measures, for about so long each.
pub fn bench(each: Span) -> Result<Bench, EmulatorError> {
    let before = ticks();
    let asleep = timer(each)?;
    let _awake = IdlePrevention::start()?;
    let timer_awake = timer(each)?;
    let delays = DISCIPLINES.map(|queue| delay(queue, each));
    let delays = delays.into_iter().collect::<Result<Vec<_>, _>>()?;
    let rates = RATES_MBPS.map(|mbps| rate_kept(mbps, each));
    let rates = rates.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut gigabits = Vec::new();
    for ip_bytes in GIGABIT_IP_BYTES {
        for queue in DISCIPLINES {
            gigabits.push(gigabit(queue, ip_bytes, each)?);
        }
    }
    Ok(Bench {
        cpus: thread::available_parallelism().map_or(1, std::num::NonZero::get),
        cpu_steal: before.zip(ticks()).and_then(stolen),
        timer: asleep,
        timer_awake,
        delays,
        rates,
        gigabits,
    })
}

/// The release error of this machine's timer: how late it wakes a thread of the emulator's priority
/// that sleeps a millisecond at a time, each until a given instant.
pub fn timer(each: Span) -> Result<ReleaseError, EmulatorError> {
    let clock = TrialClock::start();
    let measure = || {
        raise_priority();
        let mut timer = Timer::new()?;
        let mut late = Histogram::default();
        let mut due = Time::ZERO + Span::from_millis(1);
        while due - Time::ZERO < each {
            timer.set(Some(due), &clock)?;
            timer.sleep()?;
            let now = clock.now();
            late.add(now - due);
            due = now + Span::from_millis(1);
        }
        Ok::<_, io::Error>(ReleaseError::of(&late))
    };
    let measured = thread::scope(|scope| scope.spawn(measure).join());
    let measured = measured.expect("measuring does not panic");
    measured.doing("sleeping until an instant")
}

/// The times in `/proc/stat`, over all processors: ticks in user mode, nice, system, idle, waiting,
/// interrupts (hard, soft), stolen.
type Ticks = [u64; 8];

fn ticks() -> Option<Ticks> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let columns = text.lines().next()?.split_whitespace().skip(1);
    let columns: Option<Vec<u64>> = columns.take(8).map(|it| it.parse().ok()).collect();
    columns?.try_into().ok()
}

/// The share of stolen ticks between two looks.
fn stolen((before, after): (Ticks, Ticks)) -> Option<f64> {
    let all = after.iter().sum::<u64>() - before.iter().sum::<u64>();
    (all > 0).then(|| float(after[7] - before[7]) / float(all))
}

fn delay(queue: Discipline, each: Span) -> Result<Delay, EmulatorError> {
    let rate = mbps(DELAY_RATE_MBPS);
    let load = Load {
        rate: mbps(DELAY_RATE_MBPS * 9 / 10),
        ip_bytes: IP_BYTES,
        duration: each,
    };
    let run = run(&scenario(queue, rate, DELAY), load)?;
    let on_the_link = rate.time_for(Size::from_bytes(IP_BYTES as u64));
    let mut late = Histogram::default();
    let mut free = Time::ZERO;
    for packet in &run.arrived.seen {
        free = free.max(packet.sent) + on_the_link;
        late.add(packet.arrived - (free + DELAY));
    }
    Ok(Delay {
        queue,
        release_error: run.report.fidelity.release_error,
        seen_error: ReleaseError::of(&late),
        scheduling: run.report.fidelity.scheduling,
    })
}

/// Sends a fifth more than the link takes.
fn rate_kept(asked: u64, each: Span) -> Result<RateKept, EmulatorError> {
    let load = Load {
        rate: mbps(asked * 6 / 5),
        ip_bytes: IP_BYTES,
        duration: each,
    };
    let scenario = scenario(Discipline::DropTail, mbps(asked), Span::from_millis(10));
    let run = run(&scenario, load)?;
    let asked_bps = mbps(asked).bps();
    let seen_bps = run.arrived.packet_rate() * bits(IP_BYTES);
    Ok(RateKept {
        asked_bps,
        seen_bps,
        error: seen_bps / float(asked_bps) - 1.0,
    })
}

fn gigabit(queue: Discipline, ip_bytes: usize, each: Span) -> Result<Gigabit, EmulatorError> {
    let load = Load {
        rate: mbps(GIGABIT_MBPS),
        ip_bytes,
        duration: each,
    };
    let link = mbps(GIGABIT_MBPS * 5 / 4);
    let run = run(&scenario(queue, link, Span::from_millis(10)), load)?;
    let fidelity = run.report.fidelity;
    let received = run.arrived.seen.len() as u64;
    let seen_pps = run.arrived.packet_rate();
    Ok(Gigabit {
        queue,
        ip_bytes,
        sent: run.sent,
        received,
        kernel_drops: fidelity.kernel_drops,
        queue_drops: run.report.passed.iter().map(|it| it.queue_drops).sum(),
        unseen: run.arrived.drops,
        seen_bps: seen_pps * bits(ip_bytes),
        seen_pps,
        release_error: fidelity.release_error,
        cpu: fidelity.cpu_s / fidelity.duration_s,
    })
}

impl Discipline {
    /// A queue of it, as scenario files have it.
    fn queue(self) -> String {
        match self {
            Self::DropTail => format!("\"{QUEUE}\""),
            Self::FqCoDel => format!("{{ size = \"{QUEUE}\", aqm = \"{self}\" }}"),
        }
    }
}

impl fmt::Display for Discipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::DropTail => "drop-tail",
            Self::FqCoDel => "fq-codel",
        })
    }
}

/// A link of `rate` both ways, with this queue from the gateway to the terminal.
fn scenario(queue: Discipline, rate: Rate, delay: Span) -> Scenario {
    let way = format!("rate = \"{rate}\"\ndelay = \"{delay}\"\n");
    let text = format!(
        "title = \"bench\"\nsource = \"none\"\ntimeout = \"60 s\"\n\
         [satellite.forward]\n{way}queue = {}\n\
         [satellite.return]\n{way}queue = \"{QUEUE}\"\n",
        queue.queue()
    );
    Scenario::parse(&text, "bench.toml", &[]).expect("a scenario as in the documentation")
}

struct Run {
    report: Report,
    arrived: ArrivedPackets,
    sent: u64,
}

/// Sends `load` from the gateway to the terminal.
fn run(scenario: &Scenario, load: Load) -> Result<Run, EmulatorError> {
    let clock = TrialClock::start();
    let topology = Topology::build(scenario)?;
    let device = SegmentName::Satellite.name();
    let [terminal, gateway] =
        [HostName::Terminal, HostName::Gateway].map(|host| (topology.host(host).network(), device));
    let start = || Forwarder::start(topology.segments(), scenario, 1, &Options::default());
    let running = topology.emulator().within(start)?;
    let ended = AtomicBool::new(false);
    let (is_ready, ready) = channel();
    let (sent, arrived) = thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let tell = move || is_ready.send(()).expect("the sender waits");
            receive(terminal, load.ip_bytes, &ended, tell, clock)
        });
        let sent = match ready.recv() {
            Ok(()) => send(gateway, load, clock),
            Err(_) => Ok(0), // the receiver failed, and says why
        };
        let drained = clock.now() + scenario.rtt() + Span::from_millis(600);
        sleep_until(drained, drained, &clock);
        ended.store(true, Ordering::Release);
        (sent, receiver.join().expect("the receiver does not panic"))
    });
    let report = running.stop()?;
    Ok(Run {
        report,
        arrived: arrived?,
        sent: sent?,
    })
}

impl ArrivedPackets {
    /// Packets per second, from the first to the last. The first has come when the time begins.
    fn packet_rate(&self) -> f64 {
        let [Some(first), Some(last)] = [self.seen.first(), self.seen.last()] else {
            return 0.0;
        };
        let packets = self.seen.len() as u64 - 1;
        float(packets) / (last.arrived - first.arrived).as_secs_f64()
    }
}

fn bits(ip_bytes: usize) -> f64 {
    float(ip_bytes as u64 * 8)
}

fn mbps(rate: u64) -> Rate {
    Rate::from_bps(rate * 1_000_000)
}

#[expect(clippy::cast_precision_loss, reason = "below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}
