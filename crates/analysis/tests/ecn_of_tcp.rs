//! ECN of TCP: what its flags say.

mod segments;

use bentpipe_analysis::connection::{Codepoint, Connection};
use bentpipe_analysis::findings::{Findings, Verdict, View};
use bentpipe_analysis::metrics::EcnUse;
use bentpipe_analysis::{LinkFacts, Metrics};
use bentpipe_wire::quic::End;
use segments::{ACK, At, CWR, ECE, SYN, Segment, Trace, data};

const C: End = End::Client;
const S: End = End::Server;
const ECT0: u8 = 2;
const CE: u8 = 3;

fn ecn(connection: &Connection) -> [EcnUse; 2] {
    let metrics = Metrics::of(connection, &connection.ledger(), &LinkFacts::default());
    [metrics.forward.ecn, metrics.back.ecn]
}

fn has(connection: &Connection, sender: End, name: &str) -> Vec<u64> {
    let own = connection.packets.iter().filter(|it| it.sender == sender);
    let named = own.filter(|it| connection.frames(it).iter().any(|it| it.name() == name));
    named.map(|it| it.number.unwrap()).collect()
}

/// SYN and SYN-ACK on a path of 10 ms with these flags, and an ACK.
fn handshake(trace: &mut Trace, syn: &Segment, answer: &Segment) {
    trace.passes(syn, At(0, Some(5)));
    trace.passes(answer, At(5, Some(10)));
    let ack = Segment::of(C, ACK, 1001, 5001).window(65_535);
    trace.passes(&ack, At(10, Some(15)));
}

fn syn() -> Segment {
    Segment::of(C, SYN | ECE | CWR, 1000, 0)
}

fn syn_ack() -> Segment {
    Segment::of(S, SYN | ACK, 5000, 1001)
}

/// A segment of 1000 bytes of the server with ECT(0), which arrives with `arrives`.
fn marked(trace: &mut Trace, at: u32, number: u32, arrives: u8, flags: u8) {
    let segment = data(S, 5001 + 1000 * number, 1001, 1000).flags(flags);
    trace.only("server", &segment.clone().ecn(ECT0), at);
    trace.only("client", &segment.ecn(arrives), at + 5);
}

/// Its ACK, 5 ms later.
fn ack(trace: &mut Trace, at: u32, number: u32, flags: u8) {
    let ack = 5001 + 1000 * (number + 1);
    let segment = Segment::of(C, ACK | flags, 1001, ack).window(65_535);
    trace.passes(&segment, At(at, Some(at + 5)));
}

/// A mark on the first of four segments, echoed until CWR comes on the third; another on the
/// fourth, of which the sender takes no notice.
fn transfer(trace: &mut Trace, answer: u8) -> Connection {
    marked(trace, 20, 0, CE, 0);
    ack(trace, 25, 0, ECE); // heard at 30
    marked(trace, 28, 1, ECT0, 0);
    ack(trace, 33, 1, ECE); // heard at 38
    marked(trace, 31, 2, ECT0, answer);
    ack(trace, 36, 2, 0); // heard at 41
    marked(trace, 42, 3, CE, 0);
    ack(trace, 47, 3, ECE); // heard at 52
    marked(trace, 53, 4, ECT0, 0);
    ack(trace, 58, 4, ECE); // heard at 63
    marked(trace, 70, 5, ECT0, 0);
    trace.only_connection()
}

#[test]
fn echoes_are_counted_as_episodes_and_answers_by_cwr() {
    let mut trace = Trace::default();
    handshake(&mut trace, &syn(), &syn_ack().flags(ECE));
    let connection = transfer(&mut trace, CWR);
    assert_eq!(has(&connection, C, "ECN_SETUP"), [0]);
    assert_eq!(has(&connection, S, "ECN_SETUP"), [0]);
    assert_eq!(has(&connection, C, "ECE"), [2, 3, 5, 6]);
    assert_eq!(has(&connection, S, "CWR"), [3]);
    let first = connection
        .packets
        .iter()
        .find(|it| it.sender == S && it.number == Some(1));
    let first = first.unwrap();
    assert_eq!(first.sent_ecn(), Some(Codepoint::Ect0));
    assert_eq!(first.received_ecn(), Some(Codepoint::Ce));
    let [forward, back] = ecn(&connection);
    let expected = EcnUse {
        codepoint: Some("ECT(0)"),
        capable_share: Some(1.0),
        ce_arrived: Some(2),
        ce_echoed: Some(2),
        ce_rounds: Some(2),
        ce_answered: Some(1),
    };
    assert_eq!(forward, expected);
    assert_eq!((back.codepoint, back.ce_echoed), (Some("none"), Some(0)));
}

#[test]
fn a_sender_that_never_says_cwr_has_not_answered() {
    let mut trace = Trace::default();
    handshake(&mut trace, &syn(), &syn_ack().flags(ECE));
    let connection = transfer(&mut trace, 0);
    let [forward, _] = ecn(&connection);
    assert_eq!(forward.ce_answered, Some(0));
}

