use proptest::prelude::*;

use super::*;

fn prefix(request: u64, address: &str, length: u8) -> Numbered {
    let prefix = Prefix::new(address.parse().unwrap(), length).unwrap();
    Numbered { request, prefix }
}

fn route(start: &str, end: &str, protocol: u8) -> Route {
    Route::new(start.parse().unwrap(), end.parse().unwrap(), protocol).unwrap()
}

/// The value of a capsule that is written, without type and length, both of one byte.
fn value(what: &Addressing) -> (u64, Bytes) {
    let mut buffer = BytesMut::new();
    what.put(&mut buffer);
    let kind = VarInt::decode(&mut buffer).unwrap().into_inner();
    let length = VarInt::decode(&mut buffer).unwrap().into_inner();
    assert_eq!(length, buffer.len() as u64);
    (kind, buffer.freeze())
}

#[test]
fn capsules_are_the_bytes_of_the_rfc() {
    let assign = Addressing::Assign(vec![prefix(1, "192.0.2.11", 32)]);
    assert_eq!(
        value(&assign),
        (1, Bytes::from_static(&[1, 4, 192, 0, 2, 11, 32]))
    );
    let request = Addressing::Request(vec![prefix(1, "0.0.0.0", 32)]);
    assert_eq!(
        value(&request),
        (2, Bytes::from_static(&[1, 4, 0, 0, 0, 0, 32]))
    );
    let routes = Addressing::Routes(vec![route("192.0.2.0", "192.0.2.41", 6)]);
    let bytes = Bytes::from_static(&[4, 192, 0, 2, 0, 192, 0, 2, 41, 6]);
    assert_eq!(value(&routes), (3, bytes));
}

#[test]
fn what_is_wrong_with_a_capsule_is_said() {
    use Malformed::{Prefix, Range, Request, Truncated, Version};
    for (kind, bytes, why) in [
        (1, &[0, 4, 192, 0, 2][..], Truncated),
        (1, &[0, 4, 192, 0, 2, 1], Truncated),
        (1, &[0x40], Truncated),
        (1, &[0, 5, 192, 0, 2, 1, 32], Version(5)),
        (1, &[0, 4, 192, 0, 2, 1, 33], Prefix),
        (1, &[0, 4, 192, 0, 2, 1, 24], Prefix),
        (2, &[], Request),
        (2, &[0, 4, 0, 0, 0, 0, 32], Request),
        (3, &[4, 192, 0, 2, 9, 192, 0, 2, 1, 0], Range),
        (3, &[4, 192, 0, 2, 1, 192, 0, 2, 9], Truncated),
    ] {
        let found = Addressing::read(kind, Bytes::from_static(bytes));
        assert_eq!(found, Err(why), "{kind} {bytes:?}");
    }
    assert_eq!(
        Addressing::read(1, Bytes::new()),
        Ok(Addressing::Assign(Vec::new()))
    );
}

#[test]
fn routes_have_an_order_and_do_not_overlap() {
    let [low, high] = [("192.0.2.0", "192.0.2.9"), ("192.0.2.10", "192.0.2.19")];
    let six = ("2001:db8::", "2001:db8::9");
    for (ranges, is_right) in [
        (vec![(low, 0), (high, 0), (six, 0)], true),
        (vec![(high, 0), (low, 0)], false),
        (vec![(low, 0), (low, 0)], false),
        (vec![(six, 0), (low, 0)], false),
        (vec![(low, 17), (high, 6)], false),
        (vec![(high, 6), (low, 17)], true),
        (vec![(low, 6), (low, 17)], true),
        (vec![(low, 0), (high, 6)], true),
        (vec![(low, 0), (low, 6)], false),
        (vec![(low, 0), (six, 0), (six, 6)], false),
    ] {
        let routes = ranges
            .iter()
            .map(|((start, end), it)| route(start, end, *it));
        let (kind, bytes) = value(&Addressing::Routes(routes.collect()));
        let found = Addressing::read(kind, bytes);
        assert_eq!(found.is_ok(), is_right, "{ranges:?}: {found:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        kind in 1_u64..=3,
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        if let Ok(read) = Addressing::read(kind, bytes.into()) {
            let (kind, written) = value(&read);
            prop_assert_eq!(Addressing::read(kind, written), Ok(read));
        }
    }

    #[test]
    fn a_list_that_is_cut_short_is_refused_unless_between_entries(cut in 0_usize..=40) {
        let list = Addressing::Assign(vec![
            prefix(1, "192.0.2.0", 24),
            prefix(2, "2001:db8::", 32),
            prefix(3, "198.51.100.1", 32),
        ]);
        let (kind, bytes) = value(&list);
        let cut = cut.min(bytes.len());
        let found = Addressing::read(kind, bytes.slice(..cut));
        prop_assert_eq!(found.is_ok(), [0, 7, 26, 33].contains(&cut));
    }
}
