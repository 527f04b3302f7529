//! qlog files of every kind, whole and damaged. Those in `corpus` are excerpts of what noq 1.4,
//! quinn 0.11, quic-go 0.65 and aioquic 1.7 wrote, and files that are wrong in some way.

use std::fs;
use std::path::Path;

use bentpipe_qlog::convert::Converter;
use bentpipe_qlog::{
    Clock, CongestionLog, Format, Generation, Outline, QlogError, Reader, VantagePoint,
    milliseconds,
};
use proptest::prelude::*;
use serde_json::value::RawValue;

fn corpus(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    fs::read(folder.join(name)).unwrap()
}

/// Names of the events, and what could not be read.
fn read(file: &[u8]) -> (Vec<String>, Vec<String>) {
    let (mut names, mut problems) = (Vec::new(), Vec::new());
    match Reader::new(file) {
        Err(error) => problems.push(error.to_string()),
        Ok(reader) => {
            for event in reader {
                match event {
                    Ok(event) => names.push(event.name.into_owned()),
                    Err(error) => problems.push(error.to_string()),
                }
            }
        }
    }
    (names, problems)
}

#[derive(serde::Deserialize)]
struct Converted {
    traces: Vec<ConvertedTrace>,
}

#[derive(serde::Deserialize)]
struct ConvertedTrace {
    events: Vec<Box<RawValue>>,
}

fn convert(files: &[&[u8]]) -> Converted {
    let mut written = Vec::new();
    let mut outlines = Vec::new();
    for file in files {
        let reader = Reader::new(file).unwrap();
        let mut found: Vec<_> = reader.traces().iter().map(Outline::new).collect();
        for event in reader.flatten() {
            found[event.trace].add(&event);
        }
        outlines.push(found);
    }
    let mut converter = Converter::new(&mut written, outlines.iter().flatten(), None).unwrap();
    for (file, outlines) in files.iter().zip(&outlines) {
        let reader = Reader::new(file).unwrap();
        let traces = reader.traces().to_vec();
        let mut begun = None;
        for event in reader.flatten() {
            if begun != Some(event.trace) {
                converter
                    .begin_trace(&traces[event.trace], &outlines[event.trace])
                    .unwrap();
                begun = Some(event.trace);
            }
            converter.event(&event).unwrap();
        }
    }
    converter.finish().unwrap();
    serde_json::from_slice(&written).unwrap()
}

/// Reads, extracts and converts, whatever the file holds; the number of its events.
fn survive(file: &[u8]) -> usize {
    let Ok(reader) = Reader::new(file) else {
        return 0;
    };
    let _ = CongestionLog::of(reader);
    let (names, _) = read(file);
    let converted = convert(&[file]);
    let events = converted
        .traces
        .iter()
        .map(|trace| trace.events.len())
        .sum();
    assert_eq!(events, names.len());
    events
}

#[test]
fn files_of_real_stacks_are_read() {
    for (name, generation, format, vantage, clock, count) in [
        (
            "noq-server.sqlog",
            Generation::Current,
            Format::JsonSeq,
            VantagePoint::Server,
            Clock::Unknown,
            29,
        ),
        (
            "quinn-client.sqlog",
            Generation::V03,
            Format::JsonSeq,
            VantagePoint::Client,
            Clock::Unknown,
            12,
        ),
        (
            "quic-go-server.sqlog",
            Generation::Current,
            Format::JsonSeq,
            VantagePoint::Server,
            Clock::Unix,
            44,
        ),
        (
            "aioquic-server.qlog",
            Generation::V03,
            Format::Json,
            VantagePoint::Server,
            Clock::Unix,
            37,
        ),
    ] {
        let file = corpus(name);
        let reader = Reader::new(&file).unwrap();
        assert_eq!(
            (reader.generation(), reader.format()),
            (generation, format),
            "{name}"
        );
        let (names, problems) = read(&file);
        assert_eq!(problems, [""; 0], "{name}");
        assert_eq!(names.len(), count, "{name}");
        assert!(
            names.iter().all(|name| name.starts_with("quic:")),
            "{names:?}"
        );
        let found = CongestionLog::of(reader);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].outline.vantage, found[0].outline.clock),
            (vantage, clock),
            "{name}"
        );
        assert!(!found[0].congestion_window.is_empty(), "{name}");
        assert!(!found[0].bytes_in_flight.is_empty(), "{name}");
        let rtts = found[0]
            .smoothed_rtt
            .iter()
            .map(|sample| sample.value / 1_000_000);
        assert!(
            rtts.clone().count() > 0 || name.starts_with("aioquic"),
            "{name}"
        );
        assert!(
            rtts.into_iter().all(|ms| (100..2000).contains(&ms)),
            "{name}"
        );
    }
}

