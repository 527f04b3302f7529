//! The parts of a path between its hosts.

use bentpipe_link::{CABLE, Direction, Fate, HostName, Path, Scenario};
use bentpipe_units::Span;
use proptest::prelude::*;

use crate::decided::Decides;
use crate::ns;

use HostName::{Client, Gateway, Server, Terminal};

fn load(name: &str) -> Scenario {
    let file = format!("{}/../../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    Scenario::load(file.as_ref(), &[]).unwrap()
}

#[test]
fn hops_add_up_to_the_path() {
    let scenario = load("geo-tum").with_cables(&[Terminal]);
    let hops = [[Client, Terminal], [Terminal, Gateway], [Gateway, Server]];
    let rtt = |[from, to]: [HostName; 2]| scenario.hop(from, to).rtt();
    let [access, satellite, ground] = hops.map(rtt);
    assert_eq!(access, CABLE * 2);
    assert_eq!([satellite, ground], [500, 80].map(Span::from_millis));
    assert_eq!(access + satellite + ground, scenario.rtt());
    assert_eq!(scenario.hop(Terminal, Server).rtt(), satellite + ground);
    assert_eq!(scenario.hop(Client, Gateway).name(), "client-gateway");
    assert_eq!(
        scenario.hop(Client, Terminal).rate(Direction::Forward),
        None
    );
    let whole = scenario.rate(Direction::Forward);
    assert_eq!(
        scenario.hop(Terminal, Gateway).rate(Direction::Forward),
        whole
    );
}

#[test]
fn cables_are_laid_where_a_proxy_has_a_segment_without_delay() {
    let plain = load("geo-tum");
    assert_eq!(plain.clone().with_cables(&[]), plain);
    assert_eq!(
        plain.clone().with_cables(&[Gateway]),
        plain,
        "there is a ground"
    );
    let cabled = plain.clone().with_cables(&[Terminal, Gateway]);
    assert_eq!(cabled.rtt(), plain.rtt() + CABLE * 2);
    assert_eq!(
        (&cabled.satellite, &cabled.ground),
        (&plain.satellite, &plain.ground)
    );
    let sat = load("sat").with_cables(&[Gateway]);
    assert_eq!(sat.access, None, "not next to it");
    assert_eq!(sat.hop(Gateway, Server).rtt(), CABLE * 2);
}

proptest! {
    /// Handed on at once from hop to hop, packets fare as over the path as a whole.
    #[test]
    fn hop_by_hop_is_as_from_end_to_end(
        seed: u64,
        gaps in prop::collection::vec((0_u64..2_000_000, 40_u32..1500), 1..300),
        forward: bool,
    ) {
        let sets = ["forward.loss", "return.loss"].map(|key| (key.to_owned(), "5%".to_owned()));
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/geo-tum.toml");
        let scenario = Scenario::load(file.as_ref(), &sets).unwrap().with_cables(&[Terminal,
            Gateway]);
        let direction = if forward { Direction::Forward } else { Direction::Return };
        let mut hops = [[Client, Terminal], [Terminal, Gateway], [Gateway, Server]]
            .map(|[from, to]| Path::over(scenario.hop(from, to), direction, seed));
        if forward {
            hops.reverse();
        }
        let mut whole = Path::new(&scenario, direction, seed);
        let mut now = 0;
        for (gap, bytes) in gaps {
            now += gap;
            let mut fate = Fate::Delivered { at: ns(now) };
            for hop in &mut hops {
                if let Fate::Delivered { at } = fate {
                    fate = hop.admit(at, bytes);
                }
            }
            prop_assert_eq!(fate, whole.admit(ns(now), bytes));
        }
    }
}
