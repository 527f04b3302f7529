//! The counters of an end, over all of its connections.

use bentpipe_endpoint::contract;
use noq_proto::Connection;

bentpipe_service::statistics! {
    /// Requests for UDP or IP that were sent, or that came.
    requests_total: Counter,
    /// Requests that were answered with another status than 200.
    refused_requests_total: Counter,
    /// Requests that ended with an error.
    failed_requests_total: Counter,
    /// Connections between client and proxy that were begun.
    connections_total: Counter,
    /// Connections that the proxy turned away.
    refused_connections_total: Counter,
    /// Payloads that were sent into the tunnel as datagrams.
    sent_datagrams_total: Counter,
    /// Payloads that were sent into the tunnel in capsules.
    sent_capsules_total: Counter,
    /// Bytes of payloads that were sent into the tunnel.
    sent_bytes_total: Counter,
    /// Payloads that came out of the tunnel as datagrams.
    received_datagrams_total: Counter,
    /// Payloads that came out of the tunnel in capsules.
    received_capsules_total: Counter,
    /// Bytes of payloads that came out of the tunnel.
    received_bytes_total: Counter,
    /// Payloads that do not fit into the tunnel's packets, and were dropped.
    too_large_datagrams_total: Counter,
    /// Payloads that were dropped since too much waited already.
    queue_full_datagrams_total: Counter,
    /// Packets of QUIC that were sent beside the tunnel, in forwarded mode.
    forwarded_packets_total: Counter,
    /// Bytes of packets of QUIC that were sent beside the tunnel.
    forwarded_bytes_total: Counter,
    /// Packets of QUIC that came beside the tunnel.
    received_forwarded_packets_total: Counter,
    /// Bytes of packets of QUIC that came beside the tunnel.
    received_forwarded_bytes_total: Counter,
    /// Connection IDs that a proxy has given a virtual one, or was given one for.
    virtual_connection_ids_total: Counter,
    /// IP packets that may not pass, by their addresses, protocol, length or hops.
    refused_packets_total: Counter,
    /// Payloads of no request or connection, or of a context that nobody registered.
    unknown_datagrams_total: Counter,
    /// UDP datagrams of the tunnel that were sent between client and proxy.
    tunnel_packets_total: Counter,
    /// Bytes of UDP datagrams of the tunnel that were sent between client and proxy.
    tunnel_bytes_total: Counter,
    /// Packets between client and proxy that were taken for lost.
    lost_tunnel_packets_total: Counter,
    /// Bytes of packets between client and proxy that were taken for lost.
    lost_tunnel_bytes_total: Counter,
    /// Times that the tunnel's congestion control was told of loss or of a mark.
    congestion_events_total: Counter,
    /// The most bytes of a connection that have waited to be sent, of each worker.
    most_queued_bytes: Gauge,
    /// Connections between client and proxy.
    connections: Gauge,
    /// Requests for UDP or IP that are under way.
    requests: Gauge,
}

impl Statistics {
    /// Adds what a connection's packets came to.
    pub(crate) fn add_packets(&mut self, connection: &mut Connection) {
        let stats = connection.stats();
        self.tunnel_packets_total += stats.udp_tx.datagrams;
        self.tunnel_bytes_total += stats.udp_tx.bytes;
        self.lost_tunnel_packets_total += stats.lost_packets;
        self.lost_tunnel_bytes_total += stats.lost_bytes;
        if let Some(path) = connection.path_stats(noq_proto::PathId::ZERO) {
            self.congestion_events_total += path.congestion_events;
        }
    }

    /// All of them, as a trial's record has them.
    #[must_use]
    pub fn of_trial(&self) -> contract::Statistics {
        let mut said = contract::Statistics::default();
        for (metric, value) in self.entries() {
            said.say(metric.name, value);
        }
        said
    }
}