#[test]
fn times_are_exact() {
    let first = |name| {
        let file = corpus(name);
        Reader::new(&file).unwrap().next().unwrap().unwrap().time
    };
    assert_eq!(first("noq-server.sqlog"), 304_912_000);
    assert_eq!(first("quic-go-server.sqlog"), 946_684_800_304_911_999);
    assert_eq!(first("aioquic-server.qlog"), 946_684_800_305_232_000);
    assert_eq!(first("draft-01.qlog"), 1_600_000_000_000_000_000);
}

#[test]
fn damage_is_named_and_the_rest_is_read() {
    for (file, names, problems) in [
        ("commas.qlog", &["quic:packet_sent"][..], &[][..]),
        (
            "draft-01.qlog",
            &["quic:packet_received", "quic:recovery_metrics_updated"],
            &["line 1, byte 458: an event is expected here: invalid type: integer `2`"],
        ),
        (
            "broken-records.sqlog",
            &["quic:packet_sent", "my:event"],
            &[
                "line 2, byte 61: an event is expected here: EOF while parsing a string",
                "line 3, byte 182: an event is expected here: expected ident",
                "line 4, byte 192: quic:packet_sent: its time is \"soon\" (hint: a number)",
                "line 5, byte 240: an event without name",
                "line 6, byte 252: a:b without time",
                "line 7, byte 268: an event is expected here: expected value",
                "line 9, byte 326: the file is cut short: an event begins here and its end is \
                 missing",
            ],
        ),
        (
            "lines.qlog",
            &["quic:packet_sent", "quic:timer_updated"],
            &[],
        ),
        ("cut-in-header.qlog", &[], &["the file is cut short"]),
        (
            "not-qlog.json",
            &[],
            &["line 1: not a qlog file: it has neither a version nor an event"],
        ),
        ("empty.qlog", &[], &["line 1: not a qlog file: it is empty"]),
        ("many-empty-traces.qlog", &[], &[]),
        ("deep.qlog", &["quic:packet_sent"], &[]),
    ] {
        let (found, told) = read(&corpus(file));
        assert_eq!(found, names, "{file}");
        assert_eq!(told.len(), problems.len(), "{file}: {told:#?}");
        for (told, problem) in told.iter().zip(problems) {
            assert!(
                told.contains(problem) && !told.contains("column"),
                "{file}: {told}"
            );
        }
    }
}

/// A cut file gives its first events, and an error that says where the rest is missing.
#[test]
fn a_file_that_is_cut_gives_what_is_there() {
    for name in ["aioquic-server.qlog", "quic-go-server.sqlog"] {
        let file = corpus(name);
        let (all, _) = read(&file);
        let mut most = 0;
        for length in 0..file.len() - 1 {
            let (names, problems) = read(&file[..length]);
            assert!(all.starts_with(&names), "{name} cut at {length}");
            assert!(names.len() >= most, "{name} cut at {length}");
            assert!(problems.len() <= 1, "{name} cut at {length}: {problems:?}");
            most = names.len();
        }
        assert!(most >= all.len() - 1, "{name}");
    }
    let cut = corpus("cut.qlog");
    let (names, problems) = read(&cut);
    assert_eq!(names.len(), 19);
    assert_eq!(
        problems,
        ["line 1, byte 4951: the file is cut short: an event begins here and its end is missing"]
    );
}

