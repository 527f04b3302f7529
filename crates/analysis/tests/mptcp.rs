//! Connections of MPTCP in crafted captures.

mod segments;

use bentpipe_analysis::LinkFacts;
use bentpipe_analysis::connection::{Connection, Frame, Subflow};
use bentpipe_analysis::findings::{Findings, Verdict, View};
use bentpipe_wire::quic::End;
use bentpipe_wire::tcp::key_names;
use segments::{ACK, At, SYN, Segment, Trace, data};

const C: End = End::Client;
const S: End = End::Server;
/// The keys of client and server.
const KEYS: [u64; 2] = [1, 2];
/// The client's port of the subflow that joins.
const SECOND: u16 = 50_001;

/// The option `MP_CAPABLE` with these keys.
fn capable(keys: &[u64]) -> Vec<u8> {
    let length = u8::try_from(4 + 8 * keys.len()).unwrap();
    let mut option = vec![30, length, 0x01, 0x01];
    option.extend(keys.iter().flat_map(|key| key.to_be_bytes()));
    option
}

/// The server's data of a subflow, from an offset of its stream, and where they belong.
fn mapped(subflow: u32, of_data: u64) -> Segment {
    let (_, before) = key_names(KEYS[S as usize]);
    let number = before.wrapping_add(1 + of_data);
    let mut option = vec![30, 18, 0x20, 0x0c];
    option.extend(number.to_be_bytes());
    option.extend((subflow + 1).to_be_bytes());
    option.extend(1000_u16.to_be_bytes());
    option.extend([1, 1]);
    data(S, 5001 + subflow, 1011, 1000).options(&option)
}

/// Two subflows, of which the second carries data if `both`, in that order.
fn connections(both: bool) -> Vec<Connection> {
    let mut trace = Trace::default();
    let syn = Segment::of(C, SYN, 1000, 0);
    let answer = Segment::of(S, SYN | ACK, 5000, 1001);
    let ack = Segment::of(C, ACK, 1001, 5001);
    trace.passes(&syn.clone().options(&capable(&[])), At(0, Some(5)));
    let server_key = capable(&KEYS[1..]);
    trace.passes(&answer.clone().options(&server_key), At(5, Some(10)));
    trace.passes(&ack.clone().options(&capable(&KEYS)), At(10, Some(15)));
    trace.passes(&mapped(0, 0), At(16, Some(21)));
    trace.passes(&Segment::of(C, ACK, 1001, 6001), At(21, Some(26)));
    let (token, _) = key_names(KEYS[S as usize]);
    let mut join = vec![30, 12, 0x10, 0];
    join.extend(token.to_be_bytes());
    join.extend([9; 4]);
    let second = |segment: Segment| segment.client_port(SECOND);
    trace.passes(&second(syn.options(&join)), At(30, Some(35)));
    trace.passes(&second(answer), At(35, Some(40)));
    trace.passes(&second(ack), At(40, Some(45)));
    if both {
        trace.passes(&second(mapped(0, 1000)), At(50, Some(55)));
        let ack = Segment::of(C, ACK, 1001, 6001);
        trace.passes(&second(ack), At(55, Some(60)));
    }
    trace.connections(&["client", "server"])
}

/// The limits that a receiver set.
fn credits(connection: &Connection) -> usize {
    let frames = connection.frames.iter();
    let limits = frames.filter(|it| matches!(it, Frame::MaxStreamData { .. }));
    limits.count()
}

#[test]
fn windows_of_several_subflows_are_no_limits_of_one() {
    let seen = connections(true);
    let roles = seen.iter().map(|it| it.subflow);
    let expected = [Subflow::First, Subflow::Joined].map(Some);
    assert_eq!(roles.collect::<Vec<_>>(), expected);
    assert_eq!(seen.iter().map(credits).sum::<usize>(), 0);
}

#[test]
fn the_only_subflow_with_data_is_judged_as_a_connection() {
    let seen = connections(false);
    assert_eq!(seen[0].subflow, Some(Subflow::Only));
    assert!(!seen[0].has_several_paths());
    assert!(credits(&seen[0]) > 0);
}

#[test]
fn rules_decide_nothing_of_several_subflows() {
    for connection in connections(true) {
        assert!(connection.has_several_paths());
        let found = Findings::of(&View {
            connection: &connection,
            ledger: &connection.ledger(),
            link: &LinkFacts::default(),
            windows: [None, None],
        });
        let decided = found.all.iter().filter(|it| it.verdict != Verdict::NotSure);
        let decided: Vec<_> = decided.map(|it| it.rule).collect();
        assert!(decided.is_empty(), "{decided:?}");
    }
}
