use super::*;
use crate::connection::{Fate, Frame, Kind, Packet, Vantage, WireImage};
use bentpipe_wire::quic::{Handshake, PacketType};

const MS: Nanos = 1_000_000;
/// One way.
const WAY: Nanos = 300 * MS;

/// A connection that is put together packet by packet, 300 ms each way.
struct Maker(Connection);

impl Maker {
    fn new(vantage: Vantage) -> Self {
        Self(Connection {
            protocol: Protocol::Quic(1),
            ends: ["192.0.2.1:50000", "198.51.100.1:443"].map(|end| end.parse().unwrap()),
            initial_credit: [None; 2],
            handshake: Handshake::default(),
            wire_image: WireImage::default(),
            tls: None,
            subflow: None,
            vantage,
            start: 0,
            clock_ahead: 0,
            packets: Vec::new(),
            frames: Vec::new(),
            ranges: Vec::new(),
        })
    }

    /// Both sides saw it; [`Maker::seen_from`] takes one away.
    fn packet(&mut self, sender: End, kind: PacketType, sent: Nanos) -> &mut Packet {
        let mut seen = [Some(sent); 2];
        seen[sender.other() as usize] = Some(sent + WAY);
        let number = self.0.packets.len() as u64;
        let end = u32::try_from(self.0.frames.len()).unwrap();
        self.0.packets.push(Packet {
            sender,
            kind: Kind::Quic(kind),
            number: Some(number),
            path_id: 0,
            size: 1200,
            first_byte: 0x40,
            ip_size: Some(1228),
            seen,
            ecn: [None; 2],
            fate: Fate::Delivered,
            copy: false,
            decoded: true,
            frames: end..end,
        });
        self.0.packets.last_mut().unwrap()
    }

    fn with_frames(&mut self, sender: End, sent: Nanos, frames: &[Frame]) {
        let from = u32::try_from(self.0.frames.len()).unwrap();
        self.0.frames.extend_from_slice(frames);
        let until = u32::try_from(self.0.frames.len()).unwrap();
        self.packet(sender, PacketType::Initial, sent).frames = from..until;
    }

    /// An Initial packet with a hello.
    fn hello(&mut self, sender: End, sent: Nanos) {
        let hello = Frame::Crypto {
            offset: 0,
            length: 300,
        };
        self.with_frames(sender, sent, &[hello]);
    }

    /// An Initial packet with an ACK of one, and more that asks for one.
    fn answer(&mut self, sender: End, sent: Nanos, number: u64) {
        self.0.ranges.push((number, number));
        let last = u32::try_from(self.0.ranges.len()).unwrap();
        let ack = Frame::Ack {
            path_id: None,
            ranges: last - 1..last,
            delay_us: None,
            ecn: None,
        };
        let hello = Frame::Crypto {
            offset: 0,
            length: 90,
        };
        self.with_frames(sender, sent, &[ack, hello]);
    }

    /// A 1-RTT packet of the server that cannot be decrypted.
    fn sealed(&mut self, sent: Nanos, spin: bool) {
        let packet = self.packet(End::Server, PacketType::OneRtt, sent);
        packet.first_byte = 0x40 | if spin { 0x20 } else { 0 };
        (packet.number, packet.decoded) = (None, false);
    }

    /// As the place of capture saw it.
    fn seen_from(mut self, vantage: Vantage) -> Connection {
        self.0.vantage = vantage;
        if let Vantage::At(end) = vantage {
            for packet in &mut self.0.packets {
                packet.seen[end.other() as usize] = None;
            }
        }
        if vantage == Vantage::Between {
            // A third of the way from the client.
            for packet in &mut self.0.packets {
                let part = match packet.sender {
                    End::Client => WAY / 3,
                    End::Server => WAY - WAY / 3,
                };
                let passes = packet.sent().map(|sent| sent + part);
                packet.seen = [passes; 2];
            }
        }
        self.0.packets.retain(|it| it.seen != [None; 2]);
        self.0.packets.sort_by_key(Packet::time);
        self.0
    }
}

/// A handshake whose first packet was lost and sent again after a second. The client takes 2 ms to
/// answer, the server 1.
fn handshake() -> Maker {
    let mut maker = Maker::new(Vantage::Both);
    maker.hello(End::Client, 0);
    maker.0.packets[0].seen[End::Server as usize] = None;
    maker.hello(End::Client, 1000 * MS);
    maker.answer(End::Server, 1301 * MS, 1);
    maker.answer(End::Client, 1603 * MS, 2);
    maker
}

#[test]
fn the_round_trip_of_a_handshake_is_that_of_the_packet_which_was_answered() {
    for (vantage, ms) in [
        (Vantage::Both, 601.0),
        (Vantage::At(End::Client), 601.0),
        (Vantage::At(End::Server), 602.0),
        // Both parts, with what both ends took.
        (Vantage::Between, 603.0),
    ] {
        let found = handshake_rtt(&handshake().seen_from(vantage));
        assert_eq!(found.map(milliseconds), Some(ms), "{vantage:?}");
    }
    let nothing = Maker::new(Vantage::Both).seen_from(Vantage::Both);
    assert_eq!(handshake_rtt(&nothing), None);
}

