//! How well the emulator kept its promise: whether a trial is to be trusted.

use std::fs;

use bentpipe_link::{Direction, Scenario, SegmentName};
use bentpipe_units::Span;
use serde::Serialize;

use crate::links::engine::Anomalies;
use crate::timing::histogram::Histogram;

/// The release error that one packet in a thousand may exceed: 1 ms, or 0.5 % of the scenario's
/// smallest round-trip time where that is more. What is small beside the round trip does not change
/// what congestion control sees, and where a host is shared, no process does better than some
/// milliseconds.
#[must_use]
pub fn most_late(scenario: &Scenario) -> Span {
    let paths = scenario.each_path();
    let smallest = paths.iter().map(Scenario::rtt).min();
    let share = Span::from_nanos(smallest.unwrap_or_default().as_nanos() / 200);
    share.max(Span::from_millis(1))
}

/// The lateness of packets against the link's model, up to 3 % overstated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReleaseError {
    /// Packets that came out.
    pub packets: u64,
    /// The median, in milliseconds.
    pub p50_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
    /// The 99.9th percentile.
    pub p999_ms: f64,
    /// The largest.
    pub max_ms: f64,
}

/// The release error of one direction of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LinkReleaseError {
    /// The number of the path, in the order of the scenario; the first is 0.
    pub path: usize,
    /// The segment.
    pub segment: SegmentName,
    /// The direction.
    pub direction: Direction,
    /// The lateness of its packets.
    #[serde(flatten)]
    pub release_error: ReleaseError,
}

/// The columns of a trial's record about its testbed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fidelity {
    /// Whether the trial counts.
    pub valid: bool,
    /// The reasons why it does not.
    pub reasons: Vec<String>,
    /// The release error of all packets.
    pub release_error: ReleaseError,
    /// The limit of the 99.9th percentile, in milliseconds: [`most_late`].
    pub most_late_ms: f64,
    /// The release error of each direction of each segment.
    #[serde(rename = "lanes")]
    pub links: Vec<LinkReleaseError>,
    /// Packets that the kernel dropped, on their way to the emulator or from it.
    pub kernel_drops: u64,
    /// Packets above the MTU, which a host merged; they are dropped.
    pub merged_packets: u64,
    /// Packets whose checksum a host left open.
    pub unfinished_checksums: u64,
    /// Frames of the wire itself, such as ARP and IPv6's multicast reports; they pass at once.
    pub other_frames: u64,
    /// Events of packets that are missing in the capture, and among the packets that are handed
    /// over.
    pub capture_losses: u64,
    /// The share of the time in which some task waited for a processor; null where the kernel does
    /// not tell.
    pub cpu_pressure_some: Option<f64>,
    /// The share of the time in which all did.
    pub cpu_pressure_full: Option<f64>,
    /// Processor time of the thread that forwards, in seconds.
    pub cpu_s: f64,
    /// The duration of the emulation.
    pub duration_s: f64,
    /// The scheduling of the thread that forwards: `fifo`, `nice` or `normal`.
    pub scheduling: &'static str,
}

impl ReleaseError {
    pub(crate) fn of(histogram: &Histogram) -> Self {
        let ms = |span: Span| span.as_secs_f64() * 1e3;
        Self {
            packets: histogram.count(),
            p50_ms: ms(histogram.permille(500)),
            p99_ms: ms(histogram.permille(990)),
            p999_ms: ms(histogram.permille(999)),
            max_ms: ms(histogram.longest()),
        }
    }
}

/// The measurements taken while packets were forwarded.
#[derive(Debug)]
pub(crate) struct Measured {
    /// By path, segment and direction.
    pub links: Vec<((usize, SegmentName, Direction), Histogram)>,
    /// The limit of the release error.
    pub most_late: Span,
    pub anomalies: Anomalies,
    /// Drops at the ports; packets that the kernel refused to take are in `anomalies`.
    pub kernel_drops: u64,
    pub capture_losses: u64,
    /// The reason why the thread ended by itself.
    pub failure: Option<String>,
    pub pressure: [Option<Pressure>; 2],
    pub cpu: Span,
    pub duration: Span,
    pub scheduling: &'static str,
}

impl Measured {
    pub fn judge(self) -> Fidelity {
        let mut all = Histogram::default();
        for (_, late) in &self.links {
            all.merge(late);
        }
        let kernel_drops = self.kernel_drops + self.anomalies.refused;
        let reasons = self.reasons(&all, kernel_drops);
        let share = |of: fn(&Pressure) -> u64| {
            let [before, after] = self.pressure.each_ref().map(Option::as_ref);
            let stalled = Span::from_nanos((of(after?) - of(before?)) * 1_000);
            Some((stalled.as_secs_f64() / self.duration.as_secs_f64()).min(1.0))
        };
        Fidelity {
            valid: reasons.is_empty(),
            reasons,
            release_error: ReleaseError::of(&all),
            most_late_ms: self.most_late.as_secs_f64() * 1e3,
            kernel_drops,
            merged_packets: self.anomalies.merged,
            unfinished_checksums: self.anomalies.unfinished,
            other_frames: self.anomalies.others,
            capture_losses: self.capture_losses,
            cpu_pressure_some: share(|it| it.some_us),
            cpu_pressure_full: share(|it| it.full_us),
            cpu_s: self.cpu.as_secs_f64(),
            duration_s: self.duration.as_secs_f64(),
            scheduling: self.scheduling,
            links: self.links.iter().map(link_release_error).collect(),
        }
    }

