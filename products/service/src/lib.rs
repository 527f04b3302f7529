//! The common parts of programs that operators run: settings, command line, log, metrics, limits
//! and signals.
//!
//! It knows nothing of what such a program does. Its parts: [`settings`], from a TOML file and
//! flags that change it, read strictly; [`command_line`], those flags; [`log`] and [`http`], what
//! it says; [`metrics`], what it counts; [`quota`], how many clients it takes; [`supervisor`], its
//! threads and what signals do to them; [`inbox`], messages to these.

pub mod command_line;
mod error;
pub mod http;
pub mod inbox;
pub mod log;
pub mod metrics;
pub mod quota;
mod reading;
pub mod settings;
pub mod supervisor;

pub use error::{Failure, SettingsError, exit};
