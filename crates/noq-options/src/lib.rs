//! The words that say what a connection of noq is to be like, such as `cc=cubic ss=search4 iw=100` (`endpoints/noq/stack.toml` has them all).
//!
//! The endpoint program and the proxy share them, and with them what remembers paths ([`Peers`]) and what tells of congestion control.

mod congestion;
mod dialect;
mod diary;
/// noq is a fork of quinn; what both understand is said once.
#[path = "../../endpoint/quinn-family/options.rs"]
mod options;
mod peers;
mod qlog;

pub use dialect::{DEFAULT_WINDOW, NAME};
pub use options::{Control, Report, Tuning, apply};
pub use peers::Peers;
pub use qlog::log_to;

use noq_proto as proto;
