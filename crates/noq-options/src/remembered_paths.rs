//! The paths to the peers of this program, remembered from one connection to the next: Careful
//! Resume.
//!
//! noq makes a controller without telling it for whom. So whoever connects says to whom, and shows
//! each connection when it has ended.

use std::any::Any;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bentpipe_congestion::slow_start::Trains;
use bentpipe_congestion::{Jump, PathState, Resume, SavedPath, SavedPaths};
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
        let paths = match &file {
            Some(file) => SavedPaths::load(file).map_err(EndpointError::failed)?,
            // A server of many connections has taken options before.
            None => self
                .lock()
                .take()
                .map_or_else(SavedPaths::default, |it| it.paths),
        };
        *self.lock() = Some(Memory {
            jump: Some(jump),
            given,
            paths,
            file,
            role: surroundings.role,
            clock: surroundings.clock.clone(),
            next: None,
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
        let saved = memory.paths.take(&peer, memory.clock.unix());
        let given = memory.given.filter(|_| memory.given_to.insert(peer));
        let saved = saved.or(given)?;
        Some(Resume { saved, jump })
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
        let peer = memory.key(network.remote().ip());
        let controller = plugin.controller();
        let resumption = controller.resumption();
        // A saved path that was wrong is not used again; one that was right is not forgotten
        // because this connection had little to send.
        let path = controller.path();
        let is_right = |known: &SavedPath| {
            let worthwhile = known.is_worthwhile(path.initial_window);
            worthwhile
                && path.delivered < known.window
                && !resumption.retreated
                && known.fits(&path.rtt)
        };
        let known = resumption.saved.filter(is_right);
        let window = |path: &SavedPath| path.window;
        let is_telling = |seen: &SavedPath| memory.jump != Some(Jump::Flight) || fills(path, seen);
        let observed = controller.observed().filter(is_telling);
        let best = observed.into_iter().chain(known);
        if let Some(path) = best.max_by_key(window) {
            memory.paths.put(&peer, path, memory.clock.unix());
        }
        if let Some(file) = &memory.file
            && let Err(error) = memory.paths.store(file)
        {
            eprintln!("the path to {peer} is not remembered: {error}");
        }
    }
}

impl Memory {
    /// A client knows its server by address and name (RFC 9959 leaves it open), a server its client
    /// by the address alone.
    fn key(&self, ip: IpAddr) -> String {
        match self.role {
            Role::Client => format!("server@{ip}"),
            Role::Server => ip.to_string(),
        }
    }
}

/// Whether a flight may leave at the rate that was seen: that is the path's, and not due to how
/// little there was to send. A rate above that of a flight without knowledge is a gain in any case.
fn fills(path: &PathState, seen: &SavedPath) -> bool {
    let is_known = path.ssthresh.is_some() && path.delivered >= seen.window;
    is_known || seen.rate() > Trains::FLIGHT_RATE
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

    use super::*;

    const PATH: SavedPath = SavedPath {
        window: 1_500_000,
        rtt: Span::from_millis(600),
    };

    fn remembered(given: Option<SavedPath>) -> RememberedPaths {
        RememberedPaths(Arc::new(Mutex::new(Some(Memory {
            jump: Some(Jump::Half),
            given,
            paths: SavedPaths::default(),
            file: None,
            role: Role::Server,
            clock: Clock::new(Duration::from_secs(946_684_800)),
            next: None,
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
            known.put("192.0.2.1", PATH, at);
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
