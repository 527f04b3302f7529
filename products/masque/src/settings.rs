//! The options of an end, in a trial and on a command line.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use bentpipe_endpoint::{EndpointError, Options, Surroundings};
use bentpipe_noq_options::{RememberedPaths, Report, apply, log_to, with_own_sender};
use noq_proto::TransportConfig;
use noq_proto::congestion::{Controller, ControllerFactory};

use crate::capsule::MOST_PACKET;
use crate::forwarding::TransformKind;
use crate::tunnel::{Carriage, Carry};

/// The size of the tunnel's packets where no option says otherwise, as a UDP payload: an Ethernet
/// frame's with IPv6. With 1200, the least of QUIC, no datagram of 1200 bytes fits into one.
const PACKET: u16 = 1452;

/// Bytes of the tunnel's packets around a payload, at most.
const OVERHEAD: usize = 40;
/// Bytes that may wait for congestion control, where no option says otherwise.
const QUEUE: usize = 1 << 20;
/// Bytes of a connection's streams that may wait behind a gap, or until they are taken, where
/// nobody says otherwise: four times what the other end of a tunnel has under way.
const HELD: usize = 32 << 20;

/// The least and the most that may.
const QUEUES: std::ops::RangeInclusive<usize> = 2000..=(1 << 28);
/// Bytes of a stream that noq keeps until they are acknowledged: what is under way over a
/// satellite with 100 Mbit/s.
const SEND_WINDOW: u64 = 8 << 20;

/// The settings of an end.
pub struct Settings {
    /// How payloads are carried.
    pub carriage: Carriage,
    /// Whether the tunnel has congestion control of its own.
    pub nested: bool,
    /// Whether a client connects before there is anything to carry.
    pub warm: bool,
    /// The transform of packets of QUIC that pass beside the tunnel; `None`: none do.
    pub forward: Option<TransformKind>,
    /// The largest packet that passes beside the tunnel: what the tunnel carries, too, so that a
    /// connection that goes on through it loses none for its size.
    pub largest_forwarded: usize,
    /// The largest IP packet that is carried.
    pub largest_packet: usize,
    /// noq's configuration.
    pub transport: TransportConfig,
    /// The paths that are remembered.
    pub peers: RememberedPaths,
    /// The congestion controller's report on the latest path.
    pub report: Option<Report>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            carriage,
            nested,
            warm,
            forward,
            ..
        } = self;
        write!(
            f,
            "{carriage:?}, nested: {nested}, warm: {warm}, forward: {forward:?}"
        )
    }
}

impl Settings {
    /// The settings that `options` ask for, with a memory of paths of their own; refuses what it
    /// does not know.
    pub fn take(
        options: BTreeMap<String, String>,
        around: &Surroundings,
    ) -> Result<Self, EndpointError> {
        Self::take_with(options, around, RememberedPaths::default())
    }

    /// As [`Self::take`], with a memory of paths that others may share.
    pub fn take_with(
        options: BTreeMap<String, String>,
        around: &Surroundings,
        peers: RememberedPaths,
    ) -> Result<Self, EndpointError> {
        let mut options = Options::new(options);
        let carry = options.take_word(
            "carry",
            &[("datagrams", Carry::Datagrams), ("streams", Carry::Streams)],
        )?;
        let carriage = Carriage {
            carry: carry.unwrap_or(Carry::Datagrams),
            queue: options.take_number("queue", QUEUES)?.unwrap_or(QUEUE),
            held: HELD,
        };
        let modes = [("cold", false), ("warm", true)];
        let warm = options.take_word("mode", &modes)?.unwrap_or(false);
        let nested = options.take_switch("nested")?.unwrap_or(true);
        let transforms = [
            ("off", None),
            ("scramble", Some(TransformKind::Scramble)),
            ("identity", Some(TransformKind::Identity)),
        ];
        let forward = options.take_word("forward", &transforms)?.flatten();
        let mut rest = options.into_map();
        if nested {
            rest = with_own_sender(rest);
        } else {
            refuse_nested(&rest, carriage.carry)?;
        }
        // Fixed: a burst of losses must not be taken for a path that carries less.
        let mtu = || PACKET.to_string();
        let mtu = rest.entry("mtu".to_owned()).or_insert_with(mtu).clone();
        let mut options = Options::new(rest);
        let mut transport = TransportConfig::default();
        let report = apply(&mut transport, around, &mut options, &peers)?;
        options.finish()?;
        let largest_forwarded = mtu.parse::<usize>().map_or(0, |it| it - OVERHEAD);
        let largest_packet = match carriage.carry {
            Carry::Datagrams => largest_forwarded,
            Carry::Streams => MOST_PACKET,
        };
        transport
            .send_window(SEND_WINDOW)
            .datagram_send_buffer_size(carriage.queue);
        if !nested {
            transport.congestion_controller_factory(Arc::new(Unlimited));
        }
        if let Some(folder) = &around.qlog {
            let start = around.clock.instant(std::time::Duration::ZERO);
            log_to(folder, start, &mut transport);
        }
        Ok(Self {
            carriage,
            nested,
            warm,
            forward,
            largest_forwarded,
            largest_packet,
            transport,
            peers,
            report,
        })
    }
}

/// Refuses options that make no sense without congestion control of the tunnel's own.
fn refuse_nested(options: &BTreeMap<String, String>, carry: Carry) -> Result<(), EndpointError> {
    if carry == Carry::Streams {
        let problem = "streams need congestion control: leave out nested or carry";
        return Err(EndpointError::option("nested", "off", problem));
    }
    for name in [
        "cc",
        "ss",
        "iw",
        "pacing",
        "resume",
        "saved",
        "memory",
        "bdp-frame",
        "rate",
        "cwnd",
    ] {
        if let Some(value) = options.get(name) {
            let problem = "with nested=off there is no congestion control to set";
            return Err(EndpointError::option(name, value, problem));
        }
    }
    Ok(())
}

/// No congestion control: what the tunnel carries has its own (RFC 9298, section 6).
#[derive(Debug, Clone, Copy)]
struct Unlimited;

/// More bytes than any path holds.
const NO_LIMIT: u64 = 1 << 32;

impl ControllerFactory for Unlimited {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
        Box::new(Self)
    }
}

impl Controller for Unlimited {
    fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, _: bool, _: u64, _: u64) {}

    fn on_mtu_update(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        NO_LIMIT
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(*self)
    }

    fn initial_window(&self) -> u64 {
        NO_LIMIT
    }

    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any> {
        self
    }
}
