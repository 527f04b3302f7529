//! From the packets that passed the ends of hops to the packet logs of a trial.
//!
//! Departures are joined with arrivals in [`super::joined`]. A packet that is not seen again was
//! lost between the segments, which [`super::check`] does not let pass.

use std::collections::HashSet;
use std::net::SocketAddr;

use bentpipe_emulator::{HopPacket, Report};
use bentpipe_link::{Counters, Direction, Hop, Scenario, SourceCounters};
use bentpipe_trial::{
    Fidelity, FlowLifetime, FlowSetup, HopPackets, IpPacket, Job, KnownEvents, LinkObservation,
    Packet, PacketLog, TestbedObservation, Transport, TunnelObservation, count_fates,
};
use bentpipe_units::Time;
use bentpipe_wire::capture::CapturedPacket;
use bentpipe_wire::{IpLayer, Path};

use super::check;
use super::instructions::{behind, server_port};
use super::joined::{Read, packets};
use super::tunnel::Carried;

/// The link type of bare IP packets.
const RAW: u16 = 101;

/// The observation of a trial, without the ends of flows, which the caller knows.
pub fn observation(
    setups: &[FlowSetup],
    report: &Report,
    carried: Option<Carried>,
) -> TestbedObservation {
    let job = setups[0].job();
    let servers: Vec<u16> = setups.iter().map(server_port).collect();
    let of_flows = |packet: &HopPacket| packet_of_flow(&servers, packet);
    let mut reasons = Vec::new();
    let mut on_links = Vec::new();
    let hops = job.link_hops();
    let several = hops.len() > 1;
    for (number, hop) in hops.into_iter().enumerate() {
        let captured = report.packets.iter().filter(|it| it.hop == number);
        let packets = if carried.is_some() {
            packets(any_packet, captured)
        } else {
            packets(of_flows, captured)
        };
        let wrong = Direction::BOTH.map(|direction| flaws(job, hop, direction, &packets));
        let name = several.then(|| format!("{} ", hop.name()));
        let name = name.unwrap_or_default();
        let wrong = wrong.into_iter().flatten();
        reasons.extend(wrong.map(|what| format!("{name}{what}")));
        on_links.push(packets);
    }
    let stray_packets = carried.is_none().then(|| strays(setups, report));
    let sources = job.link_hops().into_iter().map(|hop| sources(hop, report));
    let mut sources = sources.collect::<Vec<_>>().into_iter();
    let mut hop = |packets| {
        let mut hop = HopPackets::of(packets, setups.len(), report.start_unix_ns);
        [hop.forward.sources, hop.back.sources] = sources.next().unwrap_or_default();
        hop
    };
    let (hops, links, tunnel) = match carried {
        None => (on_links.into_iter().map(hop).collect(), None, None),
        Some(carried) => {
            reasons.extend(missed(carried.report.missed));
            let inside = packets(of_flows, carried.report.packets.iter());
            let tunnel = TunnelObservation {
                setup: carried.setup,
                congestion_control: carried.congestion_control,
                exits: carried.exits,
            };
            let links = LinkObservation {
                counters: with_sources(counters_since(carried.begun, &on_links), job, report),
                hash: None,
            };
            (vec![hop(inside)], Some(links), Some(tunnel))
        }
    };
    let flows = (0..setups.len()).map(|flow| FlowLifetime {
        first_sent: first_sent(&hops[0].log, flow),
        end: Time::ZERO,
    });
    let observation = TestbedObservation {
        flows: flows.collect(),
        hops,
        links,
        tunnel,
        events: KnownEvents::Interruptions,
        end: Time::ZERO,
        epochs: 0,
        fidelity: fidelity(report, stray_packets),
        unfaithful: [report.fidelity.reasons.clone(), reasons].concat(),
    };
    if job.encapsulates() && job.tunnel.is_none() {
        return observation.end_to_end();
    }
    observation
}

