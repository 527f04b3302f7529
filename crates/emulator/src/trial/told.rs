//! What the programs of a flow are told (sections 3 and 5 of the contract).

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use bentpipe_emulator::HostName;
use bentpipe_trial::{Play, Role};

use super::program::Told;

/// The address of the server's host, the same for all flows.
const SERVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
/// The port of the first flow's server, and of its proxies; further flows have those behind it.
const FIRST_PORT: u16 = 443;

/// The port of what accepts a flow's connections on any hop.
pub fn server_port(play: &Play) -> u16 {
    FIRST_PORT + u16::try_from(play.number()).expect("a job has fewer flows")
}

/// What the program of a flow with that number is told.
pub fn told(play: &Play, number: usize) -> Told {
    match play.programs()[number].0 {
        HostName::Client => endpoint(play, Role::Client),
        HostName::Server => endpoint(play, Role::Server),
        host @ (HostName::Terminal | HostName::Gateway) => proxy(play, host, number),
    }
}

/// Where what stands behind a hop accepts connections.
fn behind(play: &Play, hop: usize) -> SocketAddrV4 {
    let [_, far] = play.addresses(hop);
    if hop == play.job().proxies.len() {
        return SocketAddrV4::new(SERVER, server_port(play));
    }
    far
}

/// What a client or a server is not told it must not have from the user's environment either.
fn endpoint(play: &Play, role: Role) -> Told {
    let (job, flow) = (play.job(), play.flow());
    let is_client = role == Role::Client;
    let hop = if is_client { 0 } else { job.proxies.len() };
    let address = behind(play, hop).to_string();
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
        ("TESTCASE", Some(flow.testcase.name().to_owned())),
        ("BENTPIPE_ALPN", Some(flow.alpn.clone())),
        ("BENTPIPE_OPTIONS", Some(options.join(" "))),
        ("BENTPIPE_LISTEN", Some(address).filter(|_| !is_client)),
        ("REQUESTS", Some(urls).filter(|_| is_client)),
        ("CERTS", folder(Some(job.certs.clone()))),
        ("WWW", folder(play.www_of(role).map(Into::into))),
        ("DOWNLOADS", folder(play.downloads_of(role))),
        (
            "SSLKEYLOGFILE",
            folder(Some(play.key_log(HostName::Client)).filter(|_| is_client)),
        ),
        ("QLOGDIR", folder(play.qlog_of(role.host()))),
    ];
    Told {
        variables,
        input: None,
    }
}

fn proxy(play: &Play, host: HostName, number: usize) -> Told {
    let [_, listen] = play.addresses(number - 1);
    let [mut local, _] = play.addresses(number);
    local.set_port(0);
    // Randomness is the kernel's, in real time.
    let seed = play.job().seed.0;
    let hello = play.proxy_hello(host, seed, [listen, local, behind(play, number)]);
    Told {
        variables: Vec::new(),
        input: Some(serde_json::to_vec(&hello).expect("it is plain data")),
    }
}
