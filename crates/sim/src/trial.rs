//! One trial from job to result: start all programs, greet them, run them, collect their final
//! reports, compare the files.

use std::error::Error;
use std::io::{Write, read_to_string, stdin, stdout};
use std::time::Instant;

use bentpipe_endpoint::contract::Ready;
use bentpipe_link::{Direction, Hop};
use bentpipe_units::Span;
use tempfile::TempDir;

use bentpipe_trial::{
    Carries, FinishedFlow, FinishedTrial, FlowSetup, Job, ProgramExit, TrialResult, Verdict,
    flow_setups, result,
};

use crate::child::{Child, ChildError};
use crate::coordinator::Coordinator;
use crate::costs::Costs;
use crate::flow::FlowRun;
use crate::processor;
use crate::programs::{self, await_ready};

/// Reads a job from standard input, runs it and prints its result; if wanted, on standard error
/// what its steps cost.
pub fn from_standard_input(print_costs: bool) -> Result<(), Box<dyn Error>> {
    let mut costs = Costs::default();
    let text = read_to_string(stdin())?;
    let job = Job::read(&text)?;
    let result = Trial::new(&job)?.run(&mut costs)?;
    let mut line = serde_json::to_vec(&result)?;
    line.push(b'\n');
    stdout().write_all(&line)?;
    costs.end("result");
    if print_costs {
        eprintln!("{}", serde_json::to_string(&costs)?);
    }
    Ok(())
}

struct Trial<'a> {
    job: &'a Job,
    setups: Vec<FlowSetup<'a>>,
    /// Removed with all that the programs left there.
    _scratch: TempDir,
}

/// The programs of a flow, and what they answered to HELLO.
struct GreetedFlow {
    children: Vec<Child>,
    ready: Result<Vec<Ready>, ChildError>,
}

impl<'a> Trial<'a> {
    fn new(job: &'a Job) -> Result<Self, Box<dyn Error>> {
        if job.tunnel.is_some() {
            return Err("a tunnel carries packets in real time alone: bentpipe-emu".into());
        }
        check_delays(&job.link_hops())?;
        let scratch = tempfile::Builder::new().prefix("bentpipe-").tempdir()?;
        let setups = flow_setups(job, scratch.path())?;
        Ok(Self {
            job,
            setups,
            _scratch: scratch,
        })
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "wall_s is a column of the record, and decides nothing"
    )]
    fn run(self, costs: &mut Costs) -> Result<TrialResult, Box<dyn Error>> {
        let start = Instant::now();
        let mut finished = self.run_programs(costs);
        finished.examine(&self.setups)?;
        costs.end("examine");
        finished.leave_files(&self.setups, "bentpipe-sim")?;
        costs.end("files");
        let result = result(self.job, &finished, start.elapsed());
        costs.end("record");
        // The process ends now, and its memory with it, which is quicker in one piece.
        std::mem::forget(finished);
        Ok(result)
    }

    /// From the start of all programs to the end of all.
    fn run_programs(&self, costs: &mut Costs) -> FinishedTrial {
        if self.has_guests() {
            processor::stay_on_this_one();
        }
        let greeted: Vec<_> = self.greet();
        costs.end("start");
        let all_ready = greeted
            .iter()
            .all(|greeted| greeted.as_ref().is_ok_and(|greeted| greeted.ready.is_ok()));
        if !all_ready {
            return self.not_begun(greeted);
        }
        let (mut flows, mut ready) = (Vec::new(), Vec::new());
        for (setup, greeted) in self.setups.iter().zip(greeted) {
            let Ok(GreetedFlow {
                children,
                ready: Ok(answers),
            }) = greeted
            else {
                unreachable!("all are ready");
            };
            flows.push(programs::begin(setup, children, &answers));
            ready.push(answers);
        }
        let mut coordinator = Coordinator::new(flows, &self.job.link_hops(), self.job.seed.0);
        coordinator.run();
        costs.end("run");
        let setups = self.setups.iter().zip(&mut coordinator.flows).zip(ready);
        let flows = setups.map(|((setup, flow), ready)| shutdown(setup, flow, ready));
        let flows = flows.collect();
        let mut observation = coordinator.observation();
        if self.job.encapsulates() {
            observation = observation.end_to_end();
        }
        costs.end("stop");
        FinishedTrial {
            flows,
            observation: Some(observation),
        }
    }

    /// Whether a program is a kernel, which carries whole IP packets.
    fn has_guests(&self) -> bool {
        let mut programs = self.setups.iter().flat_map(FlowSetup::programs);
        programs.any(|(_, variant)| variant.carries == Carries::Ip)
    }

    /// Starts all programs, and says HELLO to all before any has to answer.
    fn greet(&self) -> Vec<Result<GreetedFlow, ChildError>> {
        let started = self.setups.iter().map(|setup| {
            let mut children = programs::start(setup)?;
            let greeted = programs::greet(setup, &mut children);
            Ok((children, greeted))
        });
        let started: Vec<Result<_, ChildError>> = started.collect();
        let greeted = started.into_iter().map(|started| {
            let (mut children, greeted) = started?;
            let ready = greeted.and_then(|()| await_ready(&mut children));
            Ok(GreetedFlow { children, ready })
        });
        greeted.collect()
    }

    /// The result of a trial in which a program could not be started, or did not get past the
    /// greeting. Flows whose own programs did are left as they are: nothing was seen of them.
    fn not_begun(&self, greeted: Vec<Result<GreetedFlow, ChildError>>) -> FinishedTrial {
        let flows = self
            .setups
            .iter()
            .zip(greeted)
            .map(|(setup, greeted)| match greeted {
                Err(error) => failed(setup, &error, Vec::new()),
                Ok(GreetedFlow { children, ready }) => {
                    let children = children.into_iter();
                    let exits = children.map(|mut child| child.exit()).collect();
                    match ready {
                        Err(error) => failed(setup, &error, exits),
                        Ok(ready) => {
                            FinishedFlow::new(setup, Verdict::default(), Some(ready), exits)
                        }
                    }
                }
            });
        FinishedTrial {
            flows: flows.collect(),
            observation: None,
        }
    }
}

/// Virtual time needs to know for how long nothing can arrive.
pub fn check_delays(hops: &[Hop]) -> Result<(), String> {
    let no_delay = |hop: &&Hop| {
        Direction::BOTH
            .map(|way| hop.min_one_way(way))
            .contains(&Span::ZERO)
    };
    hops.iter().find(no_delay).map_or(Ok(()), |hop| {
        let what = "virtual time needs a delay above 0 in both directions";
        let (name, hop) = (&hop.scenario().name, hop.name());
        Err(format!("scenario {name}: {hop}: {what}"))
    })
}

/// Has the programs of a flow end.
fn shutdown(setup: &FlowSetup, flow: &mut FlowRun, ready: Vec<Ready>) -> FinishedFlow {
    let verdict = programs::collect_final_reports(setup, flow);
    let nodes = flow.nodes().iter_mut();
    let exits: Vec<ProgramExit> = nodes.map(|node| node.child.exit()).collect();
    let verdict = verdict.unwrap_or_else(|error| programs::failed(setup, &error, &exits));
    FinishedFlow::new(setup, verdict, Some(ready), exits)
}

/// A flow of which a program did not get past the greeting.
fn failed(setup: &FlowSetup, error: &ChildError, exits: Vec<ProgramExit>) -> FinishedFlow {
    let verdict = programs::failed(setup, error, &exits);
    FinishedFlow::new(setup, verdict, None, exits)
}