/// The flaws of the packets of a hop in a direction; where there are several paths, of each.
fn flaws(job: &Job, hop: Hop, direction: Direction, packets: &[Packet]) -> Vec<String> {
    let paths = job.scenario.each_path();
    if let [_] = &paths[..] {
        let all: Vec<&Packet> = packets.iter().collect();
        return check::flaws(hop, direction, &all);
    }
    let named = paths.iter().zip(job.scenario.path_names()).enumerate();
    let of_path = |(number, (path, name)): (usize, (&Scenario, &str))| {
        let own = packets.iter().filter(|it| it.path == number);
        let hop = path.hop(hop.from, hop.to);
        let found = check::flaws(hop, direction, &own.collect::<Vec<_>>());
        found
            .into_iter()
            .map(move |what| format!("path {name}, {what}"))
            .collect::<Vec<_>>()
    };
    named.flat_map(of_path).collect()
}

/// The same with what became of the packets of sources.
fn with_sources(counters: Vec<[Counters; 2]>, job: &Job, report: &Report) -> Vec<[Counters; 2]> {
    let hops = job.link_hops().into_iter().zip(counters);
    let with = |(hop, [mut forward, mut back]): (Hop, [Counters; 2])| {
        [forward.sources, back.sources] = sources(hop, report);
        [forward, back]
    };
    hops.map(with).collect()
}

/// The fates of the packets of sources on a hop, towards the client and towards the server.
fn sources(hop: Hop, report: &Report) -> [Option<SourceCounters>; 2] {
    let paths = hop.scenario().each_path();
    Direction::BOTH.map(|direction| {
        let of_path = |(number, path): (usize, &Scenario)| {
            let links = path.hop(hop.from, hop.to).links(direction);
            let with_sources = links.filter(|(_, config)| !config.sources.is_empty());
            let counters = with_sources.filter_map(|(segment, _)| {
                let link = (number, segment, direction);
                let passed = report.passed.iter();
                let mut of_link = passed.filter(|it| (it.path, it.segment, it.direction) == link);
                Some(of_link.next()?.sources)
            });
            counters.reduce(SourceCounters::and)
        };
        let each = paths.iter().enumerate().filter_map(of_path);
        each.reduce(SourceCounters::and)
    })
}

/// Why nothing can be said of what went through a tunnel.
fn missed(packets: u64) -> Option<String> {
    (packets > 0).then(|| format!("{packets} packets in the tunnel were not seen as they were"))
}

/// Counts of the fates of each hop's packets that were sent from a time on.
fn counters_since(begun: Time, hops: &[Vec<Packet>]) -> Vec<[Counters; 2]> {
    // They stand in the order of sending.
    let of = |packets: &Vec<Packet>| {
        let first = packets.partition_point(|it| it.sent < begun);
        count_fates(&packets[first..])
    };
    hops.iter().map(of).collect()
}

/// Packets with ports that are of no flow.
fn strays(setups: &[FlowSetup], report: &Report) -> u64 {
    let hops = setups[0].job().link_hops().len();
    let ends = setups
        .iter()
        .flat_map(|it| (0..hops).map(move |hop| behind(it, hop)));
    let gateways = setups.iter().filter_map(|it| Some(it.ip_tunnel()?[1]));
    let servers: HashSet<SocketAddr> = ends.chain(gateways).collect();
    let sent = report.packets.iter().filter(|it| it.sent.is_some());
    let stray =
        sent.filter(|it| path_of(it).is_some_and(|path| !servers.contains(&server_of(it, path))));
    stray.count() as u64
}

/// The path of a packet, if it has ports.
fn path_of(packet: &HopPacket) -> Option<Path> {
    IpLayer::of(&captured(packet)).ok()??.path()
}

/// The end of a packet's path that is a server's.
fn server_of(packet: &HopPacket, path: Path) -> SocketAddr {
    match packet.direction {
        Direction::Forward => path.source,
        Direction::Return => path.destination,
    }
}

