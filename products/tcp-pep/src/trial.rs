//! The proxy of a trial (`endpoints/contract/middleboxes.md`, socket mode).

use std::fs;
use std::io::{Read, stdin};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bentpipe_endpoint::contract::{CONTRACT, ProxyHello};
use bentpipe_endpoint::{EndpointError, Options};
use bentpipe_linux_tcp::raise_descriptors;
use bentpipe_netlink::{Netlink, Prefix};
use bentpipe_service::log::Log;
use bentpipe_service::quota::ConnectionLimits;
use bentpipe_service::settings::{Format, Level, LogSettings};
use serde_json::{Map, Value, json};
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;

use crate::config::{Accept, Config, Destination, PoolConfig, Times};
use crate::interception::Interception;
use crate::options::ProxyOptions;
use crate::relay::{ClientSources, Inbox, Listener, Message, Relay};
use crate::sockets::{self, Listening, Sharing};
use crate::statistics::Statistics;

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
    let _log = Log::install(
        crate::LOGGED,
        LogSettings {
            format: Format::Text,
            level: Level::Warning,
        },
    );
    let server = address("listen", &hello.listen)?;
    let client = address("local", &hello.local)?.ip();
    let interception = interception(client, server, &options)
        .and_then(|it| it.install().map(|_| it))
        .map_err(EndpointError::io("setting up the interception"))?;
    let gates = interception
        .gates()
        .map_err(EndpointError::io("waiting for SYNs"))?;
    raise_descriptors();
    let any = SocketAddr::new(Prefix::everything(server.ip()).address, server.port());
    let listening = Listening {
        is_transparent: true,
        accept: options.accept,
        sharing: Sharing::Alone,
    };
    let listener = Listener {
        socket: sockets::listen(any, &options.client_side, listening)?,
        is_of_pool: options.pool.is_some() && !is_terminal,
    };
    let client_sources = ClientSources {
        listeners: vec![listener],
        gates,
    };
    let pool = options.pool.filter(|_| is_terminal);
    let pool = pool.map(|connections| PoolConfig {
        gateway: server, // on the way to which it takes them
        from: Some(client),
        connections,
    });
    let inbox = Arc::new(Inbox::new().map_err(EndpointError::io("making an eventfd"))?);
    end_on_sigterm(inbox.clone())?;
    let config = Config {
        pool,
        ports: vec![server.port()],
        ..config(options)
    };
    let relay = Relay::new(0, client_sources, config, inbox)?;
    println!("ready");
    println!("{}", last_words(&relay.run()?));
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

/// The interception of packets between `client` and `server`, by the devices that lead to them.
fn interception(
    client: IpAddr,
    server: SocketAddr,
    options: &ProxyOptions,
) -> std::io::Result<Interception> {
    let mut netlink = Netlink::open()?;
    let mut device_to = |place| {
        let device = netlink.device_to(place)?;
        netlink.name_of(device)
    };
    Ok(Interception {
        devices: [device_to(client)?, device_to(server.ip())?],
        ports: vec![server.port()],
        versions: vec![Prefix::everything(server.ip()).address],
        is_late: options.accept == Accept::Late,
        initial_windows: [
            options.client_side.initial_window,
            options.server_side.initial_window,
        ],
    })
}

/// A trial has no limits but that of `buffer`, and no times: what takes too long is its outcome.
fn config(options: ProxyOptions) -> Config {
    Config {
        client_side: options.client_side,
        server_side: options.server_side,
        is_transparent: true,
        destination: Destination::Wanted,
        accept: options.accept,
        ports: Vec::new(),
        pool: None,
        terminals: None,
        buffer: options.buffer,
        memory: usize::MAX,
        limits: ConnectionLimits {
            total: usize::MAX,
            of_client: usize::MAX,
        },
        quota: Arc::default(),
        times: Times::default(),
    }
}

fn end_on_sigterm(inbox: Arc<Inbox>) -> Result<(), EndpointError> {
    let mut signals = Signals::new([SIGTERM]).map_err(EndpointError::io("handling signals"))?;
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            inbox.send(Message::End);
        }
    });
    Ok(())
}

fn last_words(counted: &Statistics) -> Value {
    let entries = counted.entries();
    let statistics: Map<String, Value> = entries
        .map(|(metric, value)| (metric.name.to_owned(), value.into()))
        .collect();
    json!({"error": null, "statistics": statistics, "version": version()})
}

fn address(field: &'static str, text: &str) -> Result<SocketAddr, EndpointError> {
    text.parse().map_err(|_| EndpointError::Field {
        field,
        value: text.to_owned(),
        problem: "write an address and a port, such as 192.0.2.1:443".to_owned(),
    })
}
