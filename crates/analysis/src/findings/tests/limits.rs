//! How a transfer starts, and what keeps it from using the link.

use crate::connection::Frame;
use crate::link_facts::LinkFacts;
use bentpipe_wire::quic::End;

use super::super::Verdict::{No, NotSure, Yes};
use super::super::{Findings, View};
use super::simulation::{MS, SimulatedTransfer};
use super::{assert_says, early, finding, findings, late, only_at, sat};

#[test]
fn slow_start_is_left_early_at_the_choke_point_or_late() {
    let rules = [
        "slow_start_left_early",
        "slow_start_left_at_choke_point",
        "slow_start_left_late",
    ];
    for (transfer, yes) in [(early(), 0), (SimulatedTransfer::default(), 1), (late(), 2)] {
        let connection = transfer.play();
        for (number, rule) in rules.into_iter().enumerate() {
            assert_says(rule, &connection, if number == yes { Yes } else { No });
            let unknown_link = findings(&connection, &LinkFacts::default());
            let finding = unknown_link.iter().find(|it| it.rule == rule).unwrap();
            assert_eq!(finding.verdict, NotSure, "{}", finding.text);
        }
    }
    let text = finding("slow_start_left_early", &early().play()).text;
    assert!(
        text.contains("without a loss") && text.contains("20 % of the path's 1.50 MB"),
        "{text}"
    );
    assert!(
        text.contains("79 % of the link's 20.0 Mbit/s stayed empty"),
        "{text}"
    );
}

#[test]
fn a_loss_on_the_way_is_an_early_exit() {
    let transfer = SimulatedTransfer {
        is_lost: |number| number == 100,
        ..SimulatedTransfer::default()
    };
    let finding = assert_says("slow_start_left_early", &transfer.play(), Yes);
    assert!(finding.text.contains("on a loss"), "{}", finding.text);
}

#[test]
fn small_files_and_small_credit_do_not_end_slow_start() {
    let small = SimulatedTransfer {
        file: 300_000,
        ..SimulatedTransfer::default()
    };
    let credit = SimulatedTransfer {
        credit: Some(300_000),
        ..SimulatedTransfer::default()
    };
    for (transfer, word) in [(small, "the data ended"), (credit, "flow control")] {
        let finding = assert_says("slow_start_left_early", &transfer.play(), No);
        assert!(finding.text.contains(word), "{}", finding.text);
    }
}

#[test]
fn handshake() {
    let rule = "handshake_retransmitted";
    let right = SimulatedTransfer::default().play();
    let mut again = right.clone();
    again.packets.insert(1, right.packets[0].clone());
    again.packets[1].seen = [Some(200 * MS), Some(500 * MS)];
    again.packets[1].number = Some(1);
    let finding = assert_says(rule, &again, Yes);
    assert!(
        finding.text.contains("1 of them needlessly"),
        "{}",
        finding.text
    );
    assert_says(rule, &right, No);
    assert_says(rule, &only_at(End::Client, right), NotSure);
}

#[test]
fn flow_control() {
    let rule = "limited_by_flow_control";
    let small = SimulatedTransfer {
        credit: Some(300_000),
        ..SimulatedTransfer::default()
    }
    .play();
    let finding = assert_says(rule, &small, Yes);
    assert!(
        finding
            .text
            .contains("with up to 0.31 MB in flight, which allows 4.2 Mbit/s"),
        "{}",
        finding.text
    );
    assert_says(
        rule,
        &SimulatedTransfer {
            credit: Some(3_000_000),
            ..SimulatedTransfer::default()
        }
        .play(),
        No,
    );
    assert_says(rule, &early().play(), No);
    // No credit is seen, but the stream ends, with a separate frame; or it does not.
    let mut alone = early().play();
    let fin = |frame: &&mut Frame| {
        matches!(
            frame,
            Frame::Stream {
                fin: true,
                length: 1..,
                offset: 1..,
                ..
            }
        )
    };
    for frame in alone.frames.iter_mut().filter(fin) {
        *frame = Frame::Stream {
            id: 0,
            offset: 10_000_000,
            length: 0,
            fin: true,
        };
    }
    assert_says(rule, &alone, No);
    alone.packets.retain(|it| it.time() < 10_000 * MS);
    assert_says(rule, &alone, NotSure);
    assert_says(rule, &only_at(End::Server, small.clone()), Yes);
    assert_says(rule, &only_at(End::Client, small), NotSure);
}

#[test]
fn application() {
    let rule = "limited_by_application";
    let slow = SimulatedTransfer {
        write: 150_000,
        file: 1_500_000,
        ..SimulatedTransfer::default()
    };
    assert_says(rule, &slow.play(), Yes);
    assert_says("limited_by_flow_control", &slow.play(), No);
    assert_says(rule, &early().play(), No);
    // Writes that fill packets exactly do not tell an application from a timer.
    let exact = SimulatedTransfer {
        write: 128 * 1170,
        file: 1280 * 1170,
        ..SimulatedTransfer::default()
    };
    assert_says(rule, &exact.play(), NotSure);
    assert_says(rule, &only_at(End::Client, slow.play()), NotSure);
}

#[test]
fn congestion_window() {
    let rule = "limited_by_cwnd";
    let finding = assert_says(rule, &early().play(), Yes);
    assert!(
        finding.text.contains("of the link stayed empty"),
        "{}",
        finding.text
    );
    let large = SimulatedTransfer {
        initial_window: 1_600_000,
        queue: 3_000_000,
        ..SimulatedTransfer::default()
    };
    assert_says(rule, &large.play(), No);
    assert_says(
        rule,
        &SimulatedTransfer {
            credit: Some(50_000),
            ..early()
        }
        .play(),
        No,
    );
    let without = findings(&early().play(), &LinkFacts::default());
    let finding = without.iter().find(|it| it.rule == rule).unwrap();
    assert_eq!(finding.verdict, NotSure, "{}", finding.text);
}

#[test]
fn a_logged_window_that_is_not_reached_limits_nothing() {
    let connection = early().play();
    let ledger = connection.ledger();
    let log = [(0, 5_000_000)];
    let (link, windows) = (sat(), [None, Some(&log[..])]);
    let view = View {
        connection: &connection,
        ledger: &ledger,
        link: &link,
        windows,
    };
    let all = Findings::of(&view).all;
    let finding = all.iter().find(|it| it.rule == "limited_by_cwnd").unwrap();
    assert_eq!(finding.verdict, No, "{}", finding.text);
}

#[test]
fn silence() {
    let rule = "idle_gaps";
    // All of a round trip is lost: a timer must help, here that of the transfer's next write.
    let slow = SimulatedTransfer {
        write: 50_000,
        file: 500_000,
        rtt: 100 * MS,
        ..SimulatedTransfer::default()
    };
    assert_says(rule, &slow.play(), Yes);
    assert_says(rule, &SimulatedTransfer::default().play(), No);
    assert_says(rule, &only_at(End::Client, slow.play()), NotSure);
}