/// When a client sent its first packet.
fn first_sent(log: &PacketLog, flow: usize) -> Option<Time> {
    let mut packets = log.packets().iter();
    let own = packets.find(|it| it.flow == flow && it.direction == Direction::Return);
    own.map(|packet| packet.sent)
}

fn captured(packet: &HopPacket) -> CapturedPacket<'_> {
    CapturedPacket {
        interface: 0,
        time: None,
        link_type: RAW,
        bytes: packet.ip(),
        comment: None,
    }
}

/// Any packet, also a fragment, as of the first flow.
fn any_packet(packet: &HopPacket) -> Option<Read> {
    Some((0, None, IpPacket::parse(&captured(packet))?))
}

/// A packet, the flow that it belongs to, and its path. None of nobody's port, and of protocols
/// without ports.
fn packet_of_flow(servers: &[u16], packet: &HopPacket) -> Option<Read> {
    let captured = captured(packet);
    let ip = IpLayer::of(&captured).ok()??;
    let path = ip.path()?;
    let server = server_of(packet, path);
    let flow = servers.iter().position(|port| *port == server.port())?;
    let packet = IpPacket::parse(&captured)?;
    let has_ports = !matches!(packet.transport, Transport::Other { .. });
    has_ports.then_some((flow, Some(path), packet))
}

