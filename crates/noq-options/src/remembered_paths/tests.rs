use bentpipe_congestion::{Algorithms, Settings};
use bentpipe_units::Time;

use super::*;

const PATH: SavedPath = SavedPath {
    window: 1_500_000,
    rtt: Span::from_millis(600),
};
const NOW: Duration = Duration::from_secs(946_684_800);

fn seen(at: Duration) -> RememberedPath {
    RememberedPath {
        path: PATH,
        filled: true,
        seen: at,
    }
}

fn remembered(given: Option<SavedPath>) -> RememberedPaths {
    let paths = RememberedPaths::default();
    *paths.lock() = Some(Memory {
        jump: Some(Jump::Half),
        given,
        ..Memory::new(Role::Server)
    });
    paths.own().clock = Some(Clock::new(NOW));
    paths
}

fn saved(paths: &RememberedPaths) -> Option<SavedPath> {
    let living = paths.recall().unwrap();
    living.take_resume().map(|resume| resume.saved)
}

#[test]
fn what_is_given_is_for_the_first_connection_with_each_peer() {
    let paths = remembered(Some(PATH));
    for port in [1, 2] {
        for ip in ["192.0.2.1", "192.0.2.2"] {
            paths.connecting_to(format!("{ip}:{port}").parse().unwrap());
            assert_eq!(saved(&paths), (port == 1).then_some(PATH));
            assert_eq!(saved(&paths), None, "nobody new was met");
        }
    }
}

#[test]
fn what_is_remembered_is_for_one_connection() {
    let paths = remembered(None);
    let remote: SocketAddr = "192.0.2.1:1".parse().unwrap();
    let put = |at: Duration| {
        let mut memory = paths.lock();
        let known = &mut memory.as_mut().unwrap().paths;
        known.put("192.0.2.1", seen(at));
    };
    let now = Duration::from_secs(946_684_800);
    put(now);
    for expected in [Some(PATH), None] {
        paths.connecting_to(remote);
        assert_eq!(saved(&paths), expected);
    }
    put(Duration::from_secs(946_684_800 - 3601));
    paths.connecting_to(remote);
    assert_eq!(saved(&paths), None, "it is too old");
}

/// A controller that has sent nothing, as of a connection whose handshake failed.
fn unused(resume: Option<Resume>) -> Controller {
    let settings = Settings {
        resume,
        ..Settings::default()
    };
    let algorithms = Algorithms::new("bentpipe", "flight").unwrap();
    algorithms.controller(settings, 1200, Time::ZERO)
}

#[test]
fn a_connection_that_sends_nothing_leaves_the_path_as_old_as_it_was() {
    let paths = remembered(None);
    let remote: SocketAddr = "192.0.2.1:1".parse().unwrap();
    let old = Duration::from_secs(NOW.as_secs() - 600);
    let mut memory = paths.lock();
    memory.as_mut().unwrap().paths.put("192.0.2.1", seen(old));
    drop(memory);
    paths.connecting_to(remote);
    let living = paths.recall().unwrap();
    let controller = unused(living.take_resume());
    let mut memory = paths.lock();
    let memory = memory.as_mut().unwrap();
    assert!(memory.paths.is_empty());
    memory.learn(remote.ip(), &controller, NOW, living.give_taken());
    assert_eq!(memory.paths.take("192.0.2.1", NOW), Some(seen(old)));
    assert_eq!(living.give_taken(), None);
}

#[test]
fn a_flight_takes_no_window_that_only_says_how_little_there_was_to_send() {
    for (jump, of_use) in [(Jump::Flight, false), (Jump::Whole, true)] {
        let paths = remembered(None);
        let mut memory = paths.lock();
        let known = memory.as_mut().unwrap();
        known.jump = Some(jump);
        known.paths.put(
            "192.0.2.1",
            RememberedPath {
                filled: false,
                ..seen(NOW)
            },
        );
        drop(memory);
        paths.connecting_to("192.0.2.1:1".parse().unwrap());
        assert_eq!(saved(&paths).is_some(), of_use, "{jump:?}");
    }
}

