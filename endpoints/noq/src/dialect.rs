//! What noq says differently from quinn.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use bentpipe_endpoint::{EndpointError, LogFolder, Received};
use bytes::Bytes;
use noq_proto::congestion::{Bbr3Config, ControllerFactory, CubicConfig, NewRenoConfig};
use noq_proto::{
    Connection, ConnectionId, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig, FourTuple,
    QlogConfig, QlogFactory, SendStream, ServerConfig, Side, Transmit, TransportConfig, WriteError,
};

use crate::inbox::Reading;
use crate::options::Tuning;

pub const NAME: &str = "noq";
pub const VERSION: &str = "noq-proto 1.4.0";
/// In order, overshoot ends connections: see `docs/upstream/gaps.md`.
pub const READING: Reading = Reading::Unordered;

pub fn endpoint(config: Arc<EndpointConfig>, server: Option<Arc<ServerConfig>>) -> Endpoint {
    Endpoint::new(config, server, true)
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
        FourTuple::new(remote, local_ip),
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
    let max_datagrams = NonZeroUsize::new(max_datagrams).expect("a poll may return a datagram");
    connection.poll_transmit(now, max_datagrams, buffer)
}

pub fn write(stream: &mut SendStream<'_>, data: &mut Bytes) -> Result<(), WriteError> {
    stream
        .write_chunks(&mut std::slice::from_mut(data))
        .map(drop)
}

pub fn congestion_control(
    tuning: &Tuning,
) -> Result<Option<Arc<dyn ControllerFactory + Send + Sync>>, EndpointError> {
    let window = tuning.initial_window;
    Ok(Some(match tuning.cc.as_deref() {
        None if window.is_none() => return Ok(None),
        None | Some("cubic") => {
            let mut config = CubicConfig::default();
            window.map(|bytes| config.initial_window(bytes).clone());
            Arc::new(config)
        }
        Some("newreno") => {
            let mut config = NewRenoConfig::default();
            window.map(|bytes| config.initial_window(bytes).clone());
            Arc::new(config)
        }
        Some("bbr3") => {
            let mut config = Bbr3Config::default();
            window.map(|bytes| config.initial_window(bytes).clone());
            Arc::new(config)
        }
        Some(other) => {
            let what = format!("option cc = {other:?}: write newreno, cubic or bbr3");
            return Err(EndpointError::Unsupported(what));
        }
    }))
}

/// noq writes a file per connection.
pub fn log_to(folder: &LogFolder, start: Instant, transport: &mut TransportConfig) {
    transport.qlog_factory(Arc::new(FilePerConnection {
        folder: folder.clone(),
        start,
    }));
}

struct FilePerConnection {
    folder: LogFolder,
    start: Instant,
}

impl QlogFactory for FilePerConnection {
    fn for_connection(
        &self,
        _side: Side,
        _remote: SocketAddr,
        _initial_dst_cid: ConnectionId,
        _now: Instant,
    ) -> Option<QlogConfig> {
        let mut config = QlogConfig::new(Box::new(self.folder.create()?));
        config.title(Some(NAME.into())).start_time(self.start);
        Some(config)
    }
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
