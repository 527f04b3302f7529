//! The paths to the peers of this program, remembered from one connection to the next: Careful
//! Resume.
//!
//! noq makes a controller without telling it for whom. So whoever connects says to whom, and shows
//! each connection when it has ended, and when one that had waited begins to be used.
//!
//! What a living connection sees is known, too ([`LivingPath`]), and of what is known the latest
//! counts that filled the path. While others are sending to the same peer, the path is not free: a
//! new connection then resumes no more than its equal share, and only where that makes its first
//! flight slower than it would be without any knowledge.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use bentpipe_congestion::slow_start::Trains;
use bentpipe_congestion::{
    Controller, Jump, LIFETIME, RememberedPath, Resume, SavedPath, SavedPaths,
};
use bentpipe_endpoint::contract::Statistics;
use bentpipe_endpoint::{Clock, EndpointError, Options, Role, Surroundings};
use bentpipe_units::Span;
use noq_proto::{BdpFrame, Connection, Event, PathId, TransportConfig};

use crate::bdp_frames::BdpFrames;
use crate::living_path::LivingPath;
use crate::plugin::Plugin;

/// A saved window of the options, in bytes: more than a gigabyte is no path's.
const LARGEST_WINDOW: u64 = 1 << 30;

/// Peers with connections that have ended, before these are looked for.
const MOST_ENDED: usize = 64;

/// Peers that are given the path of the option `saved`: those that come after these are not.
const MOST_GIVEN: usize = 4096;

/// The memory of the paths to peers, if there is to be one; clones share it.
#[derive(Debug, Clone, Default)]
pub struct RememberedPaths {
    memory: Arc<Mutex<Option<Memory>>>,
    /// The thread's own; clones share it.
    own: Arc<Mutex<Own>>,
    /// The frames that peers keep; `None`: they are not asked to.
    frames: Arc<Mutex<Option<BdpFrames>>>,
    /// The paths of this thread with something to tell their peers.
    news: Arc<AtomicUsize>,
    writer: Arc<Writer>,
}

/// The turn to write the memory's file, which one thread has at a time, without the memory's lock.
#[derive(Debug, Default)]
struct Writer {
    turn: Mutex<()>,
    /// Something has been learnt that is not in the file.
    is_due: AtomicBool,
}

/// The state of one thread among those that share a memory.
#[derive(Debug, Default)]
struct Own {
    /// The peer that the next controller is for.
    next: Option<NextPeer>,
    clock: Option<Clock>,
    role: Option<Role>,
}

