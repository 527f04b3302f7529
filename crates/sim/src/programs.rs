//! The programs of a flow, in virtual time: their HELLO and BYE.

use std::net::SocketAddr;

use bentpipe_endpoint::contract::{self, Bye, Hello, HelloPath, ProxyBye, ProxyHello, Ready};
use bentpipe_link::HostName;
use bentpipe_trial::{
    Carries, EPOCH_UNIX_S, FlowEnd, FlowSetup, Outcome, PageResource, ProgramExit, Role,
    SentMessage, Variant, Verdict,
};
use bentpipe_units::{Span, Time};
use sha2::{Digest, Sha256};

use crate::child::{Child, ChildError};
use crate::flow::{FlowRun, Limits};
use crate::node::{KnownPaths, Node};
use crate::packet::DatagramForm;

/// Starts all programs.
pub fn start(setup: &FlowSetup) -> Result<Vec<Child>, ChildError> {
    let silence = setup.job().silence();
    let programs = setup.programs().into_iter();
    let start = |(host, variant): (HostName, &Variant)| {
        let (command, scratch) = (&variant.command, setup.scratch());
        if setup.job().shared_memory {
            Child::start_sharing(host, command, scratch, silence)
        } else {
            Child::start(host, command, scratch, silence)
        }
    };
    programs.map(start).collect()
}

/// HELLO to all, so that they start up side by side.
pub fn greet(setup: &FlowSetup, children: &mut [Child]) -> Result<(), ChildError> {
    for (number, (host, _)) in setup.programs().into_iter().enumerate() {
        let shared_memory = children[number].offer();
        let hello = match host {
            HostName::Client | HostName::Server => {
                let role = if host == HostName::Client {
                    Role::Client
                } else {
                    Role::Server
                };
                serde_json::to_vec(&Hello {
                    shared_memory,
                    ..hello(setup, role)
                })
            }
            HostName::Terminal | HostName::Gateway => serde_json::to_vec(&ProxyHello {
                shared_memory,
                ..hello_proxy(setup, number)
            }),
        };
        let hello = hello.expect("HELLO is plain data");
        children[number].send(SentMessage::Other(contract::encode_message(
            contract::HELLO,
            &hello,
        )))?;
    }
    Ok(())
}

/// The flow at time zero of the trial. Its client may be there later than the others.
pub fn begin(setup: &FlowSetup, children: Vec<Child>, ready: &[Ready]) -> FlowRun {
    let start = Time::from_nanos(setup.flow().start_ns);
    let lead = setup.job().lead();
    let programs = setup.programs().into_iter().zip(children).zip(ready);
    let nodes = programs.map(|(((host, variant), child), ready)| {
        let zero = if host == HostName::Client {
            start + lead
        } else {
            start
        };
        let form = form(setup, host, variant.carries);
        let paths = known_paths(setup, variant.carries, ready);
        Node::new(host, child, (form, paths), ready, zero)
    });
    let limits = Limits {
        timeout: Time::ZERO + setup.job().scenario.timeout + lead,
        cut: setup
            .flow()
            .duration_ns
            .map(|duration| start + lead + Span::from_nanos(duration)),
    };
    FlowRun::new(nodes.collect(), limits)
}

fn form(setup: &FlowSetup, host: HostName, carries: Carries) -> DatagramForm {
    let last = setup.job().proxies.len();
    match (carries, host) {
        (Carries::Udp, _) => DatagramForm::Udp(setup.job().ip),
        (Carries::Ip, HostName::Server) => {
            let [other, own] = setup.addresses(last);
            DatagramForm::Ip { own, other }
        }
        (Carries::Ip, HostName::Client) => {
            let [own, other] = setup.addresses(0);
            DatagramForm::Ip { own, other }
        }
        (Carries::Ip, HostName::Terminal | HostName::Gateway) => {
            let [client, server] = setup.addresses(0);
            DatagramForm::Between { client, server }
        }
    }
}

