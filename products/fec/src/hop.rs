//! The satellite hop of another middlebox, with repair: what the middlebox sends there goes into a
//! [`Tunnel`], and what comes from there out of it. An option of that middlebox, as in
//! `quic-pep=terminal:fec=20%,gateway:fec=20%`, and of `masque`.
//!
//! In virtual time the tunnel stands around the middlebox ([`RepairedHop`]). In real time it is
//! between two sockets, on a separate thread ([`RelayedHop`]): the middlebox talks to it over
//! loopback, as if it were the other end of the hop.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::Duration;

use bentpipe_endpoint::contract::{ProxyBye, ProxyHello, Statistics};
use bentpipe_endpoint::driver::Port;
use bentpipe_endpoint::{EndpointError, Options};
use bentpipe_service::virtual_time::{Middlebox, Side as Place};

use crate::relay::{Relay, inner_socket};
use crate::{Departure, Settings, Side, Tunnel};

/// The option of the code rate, which turns repair on; the others begin with it and a dot.
const OPTION: &str = "fec";

/// The counts of a tunnel that the record of its middlebox has, with `fec_` before them. All of
/// them beside the middlebox's own would be more than a record takes.
const COUNTS: [&str; 13] = [
    "source_packets",
    "sent_repair_packets",
    "overhead_bytes",
    "too_large_packets",
    "received_packets",
    "repaired_packets",
    "lost_packets",
    "late_packets",
    "hidden_losses",
    "repaired_in_50_ms_packets",
    "repair_delay_median_s",
    "repair_delay_p95_s",
    "repair_delay_max_s",
];

/// The settings of the repair that options ask for, which are taken out of them; `None`: of none.
pub fn take(options: &mut BTreeMap<String, String>) -> Result<Option<Settings>, EndpointError> {
    let rate = options.remove(OPTION);
    let prefix = format!("{OPTION}.");
    let ours = |name: &String, _: &mut String| name.starts_with(&prefix);
    let further: BTreeMap<_, _> = options.extract_if(.., ours).collect();
    let Some(rate) = rate else {
        return match further.first_key_value() {
            None => Ok(None),
            Some((name, value)) => {
                let problem = "there is no repair without fec: write fec=20% too";
                Err(EndpointError::option(name, value, problem))
            }
        };
    };
    let strip = |(name, value): (String, String)| (name[prefix.len()..].to_owned(), value);
    let mut words: BTreeMap<_, _> = further.into_iter().map(strip).collect();
    words.insert("rate".to_owned(), rate);
    let mut words = Options::new(words);
    let settings = Settings::take(&mut words, Settings::default()).map_err(named)?;
    words.finish().map_err(named)?;
    Ok(Some(settings))
}

/// Says in an error which option of the middlebox it is.
fn named(error: EndpointError) -> EndpointError {
    match error {
        EndpointError::Unsupported(what) => {
            let what = what.replacen("option rate", &format!("option {OPTION}"), 1);
            let what = if what.contains(&format!("option {OPTION}")) {
                what
            } else {
                what.replacen("option ", &format!("option {OPTION}."), 1)
            };
            EndpointError::Unsupported(what)
        }
        other => other,
    }
}

/// A middlebox whose packets on the satellite hop are repaired; without settings, as it is.
#[derive(Debug)]
pub struct RepairedHop<M> {
    inner: M,
    tunnel: Option<Tunnel>,
    /// The side of the satellite.
    satellite: Place,
    /// The packets that left the tunnel and have to leave the middlebox, or to reach it.
    departures: Vec<Departure>,
}

impl<M: Middlebox> RepairedHop<M> {
    /// A middlebox at the place that `hello` names, of which `make` gets the other options.
    pub fn new(
        mut hello: ProxyHello,
        make: impl FnOnce(ProxyHello) -> Result<M, EndpointError>,
    ) -> Result<Self, EndpointError> {
        let settings = take(&mut hello.options)?;
        let satellite = match hello.place.as_str() {
            "terminal" => Place::Server,
            _ => Place::Client,
        };
        Ok(Self {
            inner: make(hello)?,
            tunnel: settings.map(Tunnel::new),
            satellite,
            departures: Vec::new(),
        })
    }

    /// Hands the middlebox what came out of the tunnel.
    fn hand_on(&mut self, now: Duration) {
        let (inner, satellite) = (&mut self.inner, self.satellite);
        self.departures.retain(|departure| {
            if departure.side == Side::Plain {
                inner.arrive(now, satellite, departure.ecn, &departure.payload);
            }
            departure.side == Side::Tunnel
        });
    }
}

