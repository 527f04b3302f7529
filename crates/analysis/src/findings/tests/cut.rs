//! Captures that have not all of a connection, and what is known beside them.

use crate::connection::{Connection, Frame, Nanos, Packet};
use crate::link_facts::LinkFacts;
use bentpipe_wire::quic::{End, InitialCredit};

use super::super::Verdict::{No, NotSure, Yes};
use super::super::rules::ALL;
use super::super::signals::Signals;
use super::super::span::{Span, union};
use super::super::{Findings, View};
use super::simulation::{MS, SimulatedTransfer};
use super::{all_toys, assert_says, early, findings, late, sat};

/// Doubles its window without end, and loses nothing.
fn growing() -> SimulatedTransfer {
    SimulatedTransfer {
        threshold: u64::MAX,
        queue: 100_000_000,
        file: 20_000_000,
        ..SimulatedTransfer::default()
    }
}

fn cut_at(time: Nanos, mut connection: Connection) -> Connection {
    connection.packets.retain(|it| it.time() < time);
    connection
}

#[test]
fn a_capture_that_is_cut_does_not_end_the_data() {
    let cut = cut_at(4_000 * MS, growing().play());
    let finding = assert_says("slow_start_left_early", &cut, No);
    assert!(
        finding.text.contains("the capture ends while the window"),
        "{}",
        finding.text
    );
    assert_says("long_tail", &cut, NotSure);
    // All streams end, but more was asked for.
    let link = LinkFacts {
        size_bytes: Some(20_000_000),
        ..sat()
    };
    let all = findings(&early().play(), &link);
    let tail = all.iter().find(|it| it.rule == "long_tail").unwrap();
    assert_eq!(tail.verdict, NotSure, "{}", tail.text);
    assert_says("long_tail", &early().play(), No);
}

#[test]
fn silence_until_the_capture_ends_counts() {
    let mut silent = growing().play();
    let last = silent.packets.len() - 1;
    let mut at = 0;
    silent.packets.retain(|it| {
        at += 1;
        let heard = if it.sender == End::Client {
            400 * MS
        } else {
            0
        };
        it.time() < 3_000 * MS + heard || at > last
    });
    assert_says("idle_gaps", &silent, Yes);
    let start = assert_says("slow_start_left_early", &silent, NotSure);
    assert!(
        start
            .text
            .contains("nothing that was sent was acknowledged"),
        "{}",
        start.text
    );
}

#[test]
fn a_few_packets_are_no_line() {
    let few = SimulatedTransfer {
        file: 30 * 1170,
        ..SimulatedTransfer::default()
    };
    assert_says("bends_to_lower_rate", &few.play(), NotSure);
}

#[test]
fn slow_start_needs_the_beginning_of_the_connection() {
    let mut midway = early().play();
    midway.packets.retain(|it| it.time() > 1_000 * MS);
    let finding = assert_says("slow_start_left_early", &midway, NotSure);
    assert!(finding.text.contains("began after"), "{}", finding.text);
    // The handshake alone does not make up for missing data.
    let mut without = early().play();
    without
        .packets
        .retain(|it| it.time() < 600 * MS || it.time() > 2_000 * MS);
    assert_says("slow_start_left_early", &without, NotSure);
}

fn slow_start_end(connection: &Connection, log: &[(Nanos, u64)]) -> Option<Nanos> {
    let ledger = connection.ledger();
    let view = View {
        connection,
        ledger: &ledger,
        link: &sat(),
        windows: [None, Some(log)],
    };
    Findings::of(&view).slow_start_end
}

#[test]
fn slow_start_ends_with_the_first_drop_of_a_logged_window() {
    let connection = growing().play();
    let steps = [
        (0, 12_000),
        (1_500, 24_000),
        (2_100, 48_000),
        (2_700, 96_000),
    ];
    let grown = steps.map(|(ms, window)| (ms * MS, window));
    let fell = [&grown[..], &[(2_900 * MS, 67_000)]].concat();
    assert_eq!(slow_start_end(&connection, &fell), Some(2_900 * MS));
    let regained = [&fell[..], &[(3_200 * MS, 200_000)]].concat();
    assert_ne!(slow_start_end(&connection, &regained), Some(2_900 * MS));
}

