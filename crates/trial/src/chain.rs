//! The chain that a flow goes through: a client, proxies, a server, and the hops between them.

use std::time::Duration;

use bentpipe_link::{Direction, Hop, HostName};
use bentpipe_units::Span;
use serde::Deserialize;

use crate::job::{Job, Variant};
use crate::testcase::TestCase;

/// Options of proxies that keep something ready for flows to come, or have to know their path first.
const NEED_LEAD: [(&str, &str); 2] = [("mode", "warm"), ("auto", "on")];
/// Such proxies are there for so long before the first client: that is enough for two handshakes over any satellite, of which a packet
/// or two may be lost.
const LEAD: Span = Span::from_secs(5);

/// A proxy on the path.
#[derive(Debug, Deserialize)]
#[serde(from = "Given")]
pub struct Proxy {
    /// Where it stands: at the terminal or at the gateway.
    pub place: HostName,
    /// Its program.
    pub variant: Variant,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    place: HostName,
    name: String,
    command: Vec<String>,
    #[serde(default)]
    options: std::collections::BTreeMap<String, String>,
}

impl From<Given> for Proxy {
    fn from(given: Given) -> Self {
        Self {
            place: given.place,
            variant: Variant {
                name: given.name,
                command: given.command,
                options: given.options,
                version: None,
            },
        }
    }
}

impl Job {
    /// Where the programs of a flow are, from the client to the server.
    #[must_use]
    pub fn hosts(&self) -> Vec<HostName> {
        let proxies = self.proxies.iter().map(|proxy| proxy.place);
        let ends = [HostName::Client, HostName::Server];
        [ends[0]]
            .into_iter()
            .chain(proxies)
            .chain([ends[1]])
            .collect()
    }

    /// What lies between them, from the client to the server.
    #[must_use]
    pub fn hops(&self) -> Vec<Hop<'_>> {
        let hosts = self.hosts();
        let pairs = hosts.windows(2);
        pairs
            .map(|pair| self.scenario.hop(pair[0], pair[1]))
            .collect()
    }

    /// The number of the hop that the satellite is part of.
    #[must_use]
    pub fn satellite_hop(&self) -> usize {
        let behind = |proxy: &&Proxy| proxy.place == HostName::Terminal;
        self.proxies.iter().filter(behind).count()
    }

    /// The number of the hop at whose end the files arrive.
    #[must_use]
    pub fn last_hop(&self, testcase: TestCase) -> usize {
        match testcase.direction() {
            Direction::Forward => 0,
            Direction::Return => self.proxies.len(),
        }
    }

    /// How long proxies and servers are there before the clients of their flows.
    #[must_use]
    pub fn lead(&self) -> Span {
        let needs = |proxy: &Proxy| {
            let options = &proxy.variant.options;
            NEED_LEAD
                .iter()
                .any(|(name, value)| options.get(*name).is_some_and(|it| it == value))
        };
        if self.proxies.iter().any(needs) {
            LEAD
        } else {
            Span::ZERO
        }
    }

    /// After so long a silence a program is given up.
    #[must_use]
    pub fn silence(&self) -> Duration {
        Duration::from_secs(self.silence_s)
    }

    pub(crate) fn check_chain(&self) -> Result<(), String> {
        let hosts = self.hosts();
        if !hosts.is_sorted_by(|one, next| one < next) {
            let places: Vec<&str> = self
                .proxies
                .iter()
                .map(|proxy| proxy.place.name())
                .collect();
            let places = places.join(", ");
            return Err(format!(
                "proxies at {places}: write one at the terminal, one at the gateway, or one at each, in this order"
            ));
        }
        Ok(())
    }
}
