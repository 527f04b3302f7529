//! The Proportional Integral controller of PI2 and `DualPI2`, and how its probabilities are put
//! into effect.
//!
//! Source: RFC 9332, appendix A. The controller keeps a base probability p' (figure 8). Classic
//! packets are dropped or marked with its square, those of L4S are marked with `coupling` times it.
//! Above `coupling * p' = 1` there is overload (appendix A.2). `recur` (figure 4) is not random.
//! Probabilities are whole trillionths, so nothing depends on a float.
//!
//! Deviation: `recur` acts where its count reaches 1, not only above it, so that with a likelihood
//! of 1 it always acts. The rule of the Linux implementation that spares packets while less than
//! two large ones wait is not in the pseudocode, and not here.

use bentpipe_units::{Span, Time};

use super::{PiConfig, Queued};

/// A probability of 1.
pub(super) const ONE: i128 = 1_000_000_000_000;

/// The controller of a queue, or of two together.
pub(super) struct PiController {
    config: PiConfig,
    /// `k` of the RFC.
    coupling: u64,
    /// `p'`: the base probability.
    base: i128,
    /// `prevq`: the delay at the last update.
    delay_before: Span,
    next_update: Time,
}

impl PiController {
    pub fn new(config: PiConfig, coupling: u64) -> Self {
        Self {
            config,
            coupling,
            base: 0,
            delay_before: Span::ZERO,
            next_update: Time::ZERO + config.update,
        }
    }

    /// Updates the base probability as often as was due by now. Since the last call nothing has
    /// come or gone, and `oldest` is when the packet arrived that waits longest; None: none waits.
    pub fn update_until(&mut self, now: Time, oldest: Option<Time>) {
        while self.next_update <= now {
            if oldest.is_none() && self.base == 0 && self.delay_before == Span::ZERO {
                let periods = (now - self.next_update).as_nanos() / self.config.update.as_nanos();
                self.next_update += self.config.update * (periods + 1);
                return;
            }
            self.update(oldest.map_or(Span::ZERO, |arrived| self.next_update - arrived));
            self.next_update += self.config.update;
        }
    }

    /// `dualpi2_update` of the RFC (figure 8) with the longest delay, `curq`.
    fn update(&mut self, delay: Span) {
        let nanos = |span: Span| i128::from(span.as_nanos());
        let (update, rtt) = (nanos(self.config.update), nanos(self.config.rtt_max));
        let above = nanos(delay) - nanos(self.config.target);
        let growth = nanos(delay) - nanos(self.delay_before);
        // alpha * above + beta * growth, with alpha = 0.1 * update / rtt^2 and beta = 0.3 / rtt, is
        // (update * above + 3 * rtt * growth) / (10 * rtt^2). What overflows is clamped anyway.
        let step = ONE.saturating_mul(update * above + 3 * rtt * growth) / (10 * rtt * rtt);
        self.base = (self.base + step).clamp(0, ONE);
        self.delay_before = delay;
    }

    /// `p_C`: the probability that a Classic packet is dropped or marked.
    pub fn classic(&self) -> i128 {
        self.base * self.base / ONE
    }

    /// `p_CL`: the probability that is coupled to the L queue.
    pub fn coupled(&self) -> i128 {
        (self.base * i128::from(self.coupling)).min(ONE)
    }

    /// Whether marks of L4S packets are saturated: `p_CL` has reached `p_Lmax`, which is 1, and so
    /// `p_C` has reached `p_Cmax`, which is 1 / k^2.
    pub fn is_overloaded(&self) -> bool {
        self.coupled() == ONE
    }

    /// Decides on a Classic packet that leaves (figure 7, lines 11 to 16): true if it is sent,
    /// marked or not; false if it is dropped.
    pub fn lets_pass(&self, count: &mut Recurrence, packet: &mut Queued, ecn: bool) -> bool {
        if !count.acts(self.classic()) {
            return true;
        }
        ecn && !self.is_overloaded() && packet.mark()
    }

    #[cfg(test)]
    pub fn set_base(&mut self, base: i128) {
        self.base = base;
    }
}

/// `recur` of the RFC: acts as often as a likelihood says, as evenly as can be.
#[derive(Default)]
pub(super) struct Recurrence {
    count: i128,
}

