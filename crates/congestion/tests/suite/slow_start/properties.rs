//! Properties of every slow start of this family, for any input.

use bentpipe_congestion::slow_start::{HyStart, HyStartPlusPlus, Hybla, Search, Search4};
use bentpipe_congestion::{SlowStart, Step};
use proptest::prelude::*;

use crate::feed::{DATAGRAM, Feed, INITIAL_WINDOW};

fn all() -> Vec<Feed> {
    let feed = |it: Box<dyn SlowStart>| {
        let mut feed = Feed::slow_start(Search4::default(), 600);
        feed.algorithm = it;
        feed
    };
    vec![
        feed(Box::<HyStart>::default()),
        feed(Box::<HyStartPlusPlus>::default()),
        feed(Box::<Hybla>::default()),
        feed(Box::new(Search::new())),
        feed(Box::new(Search::keeping())),
        feed(Box::new(Search::log_only())),
        feed(Box::new(Search::with_hybla())),
        feed(Box::new(Search::below())),
        feed(Box::new(Search::with_rtt_growth())),
        feed(Box::<Search4>::default()),
    ]
}

proptest! {
    /// Until there is a sign the window only grows, by what was acknowledged at most (Hybla: seven
    /// times that); then it is a window that is there already, or less, and no smaller than the
    /// initial one, but for a queue that drains.
    #[test]
    fn the_window_grows_until_a_sign_and_never_beyond(
        acks in prop::collection::vec((0u64..400, 1u64..20, 500u64..5000, any::<bool>()), 1..300)
    ) {
        for mut feed in all() {
            let mut now = 0;
            for (gap, packets, rtt, round) in &acks {
                now += gap;
                let (bytes, before) = (packets * DATAGRAM, feed.path.window);
                feed.send(bytes);
                let most = if feed.algorithm.name().contains("hybla") { 7 * bytes } else { bytes };
                let step = if *round {
                    feed.ack_of_a_new_round(now, bytes, *rtt)
                } else {
                    feed.ack(now, bytes, *rtt)
                };
                match step {
                    Step::Grow(growth) => prop_assert!(growth <= most),
                    Step::Window(window) | Step::Retreat(window) => {
                        prop_assert_eq!(feed.algorithm.phase(), "drain");
                        prop_assert!(window <= feed.path.in_flight + bytes + DATAGRAM);
                    }
                    Step::Leave(exit) => {
                        prop_assert_eq!(exit.window, exit.ssthresh);
                        prop_assert!(exit.window >= INITIAL_WINDOW);
                        prop_assert!(exit.window <= before.saturating_add(most)
                            || feed.algorithm.phase() == "drain");
                        break;
                    }
                }
            }
        }
    }
}
