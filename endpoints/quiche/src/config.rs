//! Settings of quiche for the variant's options and the trial.
//!
//! quiche as a library grants no flow control credit and no streams by default. What it needs, and
//! all else that its own `quiche-client` and `quiche-server` set, is set as they do.

use std::time::Duration;

use bentpipe_endpoint::{EndpointError, FLOW_CONTROL_WINDOWS, Options, Role, Setup, TestCase};
use boring::ssl::{SslContextBuilder, SslMethod, SslSignatureAlgorithm};
use quiche::{Config, CongestionControlAlgorithm};

/// The largest UDP payload of quiche's own programs.
const MTU: usize = 1350;
const IDLE_TIMEOUT_MS: u64 = 30_000;
const STREAMS: u64 = 100;
const CONNECTION_CREDIT: u64 = 10_000_000;
const STREAM_CREDIT: u64 = 1_000_000;

/// The smallest that QUIC allows (RFC 9000, section 14), and the most that an IPv4 packet carries.
const MTU_RANGE: std::ops::RangeInclusive<usize> = 1200..=65_507;
/// From what a cable takes to ten times a geostationary satellite.
const INITIAL_RTT_RANGE_MS: std::ops::RangeInclusive<u64> = 1..=6000;

/// quiche's configuration, and the size of the datagrams that it sends.
pub fn configure(setup: &Setup, options: &mut Options) -> Result<(Config, usize), EndpointError> {
    let mut config = Config::with_boring_ssl_ctx_builder(quiche::PROTOCOL_VERSION, tls()?)
        .map_err(EndpointError::tls)?;
    config
        .set_application_protos(&[b"hq-interop"])
        .map_err(EndpointError::tls)?;
    match setup.role {
        Role::Client => {
            let ca = setup.certificate_file("ca.pem")?;
            config
                .load_verify_locations_from_file(&ca)
                .map_err(EndpointError::tls)?;
            config.verify_peer(true);
        }
        Role::Server => {
            let chain = setup.certificate_file("cert.pem")?;
            let key = setup.certificate_file("priv.key")?;
            config
                .load_cert_chain_from_pem_file(&chain)
                .map_err(EndpointError::tls)?;
            config
                .load_priv_key_from_pem_file(&key)
                .map_err(EndpointError::tls)?;
        }
    }
    if early_data(setup) {
        config.enable_early_data();
    }
    if setup.keylog.is_some() {
        config.log_keys();
    }
    config.set_max_idle_timeout(IDLE_TIMEOUT_MS);
    config.set_initial_max_streams_bidi(STREAMS);
    config.set_initial_max_streams_uni(STREAMS);
    // What quiche's own programs take an option for.
    config.set_disable_active_migration(setup.paths.len() < 2);
    set_windows(&mut config, options)?;
    set_congestion_control(&mut config, options)?;
    let mtu = options.take_number("mtu", MTU_RANGE)?.unwrap_or(MTU);
    config.set_max_send_udp_payload_size(mtu);
    config.set_max_recv_udp_payload_size(mtu.max(MTU));
    Ok((config, mtu))
}

/// A server issues tickets in any case, by default; those of these two test cases allow early data.
fn early_data(setup: &Setup) -> bool {
    match setup.role {
        Role::Client => setup.test_case == TestCase::ZeroRtt,
        Role::Server => matches!(setup.test_case, TestCase::Resumption | TestCase::ZeroRtt),
    }
}

/// `BoringSSL` as it comes, but for Ed25519: the certificates of a trial are signed with it, and it
/// is not among what `BoringSSL` accepts by default.
fn tls() -> Result<SslContextBuilder, EndpointError> {
    let mut builder = SslContextBuilder::new(SslMethod::tls()).map_err(EndpointError::tls)?;
    builder
        .set_verify_algorithm_prefs(&[
            SslSignatureAlgorithm::ED25519,
            SslSignatureAlgorithm::ECDSA_SECP256R1_SHA256,
            SslSignatureAlgorithm::RSA_PSS_RSAE_SHA256,
        ])
        .map_err(EndpointError::tls)?;
    Ok(builder)
}

/// By default the windows grow up to quiche's own limits, 24 MiB for a connection and 16 MiB for a
/// stream.
fn set_windows(config: &mut Config, options: &mut Options) -> Result<(), EndpointError> {
    let window = options.take_number("window", FLOW_CONTROL_WINDOWS)?;
    let stream_credit = window.unwrap_or(STREAM_CREDIT);
    config.set_initial_max_data(window.unwrap_or(CONNECTION_CREDIT));
    config.set_initial_max_stream_data_bidi_local(stream_credit);
    config.set_initial_max_stream_data_bidi_remote(stream_credit);
    config.set_initial_max_stream_data_uni(stream_credit);
    if let Some(window) = window {
        config.set_max_connection_window(window);
        config.set_max_stream_window(window);
    }
    Ok(())
}

fn set_congestion_control(config: &mut Config, options: &mut Options) -> Result<(), EndpointError> {
    use CongestionControlAlgorithm::{Bbr2Gcongestion, CUBIC, Reno};
    let algorithms = [
        ("newreno", Reno),
        ("cubic", CUBIC),
        ("bbr2", Bbr2Gcongestion),
    ];
    let algorithm = options.take_word("cc", &algorithms)?.unwrap_or(CUBIC);
    config.set_cc_algorithm(algorithm);
    let is_bbr = algorithm == Bbr2Gcongestion;
    if is_bbr && let Some(value) = options.take("ss") {
        let problem = "bbr2 has a start-up of its own";
        return Err(EndpointError::option("ss", &value, problem));
    }
    if let Some(on) = options.take_word("ss", &[("standard", false), ("hystart++", true)])? {
        config.enable_hystart(on);
    }
    match options.take_switch("pacing")? {
        Some(true) if !is_bbr => {
            let problem = "quiche paces with bbr2 only";
            return Err(EndpointError::option("pacing", "on", problem));
        }
        Some(on) => config.enable_pacing(on),
        None => {}
    }
    if let Some(millis) = options.take_number("initial_rtt", INITIAL_RTT_RANGE_MS)? {
        config.set_initial_rtt(Duration::from_millis(millis));
    }
    if let Some(packets) = options.take_number("iw", 1..=1_000_000)? {
        config.set_initial_congestion_window_packets(packets);
    }
    Ok(())
}
