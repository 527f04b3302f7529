//! Events of links: handovers, outages, and requests for capacity.

use super::*;
use crate::connection::Nanos;
use crate::link_events::{
    CapacityRequest, Interruption, InterruptionKind, LinkDirection, LinkEvents,
};
use simulation::MS;

fn events(interruptions: &[(InterruptionKind, Nanos, Nanos)]) -> LinkEvents {
    let interruptions = interruptions
        .iter()
        .map(|(kind, from, until)| Interruption {
            kind: *kind,
            direction: LinkDirection::Forward,
            from_ns: from.cast_unsigned(),
            until_ns: until.cast_unsigned(),
        });
    LinkEvents {
        interruptions: interruptions.collect(),
        ..no_events()
    }
}

fn judged(rule: &str, connection: &Connection, events: Option<LinkEvents>) -> Finding {
    let link = LinkFacts { events, ..sat() };
    let all = findings(connection, &link).into_iter();
    let mut found = all.filter(|it| it.rule == rule);
    found.next().expect("a rule")
}

/// A transfer, of which nothing reaches the client from one time to another.
fn stopped(from: Nanos, until: Nanos) -> Connection {
    let mut connection = SimulatedTransfer::default().play();
    for packet in &mut connection.packets {
        let lost = packet
            .received()
            .is_some_and(|it| (from..until).contains(&it));
        if packet.sender == End::Server && lost {
            packet.seen[End::Client as usize] = None;
            packet.fate = Fate::Loss;
        }
    }
    connection
}

#[test]
fn a_stall_is_named_with_the_gap_and_the_packets() {
    use InterruptionKind::{Handover, Outage};
    let connection = stopped(6500 * MS, 6882 * MS);
    let lost = connection
        .packets
        .iter()
        .filter(|it| it.fate == Fate::Loss)
        .count();
    let told = [
        (Handover, 4000 * MS, 4080 * MS),
        (Handover, 6500 * MS, 6580 * MS),
        // The other direction stops, too, for longer.
        (Handover, 6500 * MS, 6582 * MS),
        (Outage, 60_000 * MS, 61_000 * MS),
    ];
    let found = judged("stalled_at_handovers", &connection, Some(events(&told)));
    let text = format!(
        "The transfer stalled at the handover at 6.50 s for 383 ms: the link sent nothing for 82 \
         ms, and an RTT was 655 ms. It stalled at 1 of 2 handovers, for 383 ms in all. {lost} \
         packets were lost on the way."
    );
    assert!(lost > 100);
    assert_eq!((found.verdict, found.text), (Yes, text));
    assert_eq!(found.plot.unwrap().kind, "offset");
}

#[test]
fn a_stall_beyond_the_gap_and_an_rtt_is_the_senders() {
    let connection = stopped(5000 * MS, 6382 * MS);
    let told = [(InterruptionKind::Outage, 5000 * MS, 5082 * MS)];
    let found = judged("stalled_at_handovers", &connection, Some(events(&told)));
    let text = "The transfer stalled at the outage at 5.00 s for 1.38 s: the link sent nothing for \
                82 ms, and an RTT was 600 ms, so for 700 ms more the sender was late, not the \
                link. ";
    assert_eq!(found.verdict, Yes);
    assert!(found.text.starts_with(text), "{}", found.text);
}

#[test]
fn a_handover_without_a_stall_is_none() {
    let connection = SimulatedTransfer::default().play();
    let told = [(InterruptionKind::Handover, 6500 * MS, 6504 * MS)];
    let found = judged("stalled_at_handovers", &connection, Some(events(&told)));
    let text = "Data did not stop arriving because of 1 handover: for 0.5 ms at most, around the \
                handover at 6.50 s.";
    assert_eq!((found.verdict, found.text.as_str()), (No, text));
    // In slow start, bursts are an RTT apart anyway.
    let told = [(InterruptionKind::Handover, 1700 * MS, 1750 * MS)];
    let found = judged("stalled_at_handovers", &connection, Some(events(&told)));
    assert_eq!(found.verdict, No, "{}", found.text);
    // It was over before.
    let told = [(InterruptionKind::Handover, 100_000 * MS, 100_100 * MS)];
    let found = judged("stalled_at_handovers", &connection, Some(events(&told)));
    let text = "None of the handovers and outages of the links, 1 in all, began when data had \
                arrived for two RTTs.";
    assert_eq!((found.verdict, found.text.as_str()), (No, text));
}