/// The bit of a server that sends every 10 ms and spins every 600 ms.
fn spinning(packets: Nanos) -> Maker {
    let mut maker = Maker::new(Vantage::Both);
    for at in 0..packets {
        let sent = at * 10 * MS;
        maker.sealed(sent, sent / (600 * MS) % 2 == 1);
    }
    maker
}

fn samples(connection: &Connection, handshake: Option<Nanos>) -> (SpinBit, Vec<f64>, u64) {
    let spin = Spin::of(connection, handshake);
    let lengths = spin.samples.iter().map(|(_, length)| milliseconds(*length));
    (spin.bit, lengths.collect(), spin.rejected)
}

#[test]
fn the_spin_bit_gives_a_sample_per_round_trip() {
    let connection = spinning(300).seen_from(Vantage::At(End::Client));
    for handshake in [None, Some(605 * MS)] {
        let found = samples(&connection, handshake);
        assert_eq!(found, (SpinBit::Spins, vec![600.0; 3], 0));
    }
}

#[test]
fn packets_that_come_late_make_no_edge() {
    let mut maker = spinning(300);
    for (earlier, later) in [(59, 61), (119, 122), (180, 179)] {
        let late = maker.0.packets[earlier].first_byte;
        maker.0.packets[earlier].first_byte = maker.0.packets[later].first_byte;
        maker.0.packets[later].first_byte = late;
    }
    let connection = maker.seen_from(Vantage::At(End::Client));
    for handshake in [None, Some(605 * MS)] {
        let (bit, found, rejected) = samples(&connection, handshake);
        assert_eq!((bit, found.len(), rejected), (SpinBit::Spins, 3, 0));
        assert!(
            found.iter().all(|it| (it - 600.0).abs() <= 30.0),
            "{found:?}"
        );
    }
}

#[test]
fn a_pause_of_the_application_is_no_round_trip() {
    let mut maker = spinning(150); // up to 1.49 s
    for at in 0..150 {
        // The bit changes when there is something to send again.
        let sent = 6000 * MS + at * 10 * MS;
        maker.sealed(sent, (sent - 6000 * MS) / (600 * MS) % 2 == 1);
    }
    let connection = maker.seen_from(Vantage::At(End::Client));
    let found = samples(&connection, Some(605 * MS));
    assert_eq!(found, (SpinBit::Spins, vec![600.0, 600.0], 1));
}

#[test]
fn a_bit_that_does_not_spin_gives_nothing() {
    let mut constant = Maker::new(Vantage::Both);
    let mut random = Maker::new(Vantage::Both);
    for at in 0..64 {
        constant.sealed(at * 10 * MS, true);
        random.sealed(at * 10 * MS, at * at % 7 % 2 == 1);
    }
    let found = |maker: Maker| samples(&maker.seen_from(Vantage::Both), Some(600 * MS));
    assert_eq!(found(constant), (SpinBit::Constant, vec![], 0));
    assert_eq!(found(random), (SpinBit::Random, vec![], 0));
    assert_eq!(found(handshake()), (SpinBit::Absent, vec![], 0));
}

#[test]
fn both_sides_give_a_round_trip_without_what_the_far_end_waited() {
    let mut maker = Maker::new(Vantage::Both);
    maker.sealed(0, false);
    let answer = maker.packet(End::Client, PacketType::OneRtt, 800 * MS); // 500 ms after it came
    answer.seen[End::Server as usize] = Some(1120 * MS);
    let connection = maker.seen_from(Vantage::Both);
    let passive = Passive::of(&connection, &Spin::of(&connection, None));
    assert_eq!(passive.matched_rtt.median_ms, Some(620.0));
    assert_eq!(passive.matched_rtt.samples, 1);
    let one = spinning(9).seen_from(Vantage::At(End::Client));
    let passive = Passive::of(&one, &Spin::of(&one, None));
    assert_eq!(passive.matched_rtt, RttSpread::default());
}

#[test]
fn bursts_are_told_by_the_time_between_datagrams() {
    let mut maker = Maker::new(Vantage::Both);
    for at in 0..12 {
        maker.sealed(at * MS / 2, false);
    }
    for at in 1..5 {
        maker.sealed(100 * at * MS, false);
    }
    let bursts = Bursts::of(&maker.seen_from(Vantage::Both), End::Server);
    assert_eq!((bursts.bursts, bursts.longest_datagrams), (5, 12));
    assert_eq!(
        (bursts.longest_bytes, bursts.longest_at_s),
        (12 * 1228, Some(0.0))
    );
    assert!((bursts.long_share - 0.75).abs() < 1e-9);
}
