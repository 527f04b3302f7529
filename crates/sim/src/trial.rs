//! One trial from job to result: start all programs, greet them, run them, ask for their last words, compare the files.

use std::error::Error;
use std::fs;
use std::io::{Write, read_to_string, stdin, stdout};
use std::time::Instant;

use bentpipe_endpoint::contract::Ready;
use bentpipe_link::{Direction, Path as LinkPath};
use bentpipe_units::{Span, Time};
use tempfile::TempDir;

use crate::child::{Child, ChildError, Remains};
use crate::coordinator::Coordinator;
use crate::flow::Flow;
use crate::job::{self, FLOW_LIMIT, Job, Role};
use crate::measure::{Finished, Played, result};
use crate::play::{Play, meet};
use crate::trace::Trace;
use crate::verdict::Verdict;

/// Reads a job from standard input, runs it and prints its result.
pub fn from_standard_input() -> Result<(), Box<dyn Error>> {
    let text = read_to_string(stdin())?;
    let job: Job = serde_json::from_str(&text).map_err(|error| format!("the job: {error}"))?;
    let result = Trial::new(&job)?.run()?;
    let mut line = serde_json::to_vec(&result)?;
    line.push(b'\n');
    stdout().write_all(&line)?;
    Ok(())
}

struct Trial<'a> {
    job: &'a Job,
    plays: Vec<Play<'a>>,
    /// Removed with all that the programs left there.
    _scratch: TempDir,
}

/// The programs of a flow, and what they answered to HELLO.
struct Met {
    children: [Child; 2],
    ready: Result<[Ready; 2], ChildError>,
}

impl<'a> Trial<'a> {
    fn new(job: &'a Job) -> Result<Self, Box<dyn Error>> {
        let name = &job.scenario.name;
        let one_way = |direction| job.scenario.min_one_way(direction);
        if one_way(Direction::Forward).min(one_way(Direction::Return)) == Span::ZERO {
            let what = "virtual time needs a delay above 0 in both directions";
            return Err(format!("scenario {name}: {what}").into());
        }
        if !(1..=FLOW_LIMIT).contains(&job.flows.len()) {
            let count = job.flows.len();
            return Err(format!("{count} flows, where 1 to {FLOW_LIMIT} can be").into());
        }
        let timeout = Time::ZERO + job.scenario.timeout;
        if let Some(late) = job.flows.iter().find(|flow| flow.last() > timeout) {
            let at = late.last();
            let what = format!("its timeout of {timeout} passes before a flow's {at}");
            return Err(format!("scenario {name}: {what}").into());
        }
        let scratch = tempfile::Builder::new().prefix("bentpipe-").tempdir()?;
        let plays = 0..job.flows.len();
        let plays = plays.map(|number| Play::new(job, number, scratch.path()));
        let plays = plays.collect::<Result<_, _>>()?;
        if job.qlog {
            for role in [Role::Client, Role::Server] {
                fs::create_dir_all(job.folder.join("qlog").join(role.name()))?;
            }
        }
        Ok(Self {
            job,
            plays,
            _scratch: scratch,
        })
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "wall_s is a column of the record, and decides nothing"
    )]
    fn run(self) -> Result<job::TrialResult, Box<dyn Error>> {
        let start = Instant::now();
        let mut finished = self.play();
        if let Some(coordinator) = &finished.coordinator {
            for (play, played) in self.plays.iter().zip(&mut finished.flows) {
                play.examine(played, coordinator.log.packets())?;
            }
        }
        self.leave_files(&finished)?;
        Ok(result(self.job, &finished, start.elapsed()))
    }

    /// From the start of all programs to the end of all.
    fn play(&self) -> Finished {
        let met: Vec<_> = self.meet();
        let all_ready = met
            .iter()
            .all(|met| met.as_ref().is_ok_and(|met| met.ready.is_ok()));
        if !all_ready {
            return self.not_begun(met);
        }
        let (mut flows, mut ready) = (Vec::new(), Vec::new());
        for (play, met) in self.plays.iter().zip(met) {
            let Ok(Met {
                children,
                ready: Ok(answers),
            }) = met
            else {
                unreachable!("all are ready");
            };
            flows.push(play.begin(children, &answers));
            ready.push(answers);
        }
        let path = |direction| LinkPath::new(&self.job.scenario, direction, self.job.seed.0);
        let paths = [path(Direction::Forward), path(Direction::Return)];
        let mut coordinator = Coordinator::new(flows, paths);
        coordinator.run();
        let plays = self.plays.iter().zip(&mut coordinator.flows).zip(ready);
        let flows = plays.map(|((play, flow), ready)| part(play, flow, ready));
        Finished {
            flows: flows.collect(),
            coordinator: Some(coordinator),
        }
    }

    /// Starts all programs, and says HELLO to all before any has to answer.
    fn meet(&self) -> Vec<Result<Met, ChildError>> {
        let started = self.plays.iter().map(|play| {
            let mut children = play.start()?;
            let greeted = play.greet(&mut children);
            Ok((children, greeted))
        });
        let started: Vec<Result<_, ChildError>> = started.collect();
        let met = started.into_iter().map(|started| {
            let (mut children, greeted) = started?;
            let ready = greeted.and_then(|()| meet(&mut children));
            Ok(Met { children, ready })
        });
        met.collect()
    }

    /// What there is of a trial in which a program could not be started, or did not get past the greeting. Flows whose own
    /// programs did are left as they are: nothing was seen of them.
    fn not_begun(&self, met: Vec<Result<Met, ChildError>>) -> Finished {
        let flows = self.plays.iter().zip(met).map(|(play, met)| match met {
            Err(error) => play.played(Err(error), None, Default::default()),
            Ok(Met { children, ready }) => {
                let remains = children.map(|mut child| child.remains());
                match ready {
                    Err(error) => play.played(Err(error), None, remains),
                    Ok(ready) => play.played(Ok(Verdict::default()), Some(ready), remains),
                }
            }
        });
        Finished {
            flows: flows.collect(),
            coordinator: None,
        }
    }

    /// The trace, and what is needed to find out why programs failed.
    fn leave_files(&self, finished: &Finished) -> Result<(), Box<dyn Error>> {
        if let (true, Some(coordinator)) = (self.job.trace, &finished.coordinator) {
            let folder = &self.job.folder;
            fs::create_dir_all(folder)?;
            let key_logs: Vec<String> = self.plays.iter().map(Play::secrets).collect();
            let key_log = key_logs.join("\n");
            let trace = Trace {
                packets: coordinator.log.packets(),
                key_log: key_log.as_bytes(),
                ends: self.plays.iter().map(Play::addresses).collect(),
            };
            trace.write(&folder.join("trace.pcapng"))?;
        }
        for (play, played) in self.plays.iter().zip(&finished.flows) {
            play.leave_files(played)?;
        }
        Ok(())
    }
}

/// Has the programs of a flow end.
fn part(play: &Play, flow: &mut Flow, ready: [Ready; 2]) -> Played {
    let verdict = play.part(flow);
    let remains: [Remains; 2] =
        [Role::Client, Role::Server].map(|role| flow.side(role).child.remains());
    play.played(verdict, Some(ready), remains)
}
