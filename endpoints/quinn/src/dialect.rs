//! What quinn says differently from noq.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bentpipe_endpoint::{EndpointError, LogFolder, Options, Received, Surroundings};
use bytes::Bytes;
use quinn_proto::congestion::{BbrConfig, CubicConfig, NewRenoConfig};
use quinn_proto::{
    Connection, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig, QlogConfig, SendStream,
    ServerConfig, Transmit, TransportConfig, WriteError,
};

use crate::inbox::Reading;
use crate::options::{Control, Tuning};

pub const NAME: &str = "quinn";
pub const VERSION: &str = "quinn-proto 0.11.19";
/// quinn is run as it is.
pub const DEFAULT_WINDOW: Option<u64> = None;
/// As quinn's own streams are read.
pub const READING: Reading = Reading::Ordered;

pub fn endpoint(config: Arc<EndpointConfig>, server: Option<Arc<ServerConfig>>) -> Endpoint {
    Endpoint::new(config, server, true, None)
}

pub fn handle(
    endpoint: &mut Endpoint,
    now: Instant,
    datagram: Received,
    buffer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    let Received {
        remote,
        local_ip,
        ecn,
        payload,
    } = datagram;
    endpoint.handle(
        now,
        remote,
        local_ip,
        EcnCodepoint::from_bits(ecn),
        payload,
        buffer,
    )
}

pub fn poll_timeout(connection: &mut Connection) -> Option<Instant> {
    connection.poll_timeout()
}

pub fn poll_transmit(
    connection: &mut Connection,
    now: Instant,
    max_datagrams: usize,
    buffer: &mut Vec<u8>,
) -> Option<Transmit> {
    connection.poll_transmit(now, max_datagrams, buffer)
}

pub fn write(stream: &mut SendStream<'_>, data: &mut Bytes) -> Result<(), WriteError> {
    stream.write_chunks(std::slice::from_mut(data)).map(drop)
}

pub fn congestion_control(
    tuning: &Tuning,
    _around: &Surroundings,
    _options: &mut Options,
    _peers: &Peers,
) -> Result<Option<Control>, EndpointError> {
    let window = tuning.initial_window;
    Ok(Some(match tuning.cc.as_deref() {
        None if window.is_none() => return Ok(None),
        None | Some("cubic") => {
            let mut config = CubicConfig::default();
            window.map(|bytes| config.initial_window(bytes).clone());
            Control::of(config)
        }
        Some("newreno") => {
            let mut config = NewRenoConfig::default();
            window.map(|bytes| config.initial_window(bytes).clone());
            Control::of(config)
        }
        Some("bbr") => {
            let mut config = BbrConfig::default();
            window.map(|bytes| config.initial_window(bytes).clone());
            Control::of(config)
        }
        Some(other) => {
            let what = format!("option cc = {other:?}: write newreno, cubic or bbr");
            return Err(EndpointError::Unsupported(what));
        }
    }))
}

/// quinn remembers no paths.
#[derive(Debug, Default)]
pub struct Peers(());

#[expect(clippy::unused_self, reason = "noq's does something")]
impl Peers {
    pub fn meet(&self, _: SocketAddr) {}

    pub fn part(&self, _: &Connection) {}
}

/// quinn writes all connections of a configuration into one file.
pub fn log_to(folder: &LogFolder, start: Instant, transport: &mut TransportConfig) {
    let Some(file) = folder.create() else { return };
    let mut config = QlogConfig::default();
    config
        .writer(Box::new(file))
        .title(Some(NAME.into()))
        .start_time(start);
    transport.qlog_stream(config.into_stream());
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_version_is_the_one_that_is_locked() {
        let (name, version) = super::VERSION.split_once(' ').unwrap();
        let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
        assert!(
            include_str!("../../../Cargo.lock").contains(&entry),
            "update VERSION"
        );
    }
}
