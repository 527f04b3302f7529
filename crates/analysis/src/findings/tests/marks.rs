//! Findings by ECN codepoints, marks and their reports.

use crate::connection::{Codepoint, Connection, Nanos};
use crate::link_facts::LinkFacts;
use bentpipe_wire::quic::End;

use super::super::Verdict::{No, NotSure, Yes};
use super::super::{Finding, Findings, View};
use super::simulation::{MS, SimulatedTransfer};
use super::{assert_says, only_at, sat};

/// All packets have ECT(0), the queue marks above a tenth of the BDP, and the sender takes 70 % of
/// its window after a mark.
fn marking() -> SimulatedTransfer {
    SimulatedTransfer {
        is_capable: |_| true,
        mark_above: 150_000,
        threshold: 3_000_000,
        queue: 10_000_000,
        file: 20_000_000,
        ..SimulatedTransfer::default()
    }
}

fn with_link(rule: &str, connection: &Connection, forward_marks: Option<bool>) -> Finding {
    with(rule, connection, forward_marks, None)
}

fn with(
    rule: &str,
    connection: &Connection,
    forward_marks: Option<bool>,
    window: Option<&[(Nanos, u64)]>,
) -> Finding {
    let link = LinkFacts {
        forward_marks,
        ..sat()
    };
    let ledger = connection.ledger();
    let view = View {
        connection,
        ledger: &ledger,
        link: &link,
        windows: [None, window],
    };
    let all = Findings::of(&view).all;
    all.into_iter().find(|it| it.rule == rule).expect("a rule")
}

#[test]
fn ecn_is_missed_where_a_queue_marks() {
    let rule = "ecn_not_used";
    let without = SimulatedTransfer::default().play();
    let verdict = |connection: &Connection, marks| with_link(rule, connection, marks).verdict;
    assert_eq!(verdict(&without, Some(true)), Yes);
    assert_eq!(verdict(&without, Some(false)), No);
    assert_eq!(verdict(&without, None), NotSure);
    assert_eq!(verdict(&marking().play(), Some(true)), No);
    // Codepoints that arrive do not prove which were set.
    let at_client = only_at(End::Client, without);
    assert_eq!(verdict(&at_client, Some(true)), NotSure);
}

#[test]
fn ecn_is_given_up_after_acks_without_counts() {
    let rule = "ecn_given_up";
    let tested = SimulatedTransfer {
        is_capable: |number| number < 10,
        has_counts: false,
        ..marking()
    };
    let finding = assert_says(rule, &tested.play(), Yes);
    let said = ["After 10 packets with ECT", " had ECN counts"];
    assert!(
        said.iter().all(|it| finding.text.contains(it)),
        "{}",
        finding.text
    );
    // Still testing: it may go on when the first ten are acknowledged.
    let short = SimulatedTransfer {
        file: 14_000,
        ..tested.clone()
    };
    assert_says(rule, &short.play(), No);
    let pausing = SimulatedTransfer {
        is_capable: |number| !(10..20).contains(&number),
        has_counts: true,
        ..tested.clone()
    };
    assert_says(rule, &pausing.play(), No);
    assert_says(rule, &marking().play(), No);
    assert_says(rule, &only_at(End::Client, tested.play()), NotSure);
    assert_says(rule, &only_at(End::Server, tested.play()), Yes);
}

#[test]
fn codepoints_that_the_path_clears_are_named() {
    let mut bleached = SimulatedTransfer {
        is_capable: |number| number < 10,
        has_counts: false,
        ..marking()
    }
    .play();
    for packet in &mut bleached.packets {
        packet.ecn[End::Client as usize] = packet.received().map(|_| Codepoint::NotEct);
    }
    let finding = assert_says("ecn_given_up", &bleached, Yes);
    let said = "10 of them arrived without ECT";
    assert!(finding.text.contains(said), "{}", finding.text);
}

#[test]
fn marks_that_acks_do_not_report() {
    let rule = "ce_not_echoed";
    let silent = SimulatedTransfer {
        has_counts: false,
        ..marking()
    };
    let finding = assert_says(rule, &silent.play(), Yes);
    assert!(
        finding.text.contains("it reported 0, in 0 of"),
        "{}",
        finding.text
    );
    assert_says(rule, &marking().play(), No);
    assert_says(rule, &SimulatedTransfer::default().play(), No);
    assert_says(rule, &only_at(End::Client, silent.play()), Yes);
    assert_says(rule, &only_at(End::Server, silent.play()), NotSure);
}

#[test]
fn marks_that_the_sender_ignores() {
    let rule = "ce_not_answered";
    let deaf = SimulatedTransfer {
        after_mark: 100,
        ..marking()
    };
    let finding = assert_says(rule, &deaf.play(), Yes);
    assert!(
        finding.text.contains("slowed down in 0 of them"),
        "{}",
        finding.text
    );
    assert_says(rule, &marking().play(), No);
    assert_says(rule, &SimulatedTransfer::default().play(), No);
    assert_says(rule, &only_at(End::Server, deaf.play()), Yes);
    assert_says(rule, &only_at(End::Client, deaf.play()), NotSure);
    // One round alone is no proof.
    let short = SimulatedTransfer {
        file: 9_000_000,
        ..deaf
    };
    assert_says(rule, &short.play(), NotSure);
}

#[test]
fn a_logged_window_that_falls_is_an_answer() {
    let deaf = SimulatedTransfer {
        after_mark: 100,
        ..marking()
    }
    .play();
    let falls: Vec<(Nanos, u64)> = (0..600)
        .map(|at| (at * 100 * MS, 3_000_000 - at.unsigned_abs()))
        .collect();
    let verdict =
        |window: &[(Nanos, u64)]| with("ce_not_answered", &deaf, Some(true), Some(window)).verdict;
    assert_eq!(verdict(&falls), No);
    assert_eq!(verdict(&[(0, 3_000_000)]), Yes);
}

#[test]
fn marks_answered_once_per_ack() {
    let rule = "ce_answered_often";
    let nervous = SimulatedTransfer {
        answers_each: true,
        file: 20_000_000,
        ..marking()
    };
    let finding = assert_says(rule, &nervous.play(), Yes);
    assert!(
        finding.text.starts_with("In 1 of 1 round"),
        "{}",
        finding.text
    );
    assert_says(rule, &marking().play(), No);
    let halving = SimulatedTransfer {
        after_mark: 50,
        ..marking()
    };
    assert_says(rule, &halving.play(), No);
    assert_says(rule, &only_at(End::Client, nervous.play()), NotSure);
}

#[test]
fn a_logged_window_tells_how_often_it_fell() {
    let answered = marking().play();
    let finding = with_link("ce_not_answered", &answered, Some(true));
    let first = finding.evidence[0].at_s;
    #[expect(clippy::cast_possible_truncation, reason = "a few seconds")]
    let from = (first * 1e9) as Nanos;
    let at = |ms: Nanos, bytes: u64| (from + ms * MS, bytes);
    let twice = [(0, 1_600_000), at(10, 1_120_000), at(200, 784_000)];
    let spread = [
        (0, 1_600_000),
        at(10, 1_500_000),
        at(200, 1_400_000),
        at(300, 1_300_000),
    ];
    let verdict = |window: &[(Nanos, u64)]| {
        with("ce_answered_often", &answered, Some(true), Some(window)).verdict
    };
    assert_eq!(verdict(&twice), Yes);
    assert_eq!(verdict(&twice[..2]), No);
    assert_eq!(verdict(&spread), No);
}
