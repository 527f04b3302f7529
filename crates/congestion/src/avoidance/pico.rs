//! Pico: Reno's rule, with the increase that CUBIC would have on the average.
//!
//! Source: the congestion controller `pico` of quicly (K. Oku, `lib/cc-pico.c`), as of 2026; there
//! is no other specification. After a congestion event at the window `W`, the window grows by a
//! datagram for each min(β·W, 1.2937·K / ((1 − β)·RTT) datagrams) that are acknowledged, where K =
//! ∛((1 − β)·W / C), β = 0.7 and C = 0.4. The first term is Reno's growth at the reduced window,
//! the second one the slope of CUBIC's curve between the reduction and its plateau, in the mean of
//! a cycle with fast convergence and one without. So the window's growth is a straight line, as
//! Reno's is, and one division for each congestion event is all that it costs. The congestion event
//! that ends the first slow start halves the window, and counts as one at half the window; later
//! ones leave β of it. Departure:
//!
//! - After a slow start without loss the increase is that of the window with which it was left.
//!   quicly derives it from the initial window there, at which the first increase would be faster
//!   than slow start's last one.

use crate::acks::{Acks, CongestionEvent};
use crate::avoidance::{Avoidance, Reduction};
use crate::path::PathState;

/// In segments per second cubed, CUBIC's.
const C: f64 = 0.4;
/// (1 + 2·∛½) / 2: how much longer CUBIC's way back takes in the mean of cycles with and without
/// fast convergence.
const CONVERGENCE: f64 = 1.293_700_525_984;

/// Pico: a straight line through CUBIC's curve.
#[derive(Debug, Clone, Default)]
pub struct Pico {
    /// Bytes that must be acknowledged for a datagram more.
    step: u64,
    /// Those that were since.
    acked: u64,
}

impl Pico {
    fn aim(&mut self, path: &PathState, window: u64) {
        self.acked = 0;
        let reno = u64::try_from(u128::from(window) * 7 / 10).expect("less than the window");
        self.step = reno.min(cubic(path, window)).max(1);
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "windows are smaller than 2^53 bytes; what is larger saturates"
)]
fn cubic(path: &PathState, window: u64) -> u64 {
    let rtt = path.rtt.smoothed.as_secs_f64();
    if rtt == 0.0 {
        return u64::MAX;
    }
    let segments = window as f64 / path.datagram as f64;
    let k = (0.3 * segments / C).cbrt();
    (CONVERGENCE * k / (0.3 * rtt) * path.datagram as f64) as u64
}

impl Avoidance for Pico {
    fn name(&self) -> &'static str {
        "pico"
    }

    fn begin(&mut self, path: &PathState) {
        self.aim(path, path.window);
    }

    fn on_acks(&mut self, path: &PathState, acks: &Acks<'_>) -> u64 {
        self.acked += acks.credit;
        let steps = self.acked / self.step.max(1);
        self.acked -= steps * self.step;
        path.window.saturating_add(steps * path.datagram)
    }

    fn on_congestion(&mut self, path: &PathState, _event: &CongestionEvent) -> Reduction {
        let in_first_slow_start = path.ssthresh.is_none();
        let reduced = if in_first_slow_start {
            self.aim(path, path.window / 2);
            path.window / 2
        } else {
            self.aim(path, path.window);
            u64::try_from(u128::from(path.window) * 7 / 10).expect("less than the window")
        };
        Reduction::to(reduced)
    }

    fn undoes_spurious(&self) -> bool {
        true
    }

    fn clone_box(&self) -> Box<dyn Avoidance> {
        Box::new(self.clone())
    }
}
