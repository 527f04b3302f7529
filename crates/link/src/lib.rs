//! One direction of a segment as a pure node, and scenario files.
//!
//! A [`Link`] is told of each packet when it arrives and answers at once with its [`Fate`]. In order, a
//! packet meets
//!
//! 1. **capacity**: a fixed rate as a virtual clock, `start = max(free, arrival)`,
//!    `free = start + bits / rate`. `free` keeps the fraction of a nanosecond exactly, as an integer;
//!    a packet leaves at the first whole nanosecond not before its last bit has been sent;
//! 2. **queue**: what waits for the capacity is limited in packets or bytes. The packet in
//!    transmission does not count, as in Linux qdiscs and ns-3's point-to-point device;
//! 3. **loss**: of whole IP packets, after they have used the capacity;
//! 4. **delay**: fixed or from a trace; the order is kept.
//!
//! A [`Path`] is one direction over all segments of a [`Scenario`]. Nothing here reads a clock, and no
//! float takes part. Packet sizes are those of the IP packet. All randomness is `ChaCha8` keyed with
//! the trial's seed, a stream for each direction, segment and use (see [`LinkSeed`]).

mod capacity;
mod delay;
mod direction;
mod error;
mod fields;
mod link;
mod loss;
mod packets;
mod path;
mod queue;
mod random;
mod reading;
mod scenario;
mod sets;
mod waiting;

pub use delay::{Delay, DelayTrace};
pub use direction::{Direction, SegmentName};
pub use error::ScenarioError;
pub use link::{Counters, Fate, Link};
pub use loss::Loss;
pub use packets::Packets;
pub use path::Path;
pub use queue::{Queue, QueueSize, RandomDrop};
pub use random::LinkSeed;
pub use scenario::{DirectionConfig, Scenario, Segment};
