//! Messages survive the round trip, and hostile bytes are an error.

use bentpipe_endpoint::contract::{
    Arrival, ContractError, HEADER_LEN, RAN, RUN, Ran, RanMessage, Run, SERVER_SIDE, decode_header,
    encode_run,
};
use bytes::Bytes;
use proptest::prelude::*;

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let arrival = (
        any::<u64>(),
        0_u8..4,
        prop::collection::vec(any::<u8>(), 0..2000),
    );
    let arrival = arrival.prop_map(|(time, ecn, payload)| Arrival {
        time,
        ecn,
        payload: Bytes::from(payload),
    });
    prop::collection::vec(arrival, 0..20)
}

proptest! {
    #[test]
    fn run_round_trip(until: u64, sent in arrivals()) {
        let message = encode_run(until, &sent);
        let (length, kind) = decode_header(&message).unwrap();
        prop_assert_eq!((length + HEADER_LEN, kind), (message.len(), RUN));
        let body = &message[HEADER_LEN..];
        let run = Run::decode(body).unwrap();
        prop_assert_eq!(run.until, until);
        prop_assert_eq!(run.arrivals.len(), sent.len());
        for (received, sent) in run.arrivals.iter().zip(&sent) {
            prop_assert_eq!((received.time, received.ecn), (sent.time, sent.ecn));
            prop_assert_eq!(&body[received.payload.clone()], &sent.payload);
        }
    }

    #[test]
    fn ran_round_trip(next_wake: u64, done: bool, sent in arrivals()) {
        let mut writer = RanMessage::new();
        writer.push(1, 2, b"from the run before");
        writer.clear();
        for datagram in &sent {
            writer.push(datagram.time, datagram.ecn, &datagram.payload);
        }
        let message = writer.finish(next_wake, done);
        let (length, kind) = decode_header(message).unwrap();
        prop_assert_eq!((length + HEADER_LEN, kind), (message.len(), RAN));
        let body = &message[HEADER_LEN..];
        let ran = Ran::decode(body).unwrap();
        prop_assert_eq!((ran.next_wake, ran.done), (next_wake, done));
        let received: Vec<_> = ran
            .departures
            .iter()
            .map(|d| Arrival {
                time: d.time,
                ecn: d.ecn,
                payload: Bytes::copy_from_slice(&body[d.payload.clone()]),
            })
            .collect();
        prop_assert_eq!(received, sent);
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(body in prop::collection::vec(any::<u8>(), 0..4096)) {
        let _ = decode_header(&body);
        let _ = Run::decode(&body);
        let _ = Ran::decode(&body);
    }

    #[test]
    fn a_message_cut_anywhere_is_refused(sent in arrivals(), cut: prop::sample::Index) {
        let message = encode_run(7, &sent);
        let body = &message[HEADER_LEN..];
        let cut = cut.index(body.len());
        prop_assert!(matches!(Run::decode(&body[..cut]), Err(ContractError::Truncated(_))));
    }
}

#[test]
fn a_count_beyond_the_bytes_allocates_nothing() {
    let mut body = vec![0; 8];
    body.extend_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(
        Run::decode(&body),
        Err(ContractError::Truncated("a datagram's header"))
    );
}

#[test]
fn fields_out_of_range_are_refused() {
    let mut body = vec![0; 8];
    body.push(2);
    body.extend_from_slice(&0_u32.to_le_bytes());
    assert_eq!(Ran::decode(&body), Err(ContractError::Done(2)));
    body[8] = 1;
    body.push(0);
    assert_eq!(Ran::decode(&body), Err(ContractError::Trailing(1)));

    let wrong = Arrival {
        time: 1,
        ecn: 4,
        payload: Bytes::new(),
    };
    let message = encode_run(9, &[wrong]);
    assert_eq!(
        Run::decode(&message[HEADER_LEN..]),
        Err(ContractError::Ecn(4))
    );
}

#[test]
fn only_a_proxy_has_a_side() {
    let arrival = |ecn| Arrival {
        time: 7,
        ecn,
        payload: Bytes::from_static(b"x"),
    };
    let body = |ecn| encode_run(9, &[arrival(ecn)])[HEADER_LEN..].to_vec();
    let both = body(SERVER_SIDE | 2);
    assert_eq!(
        Run::decode_for_proxy(&both).unwrap().arrivals[0].ecn,
        SERVER_SIDE | 2
    );
    assert_eq!(Run::decode(&both), Err(ContractError::Ecn(SERVER_SIDE | 2)));
    for wrong in [4, 0x40, SERVER_SIDE | 4] {
        assert_eq!(
            Run::decode_for_proxy(&body(wrong)),
            Err(ContractError::Ecn(wrong))
        );
    }
    let mut ran = RanMessage::new();
    ran.push(8, SERVER_SIDE, b"y");
    let message = ran.finish(9, true).to_vec();
    assert_eq!(
        Ran::decode_of_proxy(&message[HEADER_LEN..])
            .unwrap()
            .departures[0]
            .ecn,
        SERVER_SIDE
    );
    assert!(Ran::decode(&message[HEADER_LEN..]).is_err());
}
