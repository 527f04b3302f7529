//! Sources of cross traffic: packets of no stack, which share a link with those of the trial.
//!
//! A source does not react to what becomes of its packets, so what it sends depends on its
//! description and the trial's seed alone, and costs no more than the packets do. Its packets enter
//! where its link begins, meet what the link's other packets meet, and leave where the link ends.

mod config;
mod constant;
mod draws;
mod on_off;
mod replay;
mod sizes;
mod web;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bentpipe_units::{Rate, Size, Span, Time};

use crate::random::LinkSeed;
use constant::ConstantRate;
use on_off::OnOff;
use replay::Replay;
use web::Web;

pub use config::{Replayed, Source, Traffic};
pub use sizes::TransferSizes;

/// A packet that a source sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Emission {
    pub at: Time,
    pub ip_bytes: u32,
    /// Different for each flow of all sources of a link.
    pub flow: u64,
    pub is_udp: bool,
    /// The terminal that it is for, or from, where terminals share the link.
    pub terminal: usize,
}

/// The packets of one source, or of one of its flows, in the order of time.
trait Generator: Send {
    /// The next packet; None: it sends no more.
    fn next(&mut self) -> Option<Emission>;
}

/// The link that sources send over.
#[derive(Clone, Copy)]
pub(crate) struct SourceLink {
    pub rate: Rate,
    /// The round-trip time of the whole path.
    pub rtt: Span,
    pub mtu: Option<Size>,
    pub seed: LinkSeed,
}

/// All that the sources of a link send, in the order of time; of packets that are sent at the same
/// instant, that of the earlier source comes first.
pub(crate) struct CrossTraffic {
    generators: Vec<Bounded>,
    /// The next packet of each generator that has one: when, and whose.
    next: BinaryHeap<Reverse<(Time, usize)>>,
    pending: Vec<Option<Emission>>,
}

/// A generator until its source stops.
struct Bounded {
    generator: Box<dyn Generator>,
    stop: Time,
    terminal: usize,
}

impl CrossTraffic {
    /// The traffic of some sources, each with the number of the terminal whose it is; None if there
    /// is none.
    pub fn new(sources: &[(usize, Source)], link: SourceLink) -> Option<Self> {
        if sources.is_empty() {
            return None;
        }
        let numbered = sources.iter().enumerate();
        let generators: Vec<Bounded> = numbered
            .flat_map(|(number, (terminal, source))| generators(number, *terminal, source, link))
            .collect();
        let mut all = Self {
            next: BinaryHeap::with_capacity(generators.len()),
            pending: vec![None; generators.len()],
            generators,
        };
        for index in 0..all.generators.len() {
            all.refill(index);
        }
        Some(all)
    }

    /// The next packet that is sent at `until` or before.
    pub fn next(&mut self, until: Time) -> Option<Emission> {
        let Reverse((at, index)) = *self.next.peek()?;
        if at > until {
            return None;
        }
        self.next.pop();
        let emission = self.pending[index].take();
        self.refill(index);
        emission
    }

    /// Sends no more.
    pub fn stop(&mut self) {
        self.next.clear();
    }

    fn refill(&mut self, index: usize) {
        let Bounded {
            generator,
            stop,
            terminal,
        } = &mut self.generators[index];
        if let Some(mut emission) = generator.next().filter(|it| it.at < *stop) {
            emission.terminal = *terminal;
            self.next.push(Reverse((emission.at, index)));
            self.pending[index] = Some(emission);
        }
    }
}

/// The generators of the source with that number, of a terminal.
fn generators(number: usize, terminal: usize, source: &Source, link: SourceLink) -> Vec<Bounded> {
    let dice = |flow: u64| link.seed.source(number, flow);
    let first = first_flow(number);
    let bounded = |generator: Box<dyn Generator>| Bounded {
        generator,
        stop: source.stop,
        terminal,
    };
    let start = source.start;
    match &source.traffic {
        Traffic::Constant(stream) => (0..stream.flows)
            .map(|flow| ConstantRate::new(*stream, start, first + flow, &mut dice(flow)))
            .map(|it| bounded(Box::new(it)))
            .collect(),
        Traffic::OnOff(stream, periods) => (0..stream.flows)
            .map(|flow| {
                OnOff::new(
                    *stream,
                    *periods,
                    (start, source.stop),
                    (first + flow, dice(flow)),
                )
            })
            .map(|it| bounded(Box::new(it)))
            .collect(),
        Traffic::Web(transfers) => {
            let web = Web::new(*transfers, link, start, (first, dice(0)));
            vec![bounded(Box::new(web))]
        }
        Traffic::Replay(replayed) => {
            vec![bounded(Box::new(Replay::new(replayed, start, first)))]
        }
    }
}

/// The number of a source's first flow. Its flows have separate numbers, which no flow of a trial
/// has.
fn first_flow(source: usize) -> u64 {
    1 << 63 | (source as u64) << 40
}

#[cfg(test)]
mod tests;