#[test]
fn a_path_in_words() {
    assert_eq!(parse("1500000@600ms").unwrap(), PATH);
    let wrong = [
        "",
        "1500000",
        "@ms",
        "0@600ms",
        "1@0ms",
        "-1@600ms",
        "1500000@600",
        "1500000@60001ms",
        "18446744073709551615@600ms",
        "99999999999999999999@600ms",
    ];
    for text in wrong {
        assert_eq!(parse(text).unwrap_err().exit_code(), 127, "{text}");
    }
}

/// A path that a connection with this peer lives on, where it has seen this.
fn living(paths: &RememberedPaths, remembered: RememberedPath, is_busy: bool) -> LivingPath {
    paths.connecting_to("192.0.2.1:1".parse().unwrap());
    let living = paths.recall().unwrap();
    living.see(remembered, is_busy);
    living
}

fn next(paths: &RememberedPaths) -> Option<SavedPath> {
    paths.connecting_to("192.0.2.1:2".parse().unwrap());
    saved(paths)
}

fn of_rate(mbit: u64) -> SavedPath {
    SavedPath {
        window: mbit * 1_000_000 / 8 * 6 / 10,
        ..PATH
    }
}

#[test]
fn what_a_living_connection_has_seen_serves_the_next_one() {
    let paths = remembered(None);
    let first = living(&paths, seen(NOW), false);
    assert_eq!(next(&paths), Some(PATH));
    assert_eq!(
        next(&paths),
        Some(PATH),
        "it is known for as long as that lives"
    );
    drop(first);
    assert_eq!(
        next(&paths),
        None,
        "and no longer, unless it tells at its end"
    );
}

#[test]
fn the_latest_counts_that_filled_the_path() {
    let paths = remembered(None);
    let before = |seconds: u64| NOW.saturating_sub(Duration::from_secs(seconds));
    let of = |mbit, seconds, filled| RememberedPath {
        path: of_rate(mbit),
        filled,
        seen: before(seconds),
    };
    // The link has become slower meanwhile, and then somebody had little to send.
    let memory = |known: RememberedPath| {
        let mut memory = paths.lock();
        memory.as_mut().unwrap().paths.put("192.0.2.1", known);
    };
    memory(of(20, 60, true));
    let _slower = living(&paths, of(5, 30, true), false);
    memory(of(20, 60, true));
    let _idle = living(&paths, of(1, 10, false), false);
    memory(of(20, 60, true));
    assert_eq!(next(&paths), Some(of_rate(5)));
    let old = remembered(None);
    let _old = living(&old, of(20, 3601, true), false);
    assert_eq!(next(&old), None, "it is too old");
}

#[test]
fn beside_others_that_send_a_flight_has_a_share_if_that_makes_it_slower() {
    for (mbit, busy, jump, share) in [
        (20, 1, Jump::Flight, Some(10)),
        (20, 3, Jump::Flight, Some(5)),
        // Without any knowledge it has 19 Mbit/s.
        (100, 1, Jump::Flight, None),
        (100, 9, Jump::Flight, Some(10)),
        (20, 1, Jump::Half, None),
        (20, 1, Jump::Whole, None),
    ] {
        let paths = remembered(None);
        paths.lock().as_mut().unwrap().jump = Some(jump);
        let known = RememberedPath {
            path: of_rate(mbit),
            ..seen(NOW)
        };
        let others: Vec<_> = (0..busy).map(|_| living(&paths, known, true)).collect();
        let expected = share.map(of_rate);
        assert_eq!(
            next(&paths),
            expected,
            "{mbit} Mbit/s, {busy} others, {jump:?}"
        );
        for it in &others {
            it.see(known, false);
        }
        assert_eq!(next(&paths), Some(of_rate(mbit)), "they have stopped");
    }
}