fn fidelity(report: &Report, stray_packets: Option<u64>) -> Fidelity {
    let (seen, late) = (&report.fidelity, &report.fidelity.release_error);
    Fidelity {
        release_error_p50_ms: Some(late.p50_ms),
        release_error_p99_ms: Some(late.p99_ms),
        release_error_p999_ms: Some(late.p999_ms),
        release_error_max_ms: Some(late.max_ms),
        release_error_limit_ms: Some(seen.most_late_ms),
        kernel_drops: Some(seen.kernel_drops),
        stray_packets,
        cpu_pressure: seen.cpu_pressure_some,
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use bentpipe_analysis::connection::Fate as Known;
    use bentpipe_link::{Fate, FurtherArrival};
    use bentpipe_wire::{Endpoints, IpHeader, IpVersion, TCP, encapsulate};

    use super::*;

    const PORT: u16 = 443;
    const CLIENT: &str = "2001:db8:1::1";
    const SERVER: &str = "2001:db8:2::1";

    fn packet(ip: &[u8], sent: Option<u64>, arrived: Option<u64>, fate: Known) -> HopPacket {
        let ethernet = [&[0; 12][..], &[0x86, 0xdd], ip].concat();
        HopPacket {
            path: 0,
            hop: 0,
            direction: Direction::Return,
            sent: sent.map(Time::from_nanos),
            arrived: arrived.map(Time::from_nanos),
            fate,
            marked: false,
            copies: Vec::new(),
            frame: ethernet.into(),
        }
    }

    /// A TCP segment without options that carries two bytes, to the server.
    fn tcp(port: u16) -> Vec<u8> {
        tcp_with(port, 0)
    }

    fn tcp_with(port: u16, content: u8) -> Vec<u8> {
        let mut segment = vec![content; 22];
        segment[2..4].copy_from_slice(&port.to_be_bytes());
        segment[12] = 5 << 4;
        ip(TCP, &segment)
    }

    fn ip(protocol: u8, content: &[u8]) -> Vec<u8> {
        ip_with(2, protocol, content)
    }

    fn ip_with(ecn: u8, protocol: u8, content: &[u8]) -> Vec<u8> {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let header = IpHeader {
            source: address(CLIENT),
            destination: address(SERVER),
            ecn,
            identification: 0,
            protocol,
        };
        let mut packet = Vec::new();
        header.write(&mut packet, content);
        packet
    }

    #[test]
    fn packets_carry_their_transport_and_their_length() {
        let mut udp = Vec::new();
        let ends = Endpoints {
            source: format!("[{CLIENT}]:50000").parse().unwrap(),
            destination: format!("[{SERVER}]:{PORT}").parse().unwrap(),
        };
        encapsulate(&mut udp, ends, 2, 0, b"quic");
        let captured = [&udp, &tcp(PORT), &tcp(80), &ip(58, &[0; 8])];
        let captured = captured.map(|it| packet(it, Some(1), Some(2), Known::Delivered));
        let found = packets(|it| packet_of_flow(&[PORT], it), captured.iter());
        let transports: Vec<(u8, u64, u32)> = found
            .iter()
            .map(|it| {
                let transport = &it.ip.transport;
                (transport.protocol(), transport.payload_bytes(), it.ip.bytes)
            })
            .collect();
        assert_eq!(transports, [(17, 4, 52), (6, 2, 62)]);
        assert!(found.iter().all(|it| it.ip.version == IpVersion::V6));
        assert!(found.iter().all(|it| it.ip.ecn == 2));
    }

    #[test]
    fn a_syn_is_known_by_more_than_its_options() {
        let syn = |segment_size: u8| {
            let mut segment = vec![0; 24];
            segment[2..4].copy_from_slice(&PORT.to_be_bytes());
            segment[12..14].copy_from_slice(&[6 << 4, 2]);
            segment[16] = segment_size; // and so the checksum
            segment[20..].copy_from_slice(&[2, 4, 5, segment_size]);
            ip(TCP, &segment)
        };
        let captured = [
            packet(&syn(180), Some(1), None, Known::Unknown),
            packet(&syn(80), None, Some(2), Known::Unknown),
        ];
        let found = packets(|it| packet_of_flow(&[PORT], it), captured.iter());
        let at = Time::from_nanos(2);
        let fates: Vec<Fate> = found.iter().map(|it| it.fate).collect();
        assert_eq!(fates, [Fate::Delivered { at }]);
    }

    #[test]
    fn what_a_tunnel_lost_is_not_what_was_sent_again() {
        let (alike, other) = (
            tcp(PORT),
            ip(TCP, &[&[0, 0], &PORT.to_be_bytes()[..], &[1; 16]].concat()),
        );
        let seen = |ip: &[u8], sent, arrived| packet(ip, sent, arrived, Known::Unknown);
        let captured = [
            seen(&alike, Some(1), None),
            seen(&other, Some(2), None),
            seen(&other, None, Some(12)),
            seen(&alike, Some(13), None),
            seen(&alike, None, Some(23)),
        ];
        let found = packets(|it| packet_of_flow(&[PORT], it), captured.iter());
        let fates: Vec<(u64, Fate)> = found
            .iter()
            .map(|it| (it.sent.as_nanos(), it.fate))
            .collect();
        let at = |nanos| Fate::Delivered {
            at: Time::from_nanos(nanos),
        };
        assert_eq!(fates, [(1, Fate::Loss), (2, at(12)), (13, at(23))]);
    }

    #[test]
    fn of_a_tunnel_all_counts_that_was_sent_since_it_was_ready() {
        let other = ip(58, &[0; 8]);
        let captured = [
            packet(&other, Some(1), Some(5), Known::Delivered),
            packet(&other, Some(3), None, Known::QueueDrop),
            packet(&tcp(80), Some(4), Some(6), Known::Delivered),
        ];
        let found = packets(any_packet, captured.iter());
        let [[forward, back]] = counters_since(Time::from_nanos(3), &[found])[..] else {
            panic!("of one hop");
        };
        assert_eq!(forward, Counters::default());
        assert_eq!((back.packets, back.bytes), (2, 48 + 62));
        assert_eq!((back.delivered, back.queue_drops), (1, 1));
    }

    #[test]
    fn packets_that_are_alike_are_joined_in_order() {
        let alike = tcp(PORT);
        // Behind the first segment: the first of three was lost there, the others came through.
        let captured = [
            packet(&alike, Some(1), None, Known::Delivered),
            packet(&alike, Some(2), None, Known::Delivered),
            packet(&alike, Some(3), None, Known::Delivered),
            packet(&alike, None, None, Known::Loss),
            packet(&alike, None, Some(12), Known::Delivered),
            packet(&alike, None, Some(13), Known::Delivered),
        ];
        let found = packets(|it| packet_of_flow(&[PORT], it), captured.iter());
        let fates: Vec<(u64, Fate)> = found
            .iter()
            .map(|it| (it.sent.as_nanos(), it.fate))
            .collect();
        let at = |nanos| Fate::Delivered {
            at: Time::from_nanos(nanos),
        };
        assert_eq!(fates, [(1, Fate::Loss), (2, at(12)), (3, at(13))]);
    }

    #[test]
    fn what_was_overtaken_before_a_tunnel_is_not_lost() {
        let [burst, other] = [1, 2].map(|content| tcp_with(PORT, content));
        let captured = [
            packet(&burst, Some(1), None, Known::Unknown),
            packet(&other, Some(2), None, Known::Unknown),
            packet(&other, None, Some(12), Known::Unknown),
            packet(&burst, None, Some(13), Known::Unknown),
        ];
        let found = packets(|it| packet_of_flow(&[PORT], it), captured.iter());
        let fates: Vec<_> = found.iter().map(|it| it.fate).collect();
        let at = |nanos| Fate::Delivered {
            at: Time::from_nanos(nanos),
        };
        assert_eq!(fates, [at(13), at(12)]);
    }

    /// A further arrival, by its nanosecond.
    fn copy(at: u64) -> FurtherArrival {
        let at = Time::from_nanos(at);
        FurtherArrival { at, marked: false }
    }

    /// When packets were sent, their fates, and when copies of them arrived.
    fn told(found: &[Packet]) -> Vec<(u64, Fate, Vec<u64>)> {
        let each = found.iter().map(|it| {
            let copies = it.copies.iter().map(|it| it.at.as_nanos());
            (it.sent.as_nanos(), it.fate, copies.collect())
        });
        each.collect()
    }

    /// Of three segments the first made a copy of the first packet, the middle one another, and the
    /// last one a copy of what came to it first. What is like it was sent later.
    #[test]
    fn a_copy_does_not_stand_for_another_packet_that_is_alike() {
        let alike = tcp(PORT);
        let seen = |sent, arrived, fate, copies: &[u64]| HopPacket {
            path: 0,
            copies: copies.iter().map(|at| copy(*at)).collect(),
            ..packet(&alike, sent, arrived, fate)
        };
        let captured = [
            seen(Some(1), None, Known::Unknown, &[5]),
            seen(Some(2), None, Known::Unknown, &[]),
            seen(None, None, Known::Unknown, &[8]),
            seen(None, Some(12), Known::Delivered, &[13]),
            seen(None, None, Known::Loss, &[]),
            seen(None, Some(14), Known::Delivered, &[]),
            seen(None, Some(15), Known::Delivered, &[]),
        ];
        let found = packets(|it| packet_of_flow(&[PORT], it), captured.iter());
        let at = |nanos| Fate::Delivered {
            at: Time::from_nanos(nanos),
        };
        assert_eq!(
            told(&found),
            [(1, at(12), vec![13, 14]), (2, at(15), vec![])]
        );
        let [_, back] = count_fates(&found);
        assert_eq!((back.delivered, back.losses, back.duplicated), (2, 0, 2));
    }

    /// Of three segments the middle one marked the first packet, and the last one the copy that it
    /// made of the second; the third was sent with a mark.
    #[test]
    fn a_mark_of_any_segment_is_one() {
        let with = |ecn, content| {
            ip_with(
                ecn,
                TCP,
                &[[0, 0], PORT.to_be_bytes(), [content; 2]].concat(),
            )
        };
        let mut captured = [
            packet(&with(2, 1), Some(1), None, Known::Unknown),
            packet(&with(2, 2), Some(2), None, Known::Unknown),
            packet(&with(3, 3), Some(3), None, Known::Unknown),
            packet(&with(3, 1), None, Some(11), Known::Delivered),
            packet(&with(2, 2), None, Some(12), Known::Delivered),
            packet(&with(3, 3), None, Some(13), Known::Delivered),
        ];
        captured[4].copies = vec![FurtherArrival {
            marked: true,
            ..copy(14)
        }];
        let found = packets(|it| packet_of_flow(&[PORT], it), captured.iter());
        let marks = found
            .iter()
            .map(|it| (it.marked, it.copies.first().is_some_and(|it| it.marked)));
        assert_eq!(
            marks.collect::<Vec<_>>(),
            [(true, false), (false, true), (false, false)]
        );
        let [_, back] = count_fates(&found);
        assert_eq!((back.delivered, back.marked), (3, 1));
    }

    /// A tunnel may pass on inside what its own packets were marked with (RFC 6040).
    #[test]
    fn a_mark_that_comes_out_of_a_tunnel_is_one() {
        let with = |ecn| ip_with(ecn, TCP, &[[0, 0], PORT.to_be_bytes()].concat());
        let captured = [
            packet(&with(2), Some(1), None, Known::Unknown),
            packet(&with(3), None, Some(11), Known::Unknown),
        ];
        let found = packets(|it| packet_of_flow(&[PORT], it), captured.iter());
        assert_eq!(found.iter().map(|it| it.marked).collect::<Vec<_>>(), [true]);
    }

    /// A packet is dropped on a further link, and its copy arrives; of the other both are lost.
    #[test]
    fn a_packet_is_lost_if_nothing_of_it_arrives() {
        let [one, other] = [1, 2].map(|content| tcp_with(PORT, content));
        let copied = |ip: &[u8], sent| HopPacket {
            path: 0,
            copies: vec![copy(sent + 1)],
            ..packet(ip, Some(sent), None, Known::Unknown)
        };
        let captured = [
            copied(&one, 1),
            copied(&other, 2),
            packet(&one, None, None, Known::QueueDrop),
            packet(&other, None, None, Known::QueueDrop),
            packet(&one, None, Some(12), Known::Delivered),
            packet(&other, None, None, Known::Loss),
        ];
        let found = packets(|it| packet_of_flow(&[PORT], it), captured.iter());
        let at = Time::from_nanos(12);
        let expected = [(1, Fate::Delivered { at }, vec![]), (2, Fate::Loss, vec![])];
        assert_eq!(told(&found), expected);
    }

    #[test]
    fn of_one_segment_copies_are_known_at_once() {
        let captured = HopPacket {
            path: 0,
            copies: vec![copy(3)],
            ..packet(&tcp(PORT), Some(1), Some(2), Known::Delivered)
        };
        let found = packets(|it| packet_of_flow(&[PORT], it), [captured].iter());
        let at = Time::from_nanos(2);
        assert_eq!(told(&found), [(1, Fate::Delivered { at }, vec![3])]);
    }

    #[test]
    fn what_comes_out_of_a_tunnel_twice_was_duplicated() {
        let alike = tcp(PORT);
        let captured = [
            packet(&alike, Some(1), None, Known::Unknown),
            packet(&alike, None, Some(11), Known::Unknown),
            packet(&alike, None, Some(12), Known::Unknown),
        ];
        let found = packets(|it| packet_of_flow(&[PORT], it), captured.iter());
        let at = Time::from_nanos(11);
        assert_eq!(told(&found), [(1, Fate::Delivered { at }, vec![12])]);
    }

    /// A packet that the first link of two holds is reported behind one that it met later.
    #[test]
    fn a_packet_may_be_seen_to_arrive_before_it_is_told_of() {
        let alike = tcp(PORT);
        let captured = [
            packet(&alike, None, Some(12), Known::Delivered),
            packet(&alike, Some(1), None, Known::Unknown),
        ];
        let found = packets(|it| packet_of_flow(&[PORT], it), captured.iter());
        let at = Time::from_nanos(12);
        assert_eq!(told(&found), [(1, Fate::Delivered { at }, vec![])]);
    }
}
