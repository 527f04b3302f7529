//! Sets of addresses, which routes and prefixes are made from.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::network::{Prefix, Route, address_of, bits_of, width};

/// A set of addresses of both versions of IP.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressSet {
    v4: Ranges,
    v6: Ranges,
}

/// Networks of which no packet is carried, whoever allows or advertises them: they are of one host
/// or one link, or of groups, or an address of IPv4 within IPv6.
const UNROUTABLE: [&str; 9] = [
    "0.0.0.0/8",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "::/127",
    "::ffff:0:0/96",
    "fe80::/10",
    "ff00::/8",
];

/// Ranges of numbers, first and last, in order; no two overlap or touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Ranges(Vec<[u128; 2]>);

impl Ranges {
    fn remove(&mut self, [first, last]: [u128; 2]) {
        let cut = |&[start, end]: &[u128; 2]| {
            let before = (start < first).then(|| [start, end.min(first.saturating_sub(1))]);
            let after = (end > last).then(|| [start.max(last.saturating_add(1)), end]);
            before.into_iter().chain(after)
        };
        self.0 = self.0.iter().flat_map(cut).collect();
    }

    fn add(&mut self, range: [u128; 2]) {
        self.remove(range);
        self.0.push(range);
        self.0.sort_unstable();
        self.0.dedup_by(|[start, end], before| {
            let touches = before[1].checked_add(1) == Some(*start);
            if touches {
                before[1] = *end;
            }
            touches
        });
    }

    /// Those that are in both.
    fn common(&self, other: &Self) -> Self {
        let mut outside = self.clone();
        for range in &other.0 {
            outside.remove(*range);
        }
        let mut inside = self.clone();
        for range in &outside.0 {
            inside.remove(*range);
        }
        inside
    }
}

impl AddressSet {
    /// The addresses of some prefixes.
    #[must_use]
    pub fn of(prefixes: &[Prefix]) -> Self {
        let mut set = Self::default();
        for prefix in prefixes {
            set.add(prefix.ends());
        }
        set
    }

    /// The addresses to which no route may lead.
    #[must_use]
    pub fn unroutable() -> Self {
        Self::of(&UNROUTABLE.map(|it| it.parse().expect("it is a prefix")))
    }

    /// Adds the addresses from one to another of its version.
    pub fn add(&mut self, ends: [IpAddr; 2]) {
        self.ranges(ends[0]).add(ends.map(bits_of));
    }

    /// Takes out the addresses of a prefix.
    pub fn remove(&mut self, prefix: Prefix) {
        let ends = prefix.ends();
        self.ranges(ends[0]).remove(ends.map(bits_of));
    }

    /// Takes out all addresses of another set.
    pub fn remove_all(&mut self, other: &Self) {
        for (own, others) in [(&mut self.v4, &other.v4), (&mut self.v6, &other.v6)] {
            for range in &others.0 {
                own.remove(*range);
            }
        }
    }

    /// The addresses that are in another set, too.
    #[must_use]
    pub fn common(&self, other: &Self) -> Self {
        Self {
            v4: self.v4.common(&other.v4),
            v6: self.v6.common(&other.v6),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.v4.0.is_empty() && self.v6.0.is_empty()
    }

    /// Whether an address is in it.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let ranges = if address.is_ipv4() {
            &self.v4
        } else {
            &self.v6
        };
        let bits = bits_of(address);
        let behind = ranges.0.partition_point(|[start, _]| *start <= bits);
        let before = behind.checked_sub(1);
        before.is_some_and(|at| bits <= ranges.0[at][1])
    }

    /// The routes to its addresses, for a protocol, in order.
    #[must_use]
    pub fn routes(&self, protocol: u8) -> Vec<Route> {
        let route = |ends: [IpAddr; 2]| Route::new(ends[0], ends[1], protocol);
        let routes = self.ends().map(route);
        routes.map(|it| it.expect("a range is one")).collect()
    }

    /// The fewest prefixes that make it up, in order.
    #[must_use]
    pub fn prefixes(&self) -> Vec<Prefix> {
        let mut found = Vec::new();
        for [start, end] in self.ends() {
            let (mut at, last) = (bits_of(start), bits_of(end));
            loop {
                let aligned = at.trailing_zeros().min(width(start).into());
                let fits = |rest: &u32| ones(*rest).is_some_and(|it| it <= last - at);
                let rest = (0..=aligned).rev().find(fits).expect("one address fits");
                let length = width(start) - u8::try_from(rest).expect("128 at most");
                let prefix = Prefix::new(address_of(at, start), length);
                found.push(prefix.expect("it is aligned"));
                let end = at + ones(rest).expect("it fits");
                if end == last {
                    break;
                }
                at = end + 1;
            }
        }
        found
    }

    fn ends(&self) -> impl Iterator<Item = [IpAddr; 2]> + '_ {
        let like_v4: IpAddr = Ipv4Addr::UNSPECIFIED.into();
        let like_v6: IpAddr = Ipv6Addr::UNSPECIFIED.into();
        let v4 = self.v4.0.iter().map(move |it| (it, like_v4));
        let v6 = self.v6.0.iter().map(move |it| (it, like_v6));
        v4.chain(v6)
            .map(|(ends, like)| ends.map(|it| address_of(it, like)))
    }

    fn ranges(&mut self, like: IpAddr) -> &mut Ranges {
        if like.is_ipv4() {
            &mut self.v4
        } else {
            &mut self.v6
        }
    }
}

