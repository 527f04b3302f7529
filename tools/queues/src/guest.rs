//! Linux's side of a comparison: a guest that forwards packets from one device to the other, whose
//! queue has the discipline.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use bentpipe_endpoint::EndpointError;
use bentpipe_endpoint::contract::{
    Arrival, BYE, FINISH, HELLO, ProxyHello, RAN, READY, Ran, SERVER_SIDE, encode_message,
    encode_run, message_name,
};
use bentpipe_endpoint::driver::Pipes;
use bytes::Bytes;
use command_fds::{CommandFdExt, FdMapping};
use serde_json::Value;

use crate::fates::End;
use crate::traffic::{Packet, SMALLEST};

const CLIENT: [u8; 4] = [192, 0, 2, 1];
const SERVER: [u8; 4] = [198, 51, 100, 1];
const CE: u8 = 3;
/// How long the guest runs at a time, and how long after the last arrival, in nanoseconds.
const EPOCH: u64 = 100_000_000;
const DRAIN: u64 = 10_000_000_000;

/// The fates of packets in a guest, and the final output of `tc -s`. `commands` set up the queue of
/// `tt1`.
pub fn ends(
    programs: [&Path; 2],
    commands: &str,
    rate: u64,
    seed: u64,
    packets: &[Packet],
) -> Result<(Vec<End>, Value), EndpointError> {
    let mut guest = Guest::start(programs, &script(commands, rate), seed)?;
    let mut ends = vec![End::Dropped; packets.len()];
    let last = packets.last().map_or(0, |it| it.at);
    let mut sent = 0;
    let mut until = 0;
    while until < last + DRAIN {
        until += EPOCH;
        let from = sent;
        sent += packets[from..]
            .iter()
            .take_while(|it| it.at < until)
            .count();
        let numbered = (from..sent).map(|number| arrival(number, &packets[number]));
        for (number, end) in guest.run(until, &numbered.collect::<Vec<_>>())? {
            ends[number] = end;
        }
    }
    let said = guest.finish()?;
    Ok((ends, said))
}

/// The program of the guest.
fn script(commands: &str, rate: u64) -> String {
    format!(
        "exec 2>&1; set -e; echo 1 >/proc/sys/net/ipv4/ip_forward; {commands}; \
         echo {rate} >/sys/module/ttnet/parameters/rate; \
         trap 'tc -s -j qdisc show dev tt1; exit 0' TERM; echo ready; \
         while :; do sleep 1000 >/dev/null 2>&1 & wait; done"
    )
}

/// A guest that runs.
struct Guest {
    process: Child,
    pipes: Pipes,
}

impl Guest {
    fn start([guest, kernel]: [&Path; 2], script: &str, seed: u64) -> Result<Self, EndpointError> {
        let failed = || EndpointError::io("starting the guest");
        let (its_3, to) = std::io::pipe().map_err(failed())?;
        let (from, its_4) = std::io::pipe().map_err(failed())?;
        let pairs = [(its_3.into(), 3), (its_4.into(), 4)];
        let mappings = pairs.map(|(parent_fd, child_fd)| FdMapping {
            parent_fd,
            child_fd,
        });
        let mut command = Command::new(guest);
        command.arg(kernel).args(["--", "/bin/sh", "-c", script]);
        command
            .stdout(Stdio::null())
            .fd_mappings(mappings.into())
            .expect("two descriptors that differ");
        let process = command.spawn().map_err(failed())?;
        drop(command); // and the guest's ends of the pipes with it
        let [from, to] = [OwnedFd::from(from), OwnedFd::from(to)].map(File::from);
        let mut new = Self {
            process,
            pipes: Pipes::new(from, to),
        };
        new.pipes
            .send(&encode_message(HELLO, &serde_json::to_vec(&hello(seed))?))?;
        new.expect(READY)?;
        Ok(new)
    }

    /// The body of the guest's next message, which is to be of that type.
    fn expect(&mut self, wanted: u8) -> Result<&[u8], EndpointError> {
        match self.pipes.receive()? {
            Some((kind, body)) if kind == wanted => Ok(body),
            Some((kind, _)) => Err(EndpointError::Conversation(format!(
                "{} in place of {}",
                message_name(kind),
                message_name(wanted)
            ))),
            None => Err(EndpointError::Failed("the guest has ended".to_owned())),
        }
    }

    /// Lives until then; numbers of the packets that it sends, and when.
    fn run(
        &mut self,
        until: u64,
        arrivals: &[Arrival],
    ) -> Result<Vec<(usize, End)>, EndpointError> {
        self.pipes.send(&encode_run(until, arrivals))?;
        let body = self.expect(RAN)?;
        let ran = Ran::decode_of_proxy(body)?;
        let departures = ran.departures.into_iter();
        let ours = departures.filter(|it| it.ecn & SERVER_SIDE != 0 && it.payload.len() >= 36);
        Ok(ours
            .map(|it| {
                let number = body[it.payload.clone()][28..].first_chunk();
                let number = u64::from_be_bytes(*number.expect("eight bytes"));
                let end = End::Sent {
                    at: it.time,
                    is_marked: it.ecn & CE == CE,
                };
                (usize::try_from(number).expect("a number of a packet"), end)
            })
            .collect())
    }

    /// The counters of the discipline.
    fn finish(mut self) -> Result<Value, EndpointError> {
        self.pipes.send(&encode_message(FINISH, &[]))?;
        let said = serde_json::from_slice(self.expect(BYE)?)?;
        self.process
            .wait()
            .map_err(EndpointError::io("waiting for the guest"))?;
        Ok(said)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn hello(seed: u64) -> ProxyHello {
    ProxyHello {
        contract: 1,
        role: "proxy".into(),
        place: "terminal".into(),
        options: [].into(),
        seed: format!("{seed:016x}"),
        epoch_unix_s: 946_684_800,
        previous_hop: None,
        listen: "198.51.100.1:443".into(),
        local: "192.0.2.1:50000".into(),
        next_hop: "198.51.100.1:443".into(),
        server_name: "server".into(),
        alpn: Vec::new(),
        certs: "/".into(),
        keylog: None,
        qlog: None,
        shared_memory: None,
        tunnel: None,
    }
}

/// A packet of IPv4 and UDP with its number, from the client to the server.
fn arrival(number: usize, packet: &Packet) -> Arrival {
    let mut bytes = vec![0; packet.bytes as usize];
    assert!(bytes.len() as u64 >= SMALLEST, "there is room for a number");
    let length = u16::try_from(bytes.len()).expect("a packet");
    bytes[0] = 0x45;
    bytes[1] = packet.ecn;
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    bytes[8] = 64;
    bytes[9] = 17;
    bytes[12..16].copy_from_slice(&CLIENT);
    bytes[16..20].copy_from_slice(&SERVER);
    let checksum = checksum(&bytes[..20]);
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    bytes[20..22].copy_from_slice(&(10_000 + packet.flow).to_be_bytes());
    bytes[22..24].copy_from_slice(&443_u16.to_be_bytes());
    bytes[24..26].copy_from_slice(&(length - 20).to_be_bytes());
    bytes[28..36].copy_from_slice(&(number as u64).to_be_bytes());
    Arrival {
        time: packet.at,
        ecn: packet.ecn,
        payload: Bytes::from(bytes),
    }
}

/// The checksum of IPv4's header (RFC 1071).
fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2);
    let mut sum: u32 = words
        .map(|it| u32::from(u16::from_be_bytes([it[0], it[1]])))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).expect("folded to 16 bits")
}