/// A transfer for which the sender does nothing for some time.
fn idle(from: Nanos, longer: Nanos) -> Connection {
    let mut connection = SimulatedTransfer::default().play();
    for packet in &mut connection.packets {
        if packet.sent().is_some_and(|it| it >= from) {
            packet.seen = packet.seen.map(|it| it.map(|time| time + longer));
        }
    }
    connection
}

#[test]
fn a_pause_of_the_sender_is_no_stall() {
    let connection = idle(6200 * MS, 1000 * MS);
    for gap in [0, 50] {
        let told = [(InterruptionKind::Handover, 6500 * MS, (6500 + gap) * MS)];
        let found = judged("stalled_at_handovers", &connection, Some(events(&told)));
        let text = "Data did not stop arriving because of 1 handover: for 1.00 s at most";
        assert_eq!(found.verdict, No, "{}", found.text);
        assert!(found.text.starts_with(text), "{}", found.text);
    }
    // A pause that had begun before.
    let told = [(InterruptionKind::Handover, 7000 * MS, 7080 * MS)];
    let found = judged("stalled_at_handovers", &connection, Some(events(&told)));
    assert_eq!(found.verdict, No, "{}", found.text);
}

#[test]
fn what_the_first_events_do_not_say_is_not_sure() {
    let told = [(InterruptionKind::Handover, 6500 * MS, 6504 * MS)];
    let cut = LinkEvents {
        cut: true,
        requests: Some(vec![request(1000 * MS, 5000 * MS, true)]),
        ..events(&told)
    };
    for rule in ["stalled_at_handovers", "waited_for_grants"] {
        let found = judged(rule, &waiting(0, 0, 0), Some(cut.clone()));
        assert_eq!(found.verdict, NotSure, "{}", found.text);
    }
}

/// A transfer whose ACKs take `longer` more from one time to another.
fn waiting(from: Nanos, until: Nanos, longer: Nanos) -> Connection {
    let mut connection = SimulatedTransfer::default().play();
    for packet in &mut connection.packets {
        let waits = (from..until).contains(&packet.time());
        if packet.sender == End::Client && waits {
            let received = &mut packet.seen[End::Server as usize];
            *received = received.map(|it| it + longer);
        }
    }
    connection
}

fn request(sent: Nanos, answered: Nanos, granted: bool) -> CapacityRequest {
    CapacityRequest {
        direction: LinkDirection::Return,
        sent_ns: sent.cast_unsigned(),
        answered_ns: answered.cast_unsigned(),
        granted,
    }
}

fn requested(requests: Vec<CapacityRequest>) -> LinkEvents {
    LinkEvents {
        requests: Some(requests),
        ..no_events()
    }
}

#[test]
fn waits_for_grants_are_named_with_the_longest() {
    let connection = waiting(3000 * MS, 5000 * MS, 1200 * MS);
    let all = requested(vec![
        request(1000 * MS, 1550 * MS, true),
        request(3000 * MS, 3600 * MS, false),
        request(3600 * MS, 4800 * MS, true),
        request(5000 * MS, 5573 * MS, true),
        request(90_000 * MS, 99_000 * MS, true),
    ]);
    let found = judged("waited_for_grants", &connection, Some(all));
    assert_eq!(found.verdict, Yes, "{}", found.text);
    let text = "ACKs waited for return capacity that had been requested for 2.";
    assert!(found.text.starts_with(text), "{}", found.text);
    let text = "a packet up to 1.20 s. The grant came 1.20 s after the request at 3.60 s, in the \
                median 573 ms after it, of 4 requests; 1 of them in vain.";
    assert!(found.text.ends_with(text), "{}", found.text);
}

#[test]
fn requests_for_which_nothing_waits_are_no_flaw() {
    let all = requested(vec![request(1000 * MS, 5000 * MS, true)]);
    let found = judged("waited_for_grants", &waiting(0, 0, 0), Some(all.clone()));
    assert_eq!(found.verdict, No, "{}", found.text);
    // A quarter of an RTT is what frames of a link take, too.
    let found = judged(
        "waited_for_grants",
        &waiting(0, 9000 * MS, 149 * MS),
        Some(all),
    );
    assert_eq!(found.verdict, No, "{}", found.text);
}

#[test]
fn what_nobody_knows_is_not_sure() {
    let connection = SimulatedTransfer::default().play();
    for rule in ["stalled_at_handovers", "waited_for_grants"] {
        let found = judged(rule, &connection, None);
        let text = "Not sure: what the links did is not known.";
        assert_eq!((found.verdict, found.text.as_str()), (NotSure, text));
    }
    let events = LinkEvents {
        requests: None,
        ..no_events()
    };
    let found = judged("waited_for_grants", &connection, Some(events));
    assert_eq!(found.verdict, NotSure, "{}", found.text);
}
