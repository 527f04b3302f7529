//! The tunnel of a trial: its devices, the programs at its ends, and when it carries.
//!
//! It is there before the first flow begins. Its ends get the HELLO of the contract
//! (`endpoints/contract/middleboxes.md`), with a secret made for it alone, which is in no file.
//! What it takes and gives is captured at its devices. The links carry what it makes of that.

use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use bentpipe_emulator::{
    CaptureReport, EmulatorError, HostName, Running, TUNNEL, Topology, TunnelCapture, TunnelPlan,
};
use bentpipe_endpoint::contract::CONTRACT;
use bentpipe_trial::{Job, Network, ProgramExit, TunnelJob, TunnelTransport, address};
use bentpipe_units::{Span, Time};
use serde::Serialize;

use super::TrialError;
use super::program::{Instructions, NoProgram, Program, after, pause};

/// How long a tunnel may take until it carries.
const CARRIES_WITHIN: Duration = Duration::from_secs(60);
/// How often is tried whether it does, and how often is looked.
const TRY: Duration = Duration::from_millis(250);
const LOOK: Duration = Duration::from_millis(5);

/// A tunnel under way.
pub struct Tunnel {
    /// The client's first.
    programs: [Program; 2],
    setup: Span,
    begun: Time,
    congestion_control: String,
    capture: TunnelCapture,
}

/// The account of a tunnel that has ended.
pub struct Carried {
    /// The packets that went through it.
    pub report: CaptureReport,
    /// From the start of its programs until it carried.
    pub setup: Span,
    /// The time at which it was ready for flows.
    pub begun: Time,
    /// The congestion control of its own connection; empty if it has none.
    pub congestion_control: String,
    /// The client's program first.
    pub exits: [ProgramExit; 2],
}

/// The HELLO to an end of the tunnel.
#[derive(Debug, Serialize)]
struct TunnelHello<'a> {
    contract: u32,
    role: &'static str,
    place: HostName,
    kind: &'a str,
    device: &'static str,
    mtu_bytes: u32,
    transport: TunnelTransport,
    listen: Option<SocketAddr>,
    next_hop: Option<SocketAddr>,
    secret: &'a str,
}

/// The devices that a job's tunnel needs.
pub fn plan(job: &Job, tunnel: &TunnelJob) -> TunnelPlan {
    let inside = [1, 2].map(|number| address(job.ip, Network::Tunnel, number));
    TunnelPlan {
        to: tunnel.to,
        addresses: inside,
        server: match tunnel.to {
            HostName::Server => inside[1],
            _ => address(job.ip, Network::Ground, 1),
        },
        mtu: tunnel.mtu_bytes,
        is_tcp: tunnel.transport == TunnelTransport::Tcp,
    }
}

/// The address at which the client's end finds the other one: proxies on the way know nothing else.
pub fn far_end(job: &Job, tunnel: &TunnelJob) -> IpAddr {
    match tunnel.to {
        HostName::Server => address(job.ip, Network::Ground, 1),
        _ => address(job.ip, Network::Satellite, 2),
    }
}

impl Tunnel {
    /// Starts its ends, and waits until a packet has gone through and another one back. They are
    /// killed when the thread that calls this ends.
    pub fn open(
        job: &Job,
        tunnel: &TunnelJob,
        topology: &Topology,
        running: &Running,
    ) -> Result<Self, TrialError> {
        let start = running.now();
        let secret = secret()?;
        let end = |place| start_end(topology, job, tunnel, place, &secret);
        let far = end(tunnel.to)?;
        let client = end(HostName::Client)?;
        let mut programs = [client, far];
        let plan = plan(job, tunnel);
        wait_until_it_carries(topology, &plan, &mut programs)?;
        let setup = running.now() - start;
        let capture = TunnelCapture::start(topology, &plan, running)?;
        Ok(Self {
            programs,
            setup,
            begun: running.now(),
            congestion_control: if plan.is_tcp {
                topology.congestion_control(tunnel.to)?
            } else {
                String::new()
            },
            capture,
        })
    }

    /// Ends it. A program that is gone already has failed.
    pub fn close(self) -> Result<Carried, TrialError> {
        let report = self.capture.stop()?;
        let mut programs = self.programs;
        said_if_ended(&mut programs)?;
        for program in &programs {
            program.terminate();
        }
        for program in &mut programs {
            // One that does not end is killed.
            let _ = program.wait_end(after(Duration::from_secs(1)));
        }
        Ok(Carried {
            report,
            setup: self.setup,
            begun: self.begun,
            congestion_control: self.congestion_control,
            exits: programs.map(|mut program| program.exit()),
        })
    }
}

