//! The paths to the peers of this program, remembered from one connection to the next: Careful
//! Resume.
//!
//! noq makes a controller without telling it for whom. So whoever connects says to whom, and shows
//! each connection when it has ended.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bentpipe_congestion::{Controller, Jump, RememberedPath, Resume, SavedPath, SavedPaths};
use bentpipe_endpoint::{Clock, EndpointError, Options, Role, Surroundings};
use bentpipe_units::Span;
use noq_proto::{Connection, PathId};

use crate::plugin::Plugin;

/// A saved window of the options, in bytes: more than a gigabyte is no path's.
const LARGEST_WINDOW: u64 = 1 << 30;

/// The memory of the paths to peers, if there is to be one; clones share it.
#[derive(Debug, Clone, Default)]
pub struct RememberedPaths(Arc<Mutex<Option<Memory>>>);

#[derive(Debug)]
struct Memory {
    /// `None`: the connection that is made now is not to resume, but what it learns is kept.
    jump: Option<Jump>,
    /// The path that the first connection to each peer resumes, as if there had been one before.
    given: Option<SavedPath>,
    paths: SavedPaths,
    file: Option<PathBuf>,
    role: Role,
    clock: Clock,
    /// The peer that the next controller is for.
    next: Option<String>,
    /// The paths that connections have taken out, until these end.
    taken: BTreeMap<String, RememberedPath>,
    /// The peers that `given` has been used for.
    given_to: BTreeSet<String>,
}

impl RememberedPaths {
    /// Takes the options `resume`, `saved` and `memory`. `own`: the jump of a sender that resumes
    /// without being asked.
    pub fn take(
        &self,
        own: Option<Jump>,
        surroundings: &Surroundings,
        options: &mut Options,
    ) -> Result<(), EndpointError> {
        let mut jumps = vec![
            ("on", Some(Jump::Half)),
            ("full", Some(Jump::Whole)),
            ("early", Some(Jump::Early)),
            ("off", None),
        ];
        if own.is_some() {
            jumps.push(("flight", own));
        }
        let Some(jump) = options.take_word("resume", &jumps)?.unwrap_or(own) else {
            if let Some(memory) = &mut *self.lock() {
                memory.jump = None;
            }
            return Ok(());
        };
        let given = options.take("saved").map(|text| parse(&text)).transpose()?;
        let file = options.take("memory").map(PathBuf::from);
        if file.is_some() && !surroundings.real_time {
            let what = "option memory: in virtual time the result would depend on the file; write \
                        saved=BYTES@MILLISECONDSms";
            return Err(EndpointError::Unsupported(what.into()));
        }
        // A server of many connections has taken options before, and some of these are open.
        let before = self.lock().take();
        let (paths, taken) = before.map(|it| (it.paths, it.taken)).unwrap_or_default();
        let paths = match &file {
            Some(file) => SavedPaths::load(file).map_err(EndpointError::failed)?,
            None => paths,
        };
        *self.lock() = Some(Memory {
            jump: Some(jump),
            given,
            paths,
            file,
            role: surroundings.role,
            clock: surroundings.clock.clone(),
            next: None,
            taken,
            given_to: BTreeSet::new(),
        });
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Memory>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the next connection is with `remote`.
    pub fn connecting_to(&self, remote: SocketAddr) {
        if let Some(memory) = &mut *self.lock() {
            memory.next = Some(memory.key(remote.ip()));
        }
    }

    /// The saved path for a controller that is being made.
    #[must_use]
    pub fn recall(&self) -> Option<Resume> {
        let mut memory = self.lock();
        let memory = memory.as_mut()?;
        // A path that the connection migrates to is not known.
        let peer = memory.next.take()?;
        let jump = memory.jump?;
        let now = memory.clock.unix();
        let known = memory.paths.take(&peer, now);
        let given = memory
            .given
            .filter(|_| memory.given_to.insert(peer.clone()));
        let given = given.map(|path| RememberedPath {
            path,
            filled: true,
            seen: now,
        });
        let known = known.or(given)?;
        memory.taken.insert(peer, known);
        let is_of_use = known.filled || jump != Jump::Flight;
        let saved = known.path;
        is_of_use.then_some(Resume { saved, jump })
    }

    /// Learns from a connection that has ended.
    pub fn learn_from(&self, connection: &Connection) {
        let mut memory = self.lock();
        let (Some(memory), Some(plugin)) = (memory.as_mut(), plugin(connection)) else {
            return;
        };
        let Ok(network) = connection.network_path(PathId::ZERO) else {
            return;
        };
        memory.learn(network.remote().ip(), plugin.controller());
        if let Some(file) = &memory.file
            && let Err(error) = memory.paths.store(file)
        {
            eprintln!(
                "the path to {} is not remembered: {error}",
                network.remote().ip()
            );
        }
    }
}

impl Memory {
    /// Learns from the controller of a connection with a peer that has ended. What was known before
    /// is not forgotten because this connection had little to send, nor is it younger for that.
    fn learn(&mut self, ip: IpAddr, controller: &Controller) {
        let peer = self.key(ip);
        let seen = self.clock.unix();
        let observed = controller.observed().map(|path| RememberedPath {
            path,
            filled: controller.fills(&path),
            seen,
        });
        let known = self.taken.remove(&peer);
        let known = known.filter(|known| controller.confirms(&known.path));
        let best = observed.into_iter().chain(known);
        if let Some(best) = best.max_by_key(|it| (it.filled, it.path.window)) {
            self.paths.put(&peer, best);
        }
    }

