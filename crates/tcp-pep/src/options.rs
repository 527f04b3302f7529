//! The options of a proxy (`proxies/tcp-pep/proxy.toml`).

use bentpipe_endpoint::{EndpointError, Options};
use bentpipe_linux_tcp::{NamespaceSettings, WINDOWS, congestion_control};

/// Bytes that may wait between two connections, in each direction, unless `buffer` says otherwise.
const BUFFER_BYTES: u64 = 1 << 18;
/// More than this is none for each of thousands of connections.
const BUFFER_LIMIT: u64 = 1 << 26;

/// A configuration of Kuhn 2020, table III: the largest buffers of senders and receivers, in bytes, and
/// the initial window, in packets.
struct Configuration {
    name: &'static str,
    sender: u64,
    receiver: u64,
    initial_window: u64,
}

const fn configuration(
    name: &'static str,
    [sender, receiver, initial_window]: [u64; 3],
) -> Configuration {
    Configuration {
        name,
        sender,
        receiver,
        initial_window,
    }
}

const CONFIGURATIONS: [Configuration; 4] = [
    configuration("A", [4_000_000, 6_000_000, 10]),
    configuration("B", [4_000_000, 6_000_000, 100]),
    configuration("C", [33_000_000, 33_000_000, 10]),
    configuration("D", [33_000_000, 33_000_000, 100]),
];

/// A side of the proxy: what its connections are like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    /// The kernel's name of the congestion control.
    pub congestion: String,
    /// The initial window in packets; None: the kernel's.
    pub initial_window: Option<u32>,
}

/// The options of a proxy, as it takes them.
#[derive(Debug)]
pub struct ProxyOptions {
    /// Towards the client.
    pub client_side: Side,
    /// Towards the server.
    pub server_side: Side,
    /// Bytes that may wait between two connections, in each direction.
    pub buffer: usize,
    /// Of the host's network namespace.
    pub settings: NamespaceSettings,
}

impl ProxyOptions {
    /// Reads the options of a proxy at the terminal or at the gateway.
    pub fn read(mut given: Options, is_terminal: bool) -> Result<Self, EndpointError> {
        let mut settings = NamespaceSettings::new();
        let chosen = configuration_of(&mut given)?;
        if let Some(chosen) = chosen {
            settings.window(chosen.sender, chosen.receiver)?;
        }
        if let Some(window) = given.take_number("window", WINDOWS)? {
            settings.window(window, window)?;
        }
        let buffer = given.take_number("buffer", 4096..=BUFFER_LIMIT)?;
        let window = chosen.map(|it| it.initial_window);
        let satellite = side(&mut given, "", window)?;
        let other = side(
            &mut given,
            if is_terminal { "access." } else { "ground." },
            window,
        )?;
        given.finish()?;
        let (client_side, server_side) = if is_terminal {
            (other, satellite)
        } else {
            (satellite, other)
        };
        Ok(Self {
            client_side,
            server_side,
            buffer: usize::try_from(buffer.unwrap_or(BUFFER_BYTES)).expect("it is small"),
            settings,
        })
    }
}

fn configuration_of(given: &mut Options) -> Result<Option<&'static Configuration>, EndpointError> {
    let Some(name) = given.take("config") else {
        return Ok(None);
    };
    let found = CONFIGURATIONS.iter().find(|it| it.name == name);
    found.map(Some).ok_or_else(|| {
        EndpointError::Unsupported(format!("option config = {name:?}: write A, B, C or D"))
    })
}

fn side(
    given: &mut Options,
    prefix: &str,
    initial_window: Option<u64>,
) -> Result<Side, EndpointError> {
    let name = given.take(&format!("{prefix}cc"));
    let packets = given.take_number(&format!("{prefix}iw"), 1..=1000)?;
    Ok(Side {
        congestion: congestion_control(name.as_deref().unwrap_or("cubic"))?,
        initial_window: packets
            .or(initial_window)
            .map(|it| u32::try_from(it).expect("it is small")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, is_terminal: bool) -> Result<ProxyOptions, String> {
        let given = Options::parse(text).unwrap();
        ProxyOptions::read(given, is_terminal).map_err(|error| error.to_string())
    }

    #[test]
    fn options_without_a_prefix_are_of_the_side_of_the_satellite() {
        let terminal = read("cc=newreno iw=20 access.iw=5 buffer=8192", true).unwrap();
        assert_eq!(terminal.server_side.congestion, "reno");
        assert_eq!(terminal.server_side.initial_window, Some(20));
        assert_eq!(terminal.client_side.initial_window, Some(5));
        assert_eq!(terminal.buffer, 8192);
        let gateway = read("iw=20", false).unwrap();
        assert_eq!(gateway.client_side.initial_window, Some(20));
        assert_eq!(gateway.server_side.initial_window, None);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, says) in [
            ("iw=0", "option iw = \"0\": write a whole number from 1"),
            ("ground.iw=5", "option ground.iw = \"5\": unknown"),
            ("config=E", "write A, B, C or D"),
            ("window=200000", "window"),
            ("cc=vegan", "this kernel has"),
        ] {
            let error = read(text, true).unwrap_err();
            assert!(
                error.contains(says) || error.contains("outside of"),
                "{error}"
            );
        }
    }
}
