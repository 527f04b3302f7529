//! Links as nodes that live in time, and scenario files.
//!
//! A [`Path`] takes each packet when it is sent, and the time as it passes, and returns what
//! becomes of each as an [`Outcome`], as soon as it can. On a link, which is one direction of a
//! segment, a packet meets in this order
//!
//! 1. **capacity**: a rate as a virtual clock, `start = max(free, arrival)`, `free = start + bits /
//!    rate`. `free` keeps the fraction of a nanosecond exactly, as an integer. The rate may change,
//!    at given times, at random, or on demand, also in the middle of a packet ([`LinkRate`]). A
//!    packet leaves at the first whole nanosecond not before its last bit has been sent, or at the
//!    first end of a frame, if the link has frames;
//! 2. **queue**: what waits for the capacity is limited in packets or bytes. The packet in
//!    transmission does not count, as in Linux qdiscs and ns-3's point-to-point device;
//! 3. **loss**: of whole IP packets, after they have used the capacity, by a model, by bit errors;
//! 4. **delay**: fixed, in steps, from a trace, or drawn at random; the order is kept. At
//!    **handovers** packets that are under way may be lost;
//! 5. **aggregation**: packets are held and released together;
//! 6. **duplication**: a share of the packets is delivered twice;
//! 7. **reordering**: a share of the packets is held while others pass.
//!
//! Where a link has **sources** of cross traffic ([`Source`]), their packets enter it where it
//! begins and leave where it ends.
//!
//! What else a scenario names stands in front of these, where it gives no other order (`order`): an
//! MTU, what is done to UDP alone, a policer, a shaper.
//!
//! Frames are those of a scheduler that assigns capacity by the frame (DVB-S2, DVB-RCS2): a packet
//! leaves with the end of the frame in which its last bit is sent. Simplification: it may use the
//! frame in which it arrives, and what leaves later for the frame's sake counts as sent, not as
//! waiting.
//!
//! Where a scenario has several paths, each is a scenario of its own ([`Scenario::each_path`]) with
//! a seed of its own ([`path_seed`]).
//!
//! A path leads over all segments of a [`Scenario`], of the [`Hop`] between two of its hosts, or
//! over one link; an [`Ideal`] sender is compared with it. Nothing here reads a clock, and no float
//! takes part. Packet sizes are those of the IP packet. All randomness is `ChaCha8` keyed with the
//! trial's seed, a stream for each direction, segment and use (see [`LinkSeed`]).

mod aggregate;
mod allocation;
mod aqm;
mod arrival_order;
mod bit_errors;
mod capacity;
mod delay;
mod delay_steps;
mod delays;
mod direction;
mod duplicate;
mod error;
mod events;
mod fields;
mod handovers;
mod handovers_in_trial;
mod hop;
mod ideal;
mod interruptions;
mod intervals;
mod keys;
mod loss;
mod mahimahi;
mod mtu;
mod node;
mod order;
mod outages;
mod packed_text;
mod packet;
mod packets;
mod parts;
mod path;
mod policer;
mod queue;
mod queue_size;
mod random;
mod rate;
mod rate_over_time;
mod reading;
mod reorder;
mod satellite;
mod scenario;
mod scheduled;
mod serving_satellite;
mod sets;
mod several_paths;
mod shaper;
mod sources;
mod steps;
mod timeline;
mod token_bucket;
mod transmitter;
mod udp;
mod waiting;

pub use aggregate::Aggregate;
pub use aqm::{
    Aqm, CoDelConfig, DualPi2Config, FairQueueing, Pi2Config, PiConfig, PieConfig, RedConfig,
    StepMarking,
};
pub use arrival_order::ArrivalOrder;
pub use bit_errors::BitErrorRate;
pub use delay::{Delay, Jitter};
pub use delay_steps::DelaySteps;
pub use direction::{Direction, HostName, SegmentName};
pub use duplicate::Duplicate;
pub use error::ScenarioError;
pub use events::{EVENTS_KEPT, Interruption, InterruptionKind, RequestWait};
pub use handovers::{HandoverTimes, Handovers, InFlight};
pub use hop::{CABLE, Hop};
pub use ideal::Ideal;
pub use intervals::Intervals;
pub use loss::Loss;
pub use order::NodeName;
pub use outages::{OutageTimes, Outages};
pub use packet::{
    CapacityRequests, Counters, Fate, FurtherArrival, Outcome, PacketMeta, SourceCounters,
};
pub use packets::Packets;
pub use path::Path;
pub use queue::{Queue, RandomDrop};
pub use queue_size::QueueSize;
pub use random::{LinkSeed, path_seed};
pub use rate::{LinkRate, OnDemand, RandomRate, RateSteps};
pub use reorder::{HoldingTime, Reorder};
pub use satellite::{
    Burst, ControlChannel, DVB_S2, DVB_S2X, DecibelSteps, DvbS2, FrameLength, Framing, Loop,
    Modcod, Rcs2, Reception, ReturnTerminal, Signalling, Terminal, TerminalGroup, Volume,
    WAVEFORMS, Waveform,
};
pub use scenario::{DirectionConfig, FurtherPath, Scenario, Segment};
pub use serving_satellite::ServingSatellite;
pub use several_paths::PATH_LIMIT;
pub use shaper::ShaperConfig;
pub use sources::{Replayed, Source, Traffic, TransferSizes};
pub use timeline::{Between, LinkTimeline, MOST_POINTS, PARTS, Quantity};
pub use token_bucket::TokenBucketConfig;
pub use udp::{Priority, UdpConfig};
