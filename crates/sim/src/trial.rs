//! One trial from job to result: start all programs, greet them, run them, ask for their last words, compare the files.

use std::error::Error;
use std::io::{Write, read_to_string, stdin, stdout};
use std::time::Instant;

use bentpipe_endpoint::contract::Ready;
use bentpipe_link::{Direction, Hop};
use bentpipe_units::Span;
use tempfile::TempDir;

use bentpipe_trial::{Finished, Job, Play, Played, Remains, TrialResult, Verdict, result};

use crate::child::{Child, ChildError};
use crate::coordinator::Coordinator;
use crate::flow::Flow;
use crate::programs::{self, meet};

/// Reads a job from standard input, runs it and prints its result.
pub fn from_standard_input() -> Result<(), Box<dyn Error>> {
    let text = read_to_string(stdin())?;
    let job = Job::read(&text)?;
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
    children: Vec<Child>,
    ready: Result<Vec<Ready>, ChildError>,
}

impl<'a> Trial<'a> {
    fn new(job: &'a Job) -> Result<Self, Box<dyn Error>> {
        let name = &job.scenario.name;
        let no_delay = |hop: &Hop| {
            Direction::BOTH
                .map(|way| hop.min_one_way(way))
                .contains(&Span::ZERO)
        };
        if let Some(hop) = job.hops().into_iter().find(no_delay) {
            let what = "virtual time needs a delay above 0 in both directions";
            return Err(format!("scenario {name}: {}: {what}", hop.name()).into());
        }
        let scratch = tempfile::Builder::new().prefix("bentpipe-").tempdir()?;
        let plays = 0..job.flows.len();
        let plays = plays.map(|number| Play::new(job, number, scratch.path()));
        let plays = plays.collect::<Result<Vec<_>, _>>()?;
        plays[0].make_qlog_folders()?;
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
    fn run(self) -> Result<TrialResult, Box<dyn Error>> {
        let start = Instant::now();
        let mut finished = self.play();
        finished.examine(&self.plays)?;
        finished.leave_files(&self.plays, "bentpipe-sim")?;
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
            flows.push(programs::begin(play, children, &answers));
            ready.push(answers);
        }
        let mut coordinator = Coordinator::new(flows, &self.job.hops(), self.job.seed.0);
        coordinator.run();
        let plays = self.plays.iter().zip(&mut coordinator.flows).zip(ready);
        let flows = plays.map(|((play, flow), ready)| part(play, flow, ready));
        let flows = flows.collect();
        Finished {
            flows,
            course: Some(coordinator.course()),
        }
    }

    /// Starts all programs, and says HELLO to all before any has to answer.
    fn meet(&self) -> Vec<Result<Met, ChildError>> {
        let started = self.plays.iter().map(|play| {
            let mut children = programs::start(play)?;
            let greeted = programs::greet(play, &mut children);
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
            Err(error) => failed(play, &error, Vec::new()),
            Ok(Met { children, ready }) => {
                let children = children.into_iter();
                let remains = children.map(|mut child| child.remains()).collect();
                match ready {
                    Err(error) => failed(play, &error, remains),
                    Ok(ready) => play.played(Verdict::default(), Some(ready), remains),
                }
            }
        });
        Finished {
            flows: flows.collect(),
            course: None,
        }
    }
}

/// Has the programs of a flow end.
fn part(play: &Play, flow: &mut Flow, ready: Vec<Ready>) -> Played {
    let verdict = programs::part(play, flow);
    let nodes = flow.nodes().iter_mut();
    let remains: Vec<Remains> = nodes.map(|node| node.child.remains()).collect();
    let verdict = verdict.unwrap_or_else(|error| programs::failed(play, &error, &remains));
    play.played(verdict, Some(ready), remains)
}

/// A flow of which a program did not get past the greeting.
fn failed(play: &Play, error: &ChildError, remains: Vec<Remains>) -> Played {
    let verdict = programs::failed(play, error, &remains);
    play.played(verdict, None, remains)
}
