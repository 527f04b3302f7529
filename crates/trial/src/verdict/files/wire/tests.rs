//! Trials whose wire is made up: what is proved, and what is said of the others.

use bentpipe_analysis::connection::{Fate, Kind, Packet, Vantage, WireImage};
use bentpipe_analysis::{Establishment, LedgerEntry};
use bentpipe_wire::TlsRecords;
use bentpipe_wire::quic::Handshake;

use super::*;

const PLAIN: Establishment = Establishment {
    complete: true,
    retry: false,
    client_hellos: 1,
    resumed: Some(false),
    certificate: Some(true),
    zero_rtt_bytes: Some(0),
    zero_rtt_accepted: None,
};
const RESUMED: Establishment = Establishment {
    resumed: Some(true),
    certificate: Some(false),
    ..PLAIN
};
const EARLY: Establishment = Establishment {
    zero_rtt_bytes: Some(9),
    zero_rtt_accepted: Some(true),
    ..RESUMED
};

/// A connection whose streams cannot be read.
fn seen(establishment: Establishment) -> DecodedConnection {
    let connection = Connection {
        protocol: Protocol::Quic(1),
        ends: ["192.0.2.1:50000", "198.51.100.1:443"].map(|end| end.parse().unwrap()),
        initial_credit: [None; 2],
        handshake: Handshake::default(),
        wire_image: WireImage::default(),
        tls: None,
        subflow: None,
        vantage: Vantage::Both,
        start: 0,
        clock_ahead: 0,
        packets: Vec::new(),
        frames: Vec::new(),
        ranges: Vec::new(),
    };
    DecodedConnection {
        epoch_unix_ns: 0,
        connection,
        entries: Vec::new(),
        establishment,
    }
}

/// The outcome of a trial of two requests on connections that were established like this.
fn judge(testcase: TestCase, connections: &[Establishment]) -> String {
    let seen: Vec<DecodedConnection> = connections.iter().map(|it| seen(*it)).collect();
    outcome(testcase, &seen)
}

fn outcome(testcase: TestCase, seen: &[DecodedConnection]) -> String {
    let claim = Claim {
        testcase,
        requests: 2,
        size_bytes: 2000,
        round_trip: Span::from_millis(1500),
    };
    match claim.judge(seen) {
        Ok(()) => "proved".to_owned(),
        Err(ProofFailure::Other(what)) => what,
        Err(ProofFailure::Sealed(what)) => format!("sealed: {what}"),
    }
}

/// A connection of TCP that carries 1000 bytes.
#[derive(Clone, Copy)]
struct Carries {
    from: End,
    /// They are all.
    ended: bool,
    readable: bool,
}

const REPLY: Carries = Carries {
    from: End::Server,
    ended: true,
    readable: true,
};

const SEALED: Carries = Carries {
    readable: false,
    ..REPLY
};

impl Carries {
    fn seen(self) -> DecodedConnection {
        let mut it = seen(PLAIN);
        it.connection.protocol = Protocol::Tcp;
        it.connection.tls = Some(TlsRecords {
            readable: self.readable,
            ..TlsRecords::default()
        });
        it.connection.frames = vec![Frame::Stream {
            id: 0,
            offset: 0,
            length: 1000,
            fin: self.ended,
        }];
        it.connection.packets = vec![Packet {
            path_id: 0,
            sender: self.from,
            kind: Kind::Tcp,
            number: Some(0),
            size: 1032,
            first_byte: 0x40,
            ip_size: Some(1052),
            seen: [Some(0); 2],
            ecn: [None; 2],
            fate: Fate::Delivered,
            copy: false,
            decoded: true,
            frames: 0..1,
        }];
        it.entries = vec![LedgerEntry {
            stream_bytes: 1000,
            ..LedgerEntry::default()
        }];
        it
    }
}

/// The same, over TCP.
fn judge_tcp(testcase: TestCase, connections: &[Carries]) -> String {
    let seen: Vec<DecodedConnection> = connections.iter().map(|it| it.seen()).collect();
    outcome(testcase, &seen)
}