    /// A client knows its server by address and name (RFC 9959 leaves it open), a server its client
    /// by the address alone.
    fn key(&self, ip: IpAddr) -> String {
        match self.role {
            Role::Client => format!("server@{ip}"),
            Role::Server => ip.to_string(),
        }
    }
}

fn plugin(connection: &Connection) -> Option<Box<Plugin>> {
    let controller = connection.congestion_state(PathId::ZERO)?.clone_box();
    let any: Box<dyn Any> = controller.into_any();
    any.downcast().ok()
}

fn parse(text: &str) -> Result<SavedPath, EndpointError> {
    let parts = text.strip_suffix("ms").and_then(|it| it.split_once('@'));
    let numbers = parts.and_then(|(bytes, ms)| Some((bytes.parse().ok()?, ms.parse().ok()?)));
    match numbers {
        Some((window @ 1..=LARGEST_WINDOW, ms @ 1..=60_000)) => Ok(SavedPath {
            window,
            rtt: Span::from_millis(ms),
        }),
        _ => Err(EndpointError::Unsupported(format!(
            "option saved = {text:?}: write bytes and a round-trip time, such as 1500000@600ms, up \
             to {LARGEST_WINDOW} and 60000ms"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bentpipe_congestion::{Algorithms, Settings};
    use bentpipe_units::Time;

    use super::*;

    const PATH: SavedPath = SavedPath {
        window: 1_500_000,
        rtt: Span::from_millis(600),
    };
    const NOW: Duration = Duration::from_secs(946_684_800);

    fn seen(at: Duration) -> RememberedPath {
        RememberedPath {
            path: PATH,
            filled: true,
            seen: at,
        }
    }

    fn remembered(given: Option<SavedPath>) -> RememberedPaths {
        RememberedPaths(Arc::new(Mutex::new(Some(Memory {
            jump: Some(Jump::Half),
            given,
            paths: SavedPaths::default(),
            file: None,
            role: Role::Server,
            clock: Clock::new(Duration::from_secs(946_684_800)),
            next: None,
            taken: BTreeMap::new(),
            given_to: BTreeSet::new(),
        }))))
    }

    fn saved(paths: &RememberedPaths) -> Option<SavedPath> {
        paths.recall().map(|resume| resume.saved)
    }

    #[test]
    fn what_is_given_is_for_the_first_connection_with_each_peer() {
        let paths = remembered(Some(PATH));
        for port in [1, 2] {
            for ip in ["192.0.2.1", "192.0.2.2"] {
                paths.connecting_to(format!("{ip}:{port}").parse().unwrap());
                assert_eq!(saved(&paths), (port == 1).then_some(PATH));
                assert_eq!(saved(&paths), None, "nobody new was met");
            }
        }
    }

    #[test]
    fn what_is_remembered_is_for_one_connection() {
        let paths = remembered(None);
        let remote: SocketAddr = "192.0.2.1:1".parse().unwrap();
        let put = |at: Duration| {
            let mut memory = paths.lock();
            let known = &mut memory.as_mut().unwrap().paths;
            known.put("192.0.2.1", seen(at));
        };
        let now = Duration::from_secs(946_684_800);
        put(now);
        for expected in [Some(PATH), None] {
            paths.connecting_to(remote);
            assert_eq!(saved(&paths), expected);
        }
        put(Duration::from_secs(946_684_800 - 3601));
        paths.connecting_to(remote);
        assert_eq!(saved(&paths), None, "it is too old");
    }

    /// A controller that has sent nothing, as of a connection whose handshake failed.
    fn unused(resume: Option<Resume>) -> Controller {
        let settings = Settings {
            resume,
            ..Settings::default()
        };
        let algorithms = Algorithms::new("bentpipe", "flight").unwrap();
        algorithms.controller(settings, 1200, Time::ZERO)
    }

    #[test]
    fn a_connection_that_sends_nothing_leaves_the_path_as_old_as_it_was() {
        let paths = remembered(None);
        let remote: SocketAddr = "192.0.2.1:1".parse().unwrap();
        let old = Duration::from_secs(NOW.as_secs() - 600);
        let mut memory = paths.lock();
        memory.as_mut().unwrap().paths.put("192.0.2.1", seen(old));
        drop(memory);
        paths.connecting_to(remote);
        let controller = unused(paths.recall());
        let mut memory = paths.lock();
        let memory = memory.as_mut().unwrap();
        assert!(memory.paths.is_empty());
        memory.learn(remote.ip(), &controller);
        assert_eq!(memory.paths.take("192.0.2.1", NOW), Some(seen(old)));
        assert!(memory.taken.is_empty());
    }

    #[test]
    fn a_flight_takes_no_window_that_only_says_how_little_there_was_to_send() {
        for (jump, of_use) in [(Jump::Flight, false), (Jump::Whole, true)] {
            let paths = remembered(None);
            let mut memory = paths.lock();
            let known = memory.as_mut().unwrap();
            known.jump = Some(jump);
            known.paths.put(
                "192.0.2.1",
                RememberedPath {
                    filled: false,
                    ..seen(NOW)
                },
            );
            drop(memory);
            paths.connecting_to("192.0.2.1:1".parse().unwrap());
            assert_eq!(saved(&paths).is_some(), of_use, "{jump:?}");
        }
    }

    #[test]
    fn a_path_in_words() {
        assert_eq!(parse("1500000@600ms").unwrap(), PATH);
        let wrong = [
            "",
            "1500000",
            "@ms",
            "0@600ms",
            "1@0ms",
            "-1@600ms",
            "1500000@600",
            "1500000@60001ms",
            "18446744073709551615@600ms",
            "99999999999999999999@600ms",
        ];
        for text in wrong {
            assert_eq!(parse(text).unwrap_err().exit_code(), 127, "{text}");
        }
    }
}
