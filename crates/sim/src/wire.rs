//! What was on the wire, decoded without the way through a file.

use std::net::SocketAddrV4;

use bentpipe_link::{Direction, Fate};
use bentpipe_trace::connection::{self, Connection, Passing, Recorder};
use bentpipe_trace::{Datagram, KeyLog, Path};

use crate::job::EPOCH_UNIX_S;
use crate::packet_log::Packet;

/// The packets of a trial and the secrets to read them.
#[derive(Debug)]
pub struct Wire<'a> {
    pub packets: &'a [Packet],
    pub key_log: &'a [u8],
    pub client: SocketAddrV4,
    pub server: SocketAddrV4,
}

impl Wire<'_> {
    /// The connection with most packets. None if there is none that can be told from the packets.
    ///
    /// Each packet is decoded where it left its sender; what became of it is known.
    pub fn connection(&self) -> Option<Connection> {
        let mut secrets = KeyLog::default();
        secrets.add(self.key_log);
        let mut order: Vec<&Packet> = self.packets.iter().collect();
        order.sort_by_key(|packet| packet.sent);
        let mut recorder = Recorder::new(&secrets);
        for (frame, packet) in (1..).zip(&order) {
            let time = EPOCH_UNIX_S * 1_000_000_000 + packet.sent.as_nanos();
            let passing = Passing {
                time,
                frame,
                fate: None,
            };
            recorder.datagram(&self.datagram(packet), passing);
        }
        let connections = recorder.finish().connections.into_iter();
        let largest = connections.max_by_key(|it| it.sightings.len())?;
        Some(Connection::of_senders(largest, |captured| {
            match order[captured as usize - 1].fate {
                Fate::Delivered { at } => {
                    let arrival = EPOCH_UNIX_S * 1_000_000_000 + at.as_nanos();
                    (connection::Fate::Delivered, Some(arrival))
                }
                Fate::QueueDrop => (connection::Fate::QueueDrop, None),
                Fate::Loss => (connection::Fate::Loss, None),
            }
        }))
    }

    fn datagram<'a>(&self, packet: &'a Packet) -> Datagram<'a> {
        let way_back = Path {
            source: self.client.into(),
            destination: self.server.into(),
        };
        Datagram {
            path: match packet.direction {
                Direction::Return => way_back,
                Direction::Forward => way_back.reversed(),
            },
            payload: &packet.payload,
            length: packet.payload.len(),
        }
    }
}