#[test]
fn over_tcp_each_request_has_a_connection() {
    for testcase in [TestCase::Transfer, TestCase::Multiplexing] {
        assert_eq!(judge_tcp(testcase, &[REPLY; 2]), "proved");
        for (count, saw) in [(1, "saw 1"), (3, "saw 3")] {
            let wrong = judge_tcp(testcase, &vec![REPLY; count]);
            let expected = "expected 2 connections, one for each request, ";
            assert_eq!(wrong, format!("{expected}{saw}"));
        }
    }
    let open = Carries {
        ended: false,
        ..REPLY
    };
    assert_eq!(
        judge_tcp(TestCase::Multiplexing, &[REPLY, open]),
        "expected a connection that carries a reply; saw 0 streams that the server ended"
    );
}

#[test]
fn over_tcp_the_files_of_an_upload_come_on_all_connections_together() {
    let upload = Carries {
        from: End::Client,
        ..REPLY
    };
    assert_eq!(judge_tcp(TestCase::Upload, &[upload; 2]), "proved");
    assert_eq!(
        judge_tcp(TestCase::Upload, &[upload, REPLY]),
        "expected 2000 stream bytes from the client and none from the server; saw 1000 and 1000"
    );
}

#[test]
fn connections_that_did_not_complete_do_not_count() {
    let begun = Establishment {
        complete: false,
        ..PLAIN
    };
    assert_eq!(judge(TestCase::Transfer, &[begun, PLAIN]), "proved");
    let two = judge(TestCase::Transfer, &[PLAIN, PLAIN]);
    assert_eq!(two, "expected one connection, saw 2");
    let one = judge(TestCase::Resumption, &[PLAIN, begun]);
    assert_eq!(
        one,
        "expected two connections, saw 1, and 1 of which the client never sent the end of the \
         handshake"
    );
}

#[test]
fn a_ticket_that_was_not_taken_is_seen() {
    let resumption = |second| judge(TestCase::Resumption, &[PLAIN, second]);
    assert_eq!(resumption(RESUMED), "proved");
    let forgets = resumption(PLAIN);
    assert!(
        forgets.ends_with("the second handshake carried a Certificate: the server did not resume")
    );
    let sealed = Establishment {
        certificate: None,
        ..PLAIN
    };
    assert!(resumption(sealed).ends_with("has no pre_shared_key: the server did not resume"));
    let both = Establishment {
        certificate: Some(true),
        ..RESUMED
    };
    assert!(resumption(both).ends_with("took a ticket, but a Certificate came"));
    let unread = Establishment {
        resumed: None,
        ..PLAIN
    };
    assert!(resumption(unread).starts_with("sealed: "));
}

#[test]
fn early_data_has_to_be_there_and_taken() {
    let zerortt = |second| judge(TestCase::Zerortt, &[PLAIN, second]);
    assert_eq!(zerortt(EARLY), "proved");
    assert!(zerortt(RESUMED).ends_with("saw a resumed connection without any"));
    let refused = Establishment {
        zero_rtt_accepted: Some(false),
        ..EARLY
    };
    assert!(zerortt(refused).ends_with("the server did not accept 0-RTT"));
    let sealed = Establishment {
        zero_rtt_bytes: None,
        zero_rtt_accepted: None,
        ..EARLY
    };
    assert_eq!(
        zerortt(sealed),
        "sealed: what was sent in 0-RTT could not be decrypted"
    );
}

#[test]
fn a_handshake_has_no_retry_and_a_long_one_is_begun_again() {
    let retry = Establishment {
        retry: true,
        client_hellos: 2,
        ..PLAIN
    };
    assert_eq!(judge(TestCase::Handshake, &[PLAIN]), "proved");
    assert_eq!(
        judge(TestCase::Handshake, &[retry]),
        "expected a handshake without Retry; saw one"
    );
    assert_eq!(judge(TestCase::Longrtt, &[retry]), "proved");
    assert_eq!(
        judge(TestCase::Longrtt, &[PLAIN]),
        "expected two ClientHellos or more, as the round trip takes 1.5 s; saw 1"
    );
}

#[test]
fn what_lies_in_streams_needs_secrets() {
    for testcase in [TestCase::Multiplexing, TestCase::Upload] {
        let sealed = "sealed: the connection's streams could not be decrypted";
        assert_eq!(judge(testcase, &[PLAIN]), sealed);
        assert_eq!(judge_tcp(testcase, &[SEALED; 2]), sealed);
    }
    assert_eq!(judge(TestCase::Transfer, &[]), "proved");
    assert_eq!(
        judge(TestCase::Handshake, &[]),
        "sealed: no connection could be made out"
    );
}
