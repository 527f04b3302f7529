//! The options of congestion control: noq's own controllers, and with `ss` those of
//! `bentpipe-congestion`.

use std::sync::Arc;
use std::time::Duration;

use bentpipe_congestion::{Algorithms, Jump, Settings};
use bentpipe_endpoint::{EndpointError, Options, Role, Surroundings};
use bentpipe_noq_adapter::{ChosenController, Tuning};
use noq_proto::congestion::{Bbr3Config, CubicConfig, NewRenoConfig};

use crate::controller_log::ControllerLog;
use crate::plugin::Factory;
use crate::remembered_paths::RememberedPaths;

/// Packets until the peer's next ACK, before the controller asks for another number.
const ACK: u64 = 2;

/// Takes the options of congestion control; `None`: the library's default.
pub fn congestion_control(
    tuning: &Tuning,
    surroundings: &Surroundings,
    options: &mut Options,
    paths: &RememberedPaths,
) -> Result<Option<ChosenController>, EndpointError> {
    match (tuning.cc.as_deref(), options.take("ss")) {
        (Some("bentpipe"), ss) => {
            // A client sends over the return link, which is slower than a first flight by far.
            let own = match surroundings.role {
                Role::Server => "flight",
                Role::Client => "trains",
            };
            let ss = ss.unwrap_or_else(|| own.to_owned());
            let jump = (ss == "flight").then_some(Jump::Flight);
            paths.take(jump, surroundings, options)?;
            let ours = of_ours("bentpipe", &ss, tuning, surroundings, options, paths)?;
            Ok(Some(ChosenController {
                ack: Some(ACK),
                ..ours
            }))
        }
        (None, None) if tuning.initial_window.is_none() => Ok(None),
        (cc, None) => of_the_library(cc.unwrap_or("cubic"), tuning.initial_window).map(Some),
        (cc, Some(ss)) => {
            paths.take(None, surroundings, options)?;
            let cc = cc.unwrap_or("cubic");
            of_ours(cc, &ss, tuning, surroundings, options, paths).map(Some)
        }
    }
}

fn of_the_library(cc: &str, window: Option<u64>) -> Result<ChosenController, EndpointError> {
    Ok(match cc {
        "cubic" => ChosenController::of(window, CubicConfig::initial_window),
        "newreno" => ChosenController::of(window, NewRenoConfig::initial_window),
        "bbr3" => ChosenController::of(window, Bbr3Config::initial_window),
        other => {
            let ours = Algorithms::avoidances().join(", ");
            let problem = format!("write newreno, cubic or bbr3; with ss, one of {ours}");
            return Err(EndpointError::option("cc", other, &problem));
        }
    })
}

fn of_ours(
    cc: &str,
    ss: &str,
    tuning: &Tuning,
    surroundings: &Surroundings,
    options: &mut Options,
    paths: &RememberedPaths,
) -> Result<ChosenController, EndpointError> {
    let algorithms = Algorithms::new(cc, ss)
        .map_err(|error| EndpointError::Unsupported(format!("option {error}")))?;
    let mut settings = Settings {
        initial_window: tuning.initial_window,
        adapts_acks: tuning.ack.is_none(),
        ..Settings::default()
    };
    if let Some(is_on) = options.take_switch("pacing")? {
        settings.pacing = is_on;
    }
    if let Some(rate) = options.take_number("rate", 1000..=100_000_000_000)? {
        settings.maximum_rate = rate / 8;
    }
    if let Some(bytes) = options.take_number("cwnd", 2400..=u64::MAX)? {
        settings.maximum_window = bytes;
    }
    let paths = paths.clone();
    let reported = paths.clone();
    let log = ControllerLog::new(surroundings.qlog.clone());
    let log_of_paths = log.clone();
    let factory = Factory {
        algorithms,
        settings,
        origin: surroundings.clock.instant(Duration::ZERO),
        resume: Some(Arc::new(move || paths.recall())),
        log: Some(Arc::new(move || log_of_paths.for_new_path())),
    };
    Ok(ChosenController {
        factory: Arc::new(factory),
        report: Some(Arc::new(move || {
            let mut said = log.statistics();
            reported.say(&mut said);
            said
        })),
        ack: None,
    })
}
