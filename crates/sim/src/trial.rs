//! One trial from job to result: start all programs, greet them, run them, ask for their last words, compare the files.

use std::error::Error;
use std::io::{Write, read_to_string, stdin, stdout};
use std::time::Instant;

use bentpipe_endpoint::contract::Ready;
use bentpipe_link::{Direction, Path as LinkPath};
use bentpipe_units::Span;
use tempfile::TempDir;

use bentpipe_trial::{Finished, Job, Play, Played, Remains, Role, TrialResult, Verdict, result};

use crate::child::{Child, ChildError};
use crate::coordinator::Coordinator;
use crate::flow::Flow;
use crate::programs::{self, meet};

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
        job.check()?;
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
        let path = |direction| LinkPath::new(&self.job.scenario, direction, self.job.seed.0);
        let paths = [path(Direction::Forward), path(Direction::Return)];
        let mut coordinator = Coordinator::new(flows, paths);
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
            Err(error) => failed(play, &error, Default::default()),
            Ok(Met { children, ready }) => {
                let remains = children.map(|mut child| child.remains());
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
fn part(play: &Play, flow: &mut Flow, ready: [Ready; 2]) -> Played {
    let verdict = programs::part(play, flow);
    let remains: [Remains; 2] =
        [Role::Client, Role::Server].map(|role| flow.side(role).child.remains());
    let verdict = verdict.unwrap_or_else(|error| programs::failed(play, &error, &remains));
    play.played(verdict, Some(ready), remains)
}

/// A flow of which a program did not get past the greeting.
fn failed(play: &Play, error: &ChildError, remains: [Remains; 2]) -> Played {
    let verdict = programs::failed(play, error, &remains);
    play.played(verdict, None, remains)
}