/// The version, its generation and the times in ms and names of events.
fn told(file: &str) -> (Option<String>, Generation, Vec<(String, String)>) {
    let reader = Reader::new(file.as_bytes()).unwrap();
    let (version, generation) = (reader.version().map(str::to_owned), reader.generation());
    let events = reader.map(|event| {
        let event = event.unwrap();
        (milliseconds(event.time), event.name.into_owned())
    });
    (version, generation, events.collect())
}

fn events(times: &[&str], names: &[&str]) -> Vec<(String, String)> {
    let pairs = times.iter().zip(names);
    pairs
        .map(|(time, name)| ((*time).to_owned(), (*name).to_owned()))
        .collect()
}

const NAMES: &[&str] = &["quic:packet_sent", "quic:recovery_metrics_updated"];

/// The examples of each version's specification, main-schema-00 to -14, with two events.
#[test]
fn every_version_is_read() {
    for (file, version, generation, times) in [
        (
            r#"{"qlog_version": "draft-00", "traces": [{"vantage_point": {"type": "SERVER"},
                "configuration": {"time_units": "us"}, "common_fields": {"reference_time": "1553986553572000"},
                "event_fields": ["relative_time", "CATEGORY", "EVENT_TYPE", "TRIGGER", "DATA"],
                "events": [[2000, "TRANSPORT", "PACKET_TX", "LINE", {}], [7500, "RECOVERY", "METRIC_UPDATE", "", {}]]}]}"#,
            "draft-00",
            Generation::Draft,
            ["1553986553574", "1553986553579.5"],
        ),
        (
            r#"{"qlog_version": "draft-01", "traces": [{"vantage_point": {"type": "client"},
                "event_fields": ["delta_time", "category", "event", "data"],
                "events": [[1500, "transport", "packet_sent", {}], [5, "recovery", "metrics_updated", {}]]}]}"#,
            "draft-01",
            Generation::Draft,
            ["1500", "1505"],
        ),
        (
            r#"{"qlog_version": "draft-02", "qlog_format": "JSON", "traces": [{"vantage_point": {"type": "client"},
                "common_fields": {"time_format": "relative", "reference_time": "1553986553572"},
                "events": [{"time": 2, "category": "transport", "type": "packet_sent", "data": {}},
                           {"time": 7, "name": "recovery:metrics_updated", "data": {}}]}]}"#,
            "draft-02",
            Generation::Draft,
            ["1553986553574", "1553986553579"],
        ),
        (
            r#"{"qlog_version": "0.1", "traces": [{"events": [{"time": 1, "name": "transport:packet_sent"},
                {"time": 2.5, "name": "recovery:metrics_updated"}]}]}"#,
            "0.1",
            Generation::Draft,
            ["1", "2.5"],
        ),
        (
            r#"{"qlog_version": "0.3", "qlog_format": "JSON", "traces": [{"common_fields": {"time_format": "delta"},
                "events": [{"time": 1, "name": "transport:packet_sent"}, {"time": 2, "name": "recovery:metrics_updated"}]}]}"#,
            "0.3",
            Generation::V03,
            ["1", "3"],
        ),
        (
            "{\"qlog_version\": \"0.4\", \"qlog_format\": \"JSON-SEQ\", \"trace\": {}}\n{\"time\": \
             1, \"name\": \"quic:packet_sent\"}\n{\"time\": 2, \"name\": \
             \"recovery:metrics_updated\"}\n",
            "0.4",
            Generation::Current,
            ["1", "2"],
        ),
        (
            "\u{1e}{\"file_schema\": \"urn:ietf:params:qlog:file:sequential\", \"trace\": {}}\n\
             \u{1e}{\"time\": 1, \"name\": \"quic:packet_sent\"}\n\
             \u{1e}{\"time\": 2, \"name\": \"quic:recovery_metrics_updated\"}\n",
            "urn:ietf:params:qlog:file:sequential",
            Generation::Current,
            ["1", "2"],
        ),
    ] {
        let expected = (Some(version.to_owned()), generation, events(&times, NAMES));
        assert_eq!(told(file), expected, "{file}");
    }
}

