//! The measurements, for people: each beside what it should be on a quiet machine.

use std::fmt;

use super::{Bench, Gigabit};
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
            self.delays[0].scheduling
        )?;
        writeln!(
            f,
            "{:34} {:>8} {:>8} {:>8} {:>8}",
            "late by ms", "p50", "p99", "p99.9", "max"
        )?;
        line(f, "this machine's timer", &self.timer, "")?;
        line(f, "  kept awake", &self.timer_awake, "")?;
        for delay in &self.delays {
            let release = &delay.release_error;
            let met = release.p99_ms <= P99_MS && release.p999_ms <= P999_MS;
            let what = format!("20 Mbit/s and 300 ms, {}", delay.queue);
            line(f, &what, release, verdict(met))?;
            let seen = "  as the receiver's kernel saw it";
            line(f, seen, &delay.seen_error, "")?;
        }
        for gigabit in &self.gigabits {
            let what = format!("1 Gbit/s of {} B, {}", gigabit.ip_bytes, gigabit.queue);
            line(f, &what, &gigabit.release_error, "")?;
        }
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
        for (number, gigabit) in self.gigabits.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            write_gigabit(f, gigabit)?;
        }
        Ok(())
    }
}

fn write_gigabit(f: &mut fmt::Formatter<'_>, gigabit: &Gigabit) -> fmt::Result {
    write!(
        f,
        "{:4.0} Mbit/s, {:.0} packets of {} B a second through {}: {} of {} came through; dropped: \
         {} by the kernel, {} by the queue; {:.0} % of a processor",
        gigabit.seen_bps / 1e6,
        gigabit.seen_pps,
        gigabit.ip_bytes,
        gigabit.queue,
        gigabit.received,
        gigabit.sent,
        gigabit.kernel_drops,
        gigabit.queue_drops,
        gigabit.cpu * 1e2,
    )?;
    if gigabit.unseen > 0 {
        write!(f, " ({} missed by the measurement)", gigabit.unseen)?;
    }
    write!(f, "{}", verdict(gigabit.received == gigabit.sent))
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