impl<M: Middlebox> Middlebox for RepairedHop<M> {
    fn arrive(&mut self, now: Duration, place: Place, ecn: u8, payload: &[u8]) {
        match &mut self.tunnel {
            Some(tunnel) if place == self.satellite => {
                tunnel.arrive(now, (Side::Tunnel, ecn, payload), &mut self.departures);
                self.hand_on(now);
            }
            _ => self.inner.arrive(now, place, ecn, payload),
        }
    }

    fn next_timeout(&mut self) -> Option<Duration> {
        let tunnel = self.tunnel.as_ref().and_then(Tunnel::next_timeout);
        self.inner.next_timeout().into_iter().chain(tunnel).min()
    }

    fn handle_timeout(&mut self, now: Duration) {
        if let Some(tunnel) = &mut self.tunnel
            && tunnel.next_timeout().is_some_and(|at| at <= now)
        {
            tunnel.handle_timeout(now, &mut self.departures);
            self.hand_on(now);
        }
        if self.inner.next_timeout().is_some_and(|at| at <= now) {
            self.inner.handle_timeout(now);
        }
    }

    fn depart(&mut self, now: Duration, leave: &mut dyn FnMut(Place, u8, &[u8])) {
        let (satellite, departures) = (self.satellite, &mut self.departures);
        match &mut self.tunnel {
            Some(tunnel) => self.inner.depart(now, &mut |place, ecn, payload| {
                if place == satellite {
                    tunnel.arrive(now, (Side::Plain, ecn, payload), departures);
                } else {
                    leave(place, ecn, payload);
                }
            }),
            None => self.inner.depart(now, leave),
        }
        for Departure { ecn, payload, .. } in departures.drain(..) {
            leave(satellite, ecn, &payload);
        }
    }

    fn finish(self) -> Result<ProxyBye, EndpointError> {
        let mut bye = self.inner.finish()?;
        if let Some(tunnel) = self.tunnel {
            add(&mut bye, tunnel.statistics());
        }
        Ok(bye)
    }
}

fn add(bye: &mut ProxyBye, counts: Statistics) {
    for (name, value) in counts.into_entries() {
        if COUNTS.contains(&name.as_str()) {
            bye.statistics.say(&format!("{OPTION}_{name}"), value);
        }
    }
}

/// The satellite hop of a middlebox that has sockets, with repair.
pub struct RelayedHop {
    relaying: JoinHandle<Result<Statistics, EndpointError>>,
    stop: UnixStream,
}

impl RelayedHop {
    /// At the terminal, which sends to the gateway at `next_hop` from `local`: the middlebox has to
    /// send to the address that is returned in its place.
    pub fn of_terminal(
        settings: Settings,
        local: SocketAddr,
        next_hop: SocketAddr,
    ) -> Result<(Self, SocketAddr), EndpointError> {
        let near = Port::over(inner_socket()?)?;
        let place = near.local_address()?;
        let far = (Port::open(local, &[])?, next_hop);
        let relay = Relay::new(settings, (near, Side::Plain), far);
        Ok((Self::start(relay)?, place))
    }

    /// At the gateway, which the terminal reaches at `listen`: the middlebox is at `inner` in its
    /// place.
    pub fn of_gateway(
        settings: Settings,
        listen: SocketAddr,
        inner: SocketAddr,
    ) -> Result<Self, EndpointError> {
        let near = (Port::open(listen, &[])?, Side::Tunnel);
        let far = (Port::over(inner_socket()?)?, inner);
        Self::start(Relay::new(settings, near, far))
    }

    fn start(mut relay: Relay) -> Result<Self, EndpointError> {
        let (ended, stop) = UnixStream::pair().map_err(EndpointError::io("making a pipe"))?;
        let relaying = std::thread::Builder::new()
            .name("repair".into())
            .spawn(move || relay.run(&ended).map(|()| relay.statistics()));
        let relaying = relaying.map_err(EndpointError::io("starting a thread"))?;
        Ok(Self { relaying, stop })
    }

