//! CUBIC.
//!
//! Source: RFC 9438, sections 4.1 to 4.10. Departures:
//!
//! - Growth counts the bytes that are acknowledged, not the ACKs, outside of the Reno-friendly
//!   region too. With an increase of (target − cwnd) / cwnd for each ACK, as sections 4.4 and 4.5
//!   have it, a receiver that acknowledges every second packet would halve the growth, and one that
//!   acknowledges every tenth would all but stop it: the target would not be reached a round trip
//!   later.
//! - The window is reduced from the congestion window and not from the bytes in flight; section 4.6
//!   lets implementations choose, if their window does not grow while it is not filled. The
//!   controller gives no credit for ACKs that come then.
//! - Floating point, in one fixed order of operations; the window itself is in whole bytes.

use bentpipe_units::{Span, Time};

use crate::acks::{Acks, CongestionEvent};
use crate::avoidance::{Avoidance, Reduction};
use crate::path::PathState;

/// In segments per second cubed.
///
/// > Therefore, *C* SHOULD be set to 0.4. (section 5.1)
const C: f64 = 0.4;

/// The part of the window that a congestion event leaves.
const BETA: f64 = 0.7;

/// The growth that matches Reno, which halves its window, in the Reno-friendly region.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// CUBIC: grows back to where the last congestion event was, flattens out there, and then probes
/// faster and faster.
#[derive(Debug, Clone, Default)]
pub struct Cubic {
    /// `W_max` in bytes.
    plateau: f64,
    /// `cwnd_prior`: the window at the last congestion event, or with which slow start was left.
    prior: f64,
    /// The current congestion avoidance stage, once its first ACK has come.
    stage: Option<Stage>,
}

/// From a reduction of the window to the next one.
#[derive(Debug, Clone)]
struct Stage {
    /// `K`, in seconds.
    k: f64,
    /// `W_est` in bytes.
    reno: f64,
    /// `t`.
    elapsed: Span,
    /// The last ACK that counted for `t`; none: the sender has been limited since.
    counted: Option<Time>,
    /// The part of a byte that the window has not grown by yet.
    fraction: f64,
}

impl Stage {
    fn begin(cubic: &Cubic, path: &PathState) -> Self {
        let window = float(path.window);
        // Figure 2: the cube root of (W_max − cwnd_epoch) / C.
        let segments = (cubic.plateau - window) / float(path.datagram);
        Self {
            k: (segments / C).cbrt(),
            // > *W_est* is set equal to *cwnd_epoch* at the start of the congestion avoidance
            // > stage. (section 4.3)
            reno: window,
            elapsed: Span::ZERO,
            counted: Some(path.now),
            fraction: 0.0,
        }
    }

    /// `t` goes on.
    ///
    /// > The elapsed time *t* in Figure 1 MUST NOT include periods during which *cwnd* has not been
    /// > updated due to application-limited behavior (section 4.2)
    fn tick(&mut self, path: &PathState) {
        if path.limited {
            self.counted = None;
            return;
        }
        let since = self.counted.map_or(Span::ZERO, |last| path.now - last);
        self.elapsed = self.elapsed + since;
        self.counted = Some(path.now);
    }

    /// `W_cubic` in bytes, so much later than now.
    fn curve(&self, plateau: f64, path: &PathState, later: Span) -> f64 {
        let offset = (self.elapsed + later).as_secs_f64() - self.k;
        C * (offset * offset * offset) * float(path.datagram) + plateau
    }
}

impl Cubic {
    fn stage(&mut self, path: &PathState) -> &mut Stage {
        if self.stage.is_none() {
            self.stage = Some(Stage::begin(self, path));
        }
        self.stage.as_mut().expect("it has just been begun")
    }

    /// A congestion event after which the window is so many bytes, since that is what the path
    /// carries: the curve is flat there.
    pub(super) fn restart_at(&mut self, bytes: u64) -> Reduction {
        (self.plateau, self.prior) = (float(bytes), float(bytes));
        self.stage = None;
        Reduction::to(bytes)
    }

