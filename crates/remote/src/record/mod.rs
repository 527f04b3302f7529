//! The record of a trial, made at home of what its hosts saw.
//!
//! It is made as a testbed's is (`crates/trial`): the two captures, joined, are the packets of the
//! path. Times are the client's; the server's are corrected by what is known of its clock. Without
//! captures, or where one of them did not see what it must have, nothing is known of packets, and
//! the times are those of the client's qlog, or of its program.

mod captures;
mod ended;
mod joined;
mod observed;
mod qlog_times;
mod seen;
mod segments;

use std::error::Error;
use std::io::{Write, read_to_string, stdin, stdout};
use std::time::Duration;

use bentpipe_trial::{
    FinishedFlow, FinishedTrial, Job, LinkConditions, LinkCounts, Queueing, TrialResult,
    flow_setups, result,
};
use serde_json::Value;

use self::captures::PathSeen;
use self::ended::{exits, has_come, ready, verdict};
use self::observed::Observed;

/// Reads what was observed of a trial from standard input, and prints its result.
pub fn from_standard_input() -> Result<(), Box<dyn Error>> {
    let text = read_to_string(stdin())?;
    let observed: Observed = serde_json::from_str(&text)?;
    let mut job = Job::read(&serde_json::to_string(&observed.job)?)?;
    let has_come = has_come(&flow_setups(&job, &observed.scratch)?[0], &observed);
    let path = captures::path_seen(&observed, has_come)?;
    // Without packets there is no trace.
    job.trace &= path.is_known;
    let mut line = serde_json::to_vec(&record(&job, &observed, path)?)?;
    line.push(b'\n');
    stdout().write_all(&line)?;
    Ok(())
}

fn record(job: &Job, observed: &Observed, path: PathSeen) -> Result<Value, Box<dyn Error>> {
    let setups = flow_setups(job, &observed.scratch)?;
    let setup = &setups[0];
    let (mut verdict, source) = verdict(setup, observed);
    let said = [verdict.detail].into_iter().chain(path.flaws);
    let said = said.chain(path.joined.doubts());
    let said: Vec<String> = said.filter(|it| !it.is_empty()).collect();
    verdict.detail = said.join("; ");
    let flow = FinishedFlow::new(setup, verdict, Some(ready(setup)), exits(observed));
    let mut finished = FinishedTrial {
        flows: vec![flow],
        observation: Some(path.observation),
    };
    finished.examine(&setups)?;
    finished.leave_files(&setups, "bentpipe-remote")?;
    let wall =
        Duration::from_nanos((observed.ended_unix_ns - observed.begun_unix_ns).unsigned_abs());
    let made = of_known_rates(result(job, &finished, wall), job);
    let made = of_seen_packets(made, path.is_known);
    let made = with_difference(made, path.joined.difference_ms());
    let mut made = serde_json::to_value(made)?;
    if made["measured_from"] == "client" && source != "client" {
        made["measured_from"] = source.into();
    }
    Ok(made)
}

/// Measures that stand on rates are left out where these are not known.
fn of_known_rates(made: TrialResult, job: &Job) -> TrialResult {
    use bentpipe_link::Direction;
    let whole = job.scenario.whole();
    let is_known = Direction::BOTH.map(|way| whole.rate(way).is_some());
    if is_known == [true; 2] {
        return made;
    }
    TrialResult {
        limit_s: None,
        share_of_limit: None,
        efficiency: None,
        ..made
    }
}

/// With what the ways differ by; the other conditions are known where the hosts were asked.
fn with_difference(made: TrialResult, difference_ms: Option<f64>) -> TrialResult {
    let conditions = LinkConditions {
        one_way_difference_ms: difference_ms,
        ..made.conditions
    };
    TrialResult { conditions, ..made }
}

/// Leaves out the fates of packets where nobody saw them, and drops by a queue always: these are
/// among the losses.
fn of_seen_packets(made: TrialResult, are_seen: bool) -> TrialResult {
    if !are_seen {
        return TrialResult {
            links: LinkCounts::default(),
            queueing: Queueing::default(),
            received_step_s: 0.0,
            received_bytes: Vec::new(),
            packet_log_hash: None,
            ..made
        };
    }
    let links = LinkCounts {
        forward_queue_drops: None,
        return_queue_drops: None,
        forward_marked: None,
        return_marked: None,
        // A capture may show a packet twice that arrived once.
        forward_duplicated: None,
        return_duplicated: None,
        ..made.links
    };
    TrialResult {
        links,
        queueing: Queueing::default(),
        ..made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> TrialResult {
        TrialResult {
            links: LinkCounts {
                forward_packets: Some(3),
                forward_losses: Some(1),
                forward_queue_drops: Some(0),
                return_queue_drops: Some(0),
                ..LinkCounts::default()
            },
            received_step_s: 0.1,
            received_bytes: vec![0, 0],
            packet_log_hash: Some("of nothing".to_owned()),
            ..TrialResult::default()
        }
    }

    #[test]
    fn packets_that_nobody_saw_are_not_none() {
        let unseen = of_seen_packets(made(), false);
        assert_eq!(unseen.links.forward_packets, None);
        assert_eq!(unseen.links.forward_losses, None);
        assert_eq!(unseen.packet_log_hash, None);
        assert!(unseen.received_bytes.is_empty());
    }

    #[test]
    fn losses_have_no_cause() {
        let links = of_seen_packets(made(), true).links;
        assert_eq!(
            (links.forward_packets, links.forward_losses),
            (Some(3), Some(1))
        );
        assert_eq!(
            (links.forward_queue_drops, links.return_queue_drops),
            (None, None)
        );
    }
}