#[test]
fn a_file_without_a_version_is_read_as_what_it_looks_like() {
    let header = r#"{"trace": {"vantage_point": {"type": "client"}}}"#;
    let old = [
        r#"{"time": 1, "name": "transport:packet_sent", "data": {}}"#,
        r#"{"time": 2, "name": "recovery:metrics_updated", "data": {}}"#,
    ];
    let new = old.map(|event| {
        event
            .replace("recovery:", "quic:recovery_")
            .replace("transport:", "quic:")
    });
    let parts = old.map(|event| {
        event
            .replace("\"name\": \"", "\"category\": \"")
            .replace(':', "\", \"type\": \"")
            .replace("\", \"type\": \" ", ": ")
    });
    let columns = r#"{"traces": [{"event_fields": ["time", "category", "event"],
        "events": [[1, "transport", "packet_sent"], [2, "recovery", "metrics_updated"]]}]}"#;
    for (file, generation) in [
        (
            format!("{header}\n{}\n{}\n", old[0], old[1]),
            Generation::V03,
        ),
        (format!("{}\n{}\n", new[0], new[1]), Generation::Current),
        (
            format!("\u{1e}{}\n\u{1e}{}\n", old[0], old[1]),
            Generation::V03,
        ),
        (format!("{}\n{}\n", parts[0], parts[1]), Generation::Draft),
        (
            format!(r#"{{"traces": [{{"events": [{}, {}]}}]}}"#, old[0], old[1]),
            Generation::V03,
        ),
        (
            format!(r#"{{"events": [{}, {}], "title": "x"}}"#, new[0], new[1]),
            Generation::Current,
        ),
        (format!("[{}, {}]", old[0], old[1]), Generation::V03),
        (columns.to_owned(), Generation::Draft),
    ] {
        let expected = (None, generation, events(&["1", "2"], NAMES));
        assert_eq!(told(&file), expected, "{file}");
    }
    for file in [
        "{}",
        "[]",
        "[1, 2]",
        r#"{"traces": []}"#,
        r#"{"traces": [{"events": []}]}"#,
        r#"{"events": [{"name": "a:b"}]}"#,
        r#"{"time": 1}"#,
    ] {
        let (names, problems) = read(file.as_bytes());
        assert!(names.is_empty(), "{file}");
        assert!(
            problems[0].starts_with("line 1: not a qlog file: "),
            "{file}: {problems:?}"
        );
    }
}

/// As `jq .` and others print them.
#[test]
fn files_that_are_printed_over_many_lines_are_read() {
    for name in [
        "quic-go-server.sqlog",
        "noq-server.sqlog",
        "aioquic-server.qlog",
    ] {
        let file = corpus(name);
        let (names, _) = read(&file);
        let text = String::from_utf8(file).unwrap();
        let sequence = text.starts_with('\u{1e}');
        for indent in [&b""[..], b"  ", b"\t"] {
            let mut printed = Vec::new();
            let plain = text.replace('\u{1e}', " ");
            let records = serde_json::Deserializer::from_str(&plain).into_iter();
            for record in records.map(|record: Result<serde_json::Value, _>| record.unwrap()) {
                printed.extend(sequence.then_some(0x1e));
                let formatter = serde_json::ser::PrettyFormatter::with_indent(indent);
                let mut writer = serde_json::Serializer::with_formatter(&mut printed, formatter);
                serde::Serialize::serialize(&record, &mut writer).unwrap();
                printed.push(b'\n');
            }
            let (found, problems) = read(&printed);
            assert_eq!((found, problems), (names.clone(), Vec::new()), "{name}");
            let lines: Vec<_> = printed.into_iter().filter(|byte| *byte != 0x1e).collect();
            let (found, problems) = read(&lines);
            assert_eq!((found, problems), (names.clone(), Vec::new()), "{name}");
        }
    }
}

/// The line is that of the fault, not of the record's beginning.
#[test]
fn an_error_names_the_line() {
    let file = "{\n \"qlog_version\": \"0.3\"\n}\n{\n \"time\": 1,\n \"name\": oops\n}\n\
                {\n \"time\": 2,\n \"name\": \"transport:packet_sent\"\n}\n";
    let (names, problems) = read(file.as_bytes());
    assert_eq!(names, ["quic:packet_sent"]);
    assert_eq!(
        problems,
        ["line 6, byte 41: an event is expected here: expected value"]
    );
    let (_, problems) = read(b"{\"a\": 1\n}\n\n{\"b\": \n}");
    assert_eq!(problems.len(), 1);
    assert!(
        problems[0].starts_with("line 1: not a qlog file"),
        "{problems:?}"
    );
}

#[test]
fn round_trip_times_are_in_the_unit_of_the_trace() {
    let file = br#"{"qlog_version": "draft-01", "traces": [{"configuration": {"time_units": "us"},
        "event_fields": ["time", "category", "event", "data"],
        "events": [[5, "recovery", "metrics_updated", {"min_rtt": 25000}]]}]}"#;
    let found = CongestionLog::of(Reader::new(file).unwrap());
    assert_eq!(found[0].min_rtt[0].value, 25_000_000);
}

