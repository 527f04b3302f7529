//! SEARCH 2.0. At an RTT of 600 ms a bin lasts 210 ms, the look back is of 3 bins (600 / 210 =
//! 2.86), and 13 bins must have been completed before the last one can be compared: 10 and 3.

use bentpipe_congestion::slow_start::Search;
use bentpipe_congestion::{Exit, LogEvent, Response, Step, Value};

use crate::feed::{Feed, INITIAL_WINDOW};

/// An ACK at the beginning, and one just after the end of each bin: the n-th of these falls into
/// bin n.
fn fill(feed: &mut Feed, bins: &[u64]) -> Vec<Step> {
    let ack = |(n, bytes): (u64, &u64)| feed.ack(if n == 0 { 0 } else { 210 * n + 1 }, *bytes, 600);
    (0..).zip(bins).map(ack).collect()
}

/// Feeds `bins`; the last is known when the bin after it has begun.
fn outcome(slow_start: Search, bins: &[u64]) -> (Feed, Step, Vec<Step>) {
    let mut feed = Feed::slow_start(slow_start, 600);
    let mut bins = bins.to_vec();
    bins.push(1000);
    let mut steps = fill(&mut feed, &bins);
    let last = steps.pop().unwrap();
    (feed, last, steps)
}

fn leaves(step: &Step) -> bool {
    matches!(step, Step::Leave(_))
}

#[test]
fn leaves_when_the_rate_no_longer_grows_as_soon_as_it_can_tell() {
    let (_, last, before) = outcome(Search::new(), &[1000; 14]);
    assert_eq!(before, [Step::Grow(1000); 14]);
    // Bins 4 to 13 hold 10,000 bytes, where twice those of bins 1 to 10 were expected. In two
    // initial round trips, which are 5.7 bins, 6000 bytes were delivered.
    let window = INITIAL_WINDOW + 14_000 - 6000;
    let exit = Exit {
        window,
        ssthresh: window,
        reason: "search",
    };
    assert_eq!(last, Step::Leave(exit));
}

#[test]
fn goes_on_at_the_threshold_and_leaves_beyond_it() {
    // Bins 1 to 10: 10,000 bytes. Bins 4 to 13: 7000 and three others. 20,000 − 13,000 is 35 % of
    // 20,000.
    let mut bins = [1000; 14];
    bins[11..].fill(2000);
    let (_, at, _) = outcome(Search::new(), &bins);
    assert!(!leaves(&at), "{at:?}");
    bins[13] = 1999;
    let (_, beyond, _) = outcome(Search::new(), &bins);
    assert!(leaves(&beyond), "{beyond:?}");
}

#[test]
fn goes_on_while_delivery_doubles_in_a_round_trip() {
    // 2^(1/3) more in each bin.
    let bins: Vec<u64> = (0..24)
        .map(|n| 10_000 * (1 << (n / 3)) * [100, 126, 159][n % 3] / 100)
        .collect();
    let mut feed = Feed::slow_start(Search::new(), 600);
    assert!(!fill(&mut feed, &bins).iter().any(leaves));
}

#[test]
fn keeps_the_window_if_it_is_told_to() {
    let (feed, last, _) = outcome(Search::keeping(), &[1000; 14]);
    assert!(leaves(&last));
    assert_eq!(feed.path.window, INITIAL_WINDOW + 14_000);
}

#[test]
fn never_takes_the_initial_window() {
    let mut feed = Feed::slow_start(Search::new(), 600);
    let mut last = Step::Grow(0);
    for n in 0..15 {
        // Somebody else keeps the window small.
        feed.path.window = INITIAL_WINDOW;
        last = feed.ack(if n == 0 { 0 } else { 210 * n + 1 }, 9000, 600);
    }
    assert!(matches!(last, Step::Leave(exit) if exit.window == INITIAL_WINDOW));
}

fn number(event: &LogEvent, name: &str) -> Option<u64> {
    match event.get(name)? {
        Value::Integer(number) => Some(*number),
        _ => None,
    }
}

#[test]
fn log_only_notes_once_what_it_would_have_done_and_goes_on() {
    let (mut feed, last, _) = outcome(Search::log_only(), &[1000; 14]);
    assert_eq!(last, Step::Grow(1000));
    let event = feed.log_event().unwrap();
    assert_eq!(event.name, "search_exit");
    assert_eq!(number(&event, "overshoot_bytes"), Some(6000));
    assert_eq!(
        number(&event, "congestion_window"),
        Some(INITIAL_WINDOW + 8000)
    );
    assert_eq!(feed.ack(210 * 15 + 1, 1000, 600), Step::Grow(1000));
    assert_eq!(feed.log_event().unwrap().name, "search_bin");
}

