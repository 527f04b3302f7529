//! noq as a [`Library`]: what it differs in from quinn.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use bentpipe_endpoint::{EndpointError, LogFolder, Options, PathEnds, Received, Surroundings};
use bentpipe_noq_adapter::{ChosenController, Library, PathMemory, ReadOrder, Tuning};
use bytes::Bytes;
use noq_proto::{
    Connection, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig, Event, FourTuple,
    PathStatus, SendStream, ServerConfig, Transmit, TransportConfig, WriteError,
};

use crate::remembered_paths::RememberedPaths;
use crate::{congestion, loss_detection, qlog};

/// The library noq.
#[derive(Debug)]
pub struct Noq;

impl Library for Noq {
    const NAME: &'static str = "noq";
    const VERSION: &'static str = "noq-proto 1.4.0";
    /// noq is what congestion control is studied on here: its flow control must not be the limit,
    /// on any path. Its own window, 1.25 MB for a stream, lets 16 Mbit/s through where a round trip
    /// takes 600 ms.
    const DEFAULT_WINDOW: Option<u64> = Some(512 << 20);
    /// In order, overshoot ends connections: see `docs/upstream/gaps.md`.
    const READ_ORDER: ReadOrder = ReadOrder::Unordered;

    type Paths = RememberedPaths;

    const KNOWS_PATHS: bool = true;

    fn allow_paths(transport: &mut TransportConfig, count: u32) {
        transport.max_concurrent_multipath_paths(count);
    }

    fn open_path(connection: &mut Connection, ends: PathEnds, now: Instant) -> bool {
        let path = FourTuple::new(ends.remote, Some(ends.local.ip()));
        let opened = connection.open_path_ensure(path, PathStatus::Available, now);
        opened.is_ok()
    }

    fn local_address_changed(connection: &mut Connection, now: Instant) {
        connection.handle_network_change(None, now);
    }

    fn congestion_control(
        tuning: &Tuning,
        surroundings: &Surroundings,
        options: &mut Options,
        paths: &RememberedPaths,
    ) -> Result<Option<ChosenController>, EndpointError> {
        congestion::congestion_control(tuning, surroundings, options, paths)
    }

    fn own_options(
        transport: &mut TransportConfig,
        surroundings: &Surroundings,
        options: &mut Options,
        paths: &RememberedPaths,
    ) -> Result<(), EndpointError> {
        loss_detection::take(transport, options)?;
        paths.take_bdp_frames(transport, surroundings, options)
    }

    fn log_to(folder: &LogFolder, start: Instant, transport: &mut TransportConfig) {
        qlog::log_to(Self::NAME, folder, start, transport);
    }

    fn endpoint(config: Arc<EndpointConfig>, server: Option<Arc<ServerConfig>>) -> Endpoint {
        Endpoint::new(config, server, true)
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
            FourTuple::new(remote, local_ip),
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
        let max_datagrams = NonZeroUsize::new(max_datagrams).expect("a poll may return a datagram");
        connection.poll_transmit(now, max_datagrams, buffer)
    }

    fn write(stream: &mut SendStream<'_>, data: &mut Bytes) -> Result<(), WriteError> {
        stream
            .write_chunks(&mut std::slice::from_mut(data))
            .map(drop)
    }
}

impl PathMemory for RememberedPaths {
    fn connecting_to(&self, remote: SocketAddr) {
        Self::connecting_to(self, remote);
    }

    fn learn_from(&self, connection: &Connection) {
        Self::learn_from(self, connection);
    }

    fn begun(&self, connection: &mut Connection) {
        self.return_frame(connection);
    }

    fn handle_event(&self, connection: &mut Connection, event: &Event) {
        Self::handle_event(self, connection, event);
    }

    fn tend(&self, connection: &mut Connection) {
        Self::tend(self, connection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_one_that_is_locked() {
        let (name, version) = Noq::VERSION.split_once(' ').unwrap();
        let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
        assert!(
            include_str!("../../../Cargo.lock").contains(&entry),
            "update VERSION"
        );
    }
}