#[test]
fn packets_around_an_exit_are_those_up_to_its_round() {
    let connection = late().play();
    let ledger = connection.ledger();
    let view = View {
        connection: &connection,
        ledger: &ledger,
        link: &sat(),
        windows: [None, None],
    };
    let signals = Signals::of(&view);
    let exit = *signals.slow_start.as_ref().unwrap().exit().unwrap();
    let of_exit = signals.rounds.iter().position(|it| it.span.has(exit.at));
    let around = &signals.rounds[of_exit.unwrap() - 1..=of_exit.unwrap()];
    let packets: u64 = around.iter().map(|it| it.packets).sum();
    assert_eq!((exit.packets, exit.by_loss), (packets, true));
}

#[test]
fn credit_is_known_from_transport_parameters() {
    let rule = "limited_by_flow_control";
    let small = SimulatedTransfer {
        credit: Some(300_000),
        ..SimulatedTransfer::default()
    };
    let mut stuck = small.play();
    for frame in &mut stuck.frames {
        if let Frame::MaxStreamData { .. } = frame {
            *frame = Frame::Other("PADDING");
        }
    }
    let frames = stuck.frames.clone();
    stuck.packets.retain(|it| {
        let mut frames = frames[it.frames.start as usize..it.frames.end as usize].iter();
        !frames.any(|it| {
            matches!(
                it,
                Frame::Stream {
                    offset: 300_000..,
                    ..
                }
            )
        })
    });
    assert_says(rule, &stuck, NotSure);
    stuck.initial_credit[End::Client as usize] = Some(InitialCredit {
        initial_max_data: 1_000_000,
        initial_max_stream_data_bidi_local: 300_000,
        ..InitialCredit::default()
    });
    let finding = assert_says(rule, &stuck, Yes);
    assert!(
        finding.text.contains("the stream's credit was reached"),
        "{}",
        finding.text
    );
}

#[test]
fn credit_is_not_to_blame_for_losses_or_a_full_path() {
    let rule = "limited_by_flow_control";
    let stubborn = SimulatedTransfer {
        threshold: 4_000_000,
        after_loss: 100,
        queue: 4_000_000,
        credit: Some(2_000_000),
        is_lost: |number| number > 1500 && number % 2 == 0,
        ..SimulatedTransfer::default()
    };
    let finding = assert_says(rule, &stubborn.play(), No);
    assert!(
        finding
            .text
            .contains("lost data held the receiver's window"),
        "{}",
        finding.text
    );
    let full = SimulatedTransfer {
        threshold: 4_000_000,
        queue: 4_000_000,
        credit: Some(2_000_000),
        file: 20_000_000,
        ..SimulatedTransfer::default()
    };
    let finding = assert_says(rule, &full.play(), No);
    assert!(finding.text.contains("fill the path"), "{}", finding.text);
}

#[test]
fn times_that_two_reasons_explain_count_once() {
    let span = |from, until| Span { from, until };
    let spans = vec![span(20, 30), span(0, 10), span(2, 4), span(5, 15)];
    assert_eq!(union(spans), [span(0, 15), span(20, 30)]);
}

#[test]
fn copies_of_packets_change_nothing() {
    for (name, connection) in all_toys() {
        let mut doubled = connection.clone();
        let copies = connection.packets.iter().cloned().map(|mut packet| {
            packet.copy = true;
            packet
        });
        doubled.packets.extend(copies);
        doubled.packets.sort_by_key(Packet::time);
        let texts = |it: &Connection| findings(it, &sat()).into_iter().map(|it| it.text);
        assert!(texts(&doubled).eq(texts(&connection)), "{name}");
    }
}

#[test]
fn damaged_times_are_no_trouble() {
    for (_, mut connection) in all_toys() {
        let last = connection.packets.len() - 1;
        for seen in &mut connection.packets[last].seen {
            *seen = seen.map(|_| Nanos::MAX / 16);
        }
        for seen in &mut connection.packets[last / 2].seen {
            *seen = seen.map(|_| Nanos::MIN / 16);
        }
        connection.packets.sort_by_key(Packet::time);
        assert_eq!(findings(&connection, &sat()).len(), ALL.len());
    }
}
