//! The contract's options that both libraries have.

use bentpipe_endpoint::{
    EndpointError, FLOW_CONTROL_WINDOWS, Options, PathEnds, Setup, Surroundings,
};
use proto::{AckFrequencyConfig, TransportConfig, VarInt};

use crate::library::{Library, Report, Tuning};

/// The datagram size in which both libraries count their initial windows, and the smallest that
/// QUIC allows.
const BASE_DATAGRAM_SIZE: u16 = 1200;
/// The largest UDP payload that both libraries accept from a peer by default: an Ethernet frame's.
const LARGEST_DATAGRAM_SIZE: u16 = 1472;
/// The default size of both libraries' send buffers, in bytes. `window` is about credit for the
/// other side: a small one must not throttle what this side sends, and a large one is of no use if
/// less can be sent.
const DEFAULT_SEND_WINDOW: u64 = 10_000_000;

/// Takes the words that both libraries have out of `options`, and those of congestion control.
///
/// Returns what will report on congestion control.
pub fn apply<L: Library>(
    transport: &mut TransportConfig,
    surroundings: &Surroundings,
    options: &mut Options,
    paths: &L::Paths,
) -> Result<Option<Report>, EndpointError> {
    L::own_options(transport, surroundings, options, paths)?;
    let packets = options.take_number("iw", 1..=1_000_000)?;
    let tuning = Tuning {
        cc: options.take("cc"),
        initial_window: packets.map(|packets| packets * u64::from(BASE_DATAGRAM_SIZE)),
        ack: options.take_number("ack", 1..=1_000_000)?,
    };
    let (mut report, mut ack) = (None, None);
    if let Some(control) = L::congestion_control(&tuning, surroundings, options, paths)? {
        transport.congestion_controller_factory(control.factory);
        (report, ack) = (control.report, control.ack);
    }
    if let Some(window) = flow_control_window::<L>(options)? {
        let credit = integer(window);
        transport
            .receive_window(credit)
            .stream_receive_window(credit)
            .send_window(window.max(DEFAULT_SEND_WINDOW));
    }
    let sizes = BASE_DATAGRAM_SIZE..=LARGEST_DATAGRAM_SIZE;
    if let Some(size) = options.take_number("mtu", sizes)? {
        // The minimum, too: otherwise a burst of losses would be taken for a path that carries
        // less.
        transport
            .initial_mtu(size)
            .min_mtu(size)
            .mtu_discovery_config(None);
    }
    if let Some(packets) = tuning.ack.or(ack) {
        let mut config = AckFrequencyConfig::default();
        // The extension counts the packets that need no ACK.
        config.ack_eliciting_threshold(integer(packets - 1));
        transport.ack_frequency_config(Some(config));
    }
    Ok(report)
}

/// The paths of the setup that are to be used, by number; none where there is one, or where the
/// option `multipath` says so, or a client migrates from one to another.
pub fn take_paths<L: Library>(
    setup: &Setup,
    options: &mut Options,
) -> Result<Vec<PathEnds>, EndpointError> {
    if !L::KNOWS_PATHS {
        return Ok(Vec::new());
    }
    match options.take("multipath").as_deref() {
        Some("on") if setup.migrates() => {
            let problem = "a client that migrates has one path at a time; write off";
            Err(EndpointError::option("multipath", "on", problem))
        }
        None | Some("off") if setup.migrates() => Ok(Vec::new()),
        None | Some("on") => Ok(setup.paths.clone()),
        Some("off") => Ok(Vec::new()),
        Some(other) => Err(EndpointError::option("multipath", other, "write on or off")),
    }
}

/// The flow control window in bytes; `None`: the library's own.
fn flow_control_window<L: Library>(options: &mut Options) -> Result<Option<u64>, EndpointError> {
    match options.take("window").as_deref() {
        None => Ok(L::DEFAULT_WINDOW),
        Some("library") => Ok(None),
        Some(text) => match text.parse() {
            Ok(window) if FLOW_CONTROL_WINDOWS.contains(&window) => Ok(Some(window)),
            _ => {
                let (least, most) = FLOW_CONTROL_WINDOWS.into_inner();
                let problem =
                    format!("write a whole number of bytes from {least} to {most}, or library");
                Err(EndpointError::option("window", text, &problem))
            }
        },
    }
}

fn integer(value: u64) -> VarInt {
    VarInt::from_u64(value).expect("the range of the option ensures it")
}
