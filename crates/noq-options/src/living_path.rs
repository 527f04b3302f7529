//! The talk of a connection's controller and the memory of paths while the connection lives. noq
//! owns the controller, and hands out none but copies of it: these share this.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bentpipe_congestion::{Controller, RememberedPath, Resume};
use bentpipe_endpoint::Clock;
use bentpipe_units::Time;

/// So often something is published in a round trip: a file may be over in one.
const PER_ROUND: u64 = 4;

/// A window is news if it differs by more than this part from the one that was news last.
const NEWS: u64 = 16;

/// A connection that was told what to resume sends by that within so long, or no more: until then
/// the others count it among those that send. Longer than most requests wait for their answer.
const CLAIM: Duration = Duration::from_secs(10);

/// … or within so many of the path's round trips: a handshake and a request need three.
const CLAIM_ROUNDS: u32 = 10;

/// A path that a connection uses; clones share it.
#[derive(Debug, Clone)]
pub struct LivingPath(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    clock: Clock,
    /// The paths of the thread with something new to tell their peers; `None`: these are told
    /// nothing.
    news: Option<Arc<AtomicUsize>>,
    /// This is one of them.
    is_news: AtomicBool,
    /// Something is on its way that the peer has not acknowledged, and that is no handshake.
    is_busy: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// For the controller to take.
    resume: Option<Resume>,
    /// The end of the time in which the connection may send by what it was told, since 1970;
    /// `None`: it was told nothing, or has sent.
    claim: Option<Duration>,
    /// The connection is made to be used later.
    is_waiting: bool,
    /// The path that a frame of its peer told meanwhile.
    kept: Option<RememberedPath>,
    /// The path that was taken out of the memory for it.
    taken: Option<RememberedPath>,
    /// When the frame was sealed that it resumes.
    sealed: Option<Duration>,
    /// Whether the rate that it resumes has proved too large, if only for a while.
    is_wrong: bool,
    /// When something was published last, in the controller's time.
    at: Time,
    /// The path as the connection has seen it.
    seen: Option<RememberedPath>,
    /// The window that was news last, and whether it filled the path.
    told: (u64, bool),
}

impl LivingPath {
    /// A path of which nothing is known yet. `clock` is that of the connection; `news` counts the
    /// paths with something to tell their peers, if these are told; `is_waiting`: the connection is
    /// made to be used later.
    #[must_use]
    pub fn new(clock: Clock, news: Option<Arc<AtomicUsize>>, is_waiting: bool) -> Self {
        Self(Arc::new(Shared {
            clock,
            news,
            is_news: AtomicBool::new(false),
            is_busy: AtomicBool::new(false),
            state: Mutex::new(State {
                is_waiting,
                ..State::default()
            }),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the controller resume this, if it is not too late for it. From now on the connection
    /// counts as one that sends, until it has, or its time is over.
    pub fn offer(&self, resume: Resume) {
        let rtt = Duration::from_nanos(resume.saved.rtt.as_nanos());
        let until = self.0.clock.unix() + CLAIM.max(rtt.saturating_mul(CLAIM_ROUNDS));
        let mut state = self.lock();
        state.claim = Some(until);
        state.resume = Some(resume);
    }

    /// The path that the controller is to resume, once.
    #[must_use]
    pub fn take_resume(&self) -> Option<Resume> {
        let mut state = self.lock();
        let is_late = self.is_over(state.claim);
        state.resume.take().filter(|_| !is_late)
    }

    fn is_over(&self, claim: Option<Duration>) -> bool {
        claim.is_some_and(|until| self.0.clock.unix() >= until)
    }

    /// Whether the connection was told what to resume and has not sent by that in time.
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.is_over(self.lock().claim)
    }

    /// The connection begins to be used; what a frame of its peer has told it meanwhile.
    #[must_use]
    pub fn begin(&self) -> Option<RememberedPath> {
        let mut state = self.lock();
        state.is_waiting = false;
        state.kept.take()
    }

    /// A frame of the peer tells this. Whether the connection is in use: else it keeps that until
    /// it is.
    #[must_use]
    pub fn hear(&self, told: RememberedPath) -> bool {
        let mut state = self.lock();
        state.sealed = Some(told.seen);
        if state.is_waiting {
            state.kept = Some(told);
        }
        !state.is_waiting
    }

    /// When the frame was sealed that told the connection what has proved too large.
    #[must_use]
    pub fn wrong_frame(&self) -> Option<Duration> {
        let state = self.lock();
        state.sealed.filter(|_| state.is_wrong)
    }

    /// This was taken out of the memory for the connection.
    pub fn keep_taken(&self, taken: RememberedPath) {
        self.lock().taken = Some(taken);
    }

    /// The path that was taken out of the memory for it, once.
    #[must_use]
    pub fn give_taken(&self) -> Option<RememberedPath> {
        self.lock().taken.take()
    }

    fn raise_news(&self) {
        if let Some(news) = &self.0.news
            && !self.0.is_news.swap(true, Ordering::Relaxed)
        {
            news.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether there is something new to tell its peer, once.
    #[must_use]
    pub fn take_news(&self) -> bool {
        self.0.take_news()
    }

    /// A packet leaves.
    pub fn send(&self) {
        self.0.is_busy.store(true, Ordering::Relaxed);
    }

    /// Publishes what a controller has seen, four times in a round trip, and whether it is busy.
    pub fn publish(&self, controller: &Controller) {
        let path = controller.path();
        let is_busy = path.in_flight > 0 && path.is_used();
        self.0.is_busy.store(is_busy, Ordering::Relaxed);
        let mut state = self.lock();
        if path.is_used() {
            state.claim = None;
        }
        if !state.is_wrong && controller.contradicts() {
            state.is_wrong = true;
            self.raise_news();
        }
        if (path.now - state.at) * PER_ROUND < path.rtt.min {
            return;
        }
        state.at = path.now;
        if let Some(seen) = controller.observed() {
            // What it had too little to send for is not newer.
            if path.limited && state.seen.is_some_and(|old| old.path == seen) {
                return;
            }
            let filled = controller.fills(&seen);
            let (window, was_filled) = state.told;
            if seen.window.abs_diff(window) > window / NEWS || filled != was_filled {
                state.told = (seen.window, filled);
                self.raise_news();
            }
            state.seen = Some(RememberedPath {
                path: seen,
                filled,
                seen: self.0.clock.unix(),
            });
        }
    }

    /// As if a controller had seen this.
    #[cfg(test)]
    pub fn see(&self, seen: RememberedPath, is_busy: bool) {
        let mut state = self.lock();
        state.seen = Some(seen);
        state.claim = None;
        self.0.is_busy.store(is_busy, Ordering::Relaxed);
    }

    /// The path as the connection has seen it so far.
    #[must_use]
    pub fn seen(&self) -> Option<RememberedPath> {
        self.lock().seen
    }

    /// Whether something of the connection is on its way, or will be soon.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        let claim = self.lock().claim;
        self.0.is_busy.load(Ordering::Relaxed) || claim.is_some() && !self.is_over(claim)
    }

    /// Whether the controller is gone, and all copies of it.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Whether both are the path of one connection.
    #[must_use]
    pub fn is_that(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Shared {
    fn take_news(&self) -> bool {
        let was_news = self.is_news.swap(false, Ordering::Relaxed);
        if was_news && let Some(news) = &self.news {
            news.fetch_sub(1, Ordering::Relaxed);
        }
        was_news
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.take_news();
    }
}
