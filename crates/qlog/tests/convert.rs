//! The table at the head of `qlog::convert`, row by row.

use bentpipe_qlog::convert::Converter;
use bentpipe_qlog::{Outline, Reader};
use serde_json::{Value, json};

/// Converts a sequence of events that begins with this header.
fn convert(header: &Value, events: &[Value]) -> Value {
    let lines: Vec<_> = std::iter::once(header)
        .chain(events)
        .map(|record| format!("\u{1e}{record}\n"))
        .collect();
    convert_files(&[lines.concat()], None)
}

fn convert_files(files: &[String], epoch: Option<i64>) -> Value {
    let reader = |file| Reader::new(str::as_bytes(file)).unwrap();
    let outlines: Vec<_> = files
        .iter()
        .map(|file| {
            let mut outline = Outline::new(&reader(file).traces()[0]);
            reader(file).for_each(|event| outline.add(&event.unwrap()));
            outline
        })
        .collect();
    let mut written = Vec::new();
    let mut converter = Converter::new(&mut written, &outlines, epoch).unwrap();
    for (file, outline) in files.iter().zip(&outlines) {
        converter
            .begin_trace(&reader(file).traces()[0], outline)
            .unwrap();
        reader(file).for_each(|event| converter.event(&event.unwrap()).unwrap());
    }
    converter.finish().unwrap();
    serde_json::from_slice(&written).unwrap()
}

fn header(title: &str) -> Value {
    json!({"file_schema": "urn:ietf:params:qlog:file:sequential", "trace": {"title": title}})
}

/// The name and the data of one event, converted.
fn converted(name: &str, data: &Value) -> (String, Value) {
    let file = convert(
        &header("x"),
        &[json!({"time": 1, "name": name, "data": data})],
    );
    let event = &file["traces"][0]["events"][0];
    (
        event["name"].as_str().unwrap().to_owned(),
        event["data"].clone(),
    )
}

/// A frame of a packet, converted.
fn frame(frame: &Value) -> Value {
    let (_, data) = converted("quic:packet_sent", &json!({"frames": [frame]}));
    data["frames"][0].clone()
}

#[test]
fn a_file_is_as_qvis_wants_it() {
    let events = [
        json!({"time": 304.912, "name": "quic:packet_received", "data": {}, "tuple": "p0",
            "group_id": "a"}),
        json!({"time": 310.5, "name": "my:event", "data": {"x": [1, 2]}, "group_id": "b"}),
    ];
    let file = convert(&header("noq"), &events);
    assert_eq!(file["qlog_version"], "0.3");
    assert_eq!(file["qlog_format"], "JSON");
    let expected = json!([{
        "title": "noq",
        "vantage_point": {"name": "noq", "type": "server"},
        "common_fields": {"protocol_type": ["QUIC"], "time_format": "relative",
            "reference_time": 304.912},
        "events": [
            {"time": 0, "name": "transport:packet_received", "data": {}, "tuple": "p0"},
            {"time": 5.588, "name": "my:event", "data": {"x": [1, 2]}},
        ],
    }]);
    assert_eq!(file["traces"], expected);
}

