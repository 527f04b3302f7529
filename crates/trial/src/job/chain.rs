//! The chain that a flow goes through: a client, proxies, a server, and the hops between them.

use std::collections::BTreeMap;
use std::time::Duration;

use bentpipe_link::{Direction, Hop, HostName};
use bentpipe_units::Span;
use serde::Deserialize;

use crate::job::{Carries, Job, TestCaseFacts, Variant};

/// The way in which a middlebox carries connections on (`relays` of `middlebox.toml`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Relays {
    /// It terminates them, and clients address it: each hop has separate addresses.
    #[default]
    Split,
    /// It terminates them transparently: client and server use each other's addresses, and data
    /// that they encrypt goes through as it is.
    Transparent,
    /// It terminates none: packets go through as they are, inside others where the next middlebox
    /// takes them out again.
    Encapsulating,
}

/// A proxy on the path.
#[derive(Debug, Deserialize)]
#[serde(from = "Given")]
pub struct ProxyJob {
    /// Its place: the terminal or the gateway.
    pub place: HostName,
    /// Its program.
    pub variant: Variant,
    /// The way in which it relays connections.
    pub relays: Relays,
    /// The time from its start to that of the first client: it prepares for flows to come, or
    /// measures its path first.
    pub lead: Span,
    /// The largest IP packet that it takes, if it encapsulates and says so.
    pub mtu_bytes: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    place: HostName,
    name: String,
    command: Vec<String>,
    #[serde(default)]
    options: BTreeMap<String, String>,
    #[serde(default)]
    relays: Relays,
    #[serde(default)]
    carries: Carries,
    #[serde(default)]
    lead_ms: u64,
    #[serde(default)]
    mtu_bytes: Option<u64>,
}

impl From<Given> for ProxyJob {
    fn from(given: Given) -> Self {
        Self {
            place: given.place,
            relays: given.relays,
            lead: Span::from_millis(given.lead_ms),
            mtu_bytes: given.mtu_bytes,
            variant: Variant {
                name: given.name,
                command: given.command,
                options: given.options,
                version: None,
                carries: given.carries,
            },
        }
    }
}

impl Job {
    /// Whether client and server speak to each other's addresses, whatever stands between them.
    #[must_use]
    pub fn is_transparent(&self) -> bool {
        self.tunnel.is_some() || self.are_transparent()
    }

    /// Whether all proxies take packets that are addressed to others: such as end connections
    /// unseen, and such as encapsulate whole IP packets.
    #[must_use]
    pub fn are_transparent(&self) -> bool {
        self.proxies.iter().all(|proxy| match proxy.relays {
            Relays::Split => false,
            Relays::Transparent => true,
            Relays::Encapsulating => proxy.variant.carries == Carries::Ip,
        })
    }

    /// Whether packets of flows are inside others on part of their way: then the whole path is one
    /// hop to a flow, and the links have more.
    #[must_use]
    pub fn encapsulates(&self) -> bool {
        let inside = |proxy: &ProxyJob| proxy.relays == Relays::Encapsulating;
        self.tunnel.is_some() || self.proxies.iter().any(inside)
    }

    /// Whether the middleboxes on the path have a tunnel of whole IP packets between them.
    #[must_use]
    pub fn encapsulates_ip(&self) -> bool {
        let is_one = |proxy: &ProxyJob| {
            proxy.relays == Relays::Encapsulating && proxy.variant.carries == Carries::Ip
        };
        self.proxies.len() > 1 && self.proxies.iter().all(is_one)
    }

    /// The largest IP packet of flows that what encapsulates them takes; None: nothing does, or it
    /// does not say.
    #[must_use]
    pub fn inner_mtu(&self) -> Option<u64> {
        let chain = self.proxies.iter().filter_map(|proxy| proxy.mtu_bytes);
        let tunnel = self.tunnel.iter().map(|it| u64::from(it.mtu_bytes));
        chain.chain(tunnel).min()
    }

    /// The hosts of a flow's programs, from the client to the server.
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

