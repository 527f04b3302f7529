//! Which of a page's resources are found, and which of those is asked for next.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Delivery, Plan, Resource};

/// The discovery of a page: what was found of it, and what is under way.
#[derive(Debug)]
pub struct Discovery {
    resources: Vec<Resource>,
    /// By initiator, what it leads to and was not found yet.
    hidden: Vec<Vec<usize>>,
    /// Found, and to be asked for at a time.
    waiting: BTreeSet<(Duration, usize)>,
    /// Resources to be requested, by urgency.
    ready: BTreeSet<(u8, usize)>,
    under_way: usize,
}

impl Discovery {
    /// Nothing of the page was asked for.
    #[must_use]
    pub fn new(resources: Vec<Resource>) -> Self {
        let mut hidden = vec![Vec::new(); resources.len()];
        for (number, resource) in resources.iter().enumerate() {
            if let Some(initiator) = resource.initiator {
                hidden[initiator].push(number);
            }
        }
        Self {
            resources,
            hidden,
            waiting: BTreeSet::new(),
            ready: BTreeSet::new(),
            under_way: 0,
        }
    }

    fn advance(&mut self, now: Duration) {
        while let Some(&(due, number)) = self.waiting.first()
            && due <= now
        {
            self.waiting.pop_first();
            self.ready.insert((self.resources[number].urgency, number));
        }
    }

    fn find(&mut self, now: Duration, number: usize) {
        let wait = Duration::from_millis(self.resources[number].wait_ms);
        self.waiting.insert((now + wait, number));
    }
}

impl Plan for Discovery {
    fn start(&mut self, now: Duration) {
        for number in 0..self.resources.len() {
            if self.resources[number].initiator.is_none() {
                self.find(now, number);
            }
        }
    }

    fn ask(&mut self, now: Duration) -> Option<usize> {
        self.advance(now);
        let (_, number) = self.ready.pop_first()?;
        self.under_way += 1;
        Some(number)
    }

    fn ready(&mut self, now: Duration) -> usize {
        self.advance(now);
        self.ready.len()
    }

    fn under_way(&self) -> usize {
        self.under_way
    }

    fn arrived(&mut self, now: Duration, number: usize, bytes: u64) {
        let resources = &self.resources;
        let reached = |it: &usize| {
            let after = resources[*it].found_after_bytes;
            after.is_some_and(|after| after <= bytes)
        };
        for found in self.hidden[number]
            .extract_if(.., |it| reached(it))
            .collect::<Vec<_>>()
        {
            self.find(now, found);
        }
    }

    fn ended(&mut self, now: Duration, number: usize, came: Option<Delivery>) {
        self.under_way -= 1;
        let hidden = std::mem::take(&mut self.hidden[number]);
        if came.is_some() {
            for found in hidden {
                self.find(now, found);
            }
        }
    }

    fn next_wake(&self, _: Duration) -> Option<Duration> {
        self.waiting.first().map(|(due, _)| *due)
    }

    fn is_done(&self) -> bool {
        self.under_way == 0 && self.ready.is_empty() && self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Option<Delivery> = Some(Delivery {
        took: Duration::ZERO,
        bytes: 0,
    });

    fn resource(
        initiator: Option<usize>,
        after: Option<u64>,
        wait_ms: u64,
        urgency: u8,
    ) -> Resource {
        Resource {
            initiator,
            found_after_bytes: after,
            wait_ms,
            urgency,
            incremental: false,
        }
    }

    fn all(discovery: &mut Discovery, now: Duration) -> Vec<usize> {
        std::iter::from_fn(|| discovery.ask(now)).collect()
    }

    #[test]
    fn resources_are_found_as_their_initiators_come_and_asked_for_by_urgency() {
        let page = vec![
            resource(None, None, 0, 0),
            resource(Some(0), Some(100), 0, 3),
            resource(Some(0), Some(100), 0, 1),
            resource(Some(0), None, 20, 0),
            resource(Some(2), Some(0), 0, 3),
        ];
        let at = Duration::from_millis;
        let mut discovery = Discovery::new(page);
        assert!(discovery.is_done() && all(&mut discovery, at(0)).is_empty());
        discovery.start(at(0));
        assert_eq!(all(&mut discovery, at(0)), [0]);
        discovery.arrived(at(10), 0, 99);
        assert!(all(&mut discovery, at(10)).is_empty());
        discovery.arrived(at(11), 0, 100);
        assert_eq!(all(&mut discovery, at(11)), [2, 1]);
        discovery.arrived(at(12), 2, 1);
        assert_eq!(all(&mut discovery, at(12)), [4]);
        discovery.ended(at(13), 0, WHOLE);
        assert_eq!(
            (discovery.next_wake(at(0)), all(&mut discovery, at(32))),
            (Some(at(33)), vec![])
        );
        assert_eq!(all(&mut discovery, at(33)), [3]);
        for number in [1, 2, 3] {
            discovery.ended(at(40), number, WHOLE);
            assert!(!discovery.is_done());
        }
        discovery.ended(at(41), 4, None);
        assert!(discovery.is_done());
    }

    #[test]
    fn what_waits_is_asked_for_by_urgency_and_what_failed_leads_to_nothing() {
        let mut page = vec![resource(None, None, 0, 0)];
        page.extend((0..3).map(|_| resource(Some(0), Some(1), 0, 3)));
        page.push(resource(Some(1), None, 0, 0));
        page.push(resource(Some(0), None, 0, 1));
        let now = Duration::ZERO;
        let mut discovery = Discovery::new(page);
        discovery.start(now);
        assert_eq!(all(&mut discovery, now), [0]);
        discovery.arrived(now, 0, 7);
        assert_eq!((discovery.ready(now), discovery.under_way()), (3, 1));
        assert_eq!(discovery.ask(now), Some(1));
        discovery.ended(now, 1, None);
        discovery.ended(now, 0, WHOLE);
        assert_eq!(
            all(&mut discovery, now),
            [5, 2, 3],
            "the last to be found is urgent"
        );
        for number in [2, 3, 5] {
            discovery.ended(now, number, WHOLE);
        }
        assert!(discovery.is_done());
    }
}