#[derive(Debug)]
struct Memory {
    /// `None`: the connection that is made now is not to resume, but what it learns is kept.
    jump: Option<Jump>,
    /// The path that the first connection to each peer resumes, as if there had been one before.
    given: Option<SavedPath>,
    paths: SavedPaths,
    file: Option<PathBuf>,
    role: Role,
    /// The paths of connections that live, or did when they were looked for last, by peer.
    living: BTreeMap<String, Vec<LivingPath>>,
    /// From so many peers with connections on, those that live no more are looked for.
    sweep_at: usize,
    /// Peers tell by themselves: nothing of their paths is remembered.
    is_told: bool,
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
        // Its paths may be in use, and others may have been learnt since.
        let before = self.lock().as_ref().and_then(|memory| memory.file.clone());
        let new = file
            .as_deref()
            .filter(|file| before.as_deref() != Some(file));
        let loaded = new.map(SavedPaths::load).transpose();
        let loaded = loaded.map_err(EndpointError::failed)?;
        self.own().clock = Some(surroundings.clock.clone());
        // A server of many connections has taken options before, and some of these are open; so has
        // a program whose threads share a memory.
        let mut memory = self.lock();
        let before = memory.take();
        let mut all = before.unwrap_or_else(|| Memory::new(surroundings.role));
        if let Some(loaded) = loaded {
            all.paths = loaded;
        }
        if all.given != given {
            all.given_to.clear();
        }
        *memory = Some(Memory {
            jump: Some(jump),
            given,
            file,
            role: surroundings.role,
            ..all
        });
        Ok(())
    }

    /// The same memory, for connections of another thread.
    #[must_use]
    pub fn for_another_thread(&self) -> Self {
        Self {
            memory: self.memory.clone(),
            own: Arc::default(),
            frames: self.frames.clone(),
            news: Arc::default(),
            writer: self.writer.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Memory>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn own(&self) -> MutexGuard<'_, Own> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the next connection is with `remote`.
    pub fn connecting_to(&self, remote: SocketAddr) {
        self.note_next(remote, false);
    }

    /// Notes that the next connection is with `remote`, and may be used much later: what is known
    /// is left to others until then, see [`Self::begin`].
    pub fn preparing(&self, remote: SocketAddr) {
        self.note_next(remote, true);
    }

    fn note_next(&self, remote: SocketAddr, asks_later: bool) {
        let key = self.lock().as_ref().map(|memory| memory.key(remote.ip()));
        self.own().next = key.map(|key| NextPeer { key, asks_later });
    }

    /// The path of a connection whose controller is being made, with what is known of it; `None`:
    /// nothing is remembered.
    #[must_use]
    pub fn recall(&self) -> Option<LivingPath> {
        let mut own = self.own();
        let (peer, clock) = (own.next.take(), own.clock.clone()?);
        drop(own);
        let mut memory = self.lock();
        let memory = memory.as_mut()?;
        let is_told = self.frames().is_some();
        let now = clock.unix();
        let news = is_told.then(|| self.news.clone());
        let asks_later = peer.as_ref().is_some_and(|peer| peer.asks_later);
        let living = LivingPath::new(clock, news, asks_later);
        // A path that the connection migrates to is not known.
        let Some(peer) = peer else {
            return Some(living);
        };
        memory.is_told = is_told;
        if !asks_later {
            memory.resume(&peer.key, now, &living);
        }
        memory.add(peer.key, living.clone());
        Some(living)
    }

    /// A connection that was made some time ago begins to be used: what has become known since is
    /// of use to it.
    pub fn begin(&self, connection: &Connection) {
        let Some(clock) = self.own().clock.clone() else {
            return;
        };
        let (mut memory, plugin) = (self.lock(), plugin(connection));
        let (Some(memory), Some(plugin)) = (memory.as_mut(), plugin) else {
            return;
        };
        let (Some(living), Some(ip)) = (plugin.living(), peer(connection)) else {
            return;
        };
        let (peer, now) = (memory.key(ip), clock.unix());
        let told = living.begin();
        if !plugin.controller().may_resume() {
            return;
        }
        if !memory.is_told {
            memory.resume(&peer, now, living);
        } else if let Some(told) = told
            && now.saturating_sub(told.seen) <= LIFETIME
        {
            memory.offer(&peer, told.path, living);
        }
    }

    /// Learns from a connection that has ended.
    pub fn learn_from(&self, connection: &Connection) {
        let mut guard = self.lock();
        let (Some(memory), Some(plugin)) = (guard.as_mut(), plugin(connection)) else {
            return;
        };
        let (Some(ip), Some(living)) = (peer(connection), plugin.living()) else {
            return;
        };
        let Some(clock) = self.own().clock.clone() else {
            return;
        };
        memory.end(&memory.key(ip), living);
        if let Some(frames) = &mut *self.frames() {
            // The peer keeps it.
            if let Some(sealed) = living.wrong_frame() {
                frames.doubt(ip, sealed);
            }
            return;
        }
        let taken = living.give_taken();
        memory.learn(ip, plugin.controller(), clock.unix(), taken);
        let has_file = memory.file.is_some();
        drop(guard);
        if has_file {
            self.store();
        }
    }

    /// Writes the file of the memory, if there is one, or leaves that to a thread that is at it.
    fn store(&self) {
        self.writer.is_due.store(true, Ordering::SeqCst);
        while self.writer.is_due.load(Ordering::SeqCst) {
            let turn = match self.writer.turn.try_lock() {
                Ok(turn) => turn,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                // It looks again when it is done.
                Err(TryLockError::WouldBlock) => return,
            };
            self.writer.is_due.store(false, Ordering::SeqCst);
            let memory = self.lock();
            let copy = memory
                .as_ref()
                .map(|it| (it.paths.clone(), it.file.clone()));
            drop(memory);
            if let Some((paths, Some(file))) = copy
                && let Err(error) = paths.store(&file)
            {
                eprintln!("what was learnt of paths is not remembered: {error}");
            }
            drop(turn);
        }
    }
}

/// The peer that the next controller is for.
#[derive(Debug)]
struct NextPeer {
    key: String,
    /// The connection asks for what is known when it begins to be used.
    asks_later: bool,
}

/// BDP frames: what a peer keeps for this program.
impl RememberedPaths {
    /// Takes the option `bdp-frame`.
    pub fn take_bdp_frames(
        &self,
        transport: &mut TransportConfig,
        surroundings: &Surroundings,
        options: &mut Options,
    ) -> Result<(), EndpointError> {
        let is_on = options.take_switch("bdp-frame")? == Some(true);
        transport.bdp_frames(is_on);
        let mut own = self.own();
        own.clock = Some(surroundings.clock.clone());
        own.role = Some(surroundings.role);
        let mut frames = self.frames();
        if !is_on {
            *frames = None;
        } else if frames.is_none() {
            let new = BdpFrames::new();
            let why = || EndpointError::Failed("the system has no random bytes".to_owned());
            *frames = Some(new.ok_or_else(why)?);
        }
        Ok(())
    }

    fn frames(&self) -> MutexGuard<'_, Option<BdpFrames>> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client returns what its server told it in an earlier connection.
    pub fn return_frame(&self, connection: &mut Connection) {
        if let Some(frames) = &mut *self.frames()
            && let Some(ip) = peer(connection)
            && let Some(frame) = frames.give_back(&ip.to_string())
        {
            connection.send_bdp_frame(frame);
        }
    }

    /// Takes what a peer tells or returns.
    pub fn handle_event(&self, connection: &Connection, event: &Event) {
        if let Event::BdpFrame(frame) = event {
            self.handle_frame(connection, frame);
        }
    }

    fn handle_frame(&self, connection: &Connection, frame: &BdpFrame) {
        let (role, clock) = {
            let own = self.own();
            (own.role, own.clock.clone())
        };
        // In this order everywhere.
        let memory = self.lock();
        let mut frames = self.frames();
        let (Some(frames), Some(clock)) = (frames.as_mut(), clock) else {
            return;
        };
        let Some(ip) = peer(connection) else { return };
        if role == Some(Role::Client) {
            return frames.hold(ip.to_string(), frame.clone());
        }
        // A frame is worth a look only as long as it can be used.
        let plugin = plugin(connection).filter(|it| it.controller().may_resume());
        if let (Some(plugin), Some(memory)) = (&plugin, &*memory)
            && let Some(living) = plugin.living().filter(|_| memory.jump.is_some())
            && let Ok(told) = frames.open(ip, frame, clock.unix())
            && living.hear(told)
        {
            memory.offer(&memory.key(ip), told.path, living);
        }
    }

    /// A server tells its client what is new of the path.
    pub fn tend(&self, connection: &mut Connection) {
        if self.news.load(Ordering::Relaxed) == 0 {
            return;
        }
        let (role, clock) = {
            let own = self.own();
            (own.role, own.clock.clone())
        };
        let jump = self.lock().as_ref().and_then(|memory| memory.jump);
        let mut frames = self.frames();
        let (Some(frames), Some(clock), Some(Role::Server)) = (frames.as_mut(), clock, role) else {
            return;
        };
        let (Some(plugin), Some(ip)) = (plugin(connection), peer(connection)) else {
            return;
        };
        let Some(living) = plugin.living().filter(|living| living.take_news()) else {
            return;
        };
        if let Some(sealed) = living.wrong_frame() {
            frames.doubt(ip, sealed);
        }
        if let (Some(seen), Some(jump)) = (living.seen(), jump)
            && connection.takes_bdp_frames()
            && (seen.filled || jump != Jump::Flight)
            && let Some(frame) = frames.seal(ip, seen.path, clock.unix())
        {
            connection.send_bdp_frame(frame);
        }
    }

    /// Says for the record what became of frames.
    pub fn say(&self, said: &mut Statistics) {
        if let Some(frames) = &*self.frames() {
            frames.say(said);
        }
    }
}

/// The address of a connection's peer.
fn peer(connection: &Connection) -> Option<IpAddr> {
    let network = connection.network_path(PathId::ZERO).ok()?;
    Some(network.remote().ip())
}

impl Memory {
    fn new(role: Role) -> Self {
        Self {
            jump: None,
            given: None,
            paths: SavedPaths::default(),
            file: None,
            role,
            living: BTreeMap::new(),
            sweep_at: MOST_ENDED,
            is_told: false,
            given_to: BTreeSet::new(),
        }
    }

    /// Has a connection with `peer`, of which `own` is the path, resume what is known.
    fn resume(&mut self, peer: &str, now: Duration, own: &LivingPath) {
        let Some(jump) = self.jump else { return };
        let known = self.paths.take(peer, now);
        let given = self
            .given
            .filter(|_| self.given_to.len() < MOST_GIVEN)
            .filter(|_| self.given_to.insert(peer.to_owned()))
            .map(|path| RememberedPath {
                path,
                filled: true,
                seen: now,
            });
        let is_young = |it: &RememberedPath| now.saturating_sub(it.seen) <= LIFETIME;
        let seen = self.others(peer, own).filter_map(LivingPath::seen);
        let seen = seen.filter(|it| !self.is_told && is_young(it));
        let latest = known.or(given).into_iter().chain(seen);
        let Some(latest) = latest.max_by_key(|it| (it.filled, it.seen)) else {
            return;
        };
        if known.or(given).is_some() {
            own.keep_taken(latest);
        }
        if latest.filled || jump != Jump::Flight {
            self.offer(peer, latest.path, own);
        }
    }

    /// Has a connection with `peer` resume its part of a path that is known. From then on it counts
    /// as one that sends, so that those that begin at the same moment share.
    fn offer(&self, peer: &str, path: SavedPath, own: &LivingPath) {
        if let Some(jump) = self.jump
            && let Some(saved) = beside(self.busy(peer, own), path, jump)
        {
            own.offer(Resume { saved, jump });
        }
    }

    /// The paths to `peer` of connections that live, but for one.
    fn others<'a>(
        &'a self,
        peer: &str,
        own: &'a LivingPath,
    ) -> impl Iterator<Item = &'a LivingPath> {
        let all = self.living.get(peer).map_or(&[][..], Vec::as_slice);
        let is_other = move |it: &&LivingPath| !own.is_that(it);
        all.iter().filter(|it| !it.is_alone()).filter(is_other)
    }

    /// The number of connections among them that are sending.
    fn busy(&self, peer: &str, own: &LivingPath) -> u64 {
        self.others(peer, own).filter(|it| it.is_busy()).count() as u64
    }

    /// A connection has ended, though its controller may live until it has drained.
    fn end(&mut self, peer: &str, path: &LivingPath) {
        if let Some(paths) = self.living.get_mut(peer) {
            paths.retain(|it| !it.is_that(path));
        }
    }

    fn add(&mut self, peer: String, path: LivingPath) {
        if self.living.len() >= self.sweep_at {
            self.living.retain(|_, paths| {
                paths.retain(|path| !path.is_alone());
                !paths.is_empty()
            });
            self.sweep_at = MOST_ENDED + 2 * self.living.len();
        }
        let paths = self.living.entry(peer).or_default();
        paths.retain(|path| !path.is_alone());
        paths.push(path);
    }

    /// Learns from the controller of a connection with a peer that has ended. What was known before
    /// is not forgotten because this connection had little to send, nor is it younger for that; nor
    /// is what another one has learnt meanwhile. `known` was taken out for it.
    fn learn(
        &mut self,
        ip: IpAddr,
        controller: &Controller,
        now: Duration,
        known: Option<RememberedPath>,
    ) {
        let peer = self.key(ip);
        let observed = controller.observed().map(|path| RememberedPath {
            path,
            filled: controller.fills(&path),
            seen: now,
        });
        let known = known.filter(|known| controller.confirms(&known.path));
        let best = observed.into_iter().chain(known);
        let best = best.max_by_key(|it| (it.filled, it.path.window));
        let stored = self.paths.take(&peer, now);
        // Those with the same time are from the same second.
        let latest = stored.into_iter().chain(best);
        if let Some(latest) = latest.max_by_key(|it| (it.filled, it.seen.as_secs())) {
            self.paths.put(&peer, latest);
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

/// The rest of a path for one more connection beside `busy` ones: an equal share. Only a flight
/// begins with that, and only if it would be faster without.
fn beside(busy: u64, path: SavedPath, jump: Jump) -> Option<SavedPath> {
    if busy == 0 {
        return Some(path);
    }
    let share = SavedPath {
        window: path.window / (busy + 1),
        ..path
    };
    let is_slower = jump == Jump::Flight && share.rate() < Trains::FLIGHT_RATE;
    is_slower.then_some(share)
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
mod tests;