/// The flags of accurate ECN are a counter: neither ECE nor CWR.
#[test]
fn accurate_ecn_is_no_echo() {
    let answers = [
        (syn_ack().flags(CWR), true),
        (syn_ack().flags(CWR | ECE), true),
        (syn_ack().ae(), true),
        (syn_ack().ae().flags(CWR), true),
        (syn_ack().flags(ECE), false),
        (syn_ack().ae().flags(ECE), false),
        (syn_ack().ae().flags(CWR | ECE), false),
        (syn_ack(), false),
    ];
    for (number, (answer, is_accurate)) in answers.into_iter().enumerate() {
        let mut trace = Trace::default();
        handshake(&mut trace, &syn().ae(), &answer);
        let connection = transfer(&mut trace, CWR);
        let set_up = has(&connection, S, "ACCURATE_ECN_SETUP");
        assert_eq!(set_up.len(), usize::from(is_accurate), "{number}");
        assert_eq!(
            has(&connection, C, "ECE").is_empty(),
            is_accurate,
            "{number}"
        );
        let [forward, _] = ecn(&connection);
        assert_eq!(forward.ce_echoed.is_none(), is_accurate, "{number}");
        assert_eq!(forward.ce_answered.is_none(), is_accurate, "{number}");
    }
    let mut trace = Trace::default();
    handshake(&mut trace, &syn(), &syn_ack().flags(CWR));
    let connection = transfer(&mut trace, CWR);
    assert!(
        has(&connection, S, "ACCURATE_ECN_SETUP").is_empty(),
        "nobody asked"
    );
}

fn says(rule: &str, connection: &Connection) -> Verdict {
    let ledger = connection.ledger();
    let view = View {
        connection,
        ledger: &ledger,
        link: &LinkFacts {
            forward_marks: Some(true),
            ..LinkFacts::default()
        },
        windows: [None, None],
    };
    let all = Findings::of(&view).all;
    let found = all.into_iter().find(|it| it.rule == rule).unwrap();
    found.verdict
}

#[test]
fn rules_go_by_the_flags() {
    let connection = |answer| {
        let mut trace = Trace::default();
        handshake(&mut trace, &syn(), &syn_ack().flags(ECE));
        transfer(&mut trace, answer)
    };
    assert_eq!(says("ce_not_answered", &connection(0)), Verdict::Yes);
    assert_eq!(says("ce_not_answered", &connection(CWR)), Verdict::No);
    assert_eq!(says("ce_answered_often", &connection(CWR)), Verdict::No);
    assert_eq!(says("ce_not_echoed", &connection(CWR)), Verdict::No);
    assert_eq!(says("ecn_not_used", &connection(CWR)), Verdict::No);
    assert_eq!(says("ecn_given_up", &connection(CWR)), Verdict::No);
}

/// Two segments with CWR in the round trip after the first ECE.
#[test]
fn cwr_twice_in_a_round_trip_is_too_often() {
    let connection = |second| {
        let mut trace = Trace::default();
        handshake(&mut trace, &syn(), &syn_ack().flags(ECE));
        marked(&mut trace, 20, 0, CE, 0);
        ack(&mut trace, 25, 0, ECE); // heard at 30
        marked(&mut trace, 22, 1, ECT0, 0);
        ack(&mut trace, 27, 1, ECE); // heard at 32
        marked(&mut trace, 31, 2, ECT0, CWR);
        marked(&mut trace, 33, 3, ECT0, second);
        ack(&mut trace, 36, 2, 0); // heard at 41
        ack(&mut trace, 38, 3, 0);
        marked(&mut trace, 45, 4, ECT0, 0);
        trace.only_connection()
    };
    assert_eq!(says("ce_answered_often", &connection(CWR)), Verdict::Yes);
    assert_eq!(says("ce_answered_often", &connection(0)), Verdict::No);
}

#[test]
fn marks_that_come_and_no_ece() {
    let mut trace = Trace::default();
    handshake(&mut trace, &syn(), &syn_ack().flags(ECE));
    marked(&mut trace, 20, 0, CE, 0);
    ack(&mut trace, 25, 0, 0);
    ack(&mut trace, 26, 0, 0);
    marked(&mut trace, 31, 1, ECT0, 0);
    assert_eq!(
        says("ce_not_echoed", &trace.only_connection()),
        Verdict::Yes
    );
}

#[test]
fn tcp_that_did_not_agree_on_ecn_says_who() {
    let mut trace = Trace::default();
    handshake(&mut trace, &syn(), &syn_ack());
    trace.passes(&data(S, 5001, 1001, 1000), At(20, Some(25)));
    let connection = trace.only_connection();
    let ledger = connection.ledger();
    let link = LinkFacts {
        forward_marks: Some(true),
        ..LinkFacts::default()
    };
    let view = View {
        connection: &connection,
        ledger: &ledger,
        link: &link,
        windows: [None, None],
    };
    let all = Findings::of(&view).all;
    let found = all.iter().find(|it| it.rule == "ecn_not_used").unwrap();
    assert_eq!(found.verdict, Verdict::Yes);
    let said = "The server did not agree to ECN in its SYN-ACK.";
    assert!(found.text.ends_with(said), "{}", found.text);
}
