//! The counters of a relay.

bentpipe_service::statistics! {
    /// Connections of clients that were accepted.
    connections_total: Counter,
    /// Connections of clients whose connection to the next hop stood.
    established_total: Counter,
    /// Pairs of connections that ended in order, both directions.
    closed_total: Counter,
    /// Pairs of connections that ended by a reset, or could not be connected.
    reset_total: Counter,
    /// Pairs of connections that ended because nothing moved, or nobody answered, for too long.
    timed_out_total: Counter,
    /// Clients that were turned away.
    refused_total: Counter,
    /// Times that a pair had to wait for memory.
    starved_total: Counter,
    /// Times that no connection could be accepted for want of descriptors or kernel memory.
    paused_total: Counter,
    /// Connections of clients that found one of the pool ready.
    pool_hits_total: Counter,
    /// Connections of clients that found none, where one should have been.
    pool_misses_total: Counter,
    /// Bytes that were carried towards servers.
    bytes_to_servers_total: Counter,
    /// Bytes that were carried towards clients.
    bytes_to_clients_total: Counter,
    /// Connections of clients, each with one to its next hop.
    connections: Gauge,
    /// Clients whose handshake waits for their server's.
    asking: Gauge,
    /// Connections of a terminal's pool on which nobody has said yet where to go.
    arriving: Gauge,
    /// Connections of the pool that are ready for clients to come.
    pool: Gauge,
    /// Bytes that one side has given and the other not yet taken.
    held_bytes: Gauge,
    /// Buffers in which such bytes wait.
    buffers: Gauge,
}
