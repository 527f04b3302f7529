//! Findings by packets, losses and copies, and the shape of the line of offsets.

use crate::connection::{Connection, Fate, Frame, Kind, Packet};
use crate::link_facts::LinkFacts;
use bentpipe_wire::quic::{End, PacketType};

use super::super::Verdict::{No, NotSure, Yes};
use super::simulation::{MS, SimulatedTransfer};
use super::{assert_says, finding, findings, late, only_at, sat};

#[test]
fn pacing() {
    let rule = "no_pacing";
    let bursts = SimulatedTransfer {
        is_paced: false,
        tick: 100 * MS,
        ..SimulatedTransfer::default()
    };
    assert_says(rule, &bursts.play(), Yes);
    assert_says(rule, &SimulatedTransfer::default().play(), No);
    assert_says(rule, &only_at(End::Client, bursts.play()), NotSure);
}

#[test]
fn losses() {
    let rule = "loss_storm";
    assert_says(rule, &late().play(), Yes);
    let scattered = SimulatedTransfer {
        is_lost: |number| number % 100 == 50,
        ..SimulatedTransfer::default()
    };
    assert_says(rule, &scattered.play(), No);
    assert_says(rule, &only_at(End::Server, late().play()), Yes);
    assert_says(rule, &only_at(End::Client, late().play()), NotSure);
}

#[test]
fn copies() {
    let twice = SimulatedTransfer {
        copies: 2,
        queue: 3_000_000,
        ..SimulatedTransfer::default()
    }
    .play();
    for rule in ["sent_twice", "spurious_retransmissions"] {
        assert_says(rule, &twice, Yes);
        assert_says(rule, &only_at(End::Client, twice.clone()), Yes);
        assert_says(rule, &late().play(), No);
        assert_says(
            rule,
            &only_at(End::Client, SimulatedTransfer::default().play()),
            NotSure,
        );
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
    let right = SimulatedTransfer::default().play();
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
    let connection = SimulatedTransfer::default().play();
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
    let connection = SimulatedTransfer::default().play();
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
fn the_last_packets_tell_what_path_mtu_discovery_found() {
    let rule = "packet_size_below_path";
    let mut grown = SimulatedTransfer::default().play();
    let data = |it: &&mut Packet| it.sender == End::Server && it.size == 1200;
    for packet in grown.packets.iter_mut().filter(data).skip(4_500) {
        packet.ip_size = Some(1480);
        packet.size += 252;
    }
    let link = LinkFacts {
        mtu_bytes: Some(1500),
        ..sat()
    };
    let all = findings(&grown, &link);
    let finding = all.into_iter().find(|it| it.rule == rule).unwrap();
    assert_eq!(finding.verdict, No, "{}", finding.text);
    assert!(
        finding.text.contains("rose from 1228 to 1480 bytes at"),
        "{}",
        finding.text
    );
}

#[test]
fn bend() {
    let rule = "bends_to_lower_rate";
    let bent = SimulatedTransfer {
        is_lost: |number| number == 6000,
        after_loss: 20,
        file: 15_000_000,
        ..SimulatedTransfer::default()
    };
    let finding = assert_says(rule, &bent.play(), Yes);
    assert!(
        finding.text.contains("data came at 18.9 Mbit/s"),
        "{}",
        finding.text
    );
    assert_says(
        rule,
        &SimulatedTransfer {
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
    let mut tail = SimulatedTransfer::default().play();
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
        &SimulatedTransfer {
            file: 20_000,
            ..SimulatedTransfer::default()
        }
        .play(),
        NotSure,
    );
}