    /// The next congestion event is not to count as one below the plateau if it is within 1/20 of
    /// it.
    pub(super) fn round_plateau_down_to(&mut self, bytes: u64) {
        let window = float(bytes);
        if window < self.plateau && window > 0.95 * self.plateau {
            self.plateau = window;
        }
    }

    /// A congestion event at a window of so many bytes.
    pub(super) fn reduce_from(&mut self, bytes: u64) -> Reduction {
        let window = float(bytes);
        // > With fast convergence, when a congestion event occurs, *W_max* is updated as follows,
        // > before the window reduction described in Section 4.6. (section 4.7)
        self.plateau = if window < self.plateau {
            window * f64::midpoint(1.0, BETA)
        } else {
            window
        };
        self.prior = window;
        self.stage = None;
        // In whole numbers, so that 70 of 100 remain and not 69.99….
        Reduction::to(u64::try_from(u128::from(bytes) * 7 / 10).expect("less than before"))
    }
}

impl Avoidance for Cubic {
    fn name(&self) -> &'static str {
        "cubic"
    }

    /// After slow start without a loss (section 4.10), and after a timeout (section 4.8).
    ///
    /// > It then increases its congestion window size using Figure 1, where *t* is the elapsed time
    /// > since the beginning of the current congestion avoidance stage, *K* is set to 0, and
    /// > *W_max* is set to the congestion window size at the beginning of the current congestion
    /// > avoidance stage. (section 4.10)
    fn begin(&mut self, path: &PathState) {
        self.plateau = float(path.window);
        self.prior = self.plateau;
        self.stage = Some(Stage::begin(self, path));
    }

    fn on_acks(&mut self, path: &PathState, acks: &Acks<'_>) -> u64 {
        let (plateau, prior) = (self.plateau, self.prior);
        if acks.credit == 0 {
            // Recovery, before the stage begins, or a sender that does not fill its window.
            if let Some(stage) = &mut self.stage {
                stage.tick(path);
            }
            return path.window;
        }
        let stage = self.stage(path);
        stage.tick(path);
        let window = float(path.window);
        let windows = float(acks.credit) / window;

        // > Once *W_est* has grown to reach the *cwnd* at the time of most recently setting
        // > *ssthresh* -- that is, *W_est* >= *cwnd_prior* -- the sender SHOULD set α_cubic to 1
        // > (section 4.3)
        let alpha = if stage.reno >= prior { 1.0 } else { ALPHA };
        stage.reno += alpha * windows * float(path.datagram);
        // > If so, CUBIC is in the Reno-friendly region and *cwnd* SHOULD be set to *W_est* at each
        // > reception of a new ACK. (section 4.3)
        if stage.curve(plateau, path, Span::ZERO) < stage.reno {
            stage.fraction = 0.0;
            return whole(stage.reno).max(path.window);
        }
        // > The lower and upper bounds below ensure that CUBIC's congestion window increase rate is
        // > non-decreasing and is less than the increase rate of slow start (section 4.2)
        let target = stage
            .curve(plateau, path, path.rtt.smoothed)
            .clamp(window, 1.5 * window);
        let grown = (target - window) * windows + stage.fraction;
        stage.fraction = grown.fract();
        path.window.saturating_add(whole(grown))
    }

    fn on_congestion(&mut self, path: &PathState, _event: &CongestionEvent) -> Reduction {
        self.reduce_from(path.window)
    }

    /// Section 4.9.2: the whole state is restored, and so the curve goes on where it was.
    fn undoes_spurious(&self) -> bool {
        true
    }

    fn clone_box(&self) -> Box<dyn Avoidance> {
        Box::new(self.clone())
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "windows are smaller than 2^53 bytes"
)]
fn float(bytes: u64) -> f64 {
    bytes as f64
}

/// Rounded down; saturates.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "that is what it is for"
)]
fn whole(bytes: f64) -> u64 {
    bytes as u64
}
