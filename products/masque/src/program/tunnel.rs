//! The tables of the tunnel and its limits, which both ends' files have.

use std::collections::BTreeMap;

use bentpipe_endpoint::{Clock, Role, Surroundings};
use bentpipe_masque::Settings;
use bentpipe_noq_options::RememberedPaths;
use bentpipe_service::SettingsError;
use bentpipe_service::settings::{Options, Problem, wrong};
use bentpipe_units::Size;

/// The table with the options of the tunnel.
const TABLE: &str = "tunnel";
/// The option that a limit stands for.
const QUEUE: &str = "queue";
/// The least and the most of bytes that may wait.
const LEAST: u64 = 64 << 10;
const MOST: u64 = 256 << 20;

/// The settings of a tunnel.
pub fn settings(
    options: &Options,
    queue: Size,
    role: Role,
    clock: &Clock,
    peers: RememberedPaths,
) -> Result<Settings, SettingsError> {
    let around = Surroundings {
        role,
        real_time: true,
        qlog: None,
        clock: clock.clone(),
    };
    let named = |(name, value): (&String, &bentpipe_service::settings::OptionValue)| {
        (name.clone(), value.0.clone())
    };
    let mut options: BTreeMap<String, String> = options.iter().map(named).collect();
    options.insert(QUEUE.to_owned(), queue.bytes().to_string());
    Settings::take_with(options, &around, peers).map_err(|error| {
        let hint = "docs/reference/masque.md has the options of a tunnel";
        SettingsError::new(TABLE, error.to_string(), hint)
    })
}

/// Refuses what is said elsewhere, and sizes that nobody means.
pub fn check(options: &Options, sizes: &[(&str, Size)]) -> Result<(), Problem> {
    if options.contains_key(QUEUE) {
        let hint = "write limits.queue = \"1 MiB\" in its place";
        return wrong("tunnel.queue: this is a limit", hint);
    }
    for (key, size) in sizes {
        if !(LEAST..=MOST).contains(&size.bytes()) {
            let hint = "write a size from \"64 KiB\" to \"256 MiB\"";
            return wrong(format!("{key} = \"{size}\""), hint);
        }
    }
    Ok(())
}
