//! A trial that has run: what its flows left, examined with what the testbed observed.
//!
//! Here evidence becomes a verdict; [`crate::record`] makes the measures of both.

use std::error::Error;
use std::fs;

use bentpipe_analysis::DecodingGap;
use bentpipe_endpoint::contract::Ready;
use bentpipe_link::Hop;
use bentpipe_units::Time;
use bentpipe_wire::KeyLog;

use crate::evidence::{
    DecodedConnection, HopDecoder, HopObservation, HopPackets, HopTrace, PacketLog, ProgramExit,
    TestbedObservation, link_events, write_link_events,
};
use crate::job::{Job, TestCaseFacts};
use crate::schema::{Outcome, PageRequests};
use crate::setup::FlowSetup;
use crate::verdict::{ProofFailure, Verdict, silence, unreported, verifier};

/// The file with the requests of a page.
const REQUESTS: &str = "requests.json";
/// The file with what the links of the client's hop did.
const LINK_EVENTS: &str = "link-events.json";

/// A trial that has run.
pub struct FinishedTrial {
    /// Its flows; the first is the one that is measured.
    pub flows: Vec<FinishedFlow>,
    /// The testbed's observation; None: not every program answered HELLO.
    pub observation: Option<TestbedObservation>,
}

/// A flow that has run.
pub struct FinishedFlow {
    /// The verdict on it.
    pub verdict: Verdict,
    /// Bytes of the files that are measured; 0 of a duration, whose files are never there as a
    /// whole.
    pub measured_bytes: u64,
    /// The exits of its programs, from the client to the server, here and below.
    pub exits: Vec<ProgramExit>,
    /// The answers of its programs to HELLO.
    pub ready: Option<Vec<Ready>>,
    /// The observation of it on each hop, from the client to the server.
    pub hops: Vec<HopObservation>,
}

impl FinishedTrial {
    /// Looks at what arrived and at what was on the wire, which decide what became of each flow.
    /// There is nothing to look at if the programs did not get past the greeting.
    pub fn examine(&mut self, setups: &[FlowSetup]) -> Result<(), Box<dyn Error>> {
        if let Some(observation) = &self.observation {
            for (setup, flow) in setups.iter().zip(&mut self.flows) {
                flow.examine(setup, &observation.hops)?;
            }
        }
        Ok(())
    }

    /// Leaves in the trial's folder its trace with what its links did and the requests of its
    /// page, if that is wanted, and what is needed to find out why programs failed. `program` is
    /// the testbed's, which the trace names.
    pub fn leave_files(
        &self,
        setups: &[FlowSetup],
        program: &'static str,
    ) -> Result<(), Box<dyn Error>> {
        if let (Some(observation), Some(job)) =
            (&self.observation, setups.first().map(FlowSetup::job))
            && job.trace
        {
            fs::create_dir_all(&job.folder)?;
            for (number, (hop, seen)) in job.hops().iter().zip(&observation.hops).enumerate() {
                let key_logs = setups.iter().map(|setup| setup.secrets(number));
                let key_log = key_logs.collect::<Vec<_>>().join("\n");
                let trace = HopTrace {
                    program,
                    hosts: [hop.from, hop.to],
                    log: &seen.log,
                    key_log: key_log.as_bytes(),
                    ends: setups.iter().map(|setup| setup.paths(number)).collect(),
                };
                trace.write(&job.folder.join(trace_name(number, hop)))?;
            }
            if let Some(events) = link_events(job, job.hops()[0], observation) {
                write_link_events(&events, &job.folder.join(LINK_EVENTS))?;
            }
            let start = self.start(job).unwrap_or(Time::ZERO);
            let verdict = &self.measured().verdict;
            let said = &verdict.client.requests;
            if let Some(mut requests) = PageRequests::new(job.measured(), said, start) {
                requests.complete(&verdict.drawing, start);
                requests.write(&job.folder.join(REQUESTS))?;
            }
        }
        for (setup, flow) in setups.iter().zip(&self.flows) {
            flow.leave_files(setup)?;
        }
        Ok(())
    }

    /// The flow that is measured.
    pub(crate) fn measured(&self) -> &FinishedFlow {
        &self.flows[0]
    }

