//! Settings of tquic for a variant's options and the trial's certificates.

use bentpipe_endpoint::{EndpointError, FLOW_CONTROL_WINDOWS, Options, Role, Setup};
use tquic::{Config, CongestionControlAlgorithm, TlsConfig};

const ALPN: &[u8] = b"hq-interop";
/// tquic has no default; its own client and server set this.
const IDLE_TIMEOUT_MS: u64 = 30_000;
/// The size of tquic's datagrams unless path MTU discovery finds a larger one.
const UNDISCOVERED_DATAGRAM: u64 = 1200;
const ALGORITHMS: [(&str, CongestionControlAlgorithm); 4] = [
    ("cubic", CongestionControlAlgorithm::Cubic),
    ("bbr", CongestionControlAlgorithm::Bbr),
    ("bbr3", CongestionControlAlgorithm::Bbr3),
    ("copa", CongestionControlAlgorithm::Copa),
];

/// tquic's defaults, changed by `options`.
pub fn new(setup: &Setup, options: &mut Options) -> Result<Config, EndpointError> {
    let mut config = Config::new().map_err(EndpointError::tls)?;
    config.set_max_idle_timeout(IDLE_TIMEOUT_MS);
    let algorithm = options.take_word("cc", &ALGORITHMS)?;
    if let Some(algorithm) = algorithm {
        config.set_congestion_control_algorithm(algorithm);
    }
    if let Some(packets) = options.take_number("ssthresh", 2..=1_000_000)? {
        if algorithm != Some(CongestionControlAlgorithm::Cubic) {
            let what = "option ssthresh: only cc=cubic has one".into();
            return Err(EndpointError::Unsupported(what));
        }
        config.set_slow_start_thresh(packets);
    }
    if let Some(packets) = options.take_number("iw", 1..=1_000_000)? {
        config.set_initial_congestion_window(packets);
    }
    if let Some(packets) = options.take_number("ack", 1..=1_000_000)? {
        config.set_ack_eliciting_threshold(packets);
    }
    if let Some(on) = options.take_switch("pacing")? {
        config.enable_pacing(on);
    }
    let fixed = UNDISCOVERED_DATAGRAM..=UNDISCOVERED_DATAGRAM;
    if options.take_number("mtu", fixed)?.is_some() {
        config.enable_dplpmtud(false);
    }
    if let Some(bytes) = options.take_number("window", FLOW_CONTROL_WINDOWS)? {
        set_window(&mut config, bytes);
    }
    let tls = match setup.role {
        Role::Server => server_tls(setup)?,
        Role::Client => client_tls(setup, false)?,
    };
    config.set_tls_config(tls);
    Ok(config)
}

/// A client's configuration, for a connection that may send early data.
pub fn with_early_data(config: &Config, setup: &Setup) -> Result<Config, EndpointError> {
    let mut config = config.clone();
    config.set_tls_config(client_tls(setup, true)?);
    Ok(config)
}

/// A window that is at its limit from the start does not grow.
fn set_window(config: &mut Config, bytes: u64) {
    config.set_max_connection_window(bytes);
    config.set_max_stream_window(bytes);
    config.set_initial_max_data(bytes);
    config.set_initial_max_stream_data_bidi_local(bytes);
    config.set_initial_max_stream_data_bidi_remote(bytes);
}

fn server_tls(setup: &Setup) -> Result<TlsConfig, EndpointError> {
    let certificate = setup.certificate_file("cert.pem")?;
    let key = setup.certificate_file("priv.key")?;
    TlsConfig::new_server_config(&certificate, &key, vec![ALPN.to_vec()], true)
        .map_err(EndpointError::tls)
}

fn client_tls(setup: &Setup, early_data: bool) -> Result<TlsConfig, EndpointError> {
    let ca = setup.certificate_file("ca.pem")?;
    let mut tls = TlsConfig::new_client_config(vec![ALPN.to_vec()], early_data)
        .map_err(EndpointError::tls)?;
    tls.set_ca_certs(&ca).map_err(EndpointError::tls)?;
    tls.set_verify(true);
    Ok(tls)
}
