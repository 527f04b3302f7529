//! The programs of a flow, in virtual time: what they are told, and what they say.

use std::time::Duration;

use bentpipe_endpoint::contract::{self, Bye, Hello, Ready, RequestReport};
use bentpipe_trial::{EPOCH_UNIX_S, End, Outcome, Play, Remains, Role, Verdict};
use bentpipe_units::{Span, Time};
use sha2::{Digest, Sha256};

use crate::child::{Child, ChildError};
use crate::flow::{Flow, Limits, Side};
/// Starts both programs.
pub fn start(play: &Play) -> Result<[Child; 2], ChildError> {
    let silence = Duration::from_secs(play.job().silence_s);
    let start = |role| Child::start(role, &play.flow().variant(role).command, silence);
    let (client, server) = (start(Role::Client), start(Role::Server));
    Ok([client?, server?])
}

/// HELLO to both, so that they start up side by side.
pub fn greet(play: &Play, children: &mut [Child; 2]) -> Result<(), ChildError> {
    for (role, child) in [Role::Client, Role::Server].into_iter().zip(children) {
        let hello = serde_json::to_vec(&hello(play, role)).expect("HELLO is plain data");
        child.send(contract::encode_frame(contract::HELLO, &hello))?;
    }
    Ok(())
}

/// The flow at time zero of the trial.
pub fn begin(play: &Play, children: [Child; 2], ready: &[Ready; 2]) -> Flow {
    let start = Time::from_nanos(play.flow().start_ns);
    let [client, server] = children;
    let sides = [
        Side::new(client, &ready[0], start),
        Side::new(server, &ready[1], start),
    ];
    let limits = Limits {
        timeout: Time::ZERO + play.job().scenario.timeout,
        cut: play
            .flow()
            .duration_ns
            .map(|duration| start + Span::from_nanos(duration)),
    };
    Flow::new(sides, limits)
}

fn hello(play: &Play, role: Role) -> Hello {
    let (job, flow) = (play.job(), play.flow());
    let [client, server] = play.addresses();
    let (local, remote) = match role {
        Role::Client => (client, server),
        Role::Server => (server, client),
    };
    Hello {
        contract: contract::CONTRACT,
        role: role.name().to_owned(),
        testcase: flow.testcase.name().to_owned(),
        requests: match role {
            Role::Client => flow
                .requests
                .iter()
                .map(|path| format!("https://server:443{path}"))
                .collect(),
            Role::Server => Vec::new(),
        },
        options: flow.variant(role).options.clone(),
        seed: format!("{:016x}", seed_of(job.seed.0, play.number(), role)),
        epoch_unix_s: EPOCH_UNIX_S,
        local: local.to_string(),
        remote: remote.to_string(),
        www: play.www_of(role).map(Into::into),
        downloads: play.downloads_of(role),
        certs: job.certs.clone(),
        keylog: (role == Role::Client).then(|| play.key_log()),
        qlog: play.qlog_of(role),
    }
}

/// What became of a flow whose program failed the contract, and left `remains`.
pub fn failed(play: &Play, error: &ChildError, remains: &[Remains; 2]) -> Verdict {
    let role = error.role();
    let outcome = match error {
        ChildError::Unsupported(_) => Outcome::Unsupported,
        _ => Outcome::Crashed,
    };
    let said = remains[role.index()].last_line();
    let said = said.map(|line| format!("; it said: {line}"));
    let name = &play.flow().variant(role).name;
    let detail = format!("{name} as {error}{}", said.unwrap_or_default());
    Verdict::of_failure(role, outcome, detail)
}

/// Hears the last words of both programs, and judges by them and by how the flow ended.
pub fn part(play: &Play, flow: &mut Flow) -> Result<Verdict, ChildError> {
    let end = flow.end.take().unwrap_or(Ok(End::Deadlock))?;
    let [client, server] = flow.finish()?;
    let client: Bye = parse(&client, &flow.side(Role::Client).child, "BYE")?;
    let server: Bye = parse(&server, &flow.side(Role::Server).child, "BYE")?;
    flow.side(Role::Client).child.leave()?;
    flow.side(Role::Server).child.leave()?;
    let (said, asked) = (client.requests.len(), play.flow().requests.len());
    if said != asked {
        let what = format!("BYE reports {said} requests of {asked}");
        return Err(flow.side(Role::Client).child.rubbish(what));
    }
    let client = since(Span::from_nanos(play.flow().start_ns), client);
    let mut verdict = Verdict::of_end(end, client, flow.now);
    verdict.hear_server(&server);
    Ok(verdict)
}

/// READY from both programs.
pub fn meet(children: &mut [Child; 2]) -> Result<[Ready; 2], ChildError> {
    let [client, server] = children;
    let [client_ready, server_ready] = [
        client.receive(contract::READY),
        server.receive(contract::READY),
    ];
    Ok([
        parse(&client_ready?, client, "READY")?,
        parse(&server_ready?, server, "READY")?,
    ])
}

/// A client's report, whose times count from `zero`, with those of the trial.
fn since(zero: Span, bye: Bye) -> Bye {
    let later = |time: Option<u64>| time.map(|time| time.saturating_add(zero.as_nanos()));
    let requests = bye.requests.into_iter().map(|request| RequestReport {
        first_byte_ns: later(request.first_byte_ns),
        last_byte_ns: later(request.last_byte_ns),
        ..request
    });
    Bye {
        handshake_ns: later(bye.handshake_ns),
        requests: requests.collect(),
        ..bye
    }
}

/// The seed of one side of a flow: each endpoint draws from a stream of its own.
fn seed_of(trial: u64, flow: usize, role: Role) -> u64 {
    let mut digest = Sha256::new()
        .chain_update(trial.to_be_bytes())
        .chain_update(role.name());
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

fn parse<T: serde::de::DeserializeOwned>(
    body: &[u8],
    child: &Child,
    frame: &str,
) -> Result<T, ChildError> {
    serde_json::from_slice(body).map_err(|error| child.rubbish(format!("{frame}: {error}")))
}
