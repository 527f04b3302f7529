//! The common parts of programs that operators run: settings, command line, log, metrics, limits
//! and signals; and what drives them in a trial in virtual time.
//!
//! It knows nothing of what such a program does. Its parts: [`settings`], from a TOML file and
//! flags that change it, read strictly; [`command_line`], those flags; [`log`] and [`http`], what
//! it says; [`metrics`], what it counts; [`quota`], how many clients it takes; [`supervisor`], its
//! threads and what signals do to them; [`inbox`], messages to these; [`virtual_time`], trials.

pub mod command_line;
pub mod ending;
mod error;
pub mod http;
pub mod inbox;
pub mod log;
pub mod metrics;
pub mod quota;
mod reading;
pub mod settings;
pub mod supervisor;
pub mod virtual_time;

pub use error::{Failure, SettingsError, exit};
