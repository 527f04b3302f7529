//! The link test suite: it should find an error of one nanosecond or one byte.

mod aggregate;
mod allocation;
mod aqm;
mod bit_errors;
mod buckets;
mod capacity;
mod decided;
mod delay;
mod duplicate;
mod dvb_s2;
mod errors;
mod events;
mod files;
mod handovers;
mod hop;
mod ideal;
mod interruptions;
mod loss;
mod node_errors;
mod order;
mod outages;
mod path;
mod properties;
mod queue;
mod rcs2;
mod reorder;
mod scenario;
mod several_paths;
mod starlink;
mod timeline;
mod udp;
mod varying;

use bentpipe_link::{
    Direction, DirectionConfig, Fate, LinkSeed, Path, Scenario, ScenarioError, SegmentName,
};
use bentpipe_units::{Span, Time};

/// A scenario file with the given keys for the satellite's forward direction.
fn file(forward: &str) -> String {
    format!(
        "title = \"t\"\nsource = \"s\"\ntimeout = \"60 s\"\n\
         [satellite.return]\ndelay = \"1 ms\"\n[satellite.forward]\n{forward}\n"
    )
}

fn parse(forward: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse(&file(forward), "test.toml", &[])
}

fn config(forward: &str) -> DirectionConfig {
    parse(&format!("delay = \"1 ms\"\n{forward}"))
        .unwrap()
        .satellite
        .forward
}

const SEED: LinkSeed = LinkSeed {
    seed: 7,
    direction: Direction::Forward,
    segment: SegmentName::Satellite,
};

/// A link with a delay of 1 ms, whose path takes 10 ms: a BDP of 8 Mbit/s is 10 000 bytes.
fn link(forward: &str) -> Path {
    Path::of_link(&config(forward), Span::from_millis(10), SEED)
}

fn ns(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

/// When a packet leaves a link of [`link`], before its delay.
fn departure(fate: Fate) -> u64 {
    match fate {
        Fate::Delivered { at } => at.as_nanos() - 1_000_000,
        other => panic!("{other:?}"),
    }
}
