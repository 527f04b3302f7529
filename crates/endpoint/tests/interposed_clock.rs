//! Every way to ask for the time gives the driver's. A program of its own, because all of its
//! clocks are changed: `cargo test -p bentpipe-endpoint --features interposed-clock --test
//! interposed_clock`

#![expect(unsafe_code, reason = "calls C functions as a C library does")]
#![expect(clippy::disallowed_methods, reason = "clocks are what is being tested")]

use std::time::{Duration, Instant, SystemTime};

use bentpipe_endpoint::Clock;

const EPOCH: Duration = Duration::from_secs(946_684_800);

/// The time as C code gets it: by `gettimeofday`, `time`, and a clock of the kernel.
fn c_clocks() -> (Duration, Duration, Duration) {
    let mut day = libc::timeval {
        tv_sec: 0,
        tv_usec: 0,
    };
    let mut raw = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut whole = 0;
    // SAFETY: all three pointers are to variables of the right type.
    unsafe {
        assert_eq!(libc::gettimeofday(&raw mut day, std::ptr::null_mut()), 0);
        assert_eq!(
            libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &raw mut raw),
            0
        );
        assert_eq!(libc::time(&raw mut whole), libc::time(std::ptr::null_mut()));
    }
    let seconds = |seconds: i64| Duration::from_secs(seconds.try_into().unwrap());
    (
        seconds(day.tv_sec) + Duration::from_micros(day.tv_usec.try_into().unwrap()),
        seconds(whole),
        seconds(raw.tv_sec) + Duration::from_nanos(raw.tv_nsec.try_into().unwrap()),
    )
}

fn unix() -> Duration {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
}

fn cpu_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a variable of the right type.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(result, 0);
    Duration::new(
        time.tv_sec.try_into().unwrap(),
        time.tv_nsec.try_into().unwrap(),
    )
}

/// In the order in which a program lives, and without a harness, whose clocks these would be, too.
fn main() {
    let (day, whole, _) = c_clocks();
    assert!(
        unix() > Duration::from_secs(1_700_000_000),
        "the system's clock"
    );
    assert!(unix().abs_diff(day) < Duration::from_secs(60));
    assert!(day.abs_diff(whole) < Duration::from_secs(60));
    let before = Instant::now();
    std::thread::sleep(Duration::from_millis(2));
    assert!(before.elapsed() >= Duration::from_millis(2));
    let sockets = Clock::start_now();
    std::thread::sleep(Duration::from_millis(2));
    assert!(
        sockets.elapsed() >= Duration::from_millis(2),
        "real sockets leave the clocks alone"
    );

    let clock = Clock::new(EPOCH);
    let start = Instant::now();
    assert_eq!(clock.since_start(start), Duration::ZERO);
    assert_eq!(clock.instant(Duration::ZERO), start);
    for now in [0, 1, 999_999_999, 1_000_000_001, 612_345_678_901].map(Duration::from_nanos) {
        clock.set(now);
        for _ in 0..2 {
            std::thread::sleep(Duration::from_millis(1));
            assert_eq!(start.elapsed(), now);
            assert_eq!(clock.instant(now), Instant::now());
            assert_eq!(unix(), EPOCH + now);
            let (day, whole, raw) = c_clocks();
            assert_eq!(day.as_micros(), (EPOCH + now).as_micros());
            assert_eq!(whole.as_secs(), (EPOCH + now).as_secs());
            assert_eq!(raw, EPOCH + now);
        }
    }

    let before = cpu_time();
    while cpu_time().abs_diff(before) < Duration::from_millis(2) {}
}
