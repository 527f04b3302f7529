//! Events that links report: their interruptions, and requests for capacity.

use bentpipe_link::{
    Direction, EVENTS_KEPT, Fate, Interruption, InterruptionKind, Path, RequestWait, Scenario,
    SegmentName,
};
use bentpipe_units::{Span, Time};

use crate::decided::Decides;
use crate::{SEED, link, ns, parse};

const MS: u64 = 1_000_000;

fn interruptions(scenario: &Scenario, seed: u64, until: u64) -> Vec<Interruption> {
    let whole = scenario.whole();
    whole.interruptions(Direction::Forward, seed, ns(until * MS))
}

fn of(kind: InterruptionKind, from: u64, until: u64) -> Interruption {
    Interruption {
        segment: SegmentName::Satellite,
        direction: Direction::Forward,
        satellite: None,
        kind,
        from: ns(from * MS),
        until: ns(until * MS),
    }
}

#[test]
fn interruptions_are_told_in_their_order() {
    use InterruptionKind::{Handover, Outage};
    let scenario = parse(
        "rate = \"1 Mbit/s\"\ndelay = \"10 ms\"\nqueue = \"1 MB\"\n\
         handovers = { times = [{ at = \"0 ms\" }, { at = \"200 ms\", gap = \"0 ms\" }], \
         gap = \"30 ms\", period = \"500 ms\", in_flight = \"lost\" }\n\
         outages = { every = \"300 ms\", for = \"20 ms\" }",
    );
    let expected = [
        of(Handover, 0, 30),
        of(Handover, 200, 200),
        of(Outage, 300, 320),
        of(Handover, 500, 530),
        of(Outage, 600, 620),
    ];
    let scenario = scenario.unwrap();
    assert_eq!(interruptions(&scenario, 7, 699), expected);
    // One that begins as time ends is one, too.
    assert_eq!(interruptions(&scenario, 7, 500), expected[..4]);
    let back = scenario.whole();
    assert!(
        back.interruptions(Direction::Return, 7, Time::NEVER)
            .is_empty()
    );
}

#[test]
fn a_link_sends_nothing_in_the_interruptions_of_its_trial() {
    // Phase and gaps are drawn: of this trial no other seed has them.
    let scenario = parse(
        "rate = \"8 Mbit/s\"\ndelay = \"1 ms\"\nqueue = \"1 MB\"\nhandovers = { every = \
         \"100 ms\", phase = \"random\", gap = [\"10 ms\", \"20 ms\", \"30 ms\"], in_flight = \
         \"forwarded\" }",
    )
    .unwrap();
    let found = interruptions(&scenario, SEED.seed, 1000);
    assert_ne!(found, interruptions(&scenario, SEED.seed + 1, 1000));
    assert_eq!(found.len(), 10);
    let mut path = Path::of_link(&scenario.satellite.forward, Span::ZERO, SEED);
    let mut before = ns(0);
    let mut silences = Vec::new();
    for packet in 0..1100 {
        // A packet takes 1 ms, so the link is never idle.
        let Fate::Delivered { at } = path.admit(ns(packet * 900_000), 1000) else {
            panic!("it does not lose any");
        };
        let left = at - Span::from_millis(1);
        if left - before > Span::from_millis(2) {
            silences.push(left - (before + Span::from_millis(1)));
        }
        before = left;
    }
    let gaps: Vec<Span> = found.iter().map(|it| it.until - it.from).collect();
    assert_eq!(silences[..gaps.len() - 1], gaps[..gaps.len() - 1]);
}

#[test]
fn so_many_are_told_at_most() {
    let scenario = parse(
        "delay = \"1 ms\"\nhandovers = { every = \"1 ms\", gap = \"10 us\", in_flight = \"lost\" }",
    );
    let found = interruptions(&scenario.unwrap(), 7, 1_000_000_000);
    assert_eq!(found.len(), EVENTS_KEPT + 1);
    assert_eq!(found[EVENTS_KEPT].from, ns((EVENTS_KEPT as u64 + 1) * MS));
}

#[test]
fn capacity_on_demand_says_when_it_was_asked_for() {
    let mut link = link(
        "queue = \"1 MB\"\nrate = { full = \"80 kbit/s\", floor = \"8 kbit/s\", request_every = \
         \"100 ms\", granted_after = \"50 ms\", hold = \"200 ms\" }",
    );
    link.admit(ns(10 * MS), 100);
    assert_eq!(link.answered_requests(), []);
    link.admit(ns(20 * MS), 150);
    let expected = RequestWait {
        sent: ns(100 * MS),
        answered: ns(150 * MS),
        granted: true,
    };
    assert_eq!(link.answered_requests(), [expected]);
}