#[test]
fn threads_that_share_a_memory_do_not_mix_up_their_peers() {
    let one = remembered(None);
    let other = one.for_another_thread();
    other.own().clock = Some(Clock::new(NOW));
    one.lock()
        .as_mut()
        .unwrap()
        .paths
        .put("192.0.2.1", seen(NOW));
    one.connecting_to("192.0.2.1:1".parse().unwrap());
    other.connecting_to("192.0.2.2:1".parse().unwrap());
    assert_eq!(saved(&other), None);
    assert_eq!(saved(&one), Some(PATH));
}

#[test]
fn paths_of_connections_that_have_ended_are_not_kept() {
    let paths = remembered(None);
    for number in 0..10 * MOST_ENDED {
        let peer = format!("[2001:db8::{number:x}]:1").parse().unwrap();
        paths.connecting_to(peer);
        drop(paths.recall());
        let kept = paths.lock().as_ref().unwrap().living.len();
        assert!(kept <= MOST_ENDED + 1, "{kept}");
    }
}

#[test]
fn a_connection_that_has_ended_is_not_busy_though_it_drains() {
    let paths = remembered(None);
    let first = living(&paths, seen(NOW), true);
    assert_eq!(next(&paths), None, "it sends");
    let mut memory = paths.lock();
    memory.as_mut().unwrap().end("192.0.2.1", &first);
    memory.as_mut().unwrap().paths.put("192.0.2.1", seen(NOW));
    drop(memory);
    assert_eq!(next(&paths), Some(PATH));
}

#[test]
fn what_peers_keep_is_not_remembered_beside() {
    let paths = remembered(None);
    *paths.frames() = BdpFrames::new();
    let _first = living(&paths, seen(NOW), false);
    assert_eq!(next(&paths), None);
    *paths.frames() = None;
    assert_eq!(next(&paths), Some(PATH));
}

/// A proxy makes the next connection when the one before begins to be used, and both at once.
#[test]
fn a_connection_that_asks_later_takes_nothing_before() {
    let paths = remembered(None);
    let remote: SocketAddr = "192.0.2.1:1".parse().unwrap();
    paths
        .lock()
        .as_mut()
        .unwrap()
        .paths
        .put("192.0.2.1", seen(NOW));
    paths.preparing(remote);
    assert_eq!(saved(&paths), None);
    assert_eq!(next(&paths), Some(PATH));
}

/// A page opens six connections at once, before any of them has sent.
#[test]
fn connections_that_begin_together_share_what_is_known() {
    let paths = remembered(None);
    paths.lock().as_mut().unwrap().jump = Some(Jump::Flight);
    let known = RememberedPath {
        path: of_rate(20),
        ..seen(NOW)
    };
    let _idle = living(&paths, known, false);
    let recall = |_| {
        paths.connecting_to("192.0.2.1:2".parse().unwrap());
        paths.recall().unwrap()
    };
    let six: Vec<_> = (0..6).map(recall).collect();
    let rates: Vec<_> = six
        .iter()
        .map(|it| it.take_resume().unwrap().saved.window)
        .collect();
    let shares: Vec<_> = (1..=6).map(|it| of_rate(20).window / it).collect();
    assert_eq!(rates, shares);
    let fast = remembered(None);
    fast.lock().as_mut().unwrap().jump = Some(Jump::Flight);
    let _idle = living(&fast, seen(NOW), false);
    fast.lock().as_mut().unwrap().jump = Some(Jump::Whole);
    fast.connecting_to("192.0.2.1:2".parse().unwrap());
    let _first = fast.recall().unwrap();
    assert_eq!(
        next(&fast),
        None,
        "nobody jumps beside one that is about to"
    );
}

#[test]
fn what_was_told_and_not_used_in_time_is_worth_nothing() {
    let paths = remembered(Some(PATH));
    let clock = paths.own().clock.clone().unwrap();
    let [soon, late] = [9, 10].map(|seconds| {
        clock.set(Duration::ZERO);
        paths.connecting_to(format!("192.0.2.{seconds}:1").parse().unwrap());
        let living = paths.recall().unwrap();
        clock.set(Duration::from_secs(seconds));
        assert_eq!(living.is_busy(), seconds == 9);
        living.take_resume().map(|it| it.saved)
    });
    assert_eq!((soon, late), (Some(PATH), None));
}

