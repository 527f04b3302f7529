//! `bentpipe-emu probe`: whether real time works here, as JSON for `bentpipe doctor`.

use std::error::Error;
use std::io::{Write, stdout};
use std::process::ExitCode;

use bentpipe_emulator::{EmulatorError, Forwarder, Options, Topology, prepare_inside, timer};
use bentpipe_link::Scenario;
use bentpipe_units::Span;
use serde_json::{Value, json};

/// How long is measured.
const MEASURED: Span = Span::from_secs(1);

/// Tries what a trial needs, one after the other, each only if what it stands on works. The
/// namespaces that this process is in have been made by now.
pub fn run() -> Result<ExitCode, Box<dyn Error>> {
    let mut checks = vec![("namespaces", None)];
    let mut note = |name, done: Result<_, EmulatorError>| {
        let (value, error) = match done {
            Ok(value) => (Some(value), None),
            Err(error) => (None, Some(error.to_string())),
        };
        checks.push((name, error));
        value
    };
    let scenario = scenario()?;
    let arrived = prepare_inside();
    let topology = arrived.and_then(|()| Topology::build(&scenario));
    if let Some(topology) = note("devices and routes", topology) {
        let forwarding = topology.emulator().within(|| {
            Forwarder::start(topology.segments(), &scenario, 0, &Options::default())?.stop()
        });
        note("packet sockets", forwarding.map(|_| topology));
    }
    let late = timer(MEASURED)?;
    let checks: Vec<Value> = checks
        .into_iter()
        .map(|(name, error)| json!({ "name": name, "error": error }))
        .collect();
    writeln!(stdout(), "{}", json!({ "checks": checks, "timer": late }))?;
    Ok(ExitCode::SUCCESS)
}

/// Three emulated segments, of which little is asked.
fn scenario() -> Result<Scenario, serde_json::Error> {
    let delay = json!({ "delay": "1 ms" });
    let segment = json!({ "forward": delay, "return": delay });
    serde_json::from_value(json!({
        "name": "probe",
        "title": "three segments",
        "source": "none",
        "timeout": "1 s",
        "access": segment,
        "satellite": segment,
        "ground": segment,
    }))
}
