//! Settings of s2n-quic for a variant's options.

use bentpipe_endpoint::{EndpointError, Options, Setup};
use s2n_quic::provider::congestion_controller::{bbr, cubic};
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::mtu;

/// s2n-quic wants to be built for one congestion control or the other.
pub enum CongestionControl {
    Cubic(s2n_quic::provider::congestion_controller::Cubic),
    Bbr(s2n_quic::provider::congestion_controller::Bbr),
}

/// All settings of an endpoint; what no option asks for has the library's default.
pub struct Settings {
    pub congestion_control: CongestionControl,
    pub limits: Limits,
    pub mtu: mtu::Config,
}

/// The UDP payload that every path carries (RFC 9000, section 14), with which s2n-quic begins.
const SMALLEST_PAYLOAD: u16 = 1200;
/// The UDP payload of an Ethernet frame.
const LARGEST_PAYLOAD: u16 = 1472;
/// The default size of a stream's send buffer, in bytes. `window` is about credit for the other
/// side: a small one must not throttle what this side sends, and a large one is of no use if less
/// can be sent.
const DEFAULT_SEND_BUFFER: u32 = 4096 * 1024;
/// The least congestion windows, in packets.
const CUBIC_LEAST: u32 = 2;
const BBR_LEAST: u32 = 4;
/// By its mere presence this variable of the environment turns `HyStart` into `HyStart++`.
const HYSTART_PLUS_PLUS: &str = "S2N_UNSTABLE_USE_HYSTART_PP";

impl Settings {
    pub fn new(setup: &Setup, options: &mut Options) -> Result<Self, EndpointError> {
        let payload = options.take_number("mtu", SMALLEST_PAYLOAD..=LARGEST_PAYLOAD)?;
        Ok(Self {
            congestion_control: congestion_control(options, payload.unwrap_or(SMALLEST_PAYLOAD))?,
            limits: limits(options)?,
            mtu: mtu_config(setup, payload)?,
        })
    }
}

fn congestion_control(
    options: &mut Options,
    payload: u16,
) -> Result<CongestionControl, EndpointError> {
    let is_bbr = options.take_word("cc", &[("cubic", false), ("bbr2", true)])?;
    if is_bbr == Some(true) {
        let mut builder = bbr::Builder::default();
        if let Some(window) = initial_window(options, BBR_LEAST, payload)? {
            builder = builder.with_initial_congestion_window(window);
        }
        return Ok(CongestionControl::Bbr(builder.build()));
    }
    slow_start(options)?;
    let mut builder = cubic::Builder::default();
    if let Some(window) = initial_window(options, CUBIC_LEAST, payload)? {
        builder = builder.with_initial_congestion_window(window);
    }
    Ok(CongestionControl::Cubic(builder.build()))
}

/// In bytes. A window of less than `least` packets would be raised to that.
fn initial_window(
    options: &mut Options,
    least: u32,
    payload: u16,
) -> Result<Option<u32>, EndpointError> {
    let packets = options.take_number("iw", least..=1_000_000)?;
    Ok(packets.map(|packets| packets * u32::from(payload)))
}

/// BBR has its own start, so `ss` is left over there, and refused.
#[expect(unsafe_code, reason = "s2n-quic takes this from the environment only")]
fn slow_start(options: &mut Options) -> Result<(), EndpointError> {
    let is_plus_plus = options.take_word("ss", &[("hystart", false), ("hystart++", true)])?;
    // SAFETY: the program has one thread.
    match is_plus_plus {
        Some(true) => unsafe { std::env::set_var(HYSTART_PLUS_PLUS, "1") },
        _ => unsafe { std::env::remove_var(HYSTART_PLUS_PLUS) },
    }
    Ok(())
}

fn limits(options: &mut Options) -> Result<Limits, EndpointError> {
    let window = options.take_number("window", 1..=u32::MAX)?;
    let mut limits = Limits::new();
    if let Some(window) = window {
        let credit = u64::from(window);
        limits = limits
            .with_data_window(credit)
            .and_then(|limits| limits.with_bidirectional_local_data_window(credit))
            .and_then(|limits| limits.with_bidirectional_remote_data_window(credit))
            .and_then(|limits| limits.with_max_send_buffer_size(window.max(DEFAULT_SEND_BUFFER)))
            .map_err(refused)?;
    }
    Ok(limits)
}

/// s2n-quic counts IP packets, and takes the shortest headers.
fn mtu_config(setup: &Setup, payload: Option<u16>) -> Result<mtu::Config, EndpointError> {
    let headers = if setup.local.is_ipv4() { 28 } else { 48 };
    let mut builder = mtu::Builder::default();
    if let Some(payload) = payload {
        let size = payload + headers;
        builder = builder
            .with_base_mtu(size)
            .and_then(|builder| builder.with_initial_mtu(size))
            .and_then(|builder| builder.with_max_mtu(size))
            .map_err(refused)?;
    }
    builder.build().map_err(refused)
}

fn refused(error: impl std::fmt::Display) -> EndpointError {
    EndpointError::Unsupported(format!("s2n-quic refuses a limit: {error}"))
}