fn known_paths(setup: &FlowSetup, carries: Carries, ready: &Ready) -> KnownPaths {
    let paths = setup.paths(0);
    match carries {
        _ if paths.len() == 1 => KnownPaths::First,
        Carries::Ip => KnownPaths::ByAddress(paths.iter().map(|[client, _]| client.ip()).collect()),
        Carries::Udp if ready.paths => KnownPaths::Numbered(paths.len()),
        Carries::Udp => KnownPaths::First,
    }
}

/// The paths, as HELLO has them: none where there is one.
fn hello_paths(setup: &FlowSetup, role: Role) -> Vec<HelloPath> {
    let names = setup.job().scenario.path_names();
    if names.len() == 1 {
        return Vec::new();
    }
    let each = names.into_iter().zip(setup.paths(0));
    let path = |(name, [client, server]): (&str, [SocketAddr; 2])| {
        let [local, remote] = match role {
            Role::Client => [client, server],
            Role::Server => [server, client],
        };
        HelloPath {
            name: name.to_owned(),
            local: local.to_string(),
            remote: remote.to_string(),
        }
    };
    each.map(path).collect()
}

/// The HELLO to the proxy that is the program with that number.
fn hello_proxy(setup: &FlowSetup, number: usize) -> ProxyHello {
    let (host, _) = setup.programs()[number];
    let [previous_hop, listen] = setup.addresses(number - 1);
    let [local, next_hop] = setup.addresses(number);
    let seed = seed_of(setup.job().seed.0, setup.number(), host.name());
    ProxyHello {
        previous_hop: Some(previous_hop.to_string()),
        ..setup.proxy_hello(host, seed, [listen, local, next_hop])
    }
}

/// The wall-clock time at which the program's own clock begins, in seconds since 1970. That of a
/// client begins later by the lead, which is whole seconds: media frames carry such times.
fn epoch(setup: &FlowSetup, role: Role) -> u64 {
    let lead = match role {
        Role::Client => std::time::Duration::from_nanos(setup.job().lead().as_nanos()),
        Role::Server => std::time::Duration::ZERO,
    };
    EPOCH_UNIX_S + lead.as_secs()
}

fn hello(setup: &FlowSetup, role: Role) -> Hello {
    let (job, flow) = (setup.job(), setup.flow());
    let (local, remote) = match role {
        Role::Client => setup.addresses(0).into(),
        Role::Server => {
            let [near, server] = setup.addresses(job.proxies.len());
            (server, near)
        }
    };
    Hello {
        contract: contract::CONTRACT,
        role: role.name().to_owned(),
        testcase: flow.testcase.clone(),
        requests: flow
            .requests
            .iter()
            .filter(|_| setup.asks(role))
            .map(|path| format!("https://server:443{path}"))
            .collect(),
        options: flow.variant(role).options.clone(),
        seed: format!("{:016x}", seed_of(job.seed.0, setup.number(), role.name())),
        epoch_unix_s: epoch(setup, role),
        local: local.to_string(),
        remote: remote.to_string(),
        www: setup.www_of(role).map(Into::into),
        downloads: setup.downloads_of(role),
        certs: job.certs.clone(),
        keylog: (role == Role::Client).then(|| setup.key_log(HostName::Client)),
        qlog: setup.qlog_of(role.host()),
        alpn: flow.alpn.clone(),
        page: match role {
            Role::Client => flow.page.iter().map(PageResource::discovery).collect(),
            Role::Server => Vec::new(),
        },
        live: flow.live.clone().filter(|_| role == Role::Client),
        frames: flow.frames.clone(),
        shared_memory: None,
        paths: hello_paths(setup, role),
    }
}