#[test]
fn what_one_has_learnt_is_not_forgotten_for_one_that_learnt_less() {
    let ip: IpAddr = "192.0.2.1".parse().unwrap();
    let of = |mbit, filled, seconds| RememberedPath {
        path: of_rate(mbit),
        filled,
        seen: NOW.saturating_sub(Duration::from_secs(seconds)),
    };
    let mut memory = Memory::new(Role::Server);
    for (stored, taken, best) in [
        (of(20, true, 60), of(1, false, 0), of(20, true, 60)),
        (of(20, true, 60), of(50, true, 600), of(20, true, 60)),
        (of(1, false, 60), of(20, true, 600), of(20, true, 600)),
        (of(20, true, 4000), of(1, false, 0), of(1, false, 0)),
    ] {
        memory.paths.put("192.0.2.1", stored);
        memory.learn(ip, &unused(None), NOW, Some(taken));
        assert_eq!(memory.paths.take("192.0.2.1", NOW), Some(best));
    }
}

#[test]
fn what_is_given_is_for_so_many_peers() {
    let paths = remembered(Some(PATH));
    let mut memory = paths.lock();
    let memory = memory.as_mut().unwrap();
    let living = LivingPath::new(Clock::new(NOW), None, false);
    for peer in 0..2 * MOST_GIVEN {
        memory.resume(&peer.to_string(), NOW, &living);
        let is_given = living.take_resume().is_some();
        assert_eq!(is_given, peer < MOST_GIVEN, "{peer}");
    }
    assert_eq!(memory.given_to.len(), MOST_GIVEN);
}

#[test]
fn a_frame_waits_until_its_connection_is_used() {
    let waits = LivingPath::new(Clock::new(NOW), None, true);
    assert!(!waits.hear(seen(NOW)));
    assert!(!waits.is_busy(), "it is in nobody's way");
    assert_eq!(waits.begin(), Some(seen(NOW)));
    assert!(waits.hear(seen(NOW)), "it is in use");
    assert_eq!(waits.begin(), None);
}

#[test]
fn news_of_one_path_is_not_taken_for_that_of_another() {
    let count: Arc<AtomicUsize> = Arc::default();
    let [one, other] = [(); 2].map(|()| {
        let news = Some(count.clone());
        LivingPath::new(Clock::new(NOW), news, false)
    });
    let resume = Resume {
        saved: PATH,
        jump: Jump::Flight,
    };
    assert!(one.hear(seen(NOW)));
    let mut wrong = unused(Some(resume));
    let at = |ms| Time::ZERO + Span::from_millis(ms);
    for number in 0..100 {
        wrong.on_sent(at(0), number, 1200);
    }
    (0..50).for_each(|number| wrong.on_lost(at(600), number, 1200));
    one.publish(&wrong);
    one.publish(&wrong);
    assert_eq!(count.load(Ordering::Relaxed), 1);
    assert!(!other.take_news() && one.take_news() && !one.take_news());
    assert_eq!(one.wrong_frame(), Some(NOW));
    // Later it has delivered so much that the losses look like chance.
    one.publish(&unused(Some(resume)));
    assert_eq!(one.wrong_frame(), Some(NOW));
    assert_eq!(other.wrong_frame(), None);
    assert_eq!(count.load(Ordering::Relaxed), 0);
}

#[test]
fn threads_that_end_connections_at_once_write_one_whole_file() {
    let name = format!("bentpipe-paths-{}.json", std::process::id());
    let file = std::env::temp_dir().join(name);
    let paths = remembered(None);
    paths.lock().as_mut().unwrap().file = Some(file.clone());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let paths = paths.for_another_thread();
            scope.spawn(move || {
                for number in 0..20 {
                    let peer = format!("{thread}.{number}");
                    let mut memory = paths.lock();
                    memory.as_mut().unwrap().paths.put(&peer, seen(NOW));
                    drop(memory);
                    paths.store();
                }
            });
        }
    });
    let stored = SavedPaths::load(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(stored.len(), 80);
}
