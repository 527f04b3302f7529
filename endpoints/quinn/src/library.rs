//! quinn as a [`Library`]: what it differs in from noq.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bentpipe_endpoint::{EndpointError, LogFolder, Options, Received, Surroundings};
use bentpipe_quinn_adapter::proto::congestion::{BbrConfig, CubicConfig, NewRenoConfig};
use bentpipe_quinn_adapter::proto::{
    Connection, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig, QlogConfig, SendStream,
    ServerConfig, Transmit, TransportConfig, WriteError,
};
use bentpipe_quinn_adapter::{ChosenController, Library, PathMemory, ReadOrder, Tuning};
use bytes::Bytes;

/// The library quinn, as it comes.
#[derive(Debug)]
pub struct Quinn;

/// The memory of paths that quinn does not have.
#[derive(Debug, Default)]
pub struct NoPathMemory;

impl PathMemory for NoPathMemory {
    fn connecting_to(&self, _: SocketAddr) {}

    fn learn_from(&self, _: &Connection) {}
}

impl Library for Quinn {
    const NAME: &'static str = "quinn";
    const VERSION: &'static str = "quinn-proto 0.11.19";
    const DEFAULT_WINDOW: Option<u64> = None;
    const READ_ORDER: ReadOrder = ReadOrder::Ordered;

    type Paths = NoPathMemory;

    fn local_address_changed(connection: &mut Connection, _: Instant) {
        connection.local_address_changed();
    }

    fn congestion_control(
        tuning: &Tuning,
        _: &Surroundings,
        _: &mut Options,
        _: &NoPathMemory,
    ) -> Result<Option<ChosenController>, EndpointError> {
        let window = tuning.initial_window;
        Ok(Some(match tuning.cc.as_deref() {
            None if window.is_none() => return Ok(None),
            None | Some("cubic") => ChosenController::of(window, CubicConfig::initial_window),
            Some("newreno") => ChosenController::of(window, NewRenoConfig::initial_window),
            Some("bbr") => ChosenController::of(window, BbrConfig::initial_window),
            Some(other) => {
                let problem = "write newreno, cubic or bbr";
                return Err(EndpointError::option("cc", other, problem));
            }
        }))
    }

    /// quinn writes all connections of a configuration into one file.
    fn log_to(folder: &LogFolder, start: Instant, transport: &mut TransportConfig) {
        let Some(file) = folder.create() else { return };
        let mut config = QlogConfig::default();
        config
            .writer(Box::new(file))
            .title(Some(Self::NAME.into()))
            .start_time(start);
        transport.qlog_stream(config.into_stream());
    }

    fn endpoint(config: Arc<EndpointConfig>, server: Option<Arc<ServerConfig>>) -> Endpoint {
        Endpoint::new(config, server, true, None)
    }

    fn handle(
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

    fn poll_transmit(
        connection: &mut Connection,
        now: Instant,
        max_datagrams: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        connection.poll_transmit(now, max_datagrams, buffer)
    }

    fn write(stream: &mut SendStream<'_>, data: &mut Bytes) -> Result<(), WriteError> {
        stream.write_chunks(std::slice::from_mut(data)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_one_that_is_locked() {
        let (name, version) = Quinn::VERSION.split_once(' ').unwrap();
        let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
        assert!(
            include_str!("../../../Cargo.lock").contains(&entry),
            "update VERSION"
        );
    }
}