    /// The start of the first connection that is measured. None: the test case has two, and the
    /// second never began.
    pub(crate) fn start(&self, job: &Job) -> Option<Time> {
        let testcase = job.measured().testcase_facts;
        if testcase.has_two_connections() {
            // One whose handshake never came to its end began all the same.
            let (_, later) = self.measured().hops[0].earlier_and_later();
            return later.iter().map(|it| it.start()).min();
        }
        let lifetime = self.observation.as_ref().map(|it| &it.flows[0]);
        Some(lifetime.and_then(|it| it.first_sent).unwrap_or(Time::ZERO))
    }
}

impl FinishedFlow {
    /// A flow with the verdict on it, before its files and packets are examined.
    #[must_use]
    pub fn new(
        setup: &FlowSetup,
        verdict: Verdict,
        ready: Option<Vec<Ready>>,
        mut exits: Vec<ProgramExit>,
    ) -> Self {
        // Of programs that were never started nothing is known.
        exits.resize_with(setup.job().hosts().len(), ProgramExit::default);
        let hops = setup.job().hops();
        Self {
            verdict,
            measured_bytes: setup.measured_bytes(),
            exits,
            ready,
            hops: hops.iter().map(|_| HopObservation::default()).collect(),
        }
    }

    /// The arrivals of new bytes of streams at the host that receives the files, each with its time
    /// and number of bytes, in order. None if they cannot be read.
    #[must_use]
    pub fn arrivals(&self, job: &Job, facts: TestCaseFacts) -> Option<Vec<(Time, u64)>> {
        self.hops[job.last_hop(facts)].arrivals(facts)
    }

    /// Looks at the files that arrived, and at what each hop observed of this flow.
    fn examine(&mut self, setup: &FlowSetup, hops: &[HopPackets]) -> Result<(), Box<dyn Error>> {
        self.hops = (0..)
            .zip(hops)
            .map(|(hop, it)| observe(setup, hop, &it.log))
            .collect();
        self.check_files(setup)?;
        let is_connected = self.hops[0].is_connected();
        self.verdict.take_handshake_into_account(is_connected);
        self.verdict.take_silence_into_account(|| {
            let packets = hops[0].log.packets().iter();
            let own = packets.filter(|it| it.flow == setup.number());
            let hop = &setup.job().hops()[0];
            silence(own, [hop.from, hop.to])
        });
        if setup.flow().duration_ns.is_some() {
            let facts = setup.flow().testcase_facts;
            let came = self.hops[setup.job().last_hop(facts)].has_arrivals(facts);
            self.verdict.take_arrivals_into_account(came);
        }
        self.prove(setup)?;
        if let Some(gap) = self.misleading_gap(setup.flow().testcase_facts) {
            self.verdict.take_gap_into_account(gap);
        }
        Ok(())
    }

    /// The gap in the decoded packets of the connections that are measured, if measures of the rest
    /// would mislead.
    fn misleading_gap(&self, facts: TestCaseFacts) -> Option<DecodingGap> {
        let here = &self.hops[0];
        here.gap(&here.measured(facts))
            .filter(DecodingGap::misleads)
    }

    /// Checks files: complete and correct files make a trial `ok`, whatever the programs report. Of
    /// a duration it is enough that some data came, and went on to come.
    fn check_files(&mut self, setup: &FlowSetup) -> Result<(), Box<dyn Error>> {
        let verdict = &mut self.verdict;
        if matches!(verdict.outcome, Outcome::Crashed | Outcome::Unsupported) {
            return Ok(());
        }
        if setup.flow().duration_ns.is_some() {
            verdict.take_duration_into_account();
        } else {
            let verifier = verifier(setup.flow(), setup.number())?;
            let said = &verdict.client.requests;
            let untold = unreported(setup.flow(), said).or_else(|| verifier.untold(said));
            let wrong = verifier.arrived(setup, said)?;
            let wrong = wrong.or_else(|| verifier.unfinished(verdict));
            verdict.take_files_into_account(wrong, untold);
        }
        if verdict.outcome == Outcome::Ok && setup.job().trace && !self.hops[0].is_readable {
            verdict.outcome = Outcome::NoSecrets;
            let of = match readable_connections(setup, 0) {
                0 => "too few TLS secrets",
                _ => "the TLS secrets of one connection, and made more",
            };
            verdict.detail = format!("client wrote {of}, so the trace cannot be decrypted");
        }
        Ok(())
    }

