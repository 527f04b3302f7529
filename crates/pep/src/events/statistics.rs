//! What a proxy counts.

/// The kind of a number: what becomes of it in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// It only grows.
    Counter,
    /// It is what it is at the moment.
    Gauge,
}

/// The description of a number that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its name, without the program's.
    pub name: &'static str,
    /// What becomes of it in time.
    pub kind: MetricKind,
    /// What it is, in a line.
    pub help: &'static str,
}

macro_rules! statistics {
    ($(#[doc = $help:literal] $name:ident: $kind:ident,)*) => {
        /// Counters since the start, and gauges.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct Statistics {
            $(#[doc = $help] pub $name: u64,)*
        }

        impl Statistics {
            /// All of them, in a fixed order; with what they are.
            pub fn entries(&self) -> impl Iterator<Item = (Metric, u64)> + use<> {
                let metric = |name, kind, help: &'static str| {
                    Metric { name, kind, help: help.trim_start() }
                };
                [$((metric(stringify!($name), MetricKind::$kind, $help), self.$name),)*].into_iter()
            }
        }
    };
}

statistics! {
    /// Connections of clients that were begun.
    connections_total: Counter,
    /// Connections of clients of which both handshakes were completed.
    established_total: Counter,
    /// Connections that an application closed.
    closed_by_application_total: Counter,
    /// Connections that ended by an error.
    closed_by_error_total: Counter,
    /// Clients that were turned away.
    refused_total: Counter,
    /// Clients that were asked to show that they are at their address.
    retried_total: Counter,
    /// Connections to next hops that resumed a TLS session.
    resumed_total: Counter,
    /// Connections of clients that found one to the next hop ready.
    warm_hits_total: Counter,
    /// Connections of clients that found none, where one should have been.
    warm_misses_total: Counter,
    /// Flows that were forwarded untouched.
    asides_total: Counter,
    /// Bytes of streams that were carried towards servers.
    bytes_to_servers_total: Counter,
    /// Bytes of streams that were carried towards clients.
    bytes_to_clients_total: Counter,
    /// DATAGRAM frames that were handed on.
    datagrams_total: Counter,
    /// DATAGRAM frames that were too large for the other side.
    datagrams_too_large_total: Counter,
    /// DATAGRAM frames that the other side does not take.
    datagrams_unsupported_total: Counter,
    /// Events that nobody fetched in time.
    events_lost_total: Counter,
    /// Connections of clients.
    connections: Gauge,
    /// Clients whose first packets are not complete.
    arriving: Gauge,
    /// Directions of streams that are under way.
    streams: Gauge,
    /// Streams that wait for the other side to allow them.
    waiting_streams: Gauge,
    /// Bytes that one side has given and the other not yet taken.
    held_bytes: Gauge,
    /// Connections to next hops that are ready for clients to come.
    warm: Gauge,
    /// Flows that are forwarded untouched.
    asides: Gauge,
    /// The library's connections on the client side, with those that drain.
    client_side: Gauge,
    /// The library's connections on the server side, with those that drain.
    server_side: Gauge,
}