#[test]
fn groups_stay_where_they_alternate() {
    let event =
        |group: &str| json!({"time": 1, "name": "quic:packet_sent", "data": {}, "group_id": group});
    let groups = |groups: &[&str]| {
        let events: Vec<_> = groups.iter().map(|group| event(group)).collect();
        let file = convert(&header("x"), &events);
        let events = file["traces"][0]["events"].as_array().unwrap().clone();
        events
            .iter()
            .map(|event| event["group_id"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        groups(&["a", "a", "b"]),
        [Value::Null, Value::Null, Value::Null]
    );
    assert_eq!(groups(&["a", "b", "a"]), ["a", "b", "a"]);
}

#[test]
fn an_unknown_clock_begins_where_it_is_said_or_with_the_known_ones() {
    let file = |members: &Value, time: u64| {
        let header = json!({"file_schema": "x", "trace": members});
        format!(
            "{header}\n{}\n",
            json!({"time": time, "name": "quic:packet_sent", "data": {}})
        )
    };
    let reference = |files: &[String], epoch| {
        let file = convert_files(files, epoch);
        let traces = file["traces"].as_array().unwrap().clone();
        traces
            .iter()
            .map(|trace| trace["common_fields"]["reference_time"].clone())
            .collect::<Vec<_>>()
    };
    let known = json!({"common_fields": {"reference_time": {"epoch": "2000-01-01T00:00:00Z"}}});
    assert_eq!(
        reference(&[file(&json!({}), 5), file(&json!({}), 7)], None),
        [5, 7]
    );
    let (unix, later) = (946_684_800_003_u64, 946_684_800_009_u64);
    assert_eq!(
        reference(
            &[file(&json!({}), 5), file(&known, 9), file(&known, 3)],
            None
        ),
        [unix, later, unix]
    );
    let epoch = Some(946_684_800_004_000_000);
    assert_eq!(
        reference(&[file(&json!({}), 5), file(&known, 3)], epoch),
        [later, unix]
    );
}

#[test]
fn packets_have_their_length_and_type_where_qvis_looks() {
    for (data, expected) in [
        (
            json!({"header": {"packet_type": "1RTT", "packet_number": 1, "length": 43}}),
            json!({"header": {"packet_type": "1RTT", "packet_number": 1, "length": 43},
                "raw": {"length": 43}}),
        ),
        (
            json!({"header": {"length": 43}, "raw": {"length": 60}}),
            json!({"header": {"length": 43}, "raw": {"length": 60}}),
        ),
        (
            json!({"packet_type": "initial", "header": {"packet_number": "0",
                "packet_size": 1252}}),
            json!({"header": {"packet_type": "initial", "packet_number": "0"},
                "raw": {"length": 1252}}),
        ),
        (
            json!({"packet_type": "initial", "packet_number": 5}),
            json!({"header": {"packet_type": "initial", "packet_number": 5}}),
        ),
    ] {
        assert_eq!(
            converted("quic:packet_lost", &data),
            ("recovery:packet_lost".to_owned(), expected)
        );
    }
}

#[test]
fn frames_are_those_of_0_3() {
    for (new, old) in [
        (
            json!({"frame_type": "stream", "stream_id": 0, "offset": 5, "raw": {"length": 891}}),
            json!({"frame_type": "stream", "stream_id": 0, "offset": 5, "length": 891}),
        ),
        (
            json!({"frame_type": "crypto", "offset": 0, "raw": {"length": 9, "payload_length": 7}}),
            json!({"frame_type": "crypto", "offset": 0, "length": 7}),
        ),
        (
            json!({"frame_type": "stream", "length": 3, "offset": 0}),
            json!({"frame_type": "stream", "length": 3, "offset": 0}),
        ),
        (
            json!({"frame_type": "datagram", "raw": {"length": 2, "data": "00ff"}}),
            json!({"frame_type": "datagram", "length": 2, "raw": {"length": 2, "data": "00ff"}}),
        ),
        (
            json!({"frame_type": "padding", "raw": {"length": 8, "payload_length": 8}}),
            json!({"frame_type": "padding", "length": 8, "payload_length": 8}),
        ),
        (
            json!({"frame_type": "ack", "acked_ranges": [[7], [1, 5]]}),
            json!({"frame_type": "ack", "acked_ranges": [[7, 7], [1, 5]]}),
        ),
        (
            json!({"frame_type": "connection_close", "error_space": "transport",
                "error": "no_error"}),
            json!({"frame_type": "connection_close", "error_space": "transport",
                "error_code": "no_error"}),
        ),
        (
            json!({"frame_type": "connection_close", "error": "internal_error", "error_code": 1}),
            json!({"frame_type": "connection_close", "error_code": "internal_error",
                "raw_error_code": 1}),
        ),
        (
            json!({"frame_type": "connection_close", "error": "unknown", "error_code": 77}),
            json!({"frame_type": "connection_close", "error_code": 77}),
        ),
        (
            json!({"frame_type": "reset_stream", "stream_id": 4, "error": "unknown",
                "error_code": 9, "final_size": 0}),
            json!({"frame_type": "reset_stream", "stream_id": 4, "error_code": 9, "final_size": 0}),
        ),
        (
            json!({"frame_type": "stop_sending", "error": "e"}),
            json!({"frame_type": "stop_sending", "error_code": "e"}),
        ),
        (
            json!({"frame_type": "unknown", "frame_type_bytes": 99}),
            json!({"frame_type": "unknown", "raw_frame_type": 99}),
        ),
        (
            json!({"frame_type": "handshake_done"}),
            json!({"frame_type": "handshake_done"}),
        ),
    ] {
        assert_eq!(frame(&new), old);
    }
}

#[test]
fn other_events_are_those_of_0_3() {
    for (new, data, old, expected) in [
        (
            "quic:parameters_set",
            json!({"initiator": "local"}),
            "transport:parameters_set",
            json!({"owner": "local"}),
        ),
        (
            "quic:connection_started",
            json!({"local": {"connection_ids": ["09"]}, "remote": {"ip_v4": "192.0.2.1",
                "port_v4": 5, "connection_ids": ["14", "15"]}}),
            "connectivity:connection_started",
            json!({"ip_version": "v4", "dst_ip": "192.0.2.1", "dst_port": 5, "src_cid": "09",
                "dst_cid": "14"}),
        ),
        (
            "transport:connection_started",
            json!({"local": {"address_v6": {"ip": "::1", "port": 1}},
                "remote": {"address_v6": {"ip": "::2", "port": 2}}}),
            "connectivity:connection_started",
            json!({"ip_version": "v6", "src_ip": "::1", "src_port": 1, "dst_ip": "::2",
                "dst_port": 2}),
        ),
        (
            "quic:connection_closed",
            json!({"initiator": "remote", "application_error": "unknown", "error_code": 7,
                "reason": ""}),
            "connectivity:connection_closed",
            json!({"owner": "remote", "application_code": 7, "reason": ""}),
        ),
        (
            "quic:connection_closed",
            json!({"connection_error": "no_error"}),
            "connectivity:connection_closed",
            json!({"connection_code": "no_error"}),
        ),
        (
            "quic:alpn_information",
            json!({"client_alpns": [{"string_value": "h3"}, {"byte_value": "6833"}],
                "chosen_alpn": "h3"}),
            "transport:alpn_information",
            json!({"client_alpns": ["h3", "6833"], "chosen_alpn": "h3"}),
        ),
        (
            "quic:key_discarded",
            json!({"key_phase": 1}),
            "security:key_retired",
            json!({"generation": 1}),
        ),
        (
            "quic:stream_data_moved",
            json!({"stream_id": 0, "raw": {"length": 5}}),
            "transport:data_moved",
            json!({"stream_id": 0, "raw": {"length": 5}, "length": 5}),
        ),
        (
            "quic:timer_updated",
            json!({"timer_type": "pto"}),
            "recovery:loss_timer_updated",
            json!({"timer_type": "pto"}),
        ),
        (
            "quic:timer_updated",
            json!({"timer_type": "idle_timeout"}),
            "quic:timer_updated",
            json!({"timer_type": "idle_timeout"}),
        ),
        (
            "recovery:metrics_updated",
            json!({"cwnd": 12000, "ssthresh": u64::MAX, "smoothed_rtt": 0.333}),
            "recovery:metrics_updated",
            json!({"congestion_window": 12000, "smoothed_rtt": 0.333}),
        ),
        (
            "quic:packet_sent",
            json!("no object"),
            "transport:packet_sent",
            json!("no object"),
        ),
    ] {
        assert_eq!(converted(new, &data), (old.to_owned(), expected));
    }
}

#[test]
fn seconds_of_quinn_become_milliseconds() {
    let header = json!({"qlog_version": "0.3", "trace": {"title": "quinn"}});
    let event = json!({"time": 0, "name": "recovery:metrics_updated", "data": {"min_rtt": 0.333,
        "latest_rtt": 0.605_403_2}});
    let file = convert(&header, &[event]);
    let data = &file["traces"][0]["events"][0]["data"];
    assert_eq!(*data, json!({"min_rtt": 333, "latest_rtt": 605.4032}));
}

#[test]
fn ack_ranges_of_noq_end_with_the_last_packet() {
    let ranges = |title: &str, ranges: &Value| {
        let frame = json!({"frame_type": "ack", "acked_ranges": ranges});
        let event = json!({"time": 0, "name": "quic:packet_sent", "data": {"frames": [frame]}});
        let file = convert(&header(title), &[event]);
        file["traces"][0]["events"][0]["data"]["frames"][0]["acked_ranges"].clone()
    };
    let written = json!([[0, 1], [2, 5]]);
    assert_eq!(ranges("noq", &written), json!([[0, 0], [2, 4]]));
    assert_eq!(ranges("other", &written), written);
    assert_eq!(
        ranges("noq", &json!([[0], [2, 5]])),
        json!([[0, 0], [2, 5]])
    );
    assert_eq!(
        ranges("noq", &json!([[], 3, ["a", 1]])),
        json!([[], 3, ["a", 1]])
    );
}