    /// Ends it, and adds what it did to the report of its middlebox.
    pub fn finish(self, bye: &mut ProxyBye) -> Result<(), EndpointError> {
        // One that has failed reads it no more.
        let _ = (&self.stop).write_all(&[0]);
        let counts = self.relaying.join();
        let counts = counts.map_err(|_| EndpointError::Failed("the repair panicked".into()))?;
        add(bye, counts?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn taken(words: &str) -> Result<(Option<Settings>, Vec<String>), String> {
        let mut options = Options::parse(words).unwrap().into_map();
        let settings = take(&mut options).map_err(|error| error.to_string())?;
        Ok((settings, options.into_keys().collect()))
    }

    #[test]
    fn its_options_are_those_of_the_treatment_behind_a_prefix() {
        assert_eq!(taken("cc=cubic"), Ok((None, vec!["cc".to_owned()])));
        let (settings, others) = taken("cc=cubic fec=10% fec.window=64 fec.hold_ms=0").unwrap();
        let options = &mut Options::parse("rate=10% window=64 hold_ms=0").unwrap();
        let expected = Settings::take(options, Settings::default()).unwrap();
        assert_eq!(settings, Some(expected));
        assert_eq!(others, ["cc"]);
    }

    #[test]
    fn what_is_wrong_is_named_as_it_was_written() {
        for (words, problem) in [
            ("fec=0.2", "option fec = \"0.2\""),
            ("fec.window=64", "write fec=20% too"),
            ("fec=20% fec.window=0", "option fec.window"),
            ("fec=20% fec.windows=9", "fec.windows"),
        ] {
            let error = taken(words).unwrap_err();
            assert!(error.contains(problem), "{words}: {error}");
        }
    }

    /// Sends back what comes, from the side where it came.
    struct Echo(Vec<(Place, Vec<u8>)>);

    impl Middlebox for Echo {
        fn arrive(&mut self, _: Duration, side: Place, _: u8, payload: &[u8]) {
            self.0.push((side, payload.to_owned()));
        }

        fn next_timeout(&mut self) -> Option<Duration> {
            None
        }

        fn handle_timeout(&mut self, _: Duration) {
            unreachable!("it has no timer");
        }

        fn depart(&mut self, _: Duration, leave: &mut dyn FnMut(Place, u8, &[u8])) {
            for (side, payload) in self.0.drain(..) {
                leave(side, 0, &payload);
            }
        }

        fn finish(self) -> Result<ProxyBye, EndpointError> {
            Ok(ProxyBye::default())
        }
    }

    fn gateway(settings: Option<Settings>) -> RepairedHop<Echo> {
        RepairedHop {
            inner: Echo(Vec::new()),
            tunnel: settings.map(Tunnel::new),
            satellite: Place::Client,
            departures: Vec::new(),
        }
    }

    fn left(hop: &mut RepairedHop<Echo>, now: Duration) -> Vec<(Place, Vec<u8>)> {
        let mut left = Vec::new();
        hop.depart(now, &mut |side, _, payload| {
            left.push((side, payload.to_owned()));
        });
        left
    }

    #[test]
    fn a_datagram_that_the_satellite_lost_reaches_the_middlebox() {
        let options = &mut Options::parse("rate=100%").unwrap();
        let settings = Settings::take(options, Settings::default()).unwrap();
        let mut far = Tunnel::new(settings);
        let mut sent = Vec::new();
        far.arrive(Duration::ZERO, (Side::Plain, 0, b"one"), &mut sent);
        assert_eq!(sent.len(), 2, "the datagram and a repair");
        let mut hop = gateway(Some(settings));
        // The datagram itself is lost.
        hop.arrive(Duration::ZERO, Place::Client, 0, &sent[1].payload);
        let back = left(&mut hop, Duration::ZERO);
        assert!(back.iter().all(|(side, _)| *side == Place::Client));
        let mut came = Vec::new();
        far.arrive(Duration::ZERO, (Side::Tunnel, 0, &back[0].1), &mut came);
        assert_eq!(came[0].payload, b"one");
        // The other side is no satellite's.
        hop.arrive(Duration::ZERO, Place::Server, 0, b"two");
        let back = left(&mut hop, Duration::ZERO);
        assert_eq!(back, [(Place::Server, b"two".to_vec())]);
        let bye = hop.finish().unwrap().statistics.into_entries();
        let counts: BTreeMap<_, _> = bye.collect();
        assert_eq!(counts["fec_repaired_packets"], 1);
        assert_eq!(counts.len(), COUNTS.len());
    }

    #[test]
    fn without_the_option_nothing_is_changed() {
        let mut hop = gateway(None);
        hop.arrive(Duration::ZERO, Place::Client, 0, b"one");
        let back = left(&mut hop, Duration::ZERO);
        assert_eq!(back, [(Place::Client, b"one".to_vec())]);
        assert!(hop.finish().unwrap().statistics.is_empty());
    }

    proptest! {
        /// Anybody may send anything to the hop.
        #[test]
        fn no_bytes_from_the_satellite_break_it(
            packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..20),
        ) {
            let mut hop = gateway(Some(Settings::default()));
            for (number, packet) in packets.iter().enumerate() {
                let now = Duration::from_millis(number as u64 * 7);
                hop.arrive(now, Place::Client, 0, packet);
                while hop.next_timeout().is_some_and(|at| at <= now) {
                    hop.handle_timeout(now);
                }
                left(&mut hop, now);
            }
        }
    }
}