/// The verdict on a flow whose program broke the contract. All programs left `exits`, or none did.
pub fn failed(setup: &FlowSetup, error: &ChildError, exits: &[ProgramExit]) -> Verdict {
    let host = error.host();
    let outcome = match error {
        ChildError::Unsupported(_) => Outcome::Unsupported,
        _ => Outcome::Crashed,
    };
    let mut programs = setup.programs().into_iter().enumerate();
    let (number, (_, variant)) = programs
        .find(|(_, it)| it.0 == host)
        .expect("it is one of them");
    let said = exits.get(number).and_then(ProgramExit::last_line);
    let said = said.map(|line| format!("; it said: {line}"));
    let name = &variant.name;
    let detail = format!("{name} as {error}{}", said.unwrap_or_default());
    Verdict::of_failure(host, outcome, detail)
}

/// Collects the final reports of all programs, and judges by them and by how the flow ended.
pub fn collect_final_reports(setup: &FlowSetup, flow: &mut FlowRun) -> Result<Verdict, ChildError> {
    let end = flow.end.take().unwrap_or(Ok(FlowEnd::Deadlock))?;
    let byes = flow.finish()?;
    let programs = setup.programs();
    let (mut client, mut others) = (None, Vec::new());
    for (node, (body, (host, _))) in flow.nodes().iter_mut().zip(byes.iter().zip(&programs)) {
        match host {
            HostName::Client => client = Some(client_bye(setup, body, &node.child)?),
            HostName::Server => {
                let bye: Bye = parse(body, &node.child, "BYE")?;
                others.push((*host, bye.error, bye.statistics));
            }
            HostName::Terminal | HostName::Gateway => {
                let bye: ProxyBye = parse(body, &node.child, "BYE")?;
                others.push((*host, bye.error, bye.statistics));
            }
        }
    }
    for node in flow.nodes() {
        node.child.leave()?;
    }
    let client = client.expect("a flow has a client");
    let mut verdict = Verdict::of_end(end, client, flow.now);
    for (host, error, statistics) in others {
        verdict.hear(host, error.as_deref(), statistics);
    }
    Ok(verdict)
}

/// The client's report, by the trial's time.
fn client_bye(setup: &FlowSetup, body: &[u8], child: &Child) -> Result<Bye, ChildError> {
    let bye: Bye = parse(body, child, "BYE")?;
    let (said, asked) = (bye.requests.len(), setup.flow().requests.len());
    if said != asked {
        return Err(child.violation(format!("BYE reports {said} requests of {asked}")));
    }
    let zero = Span::from_nanos(setup.flow().start_ns) + setup.job().lead();
    Ok(bye.later(std::time::Duration::from_nanos(zero.as_nanos())))
}

/// READY from all programs.
pub fn await_ready(children: &mut [Child]) -> Result<Vec<Ready>, ChildError> {
    let answers = children.iter_mut().map(|child| {
        let body = child.receive(contract::READY)?;
        let ready: Ready = parse(&body, child, "READY")?;
        if ready.shared_memory {
            child.share()?;
        }
        Ok(ready)
    });
    // All answers are awaited, so that the error names the first of those that failed.
    let answers: Vec<Result<Ready, ChildError>> = answers.collect();
    answers.into_iter().collect()
}

/// The seed of one program of a flow: each draws from a separate stream.
pub fn seed_of(trial: u64, flow: usize, role: &str) -> u64 {
    let mut digest = Sha256::new()
        .chain_update(trial.to_be_bytes())
        .chain_update(role);
    if flow > 0 {
        digest.update((flow as u64).to_be_bytes());
    }
    u64::from_be_bytes(
        *digest
            .finalize()
            .first_chunk()
            .expect("SHA-256 has 32 bytes"),
    )
}

/// Reads the JSON of the message `name` from a program.
pub fn parse<T: serde::de::DeserializeOwned>(
    body: &[u8],
    child: &Child,
    name: &str,
) -> Result<T, ChildError> {
    serde_json::from_slice(body).map_err(|error| child.violation(format!("{name}: {error}")))
}