#[test]
fn notes_each_completed_bin_with_its_windows_and_the_norm() {
    let (mut feed, _, _) = outcome(Search::keeping(), &[1000; 14]);
    let event = feed.log_event().unwrap();
    for (name, value) in [
        ("bin", 13),
        ("delivered_bytes", 1000),
        ("window_bytes", 10_000),
        ("expected_bytes", 20_000),
        ("look_back_bins", 3),
    ] {
        assert_eq!(number(&event, name), Some(value), "{name}");
    }
    assert_eq!(event.get("norm"), Some(&Value::Number(0.5)));
}

#[test]
fn looks_back_by_the_latest_rtt_and_not_at_all_if_that_is_beyond_its_bins() {
    let mut feed = Feed::slow_start(Search::new(), 600);
    fill(&mut feed, &[1000; 13]);
    // 15 bins are 3150 ms, and 14.5 of them are 15.
    let step = feed.ack(210 * 40, 1000, 3100);
    assert!(!leaves(&step), "{step:?}");
    assert_eq!(number(&feed.log_event().unwrap(), "expected_bytes"), None);
}

#[test]
fn begins_anew_after_a_pause_of_more_bins_than_it_has() {
    let mut feed = Feed::slow_start(Search::new(), 600);
    fill(&mut feed, &[1000; 13]);
    let resumed = 210 * 13 + 210 * 26;
    for n in 0..14 {
        let step = feed.ack(resumed + 211 * n, 1000, 600);
        assert!(!leaves(&step), "bin {n} after the pause: {step:?}");
    }
    assert!(leaves(&feed.ack(resumed + 211 * 14, 1000, 600)));
}

#[test]
fn bins_that_were_skipped_are_empty() {
    let mut feed = Feed::slow_start(Search::new(), 600);
    fill(&mut feed, &[1000; 14]);
    let step = feed.ack(210 * 17 + 1, 1000, 600);
    // Bins 7 to 16, of which 14 to 16 are empty, against bins 4 to 13.
    assert!(leaves(&step), "{step:?}");
    let event = feed.log_event().unwrap();
    assert_eq!(number(&event, "window_bytes"), Some(7000));
    assert_eq!(number(&event, "expected_bytes"), Some(20_000));
}

#[test]
fn leaves_with_four_fifths_of_what_the_path_holds() {
    let (_, last, _) = outcome(Search::below(), &[100_000; 14]);
    // In three bins, 630 ms, 300,000 bytes were delivered: 476,190 a second, 285,714 in 600 ms.
    let exit = Exit {
        window: 228_571,
        ssthresh: 228_571,
        reason: "search",
    };
    assert_eq!(last, Step::Leave(exit));
    let (_, small, _) = outcome(Search::below(), &[1000; 14]);
    assert!(matches!(small, Step::Leave(exit) if exit.window == INITIAL_WINDOW));
}

#[test]
fn grows_less_by_the_share_by_which_the_rtt_has_risen() {
    let mut feed = Feed::slow_start(Search::with_rtt_growth(), 600);
    // The least RTT of each round, and the growth by 1200 bytes acknowledged at its beginning.
    for (rtt_ms, growth) in [
        (600, 1200),
        (600, 1200),
        (750, 1200),
        // 750 after 600: a quarter more.
        (1500, 900),
        // Twice as much.
        (700, 0),
        (700, 1200),
        (7000, 1200),
        // Ten times as much takes no more than all.
        (600, 0),
    ] {
        let step = feed.ack_of_a_new_round(0, 1200, rtt_ms);
        assert_eq!(step, Step::Grow(growth), "a round of {rtt_ms} ms begins");
        assert_eq!(feed.ack(0, 1200, rtt_ms + 50), Step::Grow(growth));
    }
}

#[test]
fn watches_a_jump_from_its_first_ack_on() {
    let (_, last, before) = outcome(Search::with_jump_start(), &[1000; 14]);
    let jump = [Step::Window(1_250_000), Step::Window(INITIAL_WINDOW)];
    assert_eq!(before[..2], jump);
    assert_eq!(before[2..], [Step::Grow(1000); 12]);
    let window = INITIAL_WINDOW + 12_000 - 6000;
    assert!(matches!(last, Step::Leave(exit) if exit.window == window && exit.reason == "search"));
}

#[test]
fn a_jump_that_loses_is_left_as_jump_start_leaves_it() {
    let mut feed = Feed::slow_start(Search::with_jump_start(), 600);
    feed.send(1200);
    feed.ack(0, 1200, 600);
    feed.send(500_000);
    feed.sent_before = 1200;
    assert_eq!(feed.ack(600, 2400, 600), Step::Window(500_000));
    assert_eq!(feed.algorithm.phase(), "jump_start_landed");
    assert_eq!(feed.congest(12_000), Response::Window(INITIAL_WINDOW));
}
