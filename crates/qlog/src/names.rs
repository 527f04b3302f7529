//! The names of events in both generations of the schema.
//!
//! Up to 0.3 an event's category is one of `connectivity`, `security`, `transport` and `recovery`
//! (draft-ietf-quic-qlog-quic-events-03); since draft 09 all of QUIC's are in `quic`. The drafts
//! between used `quic` for what had been `transport`, and kept the rest. Stacks mix them: quic-go
//! writes new names in the new category and all others in the old ones. Hence each event is looked
//! up by its type, whatever its category. Draft-00 had capital letters and other tenses:
//! `TRANSPORT`, `PACKET_RX`, `METRIC_UPDATE` (draft-marx-qlog-event-definitions-quic-h3-00).

use std::borrow::Cow;

/// Name in the current schema, name in 0.3.
const EVENTS: &[(&str, &str)] = &[
    ("quic:packet_sent", "transport:packet_sent"),
    ("quic:packet_received", "transport:packet_received"),
    ("quic:recovery_metrics_updated", "recovery:metrics_updated"),
    ("quic:timer_updated", "recovery:loss_timer_updated"),
    ("quic:packet_lost", "recovery:packet_lost"),
    ("quic:packets_acked", "transport:packets_acked"),
    ("quic:udp_datagrams_sent", "transport:datagrams_sent"),
    (
        "quic:udp_datagrams_received",
        "transport:datagrams_received",
    ),
    ("quic:udp_datagram_dropped", "transport:datagram_dropped"),
    ("quic:packet_dropped", "transport:packet_dropped"),
    ("quic:packet_buffered", "transport:packet_buffered"),
    ("quic:frames_processed", "transport:frames_processed"),
    ("quic:frames_created", "transport:frames_created"),
    ("quic:frames_parsed", "transport:frames_parsed"),
    (
        "quic:stream_state_updated",
        "transport:stream_state_updated",
    ),
    ("quic:stream_data_moved", "transport:data_moved"),
    ("quic:datagram_data_moved", "transport:datagram_data_moved"),
    ("quic:version_information", "transport:version_information"),
    ("quic:alpn_information", "transport:alpn_information"),
    ("quic:parameters_set", "transport:parameters_set"),
    ("quic:parameters_restored", "transport:parameters_restored"),
    ("quic:server_listening", "connectivity:server_listening"),
    ("quic:connection_started", "connectivity:connection_started"),
    ("quic:connection_closed", "connectivity:connection_closed"),
    (
        "quic:connection_id_updated",
        "connectivity:connection_id_updated",
    ),
    (
        "quic:connection_state_updated",
        "connectivity:connection_state_updated",
    ),
    ("quic:spin_bit_updated", "connectivity:spin_bit_updated"),
    ("quic:mtu_updated", "connectivity:mtu_updated"),
    ("quic:tuple_assigned", "connectivity:path_assigned"),
    (
        "quic:migration_state_updated",
        "connectivity:migration_state_updated",
    ),
    ("quic:key_updated", "security:key_updated"),
    ("quic:key_discarded", "security:key_retired"),
    ("quic:recovery_parameters_set", "recovery:parameters_set"),
    (
        "quic:congestion_state_updated",
        "recovery:congestion_state_updated",
    ),
    (
        "quic:marked_for_retransmit",
        "recovery:marked_for_retransmit",
    ),
    ("quic:ecn_state_updated", "recovery:ecn_state_updated"),
];

/// Categories of whole namespaces that were renamed: current, 0.3.
const NAMESPACES: &[(&str, &str)] = &[("http3", "http"), ("http3", "h3"), ("loglevel", "generic")];

/// The name in the current schema of an event in any; one that is not known stays as it is.
pub fn current(name: &str) -> Cow<'_, str> {
    let Some((category, kind)) = name.split_once(':') else {
        return Cow::Borrowed(name);
    };
    if let Some((new, _)) = NAMESPACES.iter().find(|(_, old)| *old == category) {
        return Cow::Owned(format!("{new}:{kind}"));
    }
    if !matches!(
        category,
        "quic" | "transport" | "recovery" | "connectivity" | "security"
    ) {
        return Cow::Borrowed(name);
    }
    let kind = match (category, kind) {
        ("recovery", "metrics_updated" | "metric_update") => "recovery_metrics_updated",
        ("recovery", "parameters_set") => "recovery_parameters_set",
        (_, "packet_rx") => "packet_received",
        (_, "packet_tx") => "packet_sent",
        ("recovery", "cc_state_update") => "congestion_state_updated",
        ("recovery", "packet_retransmit") => "marked_for_retransmit",
        ("connectivity", "connection_new") => "connection_started",
        ("connectivity", "connection_id_update") => "connection_id_updated",
        ("security", "key_update") => "key_updated",
        ("transport", "stream_state_update") => "stream_state_updated",
        ("transport", "version_update") => "version_information",
        ("transport", "alpn_update") => "alpn_information",
        ("transport", "transport_parameters_update") => "parameters_set",
        (_, "datagrams_sent") => "udp_datagrams_sent",
        (_, "datagrams_received") => "udp_datagrams_received",
        (_, "datagram_dropped") => "udp_datagram_dropped",
        (_, "data_moved") => "stream_data_moved",
        (_, "loss_timer_updated") => "timer_updated",
        (_, "key_retired") => "key_discarded",
        (_, "path_assigned") => "tuple_assigned",
        _ => kind,
    };
    match EVENTS.iter().find(|(new, _)| new["quic:".len()..] == *kind) {
        Some((new, _)) => Cow::Borrowed(new),
        None => Cow::Borrowed(name),
    }
}

/// The name in 0.3 of an event of the current schema; one that is not known stays as it is.
pub fn old(name: &str) -> Cow<'_, str> {
    if let Some((_, old)) = EVENTS.iter().find(|(new, _)| *new == name) {
        return Cow::Borrowed(old);
    }
    let (category, kind) = name.split_once(':').unwrap_or((name, ""));
    match NAMESPACES.iter().find(|(new, _)| *new == category) {
        Some((_, old)) => Cow::Owned(format!("{old}:{kind}")),
        None => Cow::Borrowed(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_goes_there_and_back() {
        for (new, name) in EVENTS {
            assert_eq!(current(name), *new);
            assert_eq!(current(new), *new);
            assert_eq!(old(new), *name);
        }
    }

    #[test]
    fn names_between_the_generations_are_known() {
        for (name, new) in [
            ("recovery:mtu_updated", "quic:mtu_updated"),
            ("transport:packet_rx", "quic:packet_received"),
            ("recovery:metric_update", "quic:recovery_metrics_updated"),
            ("quic:datagrams_sent", "quic:udp_datagrams_sent"),
            ("security:key_discarded", "quic:key_discarded"),
            ("h3:frame_parsed", "http3:frame_parsed"),
            ("http:frame_created", "http3:frame_created"),
        ] {
            assert_eq!(current(name), new);
        }
        assert_eq!(old("http3:frame_created"), "http:frame_created");
    }

    #[test]
    fn an_unknown_name_stays() {
        for name in [
            "transport:magic",
            "quic:magic",
            "my:event",
            "bare",
            "",
            ":",
            "qpack:state_updated",
        ] {
            assert_eq!(current(name), name);
            assert_eq!(old(name), name);
        }
    }
}
