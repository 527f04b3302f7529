//! The transport configuration of a connection, from the options of the noq endpoint
//! (`stack.toml`).

use std::collections::BTreeMap;
use std::time::Duration;

use bentpipe_endpoint::{Clock, EndpointError, LogFolder, Options, Role, Surroundings};
use bentpipe_noq_options::{OWN_SENDER, RememberedPaths, Report, apply, log_to, with_own_sender};
use noq_proto::{IdleTimeout, TransportConfig, VarInt};

use crate::protocol::MOST_STREAMS;

/// QUIC's least, and what UDP over IPv4 carries.
const DATAGRAMS: std::ops::RangeInclusive<u16> = 1200..=65_507;

/// The options, with which a test does not depend on earlier ones to the same address, unless one
/// asks for that.
fn independent(options: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut options = with_own_sender(options.clone());
    let asks = ["resume", "saved", "memory"]
        .iter()
        .any(|it| options.contains_key(*it));
    if may_resume(&options) && !asks {
        options.insert("resume".into(), "off".into());
    }
    options
}

/// Whether the controllers are those of `bentpipe-congestion`, which can resume a path.
pub fn may_resume(options: &BTreeMap<String, String>) -> bool {
    let options = with_own_sender(options.clone());
    let cc = options.get("cc").map(String::as_str);
    options.contains_key("ss") || cc == Some(OWN_SENDER)
}

/// The settings that all connections of the program have in common.
#[derive(Debug, Clone)]
pub struct ConnectionDefaults {
    pub role: Role,
    pub clock: Clock,
    pub qlog: Option<LogFolder>,
    pub paths: RememberedPaths,
    pub idle: Duration,
}

impl ConnectionDefaults {
    /// By the options of one connection, and what will report on its congestion control.
    ///
    /// Each end adds the default by itself: proxies do not pass on the options of a `ClientHello`.
    pub fn transport(
        &self,
        options: &BTreeMap<String, String>,
    ) -> Result<(TransportConfig, Option<Report>), EndpointError> {
        let mut words = Options::new(independent(options));
        let mut transport = TransportConfig::default();
        // Larger than a trial's may be: loopback carries them.
        let size = words.take_number("mtu", DATAGRAMS)?;
        let report = apply(
            &mut transport,
            &self.surroundings(),
            &mut words,
            &self.paths,
        )?;
        words.finish()?;
        if let Some(size) = size {
            transport
                .initial_mtu(size)
                .min_mtu(size)
                .mtu_discovery_config(None);
        }
        let idle = IdleTimeout::try_from(self.idle).expect("the range of the option ensures it");
        transport
            .max_idle_timeout(Some(idle))
            .max_concurrent_uni_streams(VarInt::from_u32(MOST_STREAMS));
        if let Some(folder) = &self.qlog {
            log_to(folder, self.clock.instant(Duration::ZERO), &mut transport);
        }
        Ok((transport, report))
    }

    fn surroundings(&self) -> Surroundings {
        Surroundings {
            role: self.role,
            real_time: true,
            qlog: self.qlog.clone(),
            clock: self.clock.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Controllers of noq's own report nothing.
    #[test]
    fn both_ends_have_the_own_sender_unless_noqs_is_asked_for() {
        for role in [Role::Client, Role::Server] {
            let defaults = ConnectionDefaults {
                role,
                clock: Clock::start_now(),
                qlog: None,
                paths: RememberedPaths::default(),
                idle: Duration::from_secs(30),
            };
            let has_own = |words: &str| {
                let options = Options::parse(words).unwrap().into_map();
                defaults.transport(&options).unwrap().1.is_some()
            };
            assert!(has_own("") && has_own("iw=20"));
            assert!(!has_own("cc=cubic"));
        }
    }
}