/// Starts the end of a tunnel at a host.
fn start_end(
    topology: &Topology,
    job: &Job,
    tunnel: &TunnelJob,
    place: HostName,
    secret: &str,
) -> Result<Program, TrialError> {
    let far = SocketAddr::new(far_end(job, tunnel), tunnel.port);
    let is_client = place == HostName::Client;
    let hello = TunnelHello {
        contract: CONTRACT,
        role: "tunnel",
        place,
        kind: &tunnel.kind,
        device: TUNNEL,
        mtu_bytes: tunnel.mtu_bytes,
        transport: tunnel.transport,
        listen: (!is_client).then_some(far),
        next_hop: is_client.then_some(far),
        secret,
    };
    let instructions = Instructions {
        variables: Vec::new(),
        input: Some(serde_json::to_vec(&hello)?),
    };
    let command = &tunnel.command;
    let started = Program::start(topology.host(place), command, &instructions);
    started.map_err(|error| match error {
        NoProgram::Start(error) | NoProgram::System(error) => format!(
            "the tunnel: starting {} on the {place}: {error}",
            command[0]
        )
        .into(),
        NoProgram::Emulator(error) => error.into(),
    })
}

/// 32 bytes that nobody knows, in hexadecimal.
fn secret() -> io::Result<String> {
    let mut bytes = [0_u8; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(digits.concat())
}

fn wait_until_it_carries(
    topology: &Topology,
    plan: &TunnelPlan,
    programs: &mut [Program; 2],
) -> Result<(), TrialError> {
    let client = socket(topology, HostName::Client, plan.addresses[0])?;
    let server = socket(topology, HostName::Server, plan.server)?;
    let to = server.local_addr()?;
    let deadline = after(CARRIES_WITHIN);
    let mut sent_at = Vec::new();
    // When it carries: by then nothing of what was sent is under way any more.
    let mut settled = None;
    loop {
        let now = after(Duration::ZERO);
        if settled.is_some_and(|it| it <= now) {
            return Ok(());
        }
        if now >= deadline {
            break;
        }
        said_if_ended(programs)?;
        let is_due = sent_at.last().is_none_or(|last| *last + TRY <= now);
        if settled.is_none() && is_due {
            let number = u16::try_from(sent_at.len()).expect("some hundred within the time limit");
            sent_at.push(now);
            // Until the tunnel carries, there may be no way.
            let _ = client.send_to(&number.to_le_bytes(), to);
        }
        let mut number = [0; 2];
        while let Ok((_, from)) = server.recv_from(&mut number) {
            let _ = server.send_to(&number, from);
        }
        while client.recv(&mut number).is_ok() {
            let first = sent_at.get(usize::from(u16::from_le_bytes(number)));
            if let (Some(first), Some(last)) = (first, sent_at.last()) {
                settled.get_or_insert(*last + (now - *first) * 2);
            }
        }
        pause(LOOK);
    }
    let seconds = CARRIES_WITHIN.as_secs();
    Err(failed(
        &format!("carried no packet within {seconds} s"),
        programs,
    ))
}

fn socket(topology: &Topology, host: HostName, at: IpAddr) -> Result<UdpSocket, EmulatorError> {
    let bound = || -> io::Result<UdpSocket> {
        let socket = UdpSocket::bind((at, 0))?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    topology.host(host).network().within(|| {
        bound().map_err(|error| EmulatorError::System {
            what: format!("making a socket at {at} of the {host}"),
            error,
        })
    })
}

/// An error if one of its programs is gone.
fn said_if_ended(programs: &mut [Program; 2]) -> Result<(), TrialError> {
    if !programs.iter().any(Program::has_ended) {
        return Ok(());
    }
    Err(failed("ended by itself", programs))
}

fn failed(what: &str, programs: &mut [Program; 2]) -> TrialError {
    let said = ["client", "far end"].into_iter().zip(programs);
    let said = said.map(|(end, program)| {
        let line = program.last_line().or_else(|| program.last_said());
        format!(
            "; at its {end}: {}",
            line.unwrap_or_else(|| "nothing said".to_owned())
        )
    });
    format!("the tunnel {what}{}", said.collect::<String>()).into()
}