    /// Where all arrived, the wire has to show what the test case asks for.
    fn prove(&mut self, setup: &FlowSetup) -> Result<(), Box<dyn Error>> {
        if self.verdict.outcome == Outcome::Ok {
            let verifier = verifier(setup.flow(), setup.number())?;
            let said = &self.verdict.client.requests;
            let disobeyed = verifier.disobeyed(setup, said);
            let shown = verifier.shown(setup, &self.hops, said);
            let is_seen = self.misleading_gap(setup.flow().testcase_facts).is_none();
            let shown = shown.map_err(|failure| if is_seen { failure } else { unseen() });
            if let Some(failure) = disobeyed.map(ProofFailure::Other).or(shown.err()) {
                self.verdict.take_wire_into_account(failure);
            }
        }
        Ok(())
    }

    /// Leaves files in the trial's folder that show why a program failed.
    fn leave_files(&self, setup: &FlowSetup) -> Result<(), Box<dyn Error>> {
        let folder = &setup.job().folder;
        if matches!(self.verdict.outcome, Outcome::Ok | Outcome::Unsupported) {
            return Ok(());
        }
        let prefix = setup.prefix();
        if let Some(picture) = setup.picture().filter(|it| it.is_file()) {
            fs::create_dir_all(folder)?;
            fs::copy(picture, folder.join(format!("{prefix}page.png")))?;
        }
        for (host, exit) in setup.job().hosts().into_iter().zip(&self.exits) {
            if !exit.log.is_empty() {
                fs::create_dir_all(folder)?;
                fs::write(folder.join(format!("{prefix}{host}.log")), &exit.log)?;
            }
            if self.verdict.culprit == Some(host) && !exit.messages.is_empty() {
                fs::create_dir_all(folder)?;
                let file = folder.join(format!("{prefix}{host}.frames"));
                fs::write(file, exit.frames())?;
            }
        }
        Ok(())
    }
}

/// The observation of a flow on a hop.
fn observe(setup: &FlowSetup, hop: usize, log: &PacketLog) -> HopObservation {
    let key_log = setup.secrets(hop);
    let decoder = HopDecoder {
        log,
        flow: setup.number(),
        key_log: key_log.as_bytes(),
        ends: setup.paths(hop),
    };
    let connections = decoder.connections();
    let is_clear = connections.iter().any(DecodedConnection::is_clear);
    let has_two = setup.flow().testcase_facts.has_two_connections();
    let needed = needed_secrets(has_two, hop, connections.len());
    HopObservation {
        is_readable: is_clear || readable_connections(setup, hop) >= needed,
        connections,
    }
}

/// Of how many connections the client has to have written the secrets, so that the streams of each
/// can be read: both of a test case that has two, where two were made. How many a proxy opens is
/// its own affair.
fn needed_secrets(has_two: bool, hop: usize, made: usize) -> usize {
    1 + usize::from(has_two && hop == 0 && made > 1)
}

/// The number of connections of which the client of a hop wrote the secrets of both ends' streams.
fn readable_connections(setup: &FlowSetup, hop: usize) -> usize {
    let mut secrets = KeyLog::default();
    secrets.add(setup.secrets(hop).as_bytes());
    secrets.readable_connections()
}

/// The failure of a proof where too many packets could not be decoded.
fn unseen() -> ProofFailure {
    ProofFailure::Other("the wire does not show what the test case asks for".to_owned())
}

/// The name of a hop's trace: that of the client's is just `trace`.
fn trace_name(number: usize, hop: &Hop) -> String {
    match number {
        0 => "trace.pcapng".to_owned(),
        _ => format!("trace-{}.pcapng", hop.name()),
    }
}

#[cfg(test)]
mod tests {
    use super::needed_secrets;

    #[test]
    fn both_connections_need_secrets_where_both_were_made() {
        assert_eq!(needed_secrets(true, 0, 2), 2);
        assert_eq!(needed_secrets(true, 0, 1), 1); // the wire says that one is missing
        assert_eq!(needed_secrets(true, 1, 2), 1); // of a proxy
        assert_eq!(needed_secrets(false, 0, 3), 1); // of a browser
        assert_eq!(needed_secrets(false, 0, 0), 1);
    }
}
