//! From captures at both ends of a path to what was observed of it.

use std::error::Error;

use bentpipe_link::Direction;
use bentpipe_trial::{
    Fidelity, FlowLifetime, HopPackets, IpPacket, KnownEvents, TestbedObservation, Transport,
};
use bentpipe_units::Time;
use bentpipe_wire::IpLayer;
use bentpipe_wire::capture::{CapturedPacket, Input, Item, Piece};

use super::ended::time;
use super::joined::Joined;
use super::observed::{Capture, Observed};
use super::seen::{Seen, once};

/// The packets of a capture, those towards the server and those from it.
type BothWays = [Vec<Seen>; 2];

/// A trial's path, as far as captures show it.
pub struct PathSeen {
    /// Without packets, where they are not known.
    pub observation: TestbedObservation,
    /// The result of joining the captures.
    pub joined: Joined,
    /// Whether anything is known of packets.
    pub is_known: bool,
    /// The reasons why captures show nothing of packets.
    pub flaws: Vec<String>,
}

/// The path of a trial, by its captures. `has_come` says that files did, so that packets must have
/// been seen to.
pub fn path_seen(observed: &Observed, has_come: bool) -> Result<PathSeen, Box<dyn Error>> {
    let epoch = u64::try_from(observed.begun_unix_ns)?;
    let mut joined = Joined::default();
    let mut packets = Vec::new();
    let mut flaws = Vec::new();
    let mut is_known = false;
    if let Some([near, far]) = ends(observed, &mut flaws)? {
        let [near_sent, near_got] = near;
        let [far_got, far_sent] = far;
        packets.extend(joined.both(Direction::Return, near_sent, far_got));
        packets.extend(joined.both(Direction::Forward, far_sent, near_got));
        is_known = true;
    }
    if let Some(to) = joined.apart_towards().filter(|_| has_come) {
        flaws.push(format!(
            "of what was sent to the {to} nothing was seen to arrive, though files came"
        ));
        packets.clear();
        joined = Joined::default();
        is_known = false;
    }
    packets.sort_by_key(|packet| packet.sent);
    let path = HopPackets::of(packets, 1, epoch);
    let mut sent = path.log.packets().iter();
    let first = sent.find(|it| it.direction == Direction::Return);
    let end = time(observed, observed.ended_unix_ns);
    let flow = FlowLifetime {
        first_sent: Some(first.map_or(Time::ZERO, |packet| packet.sent)),
        end,
    };
    let observation = TestbedObservation {
        flows: vec![flow],
        hops: vec![path],
        links: None,
        tunnel: None,
        events: KnownEvents::Nothing,
        end,
        epochs: 0,
        fidelity: Fidelity::default(),
        unfaithful: Vec::new(),
    };
    Ok(PathSeen {
        observation,
        joined,
        is_known,
        flaws,
    })
}

/// The packets seen at the client and at the server; None where a capture is empty or incomplete,
/// which adds a flaw.
fn ends(
    observed: &Observed,
    flaws: &mut Vec<String>,
) -> Result<Option<[BothWays; 2]>, Box<dyn Error>> {
    let Some([client, server]) = &observed.captures else {
        return Ok(None);
    };
    for (end, capture) in ["client", "server"].into_iter().zip([client, server]) {
        if capture.code != Some(0) {
            let code = capture
                .code
                .map_or("a signal".to_owned(), |it| it.to_string());
            flaws.push(format!("the capture at the {end} ended with {code}"));
        }
    }
    if !flaws.is_empty() {
        return Ok(None);
    }
    let [own, theirs] = observed.stamps_ns;
    let near = seen(client, observed.port, |at| time(observed, at + own))?;
    let clock = observed.server_clock;
    let far = seen(server, observed.port, |at| {
        time(observed, clock.corrected(at + theirs))
    })?;
    let is_blind = |both: &BothWays| both.iter().all(Vec::is_empty);
    let blind = [("client", is_blind(&near)), ("server", is_blind(&far))];
    // Where a program failed there may have been nothing to see.
    let may_be = observed.programs.iter().any(|it| it.failure.is_some());
    for (end, _) in blind.iter().filter(|it| it.1 && !may_be) {
        flaws.push(format!(
            "the capture at the {end} saw nothing: name the device of the host in the file of links"
        ));
    }
    Ok(blind.iter().all(|it| !it.1).then_some([near, far]))
}

/// The packets of a capture, each once.
fn seen(
    capture: &Capture,
    port: u16,
    stamp: impl Fn(i64) -> Time,
) -> Result<BothWays, Box<dyn Error>> {
    let mut both = [Vec::new(), Vec::new()];
    let input = Input::open(&capture.file)?;
    let mut pieces = input.pieces()?;
    let mut piece = Piece::default();
    while pieces.next(&mut piece) {
        for item in piece.items() {
            if let Item::Packet(packet) = item
                && let Some((is_from_server, ip)) = of_server(&packet, port)
                && let Some(at) = packet.time
            {
                let at = stamp(at.cast_signed());
                both[usize::from(is_from_server)].push(Seen { at, ip });
            }
        }
    }
    if let Some(error) = pieces.failure() {
        return Err(format!("{}: {error}", capture.file.display()).into());
    }
    Ok(once(both))
}

/// Whether it is from the server, and the packet; None of nobody's port.
fn of_server(packet: &CapturedPacket<'_>, port: u16) -> Option<(bool, IpPacket)> {
    let path = IpLayer::of(packet).ok()??.path()?;
    let is_from_server = match (path.source.port() == port, path.destination.port() == port) {
        (true, _) => true,
        (_, true) => false,
        _ => return None,
    };
    let ip = IpPacket::parse(&without_link(packet)?)?;
    let has_ports = !matches!(ip.transport, Transport::Other { .. });
    has_ports.then_some((is_from_server, ip))
}

