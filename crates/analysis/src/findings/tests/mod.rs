//! Every rule, on simulated transfers: where it says yes, no, and not sure.

mod cut;
mod limits;
mod links;
mod marks;
mod packets;
mod simulation;

use crate::connection::{Connection, Fate, Packet, Protocol, Vantage};
use crate::link_events::LinkEvents;
use crate::link_facts::LinkFacts;
use bentpipe_wire::quic::End;

use super::{Finding, Findings, Verdict, View, rules};
use Verdict::{No, NotSure, Yes};
use simulation::SimulatedTransfer;

fn sat() -> LinkFacts {
    LinkFacts {
        forward_rate_bps: Some(20_000_000),
        return_rate_bps: Some(2_000_000),
        rtt_ms: Some(600.0),
        forward_marks: Some(false),
        mtu_bytes: Some(1228),
        events: Some(no_events()),
        ..LinkFacts::default()
    }
}

/// Links that never stop, and whose capacity nobody requests.
fn no_events() -> LinkEvents {
    LinkEvents {
        format: LinkEvents::FORMAT,
        start_unix_ns: 0,
        interruptions: Vec::new(),
        requests: Some(Vec::new()),
        cut: false,
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

/// The connection as captured at one end only.
fn only_at(end: End, mut connection: Connection) -> Connection {
    connection
        .packets
        .retain(|packet| packet.seen[end as usize].is_some());
    for packet in &mut connection.packets {
        packet.seen[end.other() as usize] = None;
        packet.ecn[end.other() as usize] = None;
        packet.fate = Fate::Unknown;
    }
    connection.packets.sort_by_key(Packet::time);
    connection.vantage = Vantage::At(end);
    connection
}

/// Leaves at 0.3 MB, a fifth of the BDP.
fn early() -> SimulatedTransfer {
    SimulatedTransfer {
        threshold: 300_000,
        ..SimulatedTransfer::default()
    }
}

/// Doubles until the queue overflows.
fn late() -> SimulatedTransfer {
    SimulatedTransfer {
        threshold: u64::MAX,
        queue: 40_000,
        ..SimulatedTransfer::default()
    }
}

fn all_toys() -> Vec<(&'static str, Connection)> {
    let flow_control = SimulatedTransfer {
        credit: Some(300_000),
        ..SimulatedTransfer::default()
    };
    let application = SimulatedTransfer {
        write: 150_000,
        file: 1_500_000,
        ..SimulatedTransfer::default()
    };
    vec![
        ("right", SimulatedTransfer::default().play()),
        ("early", early().play()),
        ("late", late().play()),
        ("flow control", flow_control.play()),
        ("application", application.play()),
    ]
}

#[test]
fn a_sender_that_does_everything_right_shows_no_flaw() {
    let fine = ["slow_start_left_at_choke_point", "limited_by_cwnd"];
    for finding in findings(&SimulatedTransfer::default().play(), &sat()) {
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
        let transfers = all_toys().into_iter();
        shown.extend(transfers.map(|(name, transfer)| (name, only_at(end, transfer))));
    }
    let mut nothing = SimulatedTransfer::default().play();
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
fn without_packets_no_rule_is_sure() {
    let mut nothing = SimulatedTransfer::default().play();
    nothing.packets.clear();
    for finding in findings(&nothing, &sat()) {
        assert_eq!(
            finding.verdict, NotSure,
            "{}: {}",
            finding.rule, finding.text
        );
    }
}

/// Rules that judge by datagrams.
const BY_DATAGRAMS: [&str; 5] = [
    "no_pacing",
    "packet_size_below_path",
    "loss_storm",
    "ecn_not_used",
    "waited_for_grants",
];

#[test]
fn without_secrets_rules_that_go_by_datagrams_say_what_they_say_with_them() {
    for (name, open) in all_toys() {
        let mut sealed = open.clone();
        for packet in &mut sealed.packets {
            (packet.decoded, packet.number, packet.frames) = (false, None, 0..0);
        }
        let with_secrets = findings(&open, &sat());
        for (found, known) in findings(&sealed, &sat()).iter().zip(&with_secrets) {
            let expected = if BY_DATAGRAMS.contains(&found.rule) {
                known.verdict
            } else {
                NotSure
            };
            assert_eq!(
                found.verdict, expected,
                "{name}: {}: {}",
                found.rule, found.text
            );
        }
    }
}

#[test]
fn without_secrets_one_side_does_not_show_losses() {
    let (_, transfer) = all_toys().into_iter().next().unwrap();
    let mut sealed = only_at(End::Server, transfer);
    for packet in &mut sealed.packets {
        (packet.decoded, packet.number, packet.frames) = (false, None, 0..0);
    }
    let all = findings(&sealed, &sat());
    let storm = all.iter().find(|it| it.rule == "loss_storm").unwrap();
    let why = "Not sure: without secrets, losses are seen only where both sides were captured.";
    assert_eq!((storm.verdict, storm.text.as_str()), (NotSure, why));
}

#[test]
fn with_one_packet_in_fifty_not_decoded_no_rule_is_sure() {
    let told = |every: usize| {
        let mut some = SimulatedTransfer::default().play();
        for packet in some.packets.iter_mut().skip(20).step_by(every) {
            (packet.decoded, packet.number, packet.frames) = (false, None, 0..0);
        }
        findings(&some, &sat())
    };
    for finding in told(50) {
        assert_eq!(finding.verdict, NotSure, "{}", finding.rule);
        assert!(
            finding
                .text
                .ends_with(" 1-RTT packets could not be decoded.")
        );
    }
    assert!(told(200).iter().any(|finding| finding.verdict != NotSure));
}

#[test]
fn the_page_lists_every_rule() {
    let page = include_str!("../../../../../docs/reference/findings.md");
    let headings = page.lines().filter_map(|line| line.strip_prefix("### `"));
    let listed: Vec<_> = headings.filter_map(|line| line.split('`').next()).collect();
    assert_eq!(listed, rules::ALL.map(|rule| rule.id));
}
