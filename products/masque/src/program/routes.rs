//! The routes by which a proxy's clients send IP packets: the addresses of the targets that are
//! allowed, as far as routes can express that (RFC 9484, section 4.7.3).
//!
//! A route has addresses and a protocol, and no port. A rule for all ports becomes routes for all
//! protocols, one for some ports routes for TCP and UDP; the proxy then drops packets to other
//! ports. Routes carry ICMP in any case.

use bentpipe_masque::{AddressSet, Addressing, MOST_ADDRESSING, Route};
use bentpipe_service::SettingsError;
use bytes::BytesMut;

use super::allow::{Rule, addresses};

/// The protocol of routes for all.
const ANY: u8 = 0;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// The routes to what rules allow, in the order of a capsule.
pub fn advertised(rules: &[Rule]) -> Result<Vec<Route>, SettingsError> {
    let mut everything = sum(rules.iter().filter(|it| it.has_all_ports()));
    let mut ports = sum(rules.iter().filter(|it| !it.has_all_ports()));
    let unroutable = AddressSet::unroutable();
    everything.remove_all(&unroutable);
    ports.remove_all(&unroutable);
    // No route for all protocols may overlap one for some.
    ports.remove_all(&everything);
    let mut routes = everything.routes(ANY);
    routes.extend(
        [TCP, UDP]
            .iter()
            .flat_map(|protocol| ports.routes(*protocol)),
    );
    routes.sort_by_key(|it| (it.ends()[0].is_ipv6(), it.protocol(), it.ends()[0]));
    if routes.is_empty() {
        let what = "no packet of ip.pool could go anywhere: rules for names and for addresses of \
                    this machine are of UDP alone";
        let hint = "allow a network, as in allow = [\"10.1.0.0/16:*\"] (--allow), or \"public:*\"";
        return Err(SettingsError::new("targets.allow", what, hint));
    }
    let mut capsule = BytesMut::new();
    Addressing::Routes(routes.clone()).put(&mut capsule);
    // Type and length are a few bytes before that.
    if capsule.len() > MOST_ADDRESSING {
        let what = format!(
            "{} ranges of addresses for clients of ip.pool",
            routes.len()
        );
        let hint = "allow fewer and larger networks: clients are told of all in one capsule of \
                    4096 bytes";
        return Err(SettingsError::new("targets.allow", what, hint));
    }
    Ok(routes)
}

fn sum<'a>(rules: impl Iterator<Item = &'a Rule>) -> AddressSet {
    let mut sum = AddressSet::default();
    for rule in rules {
        for prefix in addresses(rule).prefixes() {
            sum.add(prefix.ends());
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(texts: &[&str]) -> Result<Vec<Route>, SettingsError> {
        let rules: Vec<Rule> = texts.iter().map(|it| it.parse().unwrap()).collect();
        advertised(&rules)
    }

    #[test]
    fn routes_are_in_order_and_do_not_overlap() {
        let found = routes(&["[2001:db8::]/64:*", "10.0.0.0/8:53", "10.1.0.0/16:*"]).unwrap();
        let texts = found.iter().map(|it| {
            let [start, end] = it.ends();
            format!("{start} {end} {}", it.protocol())
        });
        let expected = [
            "10.1.0.0 10.1.255.255 0",
            "10.0.0.0 10.0.255.255 6",
            "10.2.0.0 10.255.255.255 6",
            "10.0.0.0 10.0.255.255 17",
            "10.2.0.0 10.255.255.255 17",
            "2001:db8:: 2001:db8::ffff:ffff:ffff:ffff 0",
        ];
        assert_eq!(texts.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn all_rules_make_capsules_that_the_other_end_can_read() {
        for texts in [
            &["public:*"][..],
            &["public:443"],
            &["public:443", "0.0.0.0/0:*", "[::]/0:*"],
            &[
                "public:443",
                "10.1.0.0/16:1024-65535",
                "[fd00::]/8:*",
                "a.example:1",
            ],
        ] {
            let mut capsule = BytesMut::new();
            Addressing::Routes(routes(texts).unwrap()).put(&mut capsule);
            let mut reader = bentpipe_masque::CapsuleReader::of(bentpipe_masque::Content::Ip);
            let mut came = 0;
            let read = reader.read(capsule, |_| {
                came += 1;
                Ok(())
            });
            assert_eq!((read, came), (Ok(()), 1), "{texts:?}");
        }
    }

    #[test]
    fn rules_without_a_route_and_too_many_are_refused() {
        for texts in [&["www.example.org:443"][..], &["127.0.0.0/8:*"]] {
            let problem = routes(texts).unwrap_err();
            assert!(problem.what.contains("ip.pool"), "{problem}");
        }
        let many = (0..500).map(|it| format!("10.{}.{}.0/25:*", it / 250, it % 250));
        let many: Vec<_> = many.collect();
        let problem = routes(&many.iter().map(String::as_str).collect::<Vec<_>>()).unwrap_err();
        assert!(problem.what.contains("500 ranges"), "{problem}");
    }
}
