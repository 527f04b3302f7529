//! The proxy of a trial (contract, section 5, socket mode).

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, stdin};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use bentpipe_endpoint::contract::{CONTRACT, ProxyHello};
use bentpipe_endpoint::{EndpointError, Options};
use serde_json::{Value, json};
use signal_hook::consts::SIGTERM;
use signal_hook::low_level::pipe;

use crate::interception::Intercepted;
use crate::options::ProxyOptions;
use crate::relay::{Relay, RelayCounts};

const RELEASE: &str = "/proc/sys/kernel/osrelease";

/// Carries until SIGTERM.
pub fn run() -> Result<(), EndpointError> {
    let mut text = String::new();
    stdin()
        .read_to_string(&mut text)
        .map_err(EndpointError::io("reading what is asked for"))?;
    let hello: ProxyHello = serde_json::from_str(&text)?;
    if hello.contract != CONTRACT {
        let what = format!("version {} of the contract", hello.contract);
        return Err(EndpointError::Unsupported(what));
    }
    let is_terminal = hello.place == "terminal";
    let options = ProxyOptions::read(Options::new(hello.options), is_terminal)?;
    options.settings.check("interception")?;
    options.settings.apply()?;
    let server = address("listen", &hello.listen)?;
    let intercepted = Intercepted {
        client: address("local", &hello.local)?.ip(),
        server: server.ip(),
        port: server.port(),
    };
    intercepted
        .set_up(&options)
        .map_err(EndpointError::io("setting up the interception"))?;
    let (waker, teller) = UnixStream::pair().map_err(EndpointError::io("waiting for SIGTERM"))?;
    pipe::register(SIGTERM, teller).map_err(EndpointError::io("waiting for SIGTERM"))?;
    let relay = Relay::listen(any(server), &options, waker.as_fd())?;
    println!("ready");
    println!("{}", last_words(relay.run()?));
    Ok(())
}

/// The version of the kernel, whose TCP it is.
pub fn version() -> String {
    let release = fs::read_to_string(RELEASE).unwrap_or_default();
    format!(
        "bentpipe-tcp-pep {}, Linux {}",
        env!("CARGO_PKG_VERSION"),
        release.trim()
    )
}

fn last_words(counts: RelayCounts) -> Value {
    let statistics = BTreeMap::from([
        ("connections_total", counts.connections),
        ("connections_reset", counts.reset),
        ("to_client_bytes", counts.bytes_to_client),
        ("to_server_bytes", counts.bytes_to_server),
    ]);
    json!({"error": null, "statistics": statistics, "version": version()})
}

fn any(like: SocketAddr) -> SocketAddr {
    let address: IpAddr = match like {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    SocketAddr::new(address, like.port())
}

fn address(field: &'static str, text: &str) -> Result<SocketAddr, EndpointError> {
    text.parse().map_err(|_| EndpointError::Field {
        field,
        value: text.to_owned(),
        problem: "write an address and a port, such as 192.0.2.1:443".to_owned(),
    })
}
