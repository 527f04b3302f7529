//! A packet that passes several observers, which share the memory that it is decrypted in.

use bentpipe_wire::quic::{Observer, Reason, Scratch};
use bentpipe_wire::{Datagram, KeyLog, Path};

/// The client's Initial packet of RFC 9001, appendix A.2.
fn initial() -> Vec<u8> {
    let text = include_str!("vectors/client-initial-v1.hex");
    let digits: Vec<u8> = text
        .chars()
        .filter_map(|it| it.to_digit(16))
        .map(|it| u8::try_from(it).unwrap())
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

/// The number and the frames of a packet, or why it is not decoded.
type Outcome = Result<(Option<u64>, Vec<u8>), Reason>;

/// The outcome at an observer that has seen nothing before.
fn outcome(packet: &[u8], scratch: &mut Scratch) -> Outcome {
    let secrets = KeyLog::default();
    let mut observer = Observer::new(&secrets);
    observer.exchange_scratch(scratch);
    let datagram = Datagram {
        path: Path {
            source: "192.0.2.1:50000".parse().unwrap(),
            destination: "192.0.2.2:443".parse().unwrap(),
        },
        payload: packet,
        length: packet.len(),
    };
    let mut outcome = None;
    observer.datagram(&datagram, |seen| {
        let seen = seen.map(|packet| (packet.number, packet.payload.to_vec()));
        outcome = Some(seen.map_err(|undecoded| undecoded.reason));
    });
    observer.exchange_scratch(scratch);
    outcome.expect("the datagram holds one packet")
}

#[test]
fn what_was_decrypted_before_is_what_it_is_alone() {
    let packet = initial();
    let alone = outcome(&packet, &mut Scratch::default());
    assert_eq!(alone.as_ref().unwrap().0, Some(2));
    let mut scratch = Scratch::shared();
    for _ in 0..3 {
        assert_eq!(outcome(&packet, &mut scratch), alone);
    }
}

#[test]
fn whatever_is_damaged_on_the_way_is_refused_there() {
    let packet = initial();
    let mut scratch = Scratch::shared();
    // From behind the connection IDs on: those make another key.
    for at in (20..packet.len()).step_by(7) {
        assert!(outcome(&packet, &mut scratch).is_ok());
        let mut damaged = packet.clone();
        damaged[at] ^= 1;
        assert!(
            outcome(&damaged, &mut scratch).is_err(),
            "damaged at byte {at}"
        );
    }
}
