//! Looks up the names of targets, beside the workers: the system's resolver waits for its answers.
//!
//! No client address can have all threads, nor all places of those that wait: names whose servers
//! do not answer hold a thread for many seconds.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::thread;

use bentpipe_masque::{FlowId, Target};
use bentpipe_service::Failure;
use bentpipe_service::supervisor::failed;

use super::inbox::{Inbox, Message};

/// Names that are looked up at once, and those of one client address among them.
const THREADS: usize = 16;
const MOST_AT_ONCE: usize = 4;
/// Names that wait for that, and those of one client address among them; further ones are refused.
const MOST_WAITING: usize = 256;
const MOST_WAITING_OF_CLIENT: usize = 32;

/// A question for the addresses of a target's name.
pub struct Question {
    /// The worker that asks.
    pub worker: usize,
    pub flow: FlowId,
    pub target: Target,
    /// The client address for which it asks.
    pub client: IpAddr,
    /// The worker has the other half as long as somebody waits for the answer.
    pub wanted: Weak<()>,
}

/// The questions that wait, and the counts of those that are being answered.
#[derive(Default)]
struct Questions {
    waiting: VecDeque<Question>,
    /// By client address; none where there is no entry.
    under_way: BTreeMap<IpAddr, usize>,
}

impl Questions {
    /// Leaves a question; `false`: too many wait.
    fn add(&mut self, question: Question) -> bool {
        self.waiting.retain(|it| it.wanted.strong_count() > 0);
        let of_client = self
            .waiting
            .iter()
            .filter(|it| it.client == question.client);
        let has_room =
            self.waiting.len() < MOST_WAITING && of_client.count() < MOST_WAITING_OF_CLIENT;
        if has_room {
            self.waiting.push_back(question);
        }
        has_room
    }

    /// The first question whose client address may have one more answered.
    fn take(&mut self) -> Option<Question> {
        self.waiting.retain(|it| it.wanted.strong_count() > 0);
        let under_way = |client| self.under_way.get(client).copied().unwrap_or(0);
        let mut waiting = self.waiting.iter();
        let place = waiting.position(|it| under_way(&it.client) < MOST_AT_ONCE)?;
        let question = self.waiting.remove(place)?;
        *self.under_way.entry(question.client).or_default() += 1;
        Some(question)
    }

    fn note_answered(&mut self, client: IpAddr) {
        if let Some(count) = self.under_way.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                self.under_way.remove(&client);
            }
        }
    }
}

/// The questions, and who is woken when one can be answered.
#[derive(Default)]
struct PendingNames {
    questions: Mutex<Questions>,
    changed: Condvar,
}

/// The threads that look names up.
pub struct Resolver(Arc<PendingNames>);

impl Resolver {
    /// Starts the threads; answers go to the inboxes of those that ask.
    pub fn start(inboxes: &Arc<[Inbox]>) -> Result<Self, Failure> {
        let pending = Arc::<PendingNames>::default();
        for number in 0..THREADS {
            let (inboxes, pending) = (inboxes.clone(), pending.clone());
            thread::Builder::new()
                .name(format!("resolver-{number}"))
                .spawn(move || serve(&inboxes, &pending))
                .map_err(failed("starting a thread"))?;
        }
        Ok(Self(pending))
    }

    /// Asks for the addresses of a target's name; `false`: too many ask.
    pub fn ask(&self, question: Question) -> bool {
        let mut questions = self.0.questions.lock().expect("nobody panics with it");
        let is_left = questions.add(question);
        drop(questions);
        self.0.changed.notify_one();
        is_left
    }
}

fn serve(inboxes: &[Inbox], pending: &PendingNames) {
    let poisoned = "nobody panics with it";
    loop {
        let mut questions = pending.questions.lock().expect(poisoned);
        let question = loop {
            match questions.take() {
                Some(question) => break question,
                None => questions = pending.changed.wait(questions).expect(poisoned),
            }
        };
        drop(questions);
        let Question {
            worker,
            flow,
            target,
            client,
            ..
        } = question;
        let found = (target.host.as_str(), target.port).to_socket_addrs();
        let addresses: Vec<IpAddr> = found.into_iter().flatten().map(|it| it.ip()).collect();
        inboxes[worker].send(Message::Resolved(flow, target, addresses));
        let mut questions = pending.questions.lock().expect(poisoned);
        questions.note_answered(client);
        drop(questions);
        pending.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(client: u8, wanted: &Arc<()>) -> Question {
        Question {
            worker: 0,
            flow: FlowId(0),
            target: "slow.example:443".parse().unwrap(),
            client: [192, 0, 2, client].into(),
            wanted: Arc::downgrade(wanted),
        }
    }

    #[test]
    fn one_client_leaves_threads_and_places_to_others() {
        let (mut questions, wanted) = (Questions::default(), Arc::new(()));
        let left = (0..100).filter(|_| questions.add(question(1, &wanted)));
        assert_eq!(left.count(), MOST_WAITING_OF_CLIENT);
        let first: Vec<_> = (0..THREADS).filter_map(|_| questions.take()).collect();
        assert_eq!(first.len(), MOST_AT_ONCE);
        assert!(questions.add(question(2, &wanted)), "there is a place");
        let next = questions.take().expect("and a thread");
        assert_eq!(next.client, IpAddr::from([192, 0, 2, 2]));
        assert!(questions.take().is_none());
        questions.note_answered(first[0].client);
        assert_eq!(questions.take().unwrap().client, first[0].client);
    }

    #[test]
    fn what_nobody_waits_for_any_more_is_not_looked_up() {
        let (mut questions, gone) = (Questions::default(), Arc::new(()));
        assert!(questions.add(question(1, &gone)));
        drop(gone);
        assert!(questions.take().is_none());
        assert!(questions.waiting.is_empty() && questions.under_way.is_empty());
    }
}
