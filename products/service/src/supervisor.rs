//! The threads of a program, and what signals do to them: SIGTERM and SIGINT drain, the second of
//! them ends at once, SIGHUP reads the settings again.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use bentpipe_units::Span;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tracing::{error, info, warn};

use crate::Failure;

/// The program that is supervised: the messages to its workers.
pub trait Service {
    /// Reads the settings again.
    fn reload(&mut self);
    /// How long connections may go on that are there when it drains.
    fn grace(&self) -> Span;
    /// Tells all workers to take nobody any more.
    fn drain(&mut self, grace: Span);
    /// Tells all workers to end at once.
    fn end(&mut self);
}

/// An event that the main thread waits for.
enum Event {
    Signal(i32),
    /// A worker has ended, however.
    Ended(usize),
}

/// The threads of a program.
pub struct Supervisor {
    events: Receiver<Event>,
    teller: Sender<Event>,
    threads: Vec<Option<JoinHandle<Result<(), String>>>>,
    /// From the first signal to end on.
    pub draining: Arc<AtomicBool>,
}

/// The notice that a worker has ended, given even if it panicked.
struct EndNotice {
    number: usize,
    teller: Sender<Event>,
}

impl Drop for EndNotice {
    fn drop(&mut self) {
        // There is no receiver when the program could not start.
        let _ = self.teller.send(Event::Ended(self.number));
    }
}

impl Supervisor {
    /// One without threads; from now on signals wait for it.
    pub fn new() -> Result<Self, Failure> {
        let (teller, events) = channel();
        let news = teller.clone();
        let mut signals =
            Signals::new([SIGHUP, SIGINT, SIGTERM]).map_err(failed("handling signals"))?;
        let watch = move || {
            for signal in signals.forever() {
                if news.send(Event::Signal(signal)).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("signals".into()).spawn(watch);
        thread.map_err(failed("starting a thread"))?;
        Ok(Self {
            events,
            teller,
            threads: Vec::new(),
            draining: Arc::default(),
        })
    }

    /// Starts a worker; its error is why the program fails.
    pub fn start(
        &mut self,
        worker: impl FnOnce() -> Result<(), String> + Send + 'static,
    ) -> Result<(), Failure> {
        let (number, teller) = (self.threads.len(), self.teller.clone());
        let thread = thread::Builder::new()
            .name(format!("worker-{number}"))
            .spawn(move || {
                let _end = EndNotice { number, teller };
                worker()
            });
        let thread = thread.map_err(failed("starting a thread"))?;
        self.threads.push(Some(thread));
        Ok(())
    }

    /// The number of workers that were started.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.threads.len()
    }

    /// Does what signals ask for, until all workers have ended.
    pub fn serve(mut self, service: &mut impl Service) -> Result<(), Failure> {
        let mut left = self.threads.len();
        let mut result = Ok(());
        while left > 0 {
            match self.events.recv().expect("this thread holds a sender") {
                Event::Signal(SIGHUP) => service.reload(),
                Event::Signal(_) => self.stop(service),
                Event::Ended(number) => {
                    left -= 1;
                    if let Err(why) = self.join(number) {
                        error!(worker = number, why, "worker-failed");
                        result = Err(Failure::Failed(format!("worker {number}: {why}")));
                        // Its connections are gone; whoever supervises this program can start it
                        // anew.
                        service.end();
                    }
                }
            }
        }
        info!("ended");
        result
    }

    /// Drains; the second time ends at once.
    fn stop(&self, service: &mut impl Service) {
        if self.draining.swap(true, Ordering::Relaxed) {
            warn!(why = "a second signal", "ending");
            service.end();
            return;
        }
        let grace = service.grace();
        info!(at_most = %grace, "draining");
        service.drain(grace);
    }

    fn join(&mut self, number: usize) -> Result<(), String> {
        let thread = self.threads[number].take().expect("a worker ends once");
        thread.join().unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<&str>().map(|it| (*it).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            Err(text.unwrap_or_else(|| "it panicked".into()))
        })
    }
}

/// For `map_err` on what the system did not do.
pub fn failed(what: &'static str) -> impl FnOnce(io::Error) -> Failure {
    move |error| Failure::Failed(format!("{what}: {error}"))
}

/// Lets this process open as many files as the system lets it: each connection is one or two.
pub fn allow_many_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: maximum,
        maximum,
    };
    // Where it is refused there are fewer, and a connection that gets none is logged.
    let _ = setrlimit(Resource::Nofile, wanted);
}

/// The number of threads: as many as were asked for; 0: one for each core, up to a number.
#[must_use]
pub fn worker_count(wanted: usize, most: usize) -> usize {
    if wanted > 0 {
        return wanted;
    }
    thread::available_parallelism()
        .map_or(1, usize::from)
        .min(most)
}