/// The packet without what its link puts around it, cut to the length that IP says: links fill up
/// what is short.
fn without_link<'a>(packet: &CapturedPacket<'a>) -> Option<CapturedPacket<'a>> {
    const RAW: u16 = 101;
    let bytes = packet.bytes;
    let start = (0..=bytes.len().min(24)).find(|start| is_ip(&bytes[*start..], packet))?;
    let ip = &bytes[start..];
    let length = match ip[0] >> 4 {
        4 => usize::from(u16::from_be_bytes([ip[2], ip[3]])),
        _ => 40 + usize::from(u16::from_be_bytes([ip[4], ip[5]])),
    };
    Some(CapturedPacket {
        link_type: RAW,
        bytes: ip.get(..length)?,
        ..*packet
    })
}

/// Whether an IP packet begins here: that which was decoded of the whole.
fn is_ip(bytes: &[u8], whole: &CapturedPacket<'_>) -> bool {
    let Some(Ok(Some(known))) = Some(IpLayer::of(whole)) else {
        return false;
    };
    let raw = CapturedPacket {
        link_type: 101,
        bytes,
        ..*whole
    };
    let Ok(Some(here)) = IpLayer::of(&raw) else {
        return false;
    };
    here.path() == known.path() && here.transport() == known.transport()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use bentpipe_link::Fate;
    use serde_json::json;

    use super::*;

    const PORT: u16 = 4433;

    /// A capture with datagrams of these contents, towards the server if so said, one each 10 ms
    /// after the epoch.
    fn capture(packets: &[(bool, &str)]) -> Vec<u8> {
        let words = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65535, 101]; // pcap of IP packets
        let mut bytes: Vec<u8> = words.iter().flat_map(|it| it.to_le_bytes()).collect();
        for (number, (is_to_server, content)) in (1_u32..).zip(packets) {
            let length = 28 + u16::try_from(content.len()).unwrap();
            let header = [0, number * 10_000, length.into(), length.into()];
            bytes.extend(header.iter().flat_map(|it| it.to_le_bytes()));
            let mut packet = vec![0; 28];
            (packet[0], packet[8], packet[9]) = (0x45, 64, 17);
            packet[2..4].copy_from_slice(&length.to_be_bytes());
            let port = if *is_to_server { 22 } else { 20 };
            packet[port..port + 2].copy_from_slice(&PORT.to_be_bytes());
            packet[24..26].copy_from_slice(&(length - 20).to_be_bytes());
            bytes.extend(packet);
            bytes.extend(content.as_bytes());
        }
        bytes
    }

    /// A capture: its packets, each whether it was sent there and with what in it, and what the
    /// capture ended with.
    type Captured<'a> = (&'a [(bool, &'a str)], Option<i32>);

    /// The path of two captures, if files came.
    fn made_of(captures: [Captured<'_>; 2]) -> PathSeen {
        let folder = tempfile::tempdir().unwrap();
        let captures = ["client", "server"].iter().zip(captures);
        let captures: Vec<_> = captures
            .map(|(end, (packets, code))| {
                let file = folder.path().join(end);
                fs::write(&file, capture(packets)).unwrap();
                json!({"file": file, "code": code})
            })
            .collect();
        let program = json!({"failure": null, "code": 0, "signal": null, "said": "", "cpu_s": 0,
            "memory_bytes": 0});
        let observed = json!({
            "job": {},
            "scratch": folder.path(),
            "port": PORT,
            "captures": captures,
            "stamps_ns": [0, 0],
            "server_clock": {"offset_ns": 0, "drift_ppb": 0, "at_unix_ns": 0},
            "begun_unix_ns": 0,
            "ended_unix_ns": 10_i64.pow(9),
            "is_done": true,
            "programs": [program, program],
        });
        path_seen(&serde_json::from_value(observed).unwrap(), true).unwrap()
    }

    const ASKED: (bool, &str) = (true, "asked");
    const GIVEN: (bool, &str) = (false, "given");

    #[test]
    fn packets_are_known_where_both_ends_saw_them() {
        let both: &[_] = &[ASKED, GIVEN];
        let path = made_of([(both, Some(0)), (both, Some(0))]);
        assert!(path.is_known && path.flaws.is_empty());
        let packets = path.observation.hops[0].log.packets();
        assert_eq!(packets.len(), 2);
        assert!(packets.iter().all(|it| it.fate != Fate::Loss));
    }

    #[test]
    fn a_capture_that_saw_nothing_says_nothing() {
        let both: &[_] = &[ASKED, GIVEN];
        let cases: [([(&[_], _); 2], &[&str]); 5] = [
            (
                [(&[], Some(0)), (&[], Some(0))],
                &[
                    "at the client saw nothing: name",
                    "at the server saw nothing: name",
                ],
            ),
            (
                [(both, Some(0)), (&[], Some(0))],
                &["at the server saw nothing: name"],
            ),
            (
                [(both, Some(2)), (both, None)],
                &["client ended with 2", "server ended with a signal"],
            ),
            (
                [(both, Some(0)), (&[GIVEN], Some(0))],
                &["sent to the server"],
            ),
            (
                [(&[ASKED, (false, "other")], Some(0)), (both, Some(0))],
                &["sent to the client"],
            ),
        ];
        for (captures, said) in cases {
            let path = made_of(captures);
            assert!(!path.is_known);
            assert!(path.observation.hops[0].log.packets().is_empty());
            assert_eq!(path.flaws.len(), said.len(), "{:?}", path.flaws);
            assert!(
                path.flaws
                    .iter()
                    .zip(said)
                    .all(|(is, said)| is.contains(said)),
                "{:?}",
                path.flaws
            );
        }
    }
}
