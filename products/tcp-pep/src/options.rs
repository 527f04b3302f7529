//! The options of a proxy (`middleboxes/tcp-pep/middlebox.toml`).

use std::ops::RangeInclusive;

use bentpipe_endpoint::{EndpointError, Options};
use bentpipe_linux_tcp::{NamespaceSettings, WINDOWS, congestion_control};

use crate::config::{Accept, Side};

/// Bytes that may wait between two connections, in each direction, unless `buffer` says otherwise.
pub const BUFFER_BYTES: u64 = 1 << 18;
/// The least and the most that `buffer` can be: more is none for each of thousands of connections.
pub const BUFFERS: RangeInclusive<u64> = 4096..=1 << 26;
/// Packets of an initial window.
pub const INITIAL_WINDOWS: RangeInclusive<u64> = 1..=1000;
/// Bits per second that one connection may be held to.
pub const RATES: RangeInclusive<u64> = 1000..=100_000_000_000;

/// The initial window towards the satellite, in packets, where no configuration is named: with 10,
/// as the kernel has it, a proxy gains nothing over a satellite (docs/design/tcp-pep.md).
const SATELLITE_WINDOW: u64 = 100;

/// Connections of a pool.
pub const POOLS: RangeInclusive<u64> = 1..=1000;
/// Why late acceptance and a pool exclude each other.
pub const LATE_WITH_POOL: &str =
    "a connection of the pool stands already, and says nothing of the server";

/// A configuration of Kuhn 2020, table III: the largest buffers of senders and receivers, in bytes,
/// and the initial window, in packets.
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

/// The options of a proxy, as it takes them.
#[derive(Debug)]
pub struct ProxyOptions {
    /// Towards the client.
    pub client_side: Side,
    /// Towards the server.
    pub server_side: Side,
    /// When a client's handshake is answered.
    pub accept: Accept,
    /// Connections of the pool between a terminal and a gateway.
    pub pool: Option<usize>,
    /// Bytes that may wait between two connections, in each direction.
    pub buffer: usize,
    /// Settings of the host's network namespace.
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
        settings.receive_buffer(&mut given)?;
        let buffer = given.take_number("buffer", BUFFERS)?;
        let accept = accept(given.take("accept").as_deref())?;
        let pool = given.take_number("pool", POOLS)?;
        if let (Accept::Late, Some(connections)) = (accept, pool) {
            return Err(EndpointError::Unsupported(format!(
                "option accept = \"late\" with pool = \"{connections}\": {LATE_WITH_POOL}"
            )));
        }
        let window = chosen.map(|it| it.initial_window);
        let satellite = Defaults {
            initial_window: window.or(Some(SATELLITE_WINDOW)),
            is_paced: chosen.is_none(),
        };
        let satellite = side(&mut given, "", &satellite)?;
        let prefix = if is_terminal { "access." } else { "ground." };
        let other = Defaults {
            initial_window: window,
            is_paced: false,
        };
        let other = side(&mut given, prefix, &other)?;
        given.finish()?;
        let (client_side, server_side) = if is_terminal {
            (other, satellite)
        } else {
            (satellite, other)
        };
        Ok(Self {
            client_side,
            server_side,
            accept,
            pool: pool.map(|it| usize::try_from(it).expect("it is small")),
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

fn accept(word: Option<&str>) -> Result<Accept, EndpointError> {
    match word {
        None | Some("early") => Ok(Accept::Early),
        Some("late") => Ok(Accept::Late),
        Some(word) => Err(EndpointError::Unsupported(format!(
            "option accept = {word:?}: write early or late"
        ))),
    }
}

/// The settings of a side where no option says otherwise.
struct Defaults {
    initial_window: Option<u64>,
    is_paced: bool,
}

fn side(given: &mut Options, prefix: &str, defaults: &Defaults) -> Result<Side, EndpointError> {
    let name = given.take(&format!("{prefix}cc"));
    let packets = given.take_number(&format!("{prefix}iw"), INITIAL_WINDOWS)?;
    Ok(Side {
        congestion: congestion_control(name.as_deref().unwrap_or("cubic"))?,
        initial_window: packets
            .or(defaults.initial_window)
            .map(|it| u32::try_from(it).expect("it is small")),
        rate: given.take_number(&format!("{prefix}rate"), RATES)?,
        is_paced: given
            .take_switch(&format!("{prefix}pacing"))?
            .unwrap_or(defaults.is_paced),
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
        let rated = read("rate=5000000 access.rate=1000 pool=8", true).unwrap();
        assert_eq!(rated.server_side.rate, Some(5_000_000));
        assert_eq!(rated.client_side.rate, Some(1000));
        assert_eq!((rated.pool, rated.accept), (Some(8), Accept::Early));
        let gateway = read("iw=20", false).unwrap();
        assert_eq!(gateway.client_side.initial_window, Some(20));
        assert_eq!(gateway.server_side.initial_window, None);
    }

    #[test]
    fn towards_the_satellite_windows_are_large_and_paced() {
        let shape = |text: &str| {
            let read = read(text, true).unwrap();
            [read.server_side, read.client_side].map(|it| (it.initial_window, it.is_paced))
        };
        let kernels = (None, false);
        assert_eq!(shape(""), [(Some(100), true), kernels]);
        assert_eq!(shape("iw=10 pacing=off"), [(Some(10), false), kernels]);
        assert_eq!(shape("access.pacing=on")[1], (None, true));
        let rated = read("rate=8000 pacing=off", true).unwrap().server_side;
        assert_eq!(rated.pacing(), Some(1000));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, says) in [
            ("iw=0", "option iw = \"0\": write a whole number from 1"),
            ("ground.iw=5", "option ground.iw = \"5\": unknown"),
            ("config=E", "write A, B, C or D"),
            ("pacing=yes", "write on or off"),
            ("accept=never", "write early or late"),
            ("accept=late pool=3", "says nothing of the server"),
            ("pool=0", "option pool = \"0\": write a whole number from 1"),
            (
                "rate=fast",
                "option rate = \"fast\": write a whole number from 1000",
            ),
            ("window=200000", "window"),
            ("rmem=33554433", "no more than the largest buffer, 33554432"),
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
