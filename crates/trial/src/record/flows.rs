//! The results of several flows through one path, and how even their shares were.
//!
//! Source: R. Jain, D. Chiu and W. Hawe, A Quantitative Measure of Fairness and Discrimination for
//! Resource Allocation in Shared Computer Systems, DEC-TR-301, 1984: the index of n shares x is
//! (Σx)² / (n · Σx²), from 1/n, where one has all, to 1, where all have the same.

use bentpipe_link::{Direction, Fate, Hop};
use bentpipe_units::Time;

use crate::evidence::{HopPackets, TestbedObservation};
use crate::finished::{FinishedFlow, FinishedTrial};
use crate::job::{FlowJob, Job};
use crate::numbers::{float, seconds};
use crate::schema::{FlowResult, Outcome, Queueing};

/// The outcome of a trial: that of the flow that is measured, unless a program of another one
/// failed, so that the trial was not the one that was asked for.
pub fn outcome(finished: &FinishedTrial) -> Outcome {
    let [measured, others @ ..] = finished.flows.as_slice() else {
        unreachable!("a job has a flow");
    };
    let mut others = others.iter().map(|ran| ran.verdict.outcome);
    let failed = others.find(|it| matches!(it, Outcome::Crashed | Outcome::Unsupported));
    match measured.verdict.outcome {
        Outcome::Unsupported => Outcome::Unsupported,
        _ if is_invalid(finished) => Outcome::Invalid,
        Outcome::Ok => failed.unwrap_or_default(),
        other => other,
    }
}

/// Whether nothing can be said of the programs, since the testbed did not do what it was asked for.
fn is_invalid(finished: &FinishedTrial) -> bool {
    let observation = finished.observation.as_ref();
    observation.is_some_and(|observation| !observation.unfaithful.is_empty())
}

/// The details of that outcome, and of every other flow that failed.
pub fn detail(job: &Job, finished: &FinishedTrial) -> String {
    let mut said = vec![finished.flows[0].verdict.detail.clone()];
    for (number, (flow, ran)) in (1..).zip(job.flows.iter().zip(&finished.flows)).skip(1) {
        let verdict = &ran.verdict;
        if verdict.outcome != Outcome::Ok {
            let (server, outcome) = (&flow.server.name, verdict.outcome.name());
            let detail = &verdict.detail;
            said.push(format!("flow {number} ({server}): {outcome}: {detail}"));
        }
    }
    let observation = finished.observation.iter();
    said.extend(observation.flat_map(|it| it.unfaithful.clone()));
    said.retain(|it| !it.is_empty());
    said.join("; ")
}

/// The results of several flows that shared the path, and how fairly they did. Their curves count
/// from `start` by `step`, as that of the first does. Nothing is said of a single flow, nor where
/// the programs did not get past the greeting.
pub fn fairness(
    job: &Job,
    finished: &FinishedTrial,
    start: Option<Time>,
    step: u64,
) -> (Option<f64>, Vec<FlowResult>) {
    let observation = finished.observation.as_ref();
    let Some(observation) = observation.filter(|_| job.flows.len() > 1) else {
        return (None, Vec::new());
    };
    let all = finished.flows.iter().enumerate();
    let intervals = all.map(|(number, ran)| FlowInterval::of(observation, job, number, ran));
    let intervals: Vec<FlowInterval> = intervals.collect();
    let goodputs = goodputs(job, &intervals);
    let curve = |number: usize| {
        let of = (number, job.flows[number].testcase_facts.direction());
        let until = observation.flows[number].end;
        let hop = &observation.hops[job.last_hop(job.flows[number].testcase_facts)];
        hop.log
            .received_by(of, step, start.unwrap_or_default(), until)
    };
    let hop = job.hops()[job.satellite_hop()];
    let results = intervals.iter().zip(&goodputs).enumerate();
    let results = results.map(|(number, (interval, goodput))| FlowResult {
        goodput_bps: *goodput,
        received_bytes: curve(number),
        ..interval.result((hop, &observation.hops[job.satellite_hop()]), number)
    });
    let results = results.collect();
    let known = goodputs.into_iter().collect::<Option<Vec<f64>>>();
    (known.and_then(|shares| index(&shares)), results)
}

