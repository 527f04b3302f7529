//! The measurements, for people: each beside what it should be on a quiet machine.

use std::fmt;

use super::Bench;
use crate::links::fidelity::ReleaseError;

/// Limits, in milliseconds and as a share.
const P99_MS: f64 = 0.2;
const P999_MS: f64 = 1.0;
const RATE_ERROR: f64 = 0.001;

impl fmt::Display for Bench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stolen = self.cpu_steal.map(|share| format!("{:.0} %", share * 1e2));
        writeln!(
            f,
            "{} processors, of which a hypervisor took {}; forwarding runs as {}",
            self.cpus,
            stolen.as_deref().unwrap_or("an unknown share"),
            self.delay.scheduling
        )?;
        writeln!(
            f,
            "{:34} {:>8} {:>8} {:>8} {:>8}",
            "late by ms", "p50", "p99", "p99.9", "max"
        )?;
        line(f, "this machine's timer", &self.timer, "")?;
        line(f, "  kept awake", &self.timer_awake, "")?;
        let release = &self.delay.release_error;
        let met = release.p99_ms <= P99_MS && release.p999_ms <= P999_MS;
        line(f, "release, 20 Mbit/s and 300 ms", release, verdict(met))?;
        line(
            f,
            "  as the receiver's kernel saw it",
            &self.delay.seen_error,
            "",
        )?;
        line(f, "release, 1 Gbit/s", &self.gigabit.release_error, "")?;
        for rate in &self.rates {
            let asked = rate.asked_bps / 1_000_000;
            writeln!(
                f,
                "{asked:4} Mbit/s: {:.4} seen, {:+.4} %{}",
                rate.seen_bps / 1e6,
                rate.error * 1e2,
                verdict(rate.error.abs() <= RATE_ERROR)
            )?;
        }
        let gigabit = &self.gigabit;
        write!(
            f,
            "{:.0} Mbit/s of 1200-byte packets: {} of {} came through; dropped: {} by the kernel, \
             {} by the queue; {:.0} % of a processor{}",
            gigabit.seen_bps / 1e6,
            gigabit.received,
            gigabit.sent,
            gigabit.kernel_drops,
            gigabit.queue_drops,
            gigabit.cpu * 1e2,
            verdict(gigabit.received == gigabit.sent)
        )?;
        match gigabit.unseen {
            0 => Ok(()),
            unseen => write!(f, " ({unseen} missed by the measurement)"),
        }
    }
}

fn line(f: &mut fmt::Formatter<'_>, what: &str, error: &ReleaseError, end: &str) -> fmt::Result {
    let ReleaseError {
        p50_ms,
        p99_ms,
        p999_ms,
        max_ms,
        ..
    } = error;
    writeln!(
        f,
        "{what:34} {p50_ms:8.3} {p99_ms:8.3} {p999_ms:8.3} {max_ms:8.3}{end}"
    )
}

fn verdict(met: bool) -> &'static str {
    if met { "" } else { "  <- misses the target" }
}
