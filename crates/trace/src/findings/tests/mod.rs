//! Every rule, on transfers of a toy sender: where it says yes, no, and not sure.

mod toy;

use crate::connection::{Connection, Fate, Frame, Kind, Packet, Protocol, Vantage};
use crate::link_facts::LinkFacts;
use crate::quic::{End, PacketType};

use super::{Finding, Findings, Verdict, View, rules};
use Verdict::{No, NotSure, Yes};
use toy::{MS, Toy};

fn sat() -> LinkFacts {
    LinkFacts {
        forward_rate_bps: Some(20_000_000),
        return_rate_bps: Some(2_000_000),
        rtt_ms: Some(600.0),
        mtu_bytes: Some(1228),
        ..LinkFacts::default()
    }
}

fn findings(connection: &Connection, link: &LinkFacts) -> Vec<Finding> {
    let ledger = connection.ledger();
    let view = View {
        connection,
        ledger: &ledger,
        link,
        windows: [None, None],
    };
    Findings::of(&view).all
}

/// The finding of one rule, over sat.
fn finding(rule: &str, connection: &Connection) -> Finding {
    let all = findings(connection, &sat());
    all.into_iter().find(|it| it.rule == rule).expect("a rule")
}

#[track_caller]
fn assert_says(rule: &str, connection: &Connection, verdict: Verdict) -> Finding {
    let finding = finding(rule, connection);
    assert_eq!(finding.verdict, verdict, "{rule}: {}", finding.text);
    finding
}

/// What a capture at one end alone shows.
fn only_at(end: End, mut connection: Connection) -> Connection {
    connection
        .packets
        .retain(|packet| packet.seen[end as usize].is_some());
    for packet in &mut connection.packets {
        packet.seen[end.other() as usize] = None;
        packet.fate = Fate::Unknown;
    }
    connection.packets.sort_by_key(Packet::time);
    connection.vantage = Vantage::At(end);
    connection
}

/// Leaves at 0.3 MB, a fifth of the BDP.
fn early() -> Toy {
    Toy {
        threshold: 300_000,
        ..Toy::default()
    }
}

/// Doubles until the queue overflows.
fn late() -> Toy {
    Toy {
        threshold: u64::MAX,
        queue: 40_000,
        ..Toy::default()
    }
}

fn all_toys() -> Vec<(&'static str, Connection)> {
    let flow_control = Toy {
        credit: Some(300_000),
        ..Toy::default()
    };
    let application = Toy {
        write: 150_000,
        file: 1_500_000,
        ..Toy::default()
    };
    vec![
        ("right", Toy::default().play()),
        ("early", early().play()),
        ("late", late().play()),
        ("flow control", flow_control.play()),
        ("application", application.play()),
    ]
}

#[test]
fn a_sender_that_does_everything_right_shows_no_flaw() {
    let fine = ["slow_start_left_at_choke_point", "limited_by_cwnd"];
    for finding in findings(&Toy::default().play(), &sat()) {
        let expected = if fine.contains(&finding.rule) {
            Yes
        } else {
            No
        };
        assert_eq!(
            finding.verdict, expected,
            "{}: {}",
            finding.rule, finding.text
        );
    }
}

#[test]
fn every_rule_answers_whatever_it_is_shown() {
    let mut shown = all_toys();
    for end in [End::Client, End::Server] {
        let toys = all_toys().into_iter();
        shown.extend(toys.map(|(name, toy)| (name, only_at(end, toy))));
    }
    let mut nothing = Toy::default().play();
    nothing.packets.clear();
    shown.push(("nothing", nothing));
    let mut tcp = early().play();
    tcp.protocol = Protocol::Tcp;
    shown.push(("TCP", tcp));
    let mut between = only_at(End::Client, late().play());
    between.vantage = Vantage::Between;
    for packet in &mut between.packets {
        packet.seen[End::Server as usize] = packet.seen[End::Client as usize];
    }
    shown.push(("between", between));
    for (name, connection) in &shown {
        for link in [LinkFacts::default(), sat()] {
            let all = findings(connection, &link);
            let rules: Vec<_> = all.iter().map(|it| it.rule).collect();
            assert_eq!(rules, rules::ALL.map(|it| it.id), "{name}");
            for finding in all {
                assert!(finding.text.ends_with('.'), "{name}: {}", finding.text);
                assert!(
                    !finding.text.contains("NaN") && !finding.text.contains("inf"),
                    "{}",
                    finding.text
                );
                let has_evidence = !finding.evidence.is_empty() && finding.plot.is_some();
                assert!(
                    has_evidence || finding.verdict != Yes,
                    "{name}: {}",
                    finding.rule
                );
            }
        }
    }
}

