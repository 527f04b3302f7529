//! noq as Bentpipe uses it: the words that say what a connection is to be like, such as `cc=cubic
//! ss=search4 iw=100` (`endpoints/noq/stack.toml` has them all), and [`Noq`], which the adapter
//! that noq shares with quinn needs.
//!
//! The endpoint program, `bentpipe perf` and the proxy share them, and with them what remembers
//! paths ([`RememberedPaths`]), what tells of congestion control, and what makes a controller of
//! `bentpipe-congestion` one of noq's ([`Factory`]).

mod bdp_frames;
mod congestion;
mod controller_log;
mod library;
mod living_path;
mod loss_detection;
mod plugin;
mod qlog;
mod remembered_paths;

use std::collections::BTreeMap;
use std::time::Instant;

use bentpipe_endpoint::{EndpointError, LogFolder, Options, Surroundings};
pub use bentpipe_noq_adapter::Report;
use noq_proto::TransportConfig;

pub use library::Noq;
pub use living_path::LivingPath;
pub use plugin::{Factory, Plugin};
pub use remembered_paths::RememberedPaths;

/// Takes the words of a connection out of `options`.
///
/// Returns what will report on congestion control.
pub fn apply(
    transport: &mut TransportConfig,
    surroundings: &Surroundings,
    options: &mut Options,
    paths: &RememberedPaths,
) -> Result<Option<Report>, EndpointError> {
    bentpipe_noq_adapter::apply::<Noq>(transport, surroundings, options, paths)
}

/// The congestion control of programs that send over satellites, where nothing else is asked for.
pub const OWN_SENDER: &str = "bentpipe";

/// The options of a connection with the default of these programs: `cc=bentpipe` unless `cc` or
/// `ss` is given. A slow start alone has the congestion avoidance that it has at the endpoint.
#[must_use]
pub fn with_own_sender(mut options: BTreeMap<String, String>) -> BTreeMap<String, String> {
    if !options.contains_key("cc") && !options.contains_key("ss") {
        options.insert("cc".to_owned(), OWN_SENDER.to_owned());
    }
    options
}

/// Has noq write a qlog file for each connection into `folder`, with times since `start`.
pub fn log_to(folder: &LogFolder, start: Instant, transport: &mut TransportConfig) {
    <Noq as bentpipe_noq_adapter::Library>::log_to(folder, start, transport);
}