impl Recurrence {
    pub fn acts(&mut self, likelihood: i128) -> bool {
        self.count += likelihood;
        let acts = self.count >= ONE;
        if acts {
            self.count -= ONE;
        }
        acts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn controller(coupling: u64) -> PiController {
        let config = PiConfig {
            target: Span::from_millis(15),
            update: Span::from_millis(15),
            rtt_max: Span::from_millis(100),
        };
        PiController::new(config, coupling)
    }

    /// With the defaults alpha = 0.1 * 0.015 / 0.1^2 = 0.15 Hz and beta = 0.3 / 0.1 = 3 Hz.
    #[test]
    fn the_base_probability_follows_the_rfc() {
        let mut pi = controller(2);
        pi.update(Span::from_millis(35));
        // 0.15 * (0.035 - 0.015) + 3 * (0.035 - 0) = 0.003 + 0.105 = 0.108.
        assert_eq!(pi.base, 108_000_000_000);
        // Squared 0.011664, coupled 0.216.
        assert_eq!(pi.classic(), 11_664_000_000);
        assert_eq!(pi.coupled(), 216_000_000_000);
        pi.update(Span::from_millis(25));
        // 0.15 * 0.01 - 3 * 0.01 = -0.0285.
        assert_eq!(pi.base, 79_500_000_000);
        pi.update(Span::ZERO);
        // 0.15 * -0.015 - 3 * 0.025 = -0.07725.
        assert_eq!(pi.base, 2_250_000_000);
        pi.update(Span::ZERO);
        // 0.15 * -0.015 = -0.00225.
        assert_eq!(pi.base, 0);
        pi.update(Span::ZERO);
        assert_eq!(pi.base, 0, "not below 0");
        pi.update(Span::from_secs(1));
        assert_eq!(pi.base, ONE, "not above 1");
    }

    /// Overload begins where p' is 1 / k: `p_C` = 1 / k^2, `p_CL` = 1.
    #[test]
    fn overload_begins_where_the_coupled_probability_is_1() {
        let mut pi = controller(2);
        pi.set_base(ONE / 2 - 1);
        assert!(!pi.is_overloaded());
        pi.set_base(ONE / 2);
        assert!(pi.is_overloaded());
        assert_eq!((pi.classic(), pi.coupled()), (ONE / 4, ONE));
        pi.set_base(ONE);
        assert_eq!((pi.classic(), pi.coupled()), (ONE, ONE));
        let mut pi = controller(4);
        pi.set_base(ONE / 4);
        assert!(pi.is_overloaded());
        assert_eq!(pi.classic(), ONE / 16);
    }

    /// A packet that arrived at 10 ms has waited for 5 ms at the first update, at 15 ms, for 20 ms
    /// at the second and for 35 ms at the third, whenever these are caught up with.
    #[test]
    fn updates_that_were_due_are_made_with_the_delays_of_their_times() {
        let mut once = controller(2);
        once.update_until(ms(50), Some(ms(10)));
        let mut each = controller(2);
        for delay in [5, 20, 35] {
            each.update(Span::from_millis(delay));
        }
        // 0.15 * -0.01 + 3 * 0.005 = 0.0135; 0.15 * 0.005 + 3 * 0.015 = 0.04575; 0.15 * 0.02 +
        // 3 * 0.015 = 0.048.
        assert_eq!(once.base, 107_250_000_000);
        assert_eq!((once.base, once.next_update), (each.base, ms(60)));
        // At rest, updates are passed over, and their times stay multiples of the period.
        let mut idle = controller(2);
        idle.update_until(ms(100), None);
        assert_eq!((idle.base, idle.next_update), (0, ms(105)));
    }

    /// Larger than any trial has them: 100 s of target, update and round trip, the longest delay.
    #[test]
    fn the_largest_values_do_not_overflow() {
        let longest = Span::from_secs(100);
        let config = PiConfig {
            target: longest,
            update: longest,
            rtt_max: longest,
        };
        let mut pi = PiController::new(config, 255);
        pi.update(Span::MAX);
        assert_eq!(pi.base, ONE);
        pi.update(Span::ZERO);
        assert_eq!(pi.base, 0);
    }

    #[test]
    fn a_recurrence_acts_evenly() {
        let mut count = Recurrence::default();
        let acts: Vec<bool> = (0..8).map(|_| count.acts(ONE / 4)).collect();
        assert_eq!(acts, [false, false, false, true, false, false, false, true]);
        assert!((0..9).all(|_| count.acts(ONE)));
        assert!((0..9).all(|_| !count.acts(0)));
    }
}
