//! Loss ratios within statistical bounds, and the streams that they are drawn from.

use bentpipe_link::{Direction, Fate, LinkSeed, Path, SegmentName};
use bentpipe_units::Span;

use crate::decided::Decides;
use crate::{SEED, config, link, ns, parse};

const MILLION: usize = 1_000_000;

fn losses(link: &mut Path, packets: usize) -> Vec<usize> {
    (0..packets)
        .filter(|_| link.admit(ns(0), 1500) == Fate::Loss)
        .collect()
}

/// Five standard deviations of a binomial distribution on either side of its mean.
fn assert_share(count: usize, of: usize, share: f64) {
    let (count, of) = (
        f64::from(u32::try_from(count).unwrap()),
        f64::from(u32::try_from(of).unwrap()),
    );
    let deviations = (count - of * share).abs() / (of * share * (1.0 - share)).sqrt();
    assert!(deviations < 5.0, "{count} of {of}, expected {share}");
}

/// Lengths of runs of consecutive losses.
fn bursts(losses: &[usize]) -> Vec<usize> {
    losses
        .chunk_by(|left, right| left + 1 == *right)
        .map(<[usize]>::len)
        .collect()
}

#[test]
fn none_and_all_are_exact() {
    assert_eq!(losses(&mut link(""), MILLION).len(), 0);
    assert_eq!(losses(&mut link("loss = \"none\""), MILLION).len(), 0);
    assert_eq!(losses(&mut link("loss = \"0 %\""), MILLION).len(), 0);
    assert_eq!(
        losses(&mut link("loss = \"100 %\""), MILLION).len(),
        MILLION
    );
}

#[test]
fn uniform_loss_has_its_ratio_and_no_memory() {
    for (text, share) in [
        ("0.01 %", 0.0001),
        ("1 %", 0.01),
        ("6 %", 0.06),
        ("50 %", 0.5),
    ] {
        let lost = losses(&mut link(&format!("loss = \"{text}\"")), MILLION);
        assert_share(lost.len(), MILLION, share);
        // After a loss, the next packet is as likely to be lost as any.
        let pairs = lost
            .windows(2)
            .filter(|pair| pair[0] + 1 == pair[1])
            .count();
        assert_share(pairs, lost.len(), share);
    }
}

#[test]
fn gilbert_elliott_has_its_ratio_and_bursts() {
    // The wired and the Wi-Fi figures of Kuhn et al. 2020, table I.
    for ((enter, p_enter), (stay, p_stay), longest) in [
        (("1.7", 0.017), ("6.5", 0.065), 3..=7),
        (("1.8", 0.018), ("35.5", 0.355), 7..=18),
    ] {
        let mut link = link(&format!(
            "loss = {{ model = \"gilbert-elliott\", p_bad_given_good = \"{enter} %\", \
             p_bad_given_bad = \"{stay} %\" }}"
        ));
        let lost = losses(&mut link, MILLION);
        let bursts = bursts(&lost);
        // Of the packets after a delivered one, the share `p_enter` begins a burst; of those after
        // a lost one, the share `p_stay` continues it. So a burst has 1 / (1 - p_stay) packets in
        // the mean.
        assert_share(bursts.len(), MILLION - lost.len(), p_enter);
        assert_share(lost.len() - bursts.len(), lost.len(), p_stay);
        let most = *bursts.iter().max().unwrap();
        assert!(longest.contains(&most), "longest burst {most}");
    }
}

#[test]
fn gilbert_elliott_loses_in_both_states() {
    let mut link = link(
        "loss = { model = \"gilbert-elliott\", p_bad_given_good = \"20 %\", p_bad_given_bad = \"80 \
         %\", loss_in_good = \"10 %\", loss_in_bad = \"50 %\" }",
    );
    // Half of the time in either state: 30 %. As states last, the variance of 0.3 * 0.7 per packet
    // grows by 2 * 0.2^2 * 0.6 / 0.4 = 0.12, which makes the standard deviation 574.
    let lost = losses(&mut link, MILLION).len();
    assert!((297_000..=303_000).contains(&lost), "{lost}");
}

#[test]
fn gilbert_elliott_begins_in_the_good_state() {
    let model = |good, bad| {
        format!(
            "loss = {{ model = \"gilbert-elliott\", p_bad_given_good = \"{good} %\", \
             p_bad_given_bad = \"{bad} %\" }}"
        )
    };
    assert_eq!(losses(&mut link(&model(0, 100)), 1000).len(), 0);
    assert_eq!(losses(&mut link(&model(100, 100)), 1000).len(), 1000);
    let every_other: Vec<usize> = (0..1000).step_by(2).collect();
    assert_eq!(losses(&mut link(&model(100, 0)), 1000), every_other);
}

#[test]
fn periodic_loss_takes_the_end_of_each_period() {
    let mut single = link("loss = { model = \"periodic\", every = \"100 packets\" }");
    assert_eq!(losses(&mut single, 301), [99, 199, 299]);
    let mut triple =
        link("loss = { model = \"periodic\", every = \"5 packets\", burst = \"3 packets\" }");
    assert_eq!(losses(&mut triple, 12), [2, 3, 4, 7, 8, 9]);
    let mut all = link("loss = { model = \"periodic\", every = \"1 packet\" }");
    assert_eq!(losses(&mut all, 5).len(), 5);
}

