//! What noq says differently from quinn.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use bentpipe_endpoint::Received;
use bytes::Bytes;
use noq_proto::{
    Connection, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig, FourTuple, SendStream,
    ServerConfig, Transmit, WriteError,
};

pub use bentpipe_noq_options::{NAME, Peers, log_to};

use crate::inbox::Reading;

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