#[test]
fn an_array_needs_columns() {
    let file =
        br#"{"qlog_version":"0.3","traces":[{"events":[[1,"transport","packet_sent",{}]]}]}"#;
    let error = Reader::new(file).unwrap().next().unwrap().unwrap_err();
    assert!(
        matches!(&error, QlogError::Garbage { line: 1, offset: 43,
            what } if what.contains("event_fields")),
        "{error}"
    );
}

#[test]
fn the_corpus_is_survived() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let file = fs::read(entry.unwrap().path()).unwrap();
        survive(&file);
        for length in (0..file.len()).step_by(file.len() / 50 + 1) {
            survive(&file[..length]);
        }
        files += 1;
    }
    assert!(files >= 15);
}

const FRAGMENTS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\n",
    "\u{1e}",
    "null",
    "1",
    "-2.5e9",
    "\"time\":",
    "\"name\":\"quic:packet_sent\"",
    "\"data\":",
    "\"events\":",
    "\"traces\":",
    "\"trace\":{}",
    "\"qlog_version\":\"0.3\"",
    "\"file_schema\":1",
    "{\"time\":1,\"name\":\"a:b\"}",
    "\"event_fields\":[\"time\",\"data\"]",
    "\"common_fields\":{\"time_format\":\"delta\"}",
];

proptest! {
    #[test]
    fn arbitrary_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        survive(&bytes);
    }

    #[test]
    fn arbitrary_fragments_are_survived(
        parts in proptest::collection::vec(proptest::sample::select(FRAGMENTS), 0..40)
    ) {
        survive(parts.concat().as_bytes());
        survive(format!("{{\"qlog_version\":\"0.3\",\"traces\":[{{\"events\":[{}",
            parts.concat()).as_bytes());
        survive(format!("\u{1e}{{\"qlog_version\":\"0.3\"}}\u{1e}{}", parts.concat()).as_bytes());
        survive(format!("{{\n\"qlog_version\":\"0.3\"\n}}\n{}", parts.concat()).as_bytes());
    }

    #[test]
    fn damaged_files_are_survived(
        name in proptest::sample::select(&["aioquic-server.qlog", "quic-go-server.sqlog",
            "strange-types.qlog", "draft-01.qlog"][..]),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut file = corpus(name);
        for (place, byte) in changes {
            let place = place.index(file.len());
            file[place] = byte;
        }
        survive(&file);
    }

    #[test]
    fn a_prefix_or_a_changed_byte_is_survived(
        name in proptest::sample::select(&[
            "noq-server.sqlog", "quinn-client.sqlog", "aioquic-server.qlog", "lines.qlog",
                "draft-01.qlog",
        ][..]),
        over_lines in any::<bool>(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut file = corpus(name);
        if over_lines {
            file = String::from_utf8(file).unwrap().replace(",\"", ",\n\"").into_bytes();
        }
        let place = place.index(file.len());
        survive(&file[..place]);
        file[place] = byte;
        survive(&file);
    }
}
