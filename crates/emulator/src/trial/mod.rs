//! One trial in real time: real programs with their own sockets, at both ends of an emulated path.
//!
//! The job is that of virtual time, and so is all that is made of what the trial leaves
//! (`crates/trial`). Programs get their part from the environment
//! (`endpoints/contract/socket-mode.md`). Every flow has the same two hosts; the port of its server
//! tells it from others. Where there are proxies, they run on the hosts between. A tunnel is there
//! before the clients. A trial whose packets came out late, or were dropped by the kernel, is
//! `invalid`.

mod check;
mod flow;
mod instructions;
mod joined;
mod log;
mod memory;
mod program;
mod tunnel;

use std::error::Error;
use std::io::{Write, read_to_string, stdin, stdout};
use std::thread;
use std::time::{Duration, Instant};

use bentpipe_emulator::{Forwarder, Options, Running, Topology};
use bentpipe_link::Scenario;
use bentpipe_trial::{
    FinishedFlow, FinishedTrial, FlowSetup, Job, TestbedObservation, TrialResult, flow_setups,
    result,
};

use self::flow::{Ended, FlowRun};
use self::log::observation;
use self::memory::EndlessInMemory;
use self::program::after;
use self::tunnel::{Carried, Tunnel};

/// A failure that is not the programs' fault.
pub type TrialError = Box<dyn Error + Send + Sync>;

/// Reads a job from standard input, runs it and prints its result.
pub fn from_standard_input() -> Result<(), Box<dyn Error>> {
    let text = read_to_string(stdin())?;
    let job = Job::read(&text)?;
    let result = run(&job)?;
    let mut line = serde_json::to_vec(&result)?;
    line.push(b'\n');
    stdout().write_all(&line)?;
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "wall_s is a column of the record, and decides nothing"
)]
fn run(job: &Job) -> Result<TrialResult, Box<dyn Error>> {
    let start = Instant::now();
    let scratch = tempfile::Builder::new().prefix("bentpipe-").tempdir()?;
    let _in_memory = EndlessInMemory::new(job, scratch.path())?;
    let setups = flow_setups(job, scratch.path())?;
    let mut finished = run_programs(job, &setups)?;
    finished.examine(&setups)?;
    finished.leave_files(&setups, "bentpipe-emu")?;
    Ok(result(job, &finished, start.elapsed()))
}

/// From the start of all programs to the end of all. Time is zero when all servers listen.
fn run_programs(job: &Job, setups: &[FlowSetup]) -> Result<FinishedTrial, Box<dyn Error>> {
    let topology = Topology::build(&job.scenario)?;
    if let Some(asked) = &job.tunnel {
        topology.add_tunnel(&tunnel::plan(job, asked))?;
    }
    let mut flows = open_all(job, setups, &topology).map_err(plain)?;
    let options = Options {
        keep_packets: true,
        stops: job.stops(),
        ..Options::default()
    };
    // The devices are in the emulator's namespace, and looked for by the thread that starts to
    // forward.
    let running = topology
        .emulator()
        .within(|| Forwarder::start(topology.segments(), &job.scenario, job.seed.0, &options))?;
    let deadline = after(job.silence());
    for flow in &mut flows {
        flow.open_proxies(deadline).map_err(plain)?;
    }
    let asked = job.tunnel.as_ref();
    let open = |asked| Tunnel::open(job, asked, &topology, &running);
    let tunnel = asked.map(open).transpose().map_err(plain)?;
    if tunnel.is_some() || !job.proxies.is_empty() {
        let now = running.now();
        for flow in &mut flows {
            flow.begins_at(now);
        }
    }
    let ended = run_all(flows, &running, drain(&job.scenario)).map_err(plain)?;
    let carried = tunnel.map(Tunnel::close).transpose().map_err(plain)?;
    let observation = end(setups, &ended, running, carried)?;
    let flows = setups.iter().zip(ended);
    let flows = flows.map(|(setup, ended)| {
        FinishedFlow::new(setup, ended.verdict, Some(ended.ready), ended.exits)
    });
    Ok(FinishedTrial {
        flows: flows.collect(),
        observation: Some(observation),
    })
}

/// Starts all servers, and waits until they listen.
fn open_all<'a>(
    job: &Job,
    setups: &'a [FlowSetup],
    topology: &'a Topology,
) -> Result<Vec<FlowRun<'a>>, TrialError> {
    let flows = setups.iter().map(|setup| FlowRun::open(setup, topology));
    let mut flows: Vec<_> = flows.collect::<Result<_, _>>()?;
    let deadline = after(job.silence());
    for flow in &mut flows {
        flow.wait_ready(deadline)?;
    }
    Ok(flows)
}

/// All flows side by side, each by a separate thread.
fn run_all(
    flows: Vec<FlowRun>,
    running: &Running,
    drain: Duration,
) -> Result<Vec<Ended>, TrialError> {
    thread::scope(|scope| {
        let flows = flows.into_iter();
        let flows: Vec<_> = flows
            .map(|flow| scope.spawn(move || flow.run(running, drain)))
            .collect();
        let ended = flows.into_iter();
        ended
            .map(|flow| flow.join().expect("a flow does not panic"))
            .collect()
    })
}

fn plain(error: TrialError) -> Box<dyn Error> {
    error
}

fn end(
    setups: &[FlowSetup],
    ended: &[Ended],
    running: Running,
    carried: Option<Carried>,
) -> Result<TestbedObservation, Box<dyn Error>> {
    let now = running.now();
    let report = running.stop()?;
    let mut observation = observation(setups, &report, carried);
    for (flow, ended) in observation.flows.iter_mut().zip(ended) {
        flow.end = ended.at;
    }
    observation.end = ended.iter().map(|it| it.at).max().unwrap_or(now);
    Ok(observation)
}

/// The time in which packets in flight arrive after a client has ended, unless queues are long.
fn drain(scenario: &Scenario) -> Duration {
    let paths = scenario.each_path();
    let longest = paths.iter().map(|path| path.rtt().as_nanos()).max();
    Duration::from_nanos(longest.unwrap_or_default())
        .clamp(Duration::from_millis(50), Duration::from_secs(2))
}
