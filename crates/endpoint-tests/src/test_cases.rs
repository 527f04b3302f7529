//! The test cases of the contract, each in virtual time, told apart by when things come and by what
//! packets show.

use std::fs;
use std::path::Path;

use bentpipe_endpoint::contract::RequestReport;

use crate::Subject;
use crate::coordinator::{Coordinator, Outcome, content, folder, pair, trial};
use crate::packets::{HANDSHAKE, INITIAL, ZERO_RTT};

pub const ALL: [&str; 7] = [
    "transfer",
    "handshake",
    "longrtt",
    "multiplexing",
    "resumption",
    "zerortt",
    "upload",
];

const SIZE: usize = 1 << 20;
const MILLISECOND: u64 = 1_000_000;
/// The harness's.
const ROUND_TRIP: u64 = 100 * MILLISECOND;
/// The handshake and the first request take two round trips; then the second connection starts.
const SECOND_CONNECTION: u64 = 2 * ROUND_TRIP + 5 * MILLISECOND;

/// Small files, and a path to each.
fn small_files(folder: &Path, count: usize) -> Vec<String> {
    let names: Vec<_> = (0..count).map(|index| format!("small-{index}")).collect();
    for (index, name) in names.iter().enumerate() {
        fs::write(folder.join("www").join(name), content(32 + index)).unwrap();
    }
    names
}

fn assert_arrived(folder: &Path, names: &[String]) {
    for name in names {
        let read = |side: &str| fs::read(folder.join(side).join(name)).unwrap();
        assert!(read("downloads") == read("www"), "{name}");
    }
}

/// The time between the first reply and the second, in round trips, and a little more.
fn assert_round_trips(replies: &[RequestReport], round_trips: u64) {
    let last = |index: usize| replies[index].last_byte_ns.unwrap();
    let took = last(1) - last(0);
    let expected = round_trips * ROUND_TRIP;
    assert!(
        (expected..expected + 10 * MILLISECOND).contains(&took),
        "{took} ns, not {round_trips} round trips"
    );
}

/// Three small requests in a test case of two connections.
pub fn two_connections(programs: [&str; 2], test_case: &str) -> Outcome {
    let folder = folder(1);
    let names = small_files(folder.path(), 3);
    let (client, server) = pair(test_case, folder.path(), &names);
    let outcome = Coordinator::new(programs, &client, &server).finish();
    assert_eq!(
        (&outcome.client.error, &outcome.server.error),
        (&None, &None)
    );
    assert_arrived(folder.path(), &names);
    outcome
}

/// The server's handshake packets of the second connection hold no certificate.
fn assert_resumed(outcome: &Outcome) {
    let first = outcome.by_server.bytes(HANDSHAKE, 0..SECOND_CONNECTION);
    let second = outcome
        .by_server
        .bytes(HANDSHAKE, SECOND_CONNECTION..u64::MAX);
    assert!(
        second > 0 && 2 * second < first,
        "{second} bytes after {first}"
    );
}

pub fn resumption(programs: [&str; 2]) {
    let outcome = two_connections(programs, "resumption");
    assert_round_trips(&outcome.client.requests, 2);
    assert_resumed(&outcome);
    assert_eq!(outcome.by_client.bytes(ZERO_RTT, 0..u64::MAX), 0);
}

pub fn zero_rtt(programs: [&str; 2]) {
    let outcome = two_connections(programs, "zerortt");
    assert_round_trips(&outcome.client.requests, 1);
    assert_resumed(&outcome);
    assert!(outcome.by_client.bytes(ZERO_RTT, 0..u64::MAX) > 0);
}

pub fn upload(programs: [&str; 2]) {
    let folder = folder(SIZE);
    fs::write(folder.path().join("www/empty"), "").unwrap();
    let names = ["empty".to_owned(), SIZE.to_string()];
    let (client, server) = pair("upload", folder.path(), &names);
    let outcome = Coordinator::new(programs, &client, &server).finish();
    assert_arrived(folder.path(), &names);
    assert_eq!(
        (&outcome.client.error, &outcome.server.error),
        (&None, &None)
    );
    let [empty, large] = &outcome.client.requests[..] else {
        panic!("two requests")
    };
    assert_eq!((empty.bytes, empty.first_byte_ns), (0, None));
    assert_eq!(large.bytes, SIZE as u64);
    let first = large.first_byte_ns.unwrap();
    assert_eq!(Some(first), outcome.client.handshake_ns);
    // The server's FIN answers the last byte.
    assert!(empty.last_byte_ns.unwrap() >= first + ROUND_TRIP);
    assert!(large.last_byte_ns > empty.last_byte_ns);
    let bytes = |sizes: &[usize]| sizes.iter().sum::<usize>();
    assert!(bytes(&outcome.by_client.sizes) > SIZE);
    assert!(bytes(&outcome.by_server.sizes) < SIZE / 5);
}