#[test]
fn a_lost_packet_has_used_the_capacity() {
    let mut link = link(
        "rate = \"8 Gbit/s\"\nqueue = \"10 packets\"\n\
         loss = { model = \"periodic\", every = \"2 packets\" }",
    );
    let fates: Vec<Fate> = (0..3).map(|_| link.admit(ns(0), 100)).collect();
    let delivered = |departure: u64| Fate::Delivered {
        at: ns(1_000_000 + departure),
    };
    assert_eq!(fates, [delivered(100), Fate::Loss, delivered(300)]);
}

#[test]
fn a_packet_dropped_by_the_queue_does_not_count_for_loss() {
    let mut link = link(
        "rate = \"8 Gbit/s\"\nqueue = \"0 packets\"\n\
         loss = { model = \"periodic\", every = \"2 packets\" }",
    );
    let fates: Vec<Fate> = [0, 1, 2, 100, 200]
        .map(|now| link.admit(ns(now), 100))
        .into();
    let delivered = |departure: u64| Fate::Delivered {
        at: ns(1_000_000 + departure),
    };
    assert_eq!(
        fates,
        [
            delivered(100),
            Fate::QueueDrop,
            Fate::QueueDrop,
            Fate::Loss,
            delivered(300)
        ]
    );
}

#[test]
fn each_link_draws_from_the_stream_that_is_documented() {
    // Computed with another implementation of ChaCha8 from the description of `LinkSeed`.
    let expected: [(Direction, SegmentName, &[usize]); 4] = [
        (
            Direction::Forward,
            SegmentName::Satellite,
            &[
                15, 27, 39, 63, 77, 101, 196, 374, 556, 701, 747, 769, 860, 920,
            ],
        ),
        (
            Direction::Return,
            SegmentName::Satellite,
            &[37, 172, 654, 666, 888, 995],
        ),
        (
            Direction::Forward,
            SegmentName::Ground,
            &[224, 379, 438, 549, 579, 636, 650, 815, 880],
        ),
        (
            Direction::Forward,
            SegmentName::Access,
            &[117, 131, 228, 262, 275, 334, 410, 451, 606, 718, 760],
        ),
    ];
    for (direction, segment, lost) in expected {
        let seed = LinkSeed {
            direction,
            segment,
            ..SEED
        };
        let mut link = Path::of_link(&config("loss = \"1 %\""), Span::ZERO, seed);
        assert_eq!(losses(&mut link, 1000), lost, "{direction:?} {segment:?}");
    }
}

#[test]
fn another_queue_leaves_the_losses_where_they_were() {
    let queue = "{ size = \"1 GB\", drop_above = \"1 kB\", drop_ratio = \"50 %\" }";
    let mut link = link(&format!(
        "rate = \"1 Mbit/s\"\nqueue = {queue}\nloss = \"1 %\""
    ));
    let fates = (0..3000).map(|_| link.admit(ns(0), 1500));
    let passed = fates.filter(|fate| *fate != Fate::QueueDrop);
    let lost: Vec<usize> = passed
        .take(1000)
        .enumerate()
        .filter(|(_, fate)| *fate == Fate::Loss)
        .map(|(i, _)| i)
        .collect();
    assert_eq!(
        lost,
        [
            15, 27, 39, 63, 77, 101, 196, 374, 556, 701, 747, 769, 860, 920
        ]
    );
}

#[test]
fn steps_have_the_ratio_of_their_time() {
    let steps =
        "[[\"0 s\", \"0 %\"], [\"1 s\", \"100 %\"], [\"3 s\", \"20 %\"], [\"4 s\", \"0 %\"]]";
    let text = |period: &str| format!("loss = {{ model = \"steps\", steps = {steps}{period} }}");
    // 100,000 packets each second; the first 10 s.
    let lost_in = |link: &mut Path| -> Vec<usize> {
        let second = |second: u64| {
            let times = (0..100_000).map(|packet| ns(second * 1_000_000_000 + packet * 10_000));
            times
                .filter(|at| link.admit(*at, 1500) == Fate::Loss)
                .count()
        };
        (0..10).map(second).collect()
    };
    let once = lost_in(&mut link(&text("")));
    let again = lost_in(&mut link(&text(", period = \"5 s\"")));
    assert_eq!(once[..3], [0, 100_000, 100_000]);
    assert_eq!(once[4..], [0; 6]);
    assert_eq!(
        [&again[..3], &again[5..8]].concat(),
        [&once[..3]; 2].concat()
    );
    assert_eq!((again[4], again[9]), (0, 0));
    for count in [once[3], again[3], again[8]] {
        assert_share(count, 100_000, 0.2);
    }
}

#[test]
fn steps_of_a_loss_travel_in_json() {
    let text = "loss = { model = \"steps\", steps = [[\"0 s\", \"0.5 %\"], [\"1 s\", \"100 %\"]], \
                period = \"2 s\" }";
    let scenario = parse(&format!("delay = \"1 ms\"\n{text}")).unwrap();
    let json = serde_json::to_string(&scenario).unwrap();
    assert!(
        json.contains(r#"{"model":"steps","steps":[["0 ms","0.5 %"],"#),
        "{json}"
    );
    assert_eq!(
        serde_json::from_str::<bentpipe_link::Scenario>(&json).unwrap(),
        scenario
    );
    let shown = scenario.satellite.forward.loss.to_string();
    assert_eq!(shown, "0.5 % to 100 % in 2 steps, again every 2 s");
}
