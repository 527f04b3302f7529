//! Clocks, timers, and a thread that gets its processor in time.

pub(crate) mod clock;
pub(crate) mod histogram;
pub(crate) mod idle_prevention;
pub(crate) mod real_time_priority;
pub(crate) mod timer;
