//! Packets for measurements: sent on a device of one host, seen on a device of another.
//!
//! They go past both hosts' network layers. Each carries its number and the time of sending; when
//! it arrived is the kernel's time stamp, as for every packet socket, so the receiver's own delays
//! are not measured.

use std::sync::atomic::{AtomicBool, Ordering};

use bentpipe_units::{Rate, Size, Span, Time};
use bentpipe_wire::{Endpoints, IpVersion, UDP_HEADER, encapsulate};

use crate::error::{Doing, EmulatorError};
use crate::hosts::namespace::Namespace;
use crate::packet_socket::packet_port::{ETHERNET, PacketPort, Port};
use crate::timing::clock::{Clock, TrialClock, sleep_until};
use crate::timing::real_time_priority::raise_priority;

/// Frames that are handed to the kernel at a time, at most.
const BURST: u64 = 32;
/// How long sender and receiver sleep at least.
const NAP: Span = Span::from_nanos(100_000);

/// The packets that are sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// In bits of IP packets.
    pub rate: Rate,
    /// Bytes of each IP packet.
    pub ip_bytes: usize,
    pub duration: Span,
}

/// A packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub number: u64,
    pub sent: Time,
    pub arrived: Time,
}

/// The packets that arrived.
#[derive(Debug, Default)]
pub(super) struct ArrivedPackets {
    pub seen: Vec<Seen>,
    /// The kernel's drops, where they are visible.
    pub drops: u64,
}

/// Sends `load` on a device, and says how many packets that were.
pub(super) fn send(
    (namespace, device): (&Namespace, &str),
    load: Load,
    clock: TrialClock,
) -> Result<u64, EmulatorError> {
    namespace.within(|| {
        let mut port = PacketPort::open(device)?;
        // Of a link that runs empty there is no rate to be measured.
        raise_priority();
        let gap = load.rate.time_for(Size::from_bytes(load.ip_bytes as u64));
        let start = clock.now();
        let all = load.duration.as_nanos() / gap.as_nanos();
        let mut sent = 0;
        while sent < all {
            let now = clock.now();
            let by_now = (now - start).as_nanos() / gap.as_nanos() + 1;
            let burst = by_now.min(all).saturating_sub(sent).min(BURST);
            if burst == 0 {
                sleep_until(start + gap * sent.max(1), now + NAP, &clock);
                continue;
            }
            let frames = (sent..sent + burst).map(|it| frame(it, load.ip_bytes, now));
            let frames: Vec<Vec<u8>> = frames.collect();
            let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
            sent += port.send(&frames).doing("sending")? as u64;
        }
        Ok(sent)
    })
}

/// Notes which packets of that size arrive on a device until `ended`, and what is there then.
pub(super) fn receive(
    (namespace, device): (&Namespace, &str),
    ip_bytes: usize,
    ended: &AtomicBool,
    ready: impl FnOnce() + Send,
    clock: TrialClock,
) -> Result<ArrivedPackets, EmulatorError> {
    namespace.within(|| {
        let mut port = PacketPort::open(device)?;
        // Else sender and emulator leave it no processor, where there are two.
        raise_priority();
        ready();
        let mut packets = ArrivedPackets::default();
        loop {
            let is_last = ended.load(Ordering::Acquire);
            let stamps = clock.stamps();
            while port.receive(&mut |received| {
                let arrived = stamps.time(received.stamp);
                packets.seen.extend(read(received.frame, ip_bytes, arrived));
            }) {}
            if is_last {
                packets.drops = port.take_kernel_drops().doing("reading counters")?;
                return Ok(packets);
            }
            let now = clock.now();
            sleep_until(now, now + Span::from_millis(2), &clock);
        }
    })
}

/// Bytes of the headers of a packet.
const HEADERS: usize = IpVersion::V4.header_bytes() + UDP_HEADER;
/// Where the number stands in a frame.
const NUMBER: usize = ETHERNET + HEADERS;
/// Where nobody is: both hosts' kernels leave such frames alone.
const NOBODY: [u8; 6] = [2, 0, 0, 0, 0xee, 0xee];

fn frame(number: u64, ip_bytes: usize, now: Time) -> Vec<u8> {
    let ends = Endpoints {
        source: "198.51.100.1:9".parse().expect("an address"),
        destination: "192.0.2.1:9".parse().expect("an address"),
    };
    let mut payload = vec![0; ip_bytes - HEADERS];
    payload[..8].copy_from_slice(&number.to_le_bytes());
    payload[8..16].copy_from_slice(&now.as_nanos().to_le_bytes());
    let mut packet = Vec::new();
    let identification = u16::try_from(number & 0xffff).expect("masked to 16 bits");
    encapsulate(&mut packet, ends, 0, identification, &payload);
    [&NOBODY[..], &NOBODY, &[8, 0], &packet].concat()
}

fn read(frame: &[u8], ip_bytes: usize, arrived: Time) -> Option<Seen> {
    if frame.len() != ETHERNET + ip_bytes || frame[..6] != NOBODY {
        return None;
    }
    let number = |at: usize| {
        let bytes = frame[at..at + 8].try_into();
        u64::from_le_bytes(bytes.expect("eight bytes"))
    };
    Some(Seen {
        number: number(NUMBER),
        sent: Time::from_nanos(number(NUMBER + 8)),
        arrived,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_carries_its_number_and_time() {
        let (sent, arrived) = (Time::from_nanos(77), Time::from_nanos(99));
        let frame = frame(70_000, 600, sent);
        let seen = Seen {
            number: 70_000,
            sent,
            arrived,
        };
        assert_eq!(read(&frame, 600, arrived), Some(seen));
        assert_eq!(read(&frame[1..], 600, arrived), None);
    }
}
