//! A flow under way: a client, proxies if there are any, a server, and the end that they come to.

use bentpipe_endpoint::contract;
use bentpipe_link::Direction;
use bentpipe_units::{Span, Time};
use bytes::Bytes;

use crate::child::ChildError;
use crate::node::Node;
use bentpipe_trial::{FlowEnd, SentMessage};

/// The times at which a flow ends at the latest.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The time at which the scenario's timeout passes.
    pub timeout: Time,
    /// The time at which the transfer is cut, if it has a duration.
    pub cut: Option<Time>,
}

/// The smallest delays of a hop, forward and return, in the order of [`Direction`]'s numbers.
pub type Delays = [Span; 2];

/// The earliest arrivals of packets that the links of a hop hold, in the same order.
pub type HeldBack = [Time; 2];

/// Programs in a row, each of which talks to its neighbours.
#[derive(Debug)]
pub struct FlowRun {
    /// From the client to the server.
    nodes: Vec<Node>,
    limit: Time,
    end_at_limit: FlowEnd,
    /// The time at which the client sent its first packet.
    pub first_sent: Option<Time>,
    /// The end of its last run.
    pub now: Time,
    /// The way in which it ended, once it has.
    pub end: Option<Result<FlowEnd, ChildError>>,
}

impl FlowRun {
    /// A flow at time zero of the trial.
    pub fn new(nodes: Vec<Node>, limits: Limits) -> Self {
        let (limit, end_at_limit) = match limits.cut {
            Some(cut) => (cut, FlowEnd::Cut),
            None => (limits.timeout, FlowEnd::TimeLimit),
        };
        Self {
            nodes,
            limit,
            end_at_limit,
            first_sent: None,
            now: Time::ZERO,
            end: None,
        }
    }

    /// Its programs, from the client to the server.
    pub fn nodes(&mut self) -> &mut [Node] {
        &mut self.nodes
    }

    /// The time after which nothing happens in it any more.
    pub fn limit(&self) -> Time {
        self.limit
    }

    /// The first time at which any of its programs can do anything to another.
    pub fn next_action(&self) -> Time {
        let actions = self.nodes.iter().map(Node::next_action);
        actions.min().unwrap_or(Time::NEVER)
    }

    /// For each of its programs, the first time at which it can do anything to its neighbours: a
    /// packet that a link holds may make it act, what they can do first, and with it what their
    /// neighbours can do to that.
    pub fn acts(&self, hops: &[Delays], held: &[HeldBack]) -> Vec<Time> {
        let last = hops.len();
        let first = |(node, program): (usize, &Node)| {
            let near = (node > 0).then(|| held[node - 1][Direction::Return as usize]);
            let far = (node < last).then(|| held[node][Direction::Forward as usize]);
            let arrivals = near.into_iter().chain(far);
            arrivals.fold(program.next_action(), Time::min)
        };
        let mut acts: Vec<Time> = self.nodes.iter().enumerate().map(first).collect();
        // Sweeps both ways are exact on a chain: the least over all programs of what each does
        // first and the way from it.
        for node in 1..=last {
            acts[node] = acts[node].min(reaches(&acts, node, Direction::Return, hops, held));
        }
        for node in (0..last).rev() {
            acts[node] = acts[node].min(reaches(&acts, node, Direction::Forward, hops, held));
        }
        acts
    }

    /// For each of its programs, the time before which nothing can reach it that is not on its way
    /// to it already.
    pub fn horizons(&self, hops: &[Delays], held: &[HeldBack]) -> Vec<Time> {
        let acts = self.acts(hops, held);
        let last = hops.len();
        let horizon = |node: usize| {
            let near = (node > 0).then(|| reaches(&acts, node, Direction::Return, hops, held));
            let far = (node < last).then(|| reaches(&acts, node, Direction::Forward, hops, held));
            near.into_iter()
                .chain(far)
                .min()
                .expect("a program has a neighbour")
        };
        (0..=last).map(horizon).collect()
    }

    /// Sees whether it has come to its end. Once the client is done, the server has `drain` to be
    /// so. `held`: when a packet arrives that links hold, at the earliest.
    pub fn settle(&mut self, drain: Span, held: Option<Time>) {
        if self.end.is_some() {
            return;
        }
        let is_done = |node: Option<&Node>| node.is_some_and(Node::is_done);
        let client = is_done(self.nodes.first());
        if client && self.end_at_limit != FlowEnd::Done {
            self.limit = self.limit.min(self.now + drain);
            self.end_at_limit = FlowEnd::Done;
        }
        let next = self.next_action().min(held.unwrap_or(Time::NEVER));
        let end = if client && is_done(self.nodes.last()) {
            FlowEnd::Done
        } else if next == Time::NEVER {
            if client {
                FlowEnd::Done
            } else {
                FlowEnd::Deadlock
            }
        } else if next >= self.limit {
            self.now = self.limit;
            self.end_at_limit
        } else {
            return;
        };
        self.end = Some(Ok(end));
    }

    /// Asks each program to live until its horizon, or the flow's limit, if it has not come to its
    /// end.
    pub fn ask(&mut self, horizons: &[Time]) {
        if self.end.is_some() {
            return;
        }
        let all = horizons.iter().min().copied().unwrap_or(Time::NEVER);
        self.now = self.now.max(all.min(self.limit));
        for (node, horizon) in self.nodes.iter_mut().zip(horizons) {
            let until = (*horizon).min(self.limit);
            match node.ask(until) {
                Ok(true) => self.now = self.now.max(until),
                Ok(false) => {}
                Err(error) => {
                    self.end = Some(Err(error));
                    return;
                }
            }
        }
    }

    /// Takes the answers of those that were asked.
    pub fn answer(&mut self) {
        for (number, node) in self.nodes.iter_mut().enumerate() {
            if self.end.is_some() {
                return;
            }
            match node.answer() {
                Ok(first) if number == 0 => self.first_sent = self.first_sent.or(first),
                Ok(_) => {}
                Err(error) => self.end = Some(Err(error)),
            }
        }
    }

    /// Collects the final reports of all programs, BYE in JSON.
    pub fn finish(&mut self) -> Result<Vec<Bytes>, ChildError> {
        for node in &mut self.nodes {
            node.child
                .send(SentMessage::Other(contract::encode_message(
                    contract::FINISH,
                    &[],
                )))?;
        }
        let nodes = self.nodes.iter_mut();
        nodes
            .map(|node| node.child.receive(contract::BYE))
            .collect()
    }
}

/// When something can reach a program from its neighbour in a direction: what the neighbour does
/// first travels for at least the smallest delay of the hop between, and links may hold packets.
fn reaches(acts: &[Time], node: usize, way: Direction, hops: &[Delays], held: &[HeldBack]) -> Time {
    let (neighbour, hop) = match way {
        Direction::Return => (node - 1, node - 1),
        Direction::Forward => (node + 1, node),
    };
    let sent = acts[neighbour] + hops[hop][way as usize];
    sent.min(held[hop][way as usize])
}