    /// The hops of a flow's connections, from the client to the server. Of a flow whose packets are
    /// encapsulated that is the whole path.
    #[must_use]
    pub fn hops(&self) -> Vec<Hop<'_>> {
        if self.encapsulates() {
            return vec![self.scenario.whole()];
        }
        self.link_hops()
    }

    /// The hops between the hosts where a program takes the packets of links.
    #[must_use]
    pub fn link_hops(&self) -> Vec<Hop<'_>> {
        let mut hosts = vec![HostName::Client];
        hosts.extend(self.stops());
        hosts.push(HostName::Server);
        let pairs = hosts.windows(2);
        pairs
            .map(|pair| self.scenario.hop(pair[0], pair[1]))
            .collect()
    }

    /// The number of the flow's hop that the satellite is part of.
    #[must_use]
    pub fn satellite_hop(&self) -> usize {
        self.satellite_link_hop().min(self.hops().len() - 1)
    }

    /// The number of the hop of links that the satellite is part of.
    #[must_use]
    pub fn satellite_link_hop(&self) -> usize {
        let behind = |proxy: &&ProxyJob| proxy.place == HostName::Terminal;
        self.proxies.iter().filter(behind).count()
    }

    /// The number of the flow's hop at whose end the files arrive.
    #[must_use]
    pub fn last_hop(&self, facts: TestCaseFacts) -> usize {
        match facts.direction() {
            Direction::Forward => 0,
            Direction::Return => self.hops().len() - 1,
        }
    }

    /// The time from the start of proxies and servers to that of the clients of their flows.
    #[must_use]
    pub fn lead(&self) -> Span {
        let leads = self.proxies.iter().map(|proxy| proxy.lead);
        leads.max().unwrap_or(Span::ZERO)
    }

    /// After so long a silence a program is given up.
    #[must_use]
    pub fn silence(&self) -> Duration {
        Duration::from_secs(self.silence_s)
    }

    pub(crate) fn check_chain(&self) -> Result<(), String> {
        let inside = |proxy: &&ProxyJob| proxy.relays == Relays::Encapsulating;
        let encapsulating = self.proxies.iter().filter(inside).count();
        if encapsulating > 0 && (encapsulating < self.proxies.len() || self.tunnel.is_some()) {
            return Err(
                "a middlebox that encapsulates beside one that does not: write one kind".to_owned(),
            );
        }
        let hosts = self.hosts();
        if !hosts.is_sorted_by(|one, next| one < next) {
            let places: Vec<&str> = self
                .proxies
                .iter()
                .map(|proxy| proxy.place.name())
                .collect();
            let places = places.join(", ");
            return Err(format!(
                "proxies at {places}: write one at the terminal, one at the gateway, or one at \
                 each, in this order"
            ));
        }
        self.check_tunnel()
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_link::HostName::{Client, Gateway, Server, Terminal};
    use serde_json::{Value, json};

    use super::*;
    use crate::job::Role;

    fn job(proxies: &Value) -> Result<Job, String> {
        job_with(proxies, &Value::Null)
    }

    fn job_with(proxies: &Value, tunnel: &Value) -> Result<Job, String> {
        let program = json!({"name": "noq", "command": ["noq"]});
        let delay = json!({"delay": "250 ms"});
        let job = json!({
            "scenario": {
                "name": "s", "title": "t", "source": "s", "timeout": "60 s",
                "satellite": {"forward": delay, "return": delay},
            },
            "flows": [{
                "testcase": "transfer", "requests": ["/1"], "client": program, "server": program,
                "testcase_facts": {
                    "sender": "server", "connections": 1, "round_trips": 2, "saved_round_trips": 0,
                },
            }],
            "proxies": proxies, "tunnel": tunnel,
            "www": "/", "certs": "/", "seed": "0000000000000001", "folder": "/", "trace": false,
            "qlog": false,
        });
        Job::read(&job.to_string())
    }

    fn proxy(place: &str, options: &Value) -> Value {
        json!({"place": place, "name": place, "command": ["pep"], "options": options})
    }

    #[test]
    fn a_chain_leads_from_the_client_to_the_server() {
        let none = json!({});
        let [terminal, gateway] = ["terminal", "gateway"].map(|place| proxy(place, &none));
        let cases = [
            (json!([]), vec![Client, Server], 0, "500 ms"),
            (
                json!([terminal]),
                vec![Client, Terminal, Server],
                1,
                "500.2 ms",
            ),
            (
                json!([gateway]),
                vec![Client, Gateway, Server],
                0,
                "500.2 ms",
            ),
            (
                json!([terminal, gateway]),
                vec![Client, Terminal, Gateway, Server],
                1,
                "500.4 ms",
            ),
        ];
        for (proxies, hosts, satellite, rtt) in cases {
            let job = job(&proxies).unwrap();
            assert_eq!(job.hosts(), hosts);
            assert_eq!(job.hops().len(), hosts.len() - 1);
            assert_eq!(job.satellite_hop(), satellite);
            assert_eq!(job.scenario.rtt().to_string(), rtt);
            let download = job.measured().testcase_facts;
            let upload = TestCaseFacts {
                sender: Role::Client,
                ..download
            };
            assert_eq!(job.last_hop(download), 0);
            assert_eq!(job.last_hop(upload), hosts.len() - 2);
        }
    }

    #[test]
    fn a_flow_in_a_tunnel_has_one_hop_whatever_links_have() {
        let none = json!({});
        let [terminal, gateway] = ["terminal", "gateway"].map(|place| proxy(place, &none));
        let with = |proxies: Value, to: &str| {
            let tunnel = json!({
                "kind": "any", "to": to, "command": ["tunnel"], "version": "2", "mtu_bytes": 1500,
                "port": 1194, "transport": "udp",
            });
            job_with(&proxies, &tunnel)
        };
        let cases = [
            (json!([]), "server", vec![Client, Server], "500 ms"),
            (
                json!([]),
                "gateway",
                vec![Client, Gateway, Server],
                "500.2 ms",
            ),
            (
                json!([terminal]),
                "gateway",
                vec![Client, Terminal, Gateway, Server],
                "500.4 ms",
            ),
            (
                json!([terminal, gateway]),
                "server",
                vec![Client, Terminal, Gateway, Server],
                "500.4 ms",
            ),
        ];
        for (proxies, to, hosts, rtt) in cases {
            let job = with(proxies, to).unwrap();
            let links = job.link_hops();
            let ends: Vec<_> = links.iter().map(|hop| (hop.from, hop.to)).collect();
            let expected: Vec<_> = hosts.windows(2).map(|it| (it[0], it[1])).collect();
            assert_eq!(ends, expected);
            let hops = job.hops();
            assert_eq!((hops.len(), hops[0].from, hops[0].to), (1, Client, Server));
            assert_eq!(job.scenario.rtt().to_string(), rtt);
            assert!(job.is_transparent());
        }
        for (proxies, to, problem) in [
            (json!([]), "terminal", "a tunnel to the terminal"),
            (json!([gateway]), "gateway", "where a proxy is"),
        ] {
            assert!(with(proxies, to).unwrap_err().contains(problem), "{to}");
        }
    }

    #[test]
    fn what_is_to_be_ready_gets_time_for_that() {
        let lead = |leads: &[u64]| {
            let places = ["terminal", "gateway"];
            let proxies = places.iter().zip(leads).map(|(place, lead)| {
                let mut one = proxy(place, &json!({}));
                one["lead_ms"] = json!(lead);
                one
            });
            job(&proxies.collect::<Value>()).unwrap().lead()
        };
        assert_eq!(lead(&[0, 0]), Span::ZERO);
        assert_eq!(lead(&[0, 5000]), Span::from_secs(5));
        assert_eq!(lead(&[7, 5]), Span::from_millis(7));
    }

    #[test]
    fn what_is_encapsulated_has_the_smallest_mtu() {
        let mtu = |bytes: [Option<u64>; 2]| {
            let proxies = ["terminal", "gateway"].iter().zip(bytes);
            let given = proxies.map(|(place, bytes)| {
                let mut one = proxy(place, &json!({}));
                one["relays"] = json!("encapsulating");
                one["mtu_bytes"] = json!(bytes);
                one
            });
            job(&given.collect::<Value>()).unwrap().inner_mtu()
        };
        assert_eq!(mtu([None, None]), None);
        assert_eq!(mtu([Some(1400), Some(1350)]), Some(1350));
    }

    #[test]
    fn proxies_stand_in_order_between_the_ends() {
        for places in [
            vec!["gateway", "terminal"],
            vec!["gateway"; 2],
            vec!["client"],
            vec!["server"],
        ] {
            let proxies: Vec<Value> = places
                .iter()
                .map(|place| proxy(place, &json!({})))
                .collect();
            let problem = job(&json!(proxies)).unwrap_err();
            assert!(problem.contains(&places.join(", ")), "{problem}");
        }
    }
}
