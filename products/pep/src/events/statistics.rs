//! The counters of a proxy.

bentpipe_service::statistics! {
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