/// The largest number of so many bits; `None`: of more than there are.
fn ones(bits: u32) -> Option<u128> {
    match bits {
        0 => Some(0),
        1..=128 => Some(u128::MAX >> (128 - bits)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    fn texts(set: &AddressSet) -> Vec<String> {
        set.prefixes().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn prefixes_make_up_what_is_left() {
        let mut set = AddressSet::of(&[prefix("10.0.0.0/29"), prefix("2001:db8::/127")]);
        set.remove(prefix("10.0.0.3"));
        let left = [
            "10.0.0.0/31",
            "10.0.0.2/32",
            "10.0.0.4/30",
            "2001:db8::/127",
        ];
        assert_eq!(texts(&set), left);
        assert!(!set.contains([10, 0, 0, 3].into()) && set.contains([10, 0, 0, 7].into()));
        let routes = set.routes(6);
        assert_eq!(
            routes[0].ends(),
            [[10, 0, 0, 0], [10, 0, 0, 2]].map(IpAddr::from)
        );
        assert_eq!((routes.len(), routes[0].protocol()), (3, 6));
    }

    #[test]
    fn all_addresses_but_one_are_as_many_prefixes_as_an_address_has_bits() {
        for (all, one, bits) in [
            ("0.0.0.0/0", "203.0.113.9", 32),
            ("::/0", "2001:db8::1", 128),
        ] {
            let mut set = AddressSet::of(&[prefix(all)]);
            assert_eq!(texts(&set), [all]);
            set.remove(prefix(one));
            assert_eq!(set.prefixes().len(), bits, "{all}");
        }
    }

    #[test]
    fn no_route_leads_to_this_host_a_link_or_a_group() {
        let set = AddressSet::unroutable();
        for (text, is_in) in [
            ("127.0.0.1", true),
            ("0.0.0.0", true),
            ("169.254.1.1", true),
            ("255.255.255.255", true),
            ("10.0.0.1", false),
            ("::1", true),
            ("::2", false),
            ("::ffff:8.8.8.8", true),
            ("fe80::1", true),
            ("fd00::1", false),
        ] {
            assert_eq!(set.contains(text.parse().unwrap()), is_in, "{text}");
        }
    }

    #[test]
    fn touching_ranges_are_one() {
        let set = AddressSet::of(&[prefix("10.0.1.0/24"), prefix("10.0.0.0/24")]);
        assert_eq!(texts(&set), ["10.0.0.0/23"]);
        let none = set.common(&AddressSet::of(&[prefix("10.0.2.0/23")]));
        assert!(none.is_empty());
    }

    proptest! {
        /// A set of IPv4 is what 64 addresses one by one say.
        #[test]
        fn it_is_the_set_of_its_addresses(
            steps in prop::collection::vec((any::<bool>(), 0_u8..64, 0_u8..64), 0..12),
            other in prop::collection::vec((0_u8..64, 0_u8..64), 0..4),
        ) {
            let at = |it: u8| IpAddr::from([192, 0, 2, it]);
            let ends = |one: u8, two: u8| [at(one.min(two)), at(one.max(two))];
            let is_in = |it: u8, one: u8, two: u8| (one.min(two)..=one.max(two)).contains(&it);
            let mut set = AddressSet::default();
            let mut plain = [false; 64];
            for (adds, one, two) in steps {
                if adds {
                    set.add(ends(one, two));
                } else {
                    let mut gone = AddressSet::default();
                    gone.add(ends(one, two));
                    set.remove_all(&gone);
                }
                for it in (0..64).filter(|it| is_in(*it, one, two)) {
                    plain[usize::from(it)] = adds;
                }
            }
            let mut others = AddressSet::default();
            for (one, two) in &other {
                others.add(ends(*one, *two));
            }
            let common = set.common(&others);
            for it in 0..64 {
                let is_other = other.iter().any(|(one, two)| is_in(it, *one, *two));
                let is_one = plain[usize::from(it)];
                prop_assert_eq!(set.contains(at(it)), is_one);
                prop_assert_eq!(common.contains(at(it)), is_one && is_other);
            }
            prop_assert_eq!(AddressSet::of(&set.prefixes()), set);
        }
    }
}
