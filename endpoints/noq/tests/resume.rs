//! Careful Resume between two noq, on the coordinator's path: 100 ms there and back.

use bentpipe_endpoint_tests::coordinator::{Outcome, Program, folder, hello, pair, trial};

const PROGRAM: &str = env!("CARGO_BIN_EXE_bentpipe-endpoint-noq");
const SIZE: usize = 1 << 20;
const ROUND_TRIP: u64 = 100_000_000;

/// A file on each connection, or on the only one, sent under these options.
fn run(test_case: &str, options: &[(&str, &str)]) -> Outcome {
    let folder = folder(SIZE);
    let www = folder.path().join("www");
    std::fs::copy(www.join(SIZE.to_string()), www.join("other")).unwrap();
    let names = [SIZE.to_string(), "other".to_owned()];
    let count = if test_case == "transfer" { 1 } else { 2 };
    let (client, mut server) = pair(test_case, folder.path(), &names[..count]);
    let all = [("cc", "cubic"), ("ss", "standard")];
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    server.options = all.iter().chain(options).map(owned).collect();
    trial(PROGRAM, &client, &server)
}

/// Between the last byte of the first reply, or the start, and the last byte of the last reply.
fn took(outcome: &Outcome) -> u64 {
    let last = |index: usize| outcome.client.requests[index].last_byte_ns.unwrap();
    match outcome.client.requests.len() {
        1 => last(0),
        _ => last(1) - last(0),
    }
}

#[test]
fn the_second_connection_knows_what_the_first_one_learned() {
    for test_case in ["resumption", "zerortt"] {
        let cold = took(&run(test_case, &[]));
        for jump in ["on", "full", "early"] {
            let warm = took(&run(test_case, &[("resume", jump)]));
            assert!(
                warm + ROUND_TRIP < cold,
                "{test_case}, {jump}: {warm} ns after {cold} ns"
            );
        }
    }
}

#[test]
fn the_only_connection_knows_what_it_is_given() {
    let cold = took(&run("transfer", &[]));
    let none = took(&run("transfer", &[("resume", "full")]));
    assert_eq!(none, cold, "there is nothing to resume");
    let saved = ("saved", "2000000@100ms");
    let warm = took(&run("transfer", &[("resume", "full"), saved]));
    assert!(warm + 3 * ROUND_TRIP < cold, "{warm} ns after {cold} ns");
    let other = ("saved", "2000000@250ms");
    let unlike = took(&run("transfer", &[("resume", "full"), other]));
    assert_eq!(unlike, cold, "another round-trip time is another path");
}

#[test]
fn wrong_words_are_unsupported() {
    let ss = ("ss", "standard");
    for options in [
        &[ss, ("resume", "yes")][..],
        &[ss, ("resume", "on"), ("saved", "1500000")],
        &[ss, ("resume", "on"), ("saved", "0@600ms")],
        // In virtual time the result would depend on the file.
        &[ss, ("resume", "on"), ("memory", "paths.json")],
        // Without any use for them.
        &[ss, ("saved", "1500000@600ms")],
        &[("resume", "on")],
    ] {
        let folder = folder(1);
        let mut hello = hello("server", folder.path());
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        hello.options = options.iter().map(owned).collect();
        let mut program = Program::start(PROGRAM, &hello);
        assert_eq!(program.ready().unwrap_err(), Some(127), "{options:?}");
        program.abandon();
    }
}