pub fn a_resumed_connection_takes_two_round_trips_and_no_certificate(subject: &Subject) {
    resumption([subject.program, subject.program]);
}

pub fn early_data_save_a_round_trip(subject: &Subject) {
    zero_rtt([subject.program, subject.program]);
}

pub fn files_are_uploaded(subject: &Subject) {
    upload([subject.program, subject.program]);
}

pub fn early_data_that_a_restarted_server_rejects_are_sent_again(subject: &Subject) {
    let folder = folder(1);
    let names = small_files(folder.path(), 3);
    let (client, mut server) = pair("zerortt", folder.path(), &names);
    let mut trial = Coordinator::new([subject.program, subject.program], &client, &server);
    server.seed = "00000000000000ff".into();
    trial.restart_server(subject.program, &server);
    let outcome = trial.finish();
    assert_eq!(outcome.client.error, None);
    assert_arrived(folder.path(), &names);
    assert!(outcome.by_client.bytes(ZERO_RTT, 0..u64::MAX) > 0);
    let again = outcome
        .by_server
        .bytes(HANDSHAKE, SECOND_CONNECTION..u64::MAX);
    let first = outcome.by_server.bytes(HANDSHAKE, 0..SECOND_CONNECTION);
    assert!(2 * again > first, "a certificate again");
    assert_round_trips(&outcome.client.requests, 2);
}

pub fn every_test_case_repeats(subject: &Subject) {
    for test_case in ALL {
        let run = || {
            let folder = folder(1);
            let names = small_files(folder.path(), 20);
            let (client, server) = pair(test_case, folder.path(), &names);
            let outcome = trial(subject.program, &client, &server);
            assert_arrived(folder.path(), &names);
            outcome.log
        };
        assert!(run() == run(), "{test_case}");
    }
}

pub fn one_request_is_enough_for_two_connections(subject: &Subject) {
    for test_case in ["resumption", "zerortt"] {
        let folder = folder(1);
        let names = small_files(folder.path(), 1);
        let (client, server) = pair(test_case, folder.path(), &names);
        let outcome = trial(subject.program, &client, &server);
        assert_eq!(outcome.client.error, None);
        assert_arrived(folder.path(), &names);
        let later = outcome
            .by_client
            .bytes(INITIAL, SECOND_CONNECTION..u64::MAX);
        assert!(later > 0, "{test_case}: a second connection");
    }
}

pub fn two_thousand_requests_share_one_connection(subject: &Subject) {
    let folder = folder(1);
    let names = small_files(folder.path(), 2000);
    let (client, server) = pair("multiplexing", folder.path(), &names);
    let outcome = trial(subject.program, &client, &server);
    assert_eq!(outcome.client.error, None);
    assert_arrived(folder.path(), &names);
    let later = outcome
        .by_client
        .bytes(INITIAL, SECOND_CONNECTION..u64::MAX);
    assert_eq!(later, 0);
}

pub fn a_narrow_window_slows_an_upload_and_loses_nothing(subject: &Subject) {
    let folder = folder(SIZE);
    let (client, mut server) = pair("upload", folder.path(), &[SIZE]);
    server.options.insert("window".into(), "65536".into());
    let outcome = trial(subject.program, &client, &server);
    assert_arrived(folder.path(), &[SIZE.to_string()]);
    let last = outcome.client.requests[0].last_byte_ns.unwrap();
    assert!(last > 15 * ROUND_TRIP, "{last}");
}

pub fn a_put_that_leads_out_of_the_folder_is_refused(subject: &Subject) {
    let folder = folder(1);
    let names = small_files(folder.path(), 1);
    fs::create_dir(folder.path().join("www/inner")).unwrap();
    let paths = ["inner/../small-0", "small-0"];
    let (client, server) = pair("upload", folder.path(), &paths);
    let outcome = trial(subject.program, &client, &server);
    let error = outcome.client.error.unwrap();
    assert_eq!(error, "/inner/../small-0: reset by the server with code 1");
    assert_arrived(folder.path(), &names);
}

pub fn a_put_in_another_test_case_is_refused(subject: &Subject) {
    let folder = folder(SIZE);
    let names = small_files(folder.path(), 1);
    let paths = [&SIZE.to_string(), &names[0]];
    let (client, _) = pair("upload", folder.path(), &paths);
    let (_, server) = pair("transfer", folder.path(), &paths);
    let outcome = trial(subject.program, &client, &server);
    let error = outcome.client.error.unwrap();
    assert!(error.ends_with(": reset by the server with code 1"));
    let requests = &outcome.client.requests;
    assert!(
        requests
            .iter()
            .all(|request| request.last_byte_ns.is_none())
    );
    let stored = fs::read_dir(folder.path().join("downloads")).unwrap();
    assert_eq!(stored.count(), 0);
}
