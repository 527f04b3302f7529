//! The instructions to the programs of a flow (`endpoints/contract/socket-mode.md`,
//! `endpoints/contract/middleboxes.md`).

use std::net::SocketAddr;
use std::path::PathBuf;

use bentpipe_emulator::HostName;
use bentpipe_trial::{FlowSetup, Job, Network, Role, address};

use super::program::Instructions;
use super::tunnel::far_end;

/// The port of the first flow's server, and of its proxies; further flows have those behind it.
const FIRST_PORT: u16 = 443;

/// The port of what accepts a flow's connections on any hop.
pub fn server_port(setup: &FlowSetup) -> u16 {
    FIRST_PORT + u16::try_from(setup.number()).expect("a job has fewer flows")
}

/// The instructions for the program of a flow with that number.
pub fn instructions(setup: &FlowSetup, number: usize) -> Instructions {
    match setup.programs()[number].0 {
        HostName::Client => endpoint(setup, Role::Client),
        HostName::Server => endpoint(setup, Role::Server),
        host @ (HostName::Terminal | HostName::Gateway) => proxy(setup, host, number),
    }
}

/// The address at which the program behind a hop accepts connections.
pub fn behind(setup: &FlowSetup, hop: usize) -> SocketAddr {
    let [_, far] = setup.addresses(hop);
    if hop == setup.job().link_hops().len() - 1 || setup.job().is_transparent() {
        return SocketAddr::new(setup.server_host(), server_port(setup));
    }
    far
}

/// The variables of a client or a server. Those that it is not given are removed from the
/// environment, in case the user has them there.
fn endpoint(setup: &FlowSetup, role: Role) -> Instructions {
    let (job, flow) = (setup.job(), setup.flow());
    let is_client = role == Role::Client;
    let last = job.link_hops().len() - 1;
    let hop = if is_client { 0 } else { last };
    let address = behind(setup, hop).to_string();
    let options = flow.variant(role).options.iter();
    let options: Vec<String> = options
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let urls = flow
        .requests
        .iter()
        .map(|path| format!("https://{address}{path}"));
    let urls = urls.collect::<Vec<_>>().join(" ");
    let folder = |path: Option<PathBuf>| path.map(|path| path.display().to_string());
    let variables = vec![
        ("ROLE", Some(role.name().to_owned())),
        ("TESTCASE", Some(flow.testcase.clone())),
        ("BENTPIPE_ALPN", Some(flow.alpn.clone())),
        ("BENTPIPE_OPTIONS", Some(options.join(" "))),
        ("BENTPIPE_LISTEN", Some(address).filter(|_| !is_client)),
        (
            "BENTPIPE_PATHS",
            Some(paths(job)).filter(|it| !it.is_empty()),
        ),
        ("REQUESTS", Some(urls).filter(|_| setup.asks(role))),
        ("PAGE", folder(setup.page().filter(|_| is_client))),
        ("LIVE", folder(setup.live().filter(|_| is_client))),
        ("FRAMES", folder(setup.frames())),
        ("REPORT", folder(setup.report().filter(|_| is_client))),
        ("PICTURE", folder(setup.picture().filter(|_| is_client))),
        ("CERTS", folder(Some(job.certs.clone()))),
        ("WWW", folder(setup.www_of(role).map(Into::into))),
        ("DOWNLOADS", folder(setup.downloads_of(role))),
        (
            "SSLKEYLOGFILE",
            folder(Some(setup.key_log(HostName::Client)).filter(|_| is_client)),
        ),
        ("QLOGDIR", folder(setup.qlog_of(role.host()))),
        ("BENTPIPE_OWN_NAMESPACE", Some("1".to_owned())),
    ];
    Instructions {
        variables,
        input: None,
    }
}

/// The client's address on each path, with its name; empty where there is one.
fn paths(job: &Job) -> String {
    let names = job.scenario.path_names();
    if names.len() == 1 {
        return String::new();
    }
    let at = |number| address(job.ip, Network::Access, number);
    let each = names.into_iter().zip((1..).map(at));
    let each: Vec<String> = each.map(|(name, at)| format!("{name}={at}")).collect();
    each.join(" ")
}

/// The same for a proxy, which knows of no tunnel but where that ends.
fn behind_proxy(setup: &FlowSetup, hop: usize) -> SocketAddr {
    let job = setup.job();
    let is_last = hop == job.proxies.len() || job.are_transparent();
    match &job.tunnel {
        None => behind(setup, hop),
        Some(tunnel) if is_last => SocketAddr::new(far_end(job, tunnel), server_port(setup)),
        Some(_) => setup.proxy_addresses(hop)[1],
    }
}

fn proxy(setup: &FlowSetup, host: HostName, number: usize) -> Instructions {
    let listen = behind_proxy(setup, number - 1);
    let [mut local, _] = setup.proxy_addresses(number);
    local.set_port(0);
    // Randomness is the kernel's, in real time.
    let seed = setup.job().seed.0;
    let hello = setup.proxy_hello(host, seed, [listen, local, behind_proxy(setup, number)]);
    Instructions {
        variables: vec![("BENTPIPE_OWN_NAMESPACE", Some("1".to_owned()))],
        input: Some(serde_json::to_vec(&hello).expect("it is plain data")),
    }
}