#[test]
fn without_packets_or_secrets_no_rule_is_sure() {
    let mut nothing = Toy::default().play();
    nothing.packets.clear();
    let mut secret = Toy::default().play();
    for packet in &mut secret.packets {
        (packet.decoded, packet.number, packet.frames) = (false, None, 0..0);
    }
    for connection in [nothing, secret] {
        for finding in findings(&connection, &sat()) {
            assert_eq!(
                finding.verdict, NotSure,
                "{}: {}",
                finding.rule, finding.text
            );
        }
    }
}

#[test]
fn slow_start_is_left_early_at_the_choke_point_or_late() {
    let rules = [
        "slow_start_left_early",
        "slow_start_left_at_choke_point",
        "slow_start_left_late",
    ];
    for (toy, yes) in [(early(), 0), (Toy::default(), 1), (late(), 2)] {
        let connection = toy.play();
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
    let toy = Toy {
        is_lost: |number| number == 100,
        ..Toy::default()
    };
    let finding = assert_says("slow_start_left_early", &toy.play(), Yes);
    assert!(finding.text.contains("on a loss"), "{}", finding.text);
}

#[test]
fn small_files_and_small_credit_do_not_end_slow_start() {
    let small = Toy {
        file: 300_000,
        ..Toy::default()
    };
    let credit = Toy {
        credit: Some(300_000),
        ..Toy::default()
    };
    for (toy, word) in [(small, "the data ended"), (credit, "flow control")] {
        let finding = assert_says("slow_start_left_early", &toy.play(), No);
        assert!(finding.text.contains(word), "{}", finding.text);
    }
}

#[test]
fn flow_control() {
    let rule = "limited_by_flow_control";
    let small = Toy {
        credit: Some(300_000),
        ..Toy::default()
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
        &Toy {
            credit: Some(3_000_000),
            ..Toy::default()
        }
        .play(),
        No,
    );
    assert_says(rule, &early().play(), No);
    // No credit is seen, but the stream ends, with a frame of its own; or it does not.
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
    let slow = Toy {
        write: 150_000,
        file: 1_500_000,
        ..Toy::default()
    };
    assert_says(rule, &slow.play(), Yes);
    assert_says("limited_by_flow_control", &slow.play(), No);
    assert_says(rule, &early().play(), No);
    // Writes that fill packets exactly do not tell an application from a timer.
    let exact = Toy {
        write: 128 * 1170,
        file: 1280 * 1170,
        ..Toy::default()
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
    let large = Toy {
        initial_window: 1_600_000,
        queue: 3_000_000,
        ..Toy::default()
    };
    assert_says(rule, &large.play(), No);
    assert_says(
        rule,
        &Toy {
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
fn pacing() {
    let rule = "no_pacing";
    let bursts = Toy {
        is_paced: false,
        tick: 100 * MS,
        ..Toy::default()
    };
    assert_says(rule, &bursts.play(), Yes);
    assert_says(rule, &Toy::default().play(), No);
    assert_says(rule, &only_at(End::Client, bursts.play()), NotSure);
}

#[test]
fn silence() {
    let rule = "idle_gaps";
    // All of a round trip is lost: a timer must help, here that of the toy's next write.
    let slow = Toy {
        write: 50_000,
        file: 500_000,
        rtt: 100 * MS,
        ..Toy::default()
    };
    assert_says(rule, &slow.play(), Yes);
    assert_says(rule, &Toy::default().play(), No);
    assert_says(rule, &only_at(End::Client, slow.play()), NotSure);
}

#[test]
fn losses() {
    let rule = "loss_storm";
    assert_says(rule, &late().play(), Yes);
    let scattered = Toy {
        is_lost: |number| number % 100 == 50,
        ..Toy::default()
    };
    assert_says(rule, &scattered.play(), No);
    assert_says(rule, &only_at(End::Server, late().play()), Yes);
    assert_says(rule, &only_at(End::Client, late().play()), NotSure);
}

#[test]
fn copies() {
    let twice = Toy {
        copies: 2,
        queue: 3_000_000,
        ..Toy::default()
    }
    .play();
    for rule in ["sent_twice", "spurious_retransmissions"] {
        assert_says(rule, &twice, Yes);
        assert_says(rule, &only_at(End::Client, twice.clone()), Yes);
        assert_says(rule, &late().play(), No);
        assert_says(rule, &only_at(End::Client, Toy::default().play()), NotSure);
    }
    let early = finding("sent_twice", &twice);
    assert!(
        early
            .text
            .contains("100 % of the packets with copies left sooner"),
        "{}",
        early.text
    );
}

#[test]
fn order_of_data_and_numbers() {
    let right = Toy::default().play();
    let mut swapped = right.clone();
    let data = |frame: &Frame| matches!(frame, Frame::Stream { length: 1170, .. });
    let at: Vec<usize> = (0..right.frames.len())
        .filter(|at| data(&right.frames[*at]))
        .collect();
    // Every fourth packet changes places with the one two later.
    for four in at.chunks_exact(4) {
        swapped.frames.swap(four[0], four[2]);
    }
    let mut constant = right.clone();
    for packet in &mut constant.packets {
        if packet.sender == End::Server && packet.kind == Kind::Quic(PacketType::OneRtt) {
            packet.number = Some(7);
        }
    }
    for (rule, wrong) in [
        ("sent_out_of_order", swapped),
        ("non_monotonic_packet_numbers", constant),
    ] {
        assert_says(rule, &wrong, Yes);
        assert_says(rule, &right, No);
        assert_says(rule, &only_at(End::Client, wrong), NotSure);
    }
}

#[test]
fn acks() {
    let rule = "acks_overload_return_link";
    let connection = Toy::default().play();
    let on = |return_rate_bps| {
        let link = LinkFacts {
            return_rate_bps,
            ..sat()
        };
        let all = findings(&connection, &link);
        all.into_iter().find(|it| it.rule == rule).unwrap().verdict
    };
    // An ACK of 68 bytes for each packet of 1228 at 20 Mbit/s.
    assert_eq!(on(Some(1_200_000)), Yes);
    assert_eq!(on(Some(2_000_000)), No);
    assert_eq!(on(None), NotSure);
    let mut dropped = connection.clone();
    let acks = dropped.packets.iter_mut().filter(|it| it.size == 40);
    for packet in acks.step_by(10) {
        packet.fate = Fate::QueueDrop;
    }
    assert_says(rule, &dropped, Yes);
}

#[test]
fn packet_size() {
    let rule = "packet_size_below_path";
    let connection = Toy::default().play();
    let on = |mtu_bytes, connection: &Connection| {
        let all = findings(connection, &LinkFacts { mtu_bytes, ..sat() });
        all.into_iter().find(|it| it.rule == rule).unwrap().verdict
    };
    assert_eq!(on(Some(1500), &connection), Yes);
    assert_eq!(on(Some(1280), &connection), No);
    assert_eq!(on(None, &connection), NotSure);
    // A larger packet in the other direction tells what the path carries.
    let mut larger = connection.clone();
    larger.packets[0].ip_size = Some(1480);
    assert_eq!(on(None, &larger), Yes);
}

#[test]
fn bend() {
    let rule = "bends_to_lower_rate";
    let bent = Toy {
        is_lost: |number| number == 6000,
        after_loss: 20,
        file: 15_000_000,
        ..Toy::default()
    };
    let finding = assert_says(rule, &bent.play(), Yes);
    assert!(
        finding.text.contains("data came at 18.9 Mbit/s"),
        "{}",
        finding.text
    );
    assert_says(
        rule,
        &Toy {
            after_loss: 70,
            ..bent.clone()
        }
        .play(),
        No,
    );
    assert_says(rule, &only_at(End::Client, bent.play()), Yes);
}

#[test]
fn tail() {
    let rule = "long_tail";
    let mut tail = Toy::default().play();
    assert_says(rule, &tail, No);
    let end = tail
        .packets
        .iter()
        .filter_map(Packet::received)
        .max()
        .unwrap();
    let last = tail.packets.iter_mut().rfind(|it| it.size > 1000);
    last.unwrap().seen[End::Client as usize] = Some(end + 3000 * MS);
    assert_says(rule, &tail, Yes);
    assert_says(
        rule,
        &Toy {
            file: 20_000,
            ..Toy::default()
        }
        .play(),
        NotSure,
    );
}

#[test]
fn handshake() {
    let rule = "handshake_retransmitted";
    let right = Toy::default().play();
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
fn the_page_lists_every_rule() {
    let page = include_str!("../../../../../docs/findings.md");
    let headings = page.lines().filter_map(|line| line.strip_prefix("### `"));
    let listed: Vec<_> = headings.filter_map(|line| line.split('`').next()).collect();
    assert_eq!(listed, rules::ALL.map(|rule| rule.id));
}