/// The interval from the start of a flow to its end.
struct FlowInterval<'a> {
    flow: &'a FlowJob,
    ran: &'a FinishedFlow,
    start: Time,
    /// With its last byte, if all of its files are there.
    end: Time,
    /// Arrivals of new bytes; None if they cannot be told.
    arrivals: Option<Vec<(Time, u64)>>,
}

impl<'a> FlowInterval<'a> {
    fn of(
        observation: &TestbedObservation,
        job: &'a Job,
        number: usize,
        ran: &'a FinishedFlow,
    ) -> Self {
        let flow = &job.flows[number];
        let arrivals = ran.arrivals(job, flow.testcase_facts);
        let complete = ran.verdict.outcome == Outcome::Ok && flow.duration_ns.is_none();
        let last = arrivals.as_ref().and_then(|all| Some(all.last()?.0));
        Self {
            flow,
            ran,
            // A program takes its time to start, in real time.
            start: observation.flows[number]
                .first_sent
                .unwrap_or(Time::from_nanos(flow.start_ns)),
            end: last
                .filter(|_| complete)
                .unwrap_or(observation.flows[number].end),
            arrivals,
        }
    }

    fn failed(&self) -> bool {
        let outcome = self.ran.verdict.outcome;
        matches!(outcome, Outcome::Crashed | Outcome::Unsupported)
    }

    /// Without what depends on other flows.
    fn result(&self, (hop, satellite): (Hop, &HopPackets), number: usize) -> FlowResult {
        let own = satellite.log.packets().iter();
        let mut counts = [[0; 3]; 2];
        for packet in own.filter(|packet| packet.flow == number) {
            let counts = &mut counts[packet.direction as usize];
            counts[0] += 1;
            counts[1] += u64::from(packet.fate == Fate::QueueDrop);
            counts[2] += u64::from(packet.fate == Fate::Loss);
        }
        let forward = counts[Direction::Forward as usize];
        let back = counts[Direction::Return as usize];
        FlowResult {
            client: self.flow.client.name.clone(),
            server: self.flow.server.name.clone(),
            start_s: seconds(self.start.as_nanos()),
            end_s: seconds(self.end.as_nanos()),
            outcome: self.ran.verdict.outcome,
            detail: self.ran.verdict.detail.clone(),
            goodput_bps: None,
            forward_packets: forward[0],
            forward_queue_drops: forward[1],
            forward_losses: forward[2],
            return_packets: back[0],
            return_queue_drops: back[1],
            return_losses: back[2],
            queueing: Queueing::of(&satellite.log, hop, Some(number)),
            received_bytes: Vec::new(),
        }
    }
}

/// The goodput of each flow while all were there. None if they do not compete for the same
/// direction, if one of them failed, or if they were never there at once.
fn goodputs(job: &Job, intervals: &[FlowInterval]) -> Vec<Option<f64>> {
    let direction = job.measured().testcase_facts.direction();
    let compete =
        |it: &FlowInterval| it.flow.testcase_facts.direction() == direction && !it.failed();
    let from = intervals.iter().map(|it| it.start).max();
    let until = intervals.iter().map(|it| it.end).min();
    let together = from.unwrap_or_default()..until.unwrap_or_default();
    if together.is_empty() || !intervals.iter().all(compete) {
        return vec![None; intervals.len()];
    }
    let goodput = |it: &FlowInterval| {
        let arrivals = it.arrivals.as_ref()?.iter();
        let within = arrivals.filter(|(at, _)| together.contains(at));
        let bytes: u64 = within.map(|(_, bytes)| bytes).sum();
        Some(float(8 * bytes) / (together.end - together.start).as_secs_f64())
    };
    intervals.iter().map(goodput).collect()
}

fn index(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    (sum > 0.0).then(|| sum * sum / (float(shares.len() as u64) * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_of_shares() {
        assert_eq!(index(&[3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(index(&[5.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(index(&[1.0, 2.0, 3.0]), Some(36.0 / 42.0));
        assert_eq!(index(&[0.0, 0.0]), None);
    }
}