    fn reasons(&self, all: &Histogram, kernel_drops: u64) -> Vec<String> {
        let mut reasons: Vec<String> = self.failure.iter().cloned().collect();
        let mut because = |holds: bool, reason: String| {
            if holds {
                reasons.push(reason);
            }
        };
        let (late, most) = (all.permille(999), self.most_late);
        because(
            late > most,
            format!("1 packet in 1000 came out more than {late} late; {most} is the limit"),
        );
        let counted = [
            (kernel_drops, "packets dropped by the kernel"),
            (
                self.anomalies.merged,
                "packets above the MTU: a host merges them",
            ),
            (
                self.anomalies.unfinished,
                "packets with unfinished checksums",
            ),
            (self.capture_losses, "events of packets lost by the capture"),
        ];
        for (count, what) in counted {
            because(count > 0, format!("{count} {what}"));
        }
        reasons
    }
}

fn link_release_error(
    ((path, segment, direction), late): &((usize, SegmentName, Direction), Histogram),
) -> LinkReleaseError {
    LinkReleaseError {
        path: *path,
        segment: *segment,
        direction: *direction,
        release_error: ReleaseError::of(late),
    }
}

/// The times for which tasks waited for a processor since the machine was started, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pressure {
    pub some_us: u64,
    pub full_us: u64,
}

impl Pressure {
    /// The times that the kernel tells now, if it does.
    pub fn now() -> Option<Self> {
        Self::of(&fs::read_to_string("/proc/pressure/cpu").ok()?)
    }

    fn of(text: &str) -> Option<Self> {
        let total = |kind: &str| {
            let line = text.lines().find(|line| line.starts_with(kind))?;
            line.split_once("total=")?.1.trim().parse().ok()
        };
        Some(Self {
            some_us: total("some")?,
            full_us: total("full").unwrap_or(0), // before Linux 5.13 there is no such line
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured() -> Measured {
        let mut late = Histogram::default();
        late.add(Span::from_nanos(70_000));
        Measured {
            links: vec![((0, SegmentName::Satellite, Direction::Forward), late)],
            most_late: Span::from_millis(1),
            anomalies: Anomalies::default(),
            kernel_drops: 0,
            capture_losses: 0,
            failure: None,
            pressure: [0, 500_000].map(|us| {
                Some(Pressure {
                    some_us: us,
                    full_us: 0,
                })
            }),
            cpu: Span::from_millis(10),
            duration: Span::from_secs(2),
            scheduling: "normal",
        }
    }

    #[test]
    fn a_quiet_trial_is_valid_and_tells_its_pressure() {
        let fidelity = measured().judge();
        assert_eq!((fidelity.valid, fidelity.reasons.len()), (true, 0));
        assert_eq!(fidelity.cpu_pressure_some, Some(0.25));
        assert_eq!(fidelity.cpu_pressure_full, Some(0.0));
        assert_eq!(fidelity.release_error.packets, 1);
        assert!((fidelity.release_error.max_ms - 0.07).abs() < 1e-9);
    }

    /// Makes a trial invalid, in one way.
    type Spoil = fn(&mut Measured);

    #[test]
    fn each_limit_makes_a_trial_invalid_and_says_why() {
        let breaks: [(Spoil, &str); 7] = [
            (
                |it| it.links[0].1.add(Span::from_nanos(1_000_001)),
                "1 packet in 1000 came out more than 1.000001 ms late; 1 ms is the limit",
            ),
            (|it| it.kernel_drops = 2, "2 packets dropped by the kernel"),
            (
                |it| it.anomalies.refused = 1,
                "1 packets dropped by the kernel",
            ),
            (
                |it| it.anomalies.merged = 3,
                "3 packets above the MTU: a host merges them",
            ),
            (
                |it| it.anomalies.unfinished = 1,
                "1 packets with unfinished checksums",
            ),
            (
                |it| it.capture_losses = 9,
                "9 events of packets lost by the capture",
            ),
            (|it| it.failure = Some("gone".into()), "gone"),
        ];
        for (spoil, reason) in breaks {
            let mut measured = measured();
            spoil(&mut measured);
            let fidelity = measured.judge();
            assert_eq!(
                (fidelity.valid, &*fidelity.reasons),
                (false, &[reason.to_owned()][..])
            );
        }
    }

    #[test]
    fn pressure_is_read_as_the_kernel_writes_it() {
        let text = "some avg10=88.57 avg60=86.15 avg300=61.37 total=16189340372\n\
            full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        let expected = Pressure {
            some_us: 16_189_340_372,
            full_us: 7,
        };
        assert_eq!(Pressure::of(text), Some(expected));
        assert_eq!(Pressure::of(""), None);
    }
}
