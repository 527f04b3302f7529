//! `bentpipe-emu shell`: a command behind the link of a scenario, and one at its far end.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bentpipe_emulator::{
    EmulatorError, Forwarder, Host, HostName, IdlePrevention, Options, Running, Topology,
};
use bentpipe_link::Scenario;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process_group, wait};

use super::link_meters;
use crate::cli::Shell;

/// How often what is waited for is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// How often a server is looked at before the command starts without it.
const SERVER_LOOKS: u32 = 250;
/// How often a server is looked at when it has been asked to end.
const END_LOOKS: u32 = 50;

/// Runs what is asked for; the command's exit code.
pub fn run(shell: &Shell, scenario: &Scenario) -> Result<ExitCode, Box<dyn Error>> {
    let topology = Topology::build_here(scenario)?;
    if topology.is_inner() && (shell.server.is_some() || shell.on == HostName::Server) {
        return Err(
            "this shell is inside another, and its far end is the other's client: \
                    it has no server of its own\nhint: give --server to the outer shell"
                .into(),
        );
    }
    let _awake = shell.awake.then(IdlePrevention::start).transpose()?;
    let running = forward(&topology, scenario, shell.seed)?;
    let mut children = Children::default();
    let server = match &shell.server {
        Some(line) => Some(start_server(
            topology.host(HostName::Server),
            line,
            &mut children,
        )?),
        None => None,
    };
    let (stop, stopped) = mpsc::channel::<()>();
    let seen = &running;
    let code = thread::scope(|scope| {
        if shell.meters {
            let paths = scenario.path_names();
            scope.spawn(move || link_meters::show(seen, &paths, &stopped));
        }
        let code = run_command(shell, scenario, &topology, &mut children);
        drop(stop);
        code
    })?;
    if let Some(server) = server {
        children.end(server);
    }
    running.stop()?;
    Ok(code.into())
}

/// Starts to forward what crosses the segments.
fn forward(topology: &Topology, scenario: &Scenario, seed: u64) -> Result<Running, EmulatorError> {
    topology
        .emulator()
        .within(|| Forwarder::start(topology.segments(), scenario, seed, &Options::default()))
}

fn run_command(
    shell: &Shell,
    scenario: &Scenario,
    topology: &Topology,
    children: &mut Children,
) -> Result<u8, Box<dyn Error>> {
    let line = match shell.command.as_slice() {
        [] => {
            eprintln!(
                "on the {}, behind {}: the far end is called server; leave with exit",
                shell.on, scenario.name
            );
            vec![env::var_os("SHELL").unwrap_or_else(|| OsString::from("/bin/sh"))]
        }
        line => line.to_vec(),
    };
    let mut command = topology.host(shell.on).command(&line[0])?;
    let name = line[0].display();
    match command.args(&line[1..]).spawn() {
        Ok(child) => Ok(children.wait_for(pid_of(child.id()))),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("error: {name}: command not found");
            Ok(127)
        }
        Err(error) => {
            eprintln!("error: {name}: {error}");
            Ok(126)
        }
    }
}

/// Starts the command line of the far end, and waits until it listens.
fn start_server(host: &Host, line: &str, children: &mut Children) -> Result<Pid, Box<dyn Error>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let handler =
        signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&interrupted))?;
    let mut command: Command = host.command("/bin/sh")?;
    // A group of its own: an interrupt from the terminal is for the client's command.
    command
        .args(["-c", line])
        .stdin(Stdio::null())
        .process_group(0);
    let server = pid_of(command.spawn()?.id());
    for _ in 0..SERVER_LOOKS {
        if let Some(code) = children.look_for(server) {
            return Err(format!(
                "the server's command ended before it listened, with {code}: {line}"
            )
            .into());
        }
        if interrupted.load(Ordering::Relaxed) {
            return Err("interrupted".into());
        }
        if listens(host)? {
            signal_hook::low_level::unregister(handler);
            return Ok(server);
        }
        pause();
    }
    eprintln!("note: the server's command listens on no port yet: {line}");
    signal_hook::low_level::unregister(handler);
    Ok(server)
}

/// Whether a TCP socket of the host listens, or a UDP socket of it is bound.
fn listens(host: &Host) -> Result<bool, EmulatorError> {
    /// The fourth column of the kernel's tables of sockets.
    const STATES: [(&str, &str); 4] =
        [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")];
    host.network().within(|| {
        Ok(STATES.iter().any(|(table, state)| {
            let text = fs::read_to_string(format!("/proc/thread-self/net/{table}"));
            text.unwrap_or_default()
                .lines()
                .any(|line| line.split_whitespace().nth(3) == Some(state))
        }))
    })
}

#[expect(clippy::disallowed_methods, reason = "waits for a real process")]
fn pause() {
    thread::sleep(LOOK);
}

fn pid_of(id: u32) -> Pid {
    Pid::from_raw(id.cast_signed()).expect("a process has a number")
}

/// The processes that this one must wait for: as the first of its PID namespace, also those whose
/// parents have ended.
#[derive(Default)]
struct Children {
    ended: Vec<(Pid, u8)>,
}

impl Children {
    /// The exit code of a process that has ended.
    fn look_for(&mut self, wanted: Pid) -> Option<u8> {
        while let Ok(Some(one)) = wait(WaitOptions::NOHANG) {
            self.note(one);
        }
        let found = self.ended.iter().find(|(pid, _)| *pid == wanted);
        found.map(|(_, code)| *code)
    }

    /// Waits for a process; its exit code.
    fn wait_for(&mut self, wanted: Pid) -> u8 {
        loop {
            if let Some(code) = self.look_for(wanted) {
                return code;
            }
            if let Ok(Some(one)) = wait(WaitOptions::empty()) {
                self.note(one);
            }
        }
    }

    fn note(&mut self, (pid, status): (Pid, WaitStatus)) {
        let signal = status.terminating_signal().map(|signal| 128 + signal);
        if let Some(code) = status.exit_status().or(signal) {
            self.ended.push((pid, u8::try_from(code).unwrap_or(1)));
        }
    }

    /// Asks the group of a process to end, and waits a moment for it. What is left then is killed
    /// with this process.
    fn end(&mut self, leader: Pid) {
        if let Some(code) = self.look_for(leader) {
            eprintln!("note: the server's command had ended by itself, with {code}");
        }
        let _ = kill_process_group(leader, Signal::TERM);
        for _ in 0..END_LOOKS {
            if self.look_for(leader).is_some() {
                return;
            }
            pause();
        }
    }
}
