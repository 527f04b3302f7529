//! All clocks of the process, for stacks that read them.
//!
//! Some QUIC stacks own no socket, but ask for the time themselves, and so does the TLS library
//! below them. All of that ends in the C library's `clock_gettime`, `gettimeofday` and `time`. The
//! program defines these itself: after [`show`] every clock stands at the trial's wall-clock time
//! and moves only when the driver moves it; before that, and in socket mode, the answer is the
//! system's. The clocks of CPU time are always the system's.
//!
//! This is a feature, so that programs whose stacks take the time as an argument keep their C
//! library.

#![expect(
    unsafe_code,
    reason = "taking the place of a C function needs its calling convention"
)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use libc::{c_char, c_int, c_void, clockid_t, time_t, timespec, timeval};

/// The time that all clocks show, in parts: the time since 1970 at the start of the trial, and the
/// time since then.
static SHOWN: Mutex<Option<(Duration, Arc<AtomicU64>)>> = Mutex::new(None);

/// From now on every clock of this process shows `epoch_unix` and `now_ns` on top of it.
pub fn show(epoch_unix: Duration, now_ns: Arc<AtomicU64>) {
    *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some((epoch_unix, now_ns));
}

/// The time of `clock`, if the driver sets it.
fn shown(clock: clockid_t) -> Option<Duration> {
    if matches!(
        clock,
        libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID
    ) {
        return None;
    }
    let shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let (epoch_unix, now_ns) = shown.as_ref()?;
    Some(*epoch_unix + Duration::from_nanos(now_ns.load(Ordering::Relaxed)))
}

/// Takes the place of the C library's function.
///
/// # Safety
/// As `clock_gettime(2)`: `time` is a `timespec` that can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    let Some(now) = shown(clock) else {
        // SAFETY: the arguments are the caller's.
        return unsafe { real_clock_gettime()(clock, time) };
    };
    // SAFETY: the caller promises that it can be written.
    unsafe {
        (*time).tv_sec = seconds(now);
        (*time).tv_nsec = now.subsec_nanos().into();
    }
    0
}

/// Takes the place of the C library's function.
///
/// # Safety As `gettimeofday(2)`: `time` is null or a `timeval` that can be written. The time zone
/// is obsolete and left as it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(time: *mut timeval, _zone: *mut c_void) -> c_int {
    let now = unix();
    if !time.is_null() {
        // SAFETY: the caller promises that it can be written.
        unsafe {
            (*time).tv_sec = seconds(now);
            (*time).tv_usec = now.subsec_micros().into();
        }
    }
    0
}

/// Takes the place of the C library's function.
///
/// # Safety
/// As `time(2)`: `time` is null or a `time_t` that can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn time(time: *mut time_t) -> time_t {
    let now = seconds(unix());
    if !time.is_null() {
        // SAFETY: the caller promises that it can be written.
        unsafe { *time = now };
    }
    now
}

/// The time since 1970, from [`clock_gettime`].
fn unix() -> Duration {
    let mut now = timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a timespec of ours.
    let result = unsafe { clock_gettime(libc::CLOCK_REALTIME, &raw mut now) };
    assert_eq!(result, 0, "the system has a clock");
    let whole = u64::try_from(now.tv_sec).expect("it is after 1970");
    Duration::new(whole, now.tv_nsec.try_into().expect("less than a second"))
}

fn seconds(time: Duration) -> time_t {
    time_t::try_from(time.as_secs()).expect("a trial ends within 292 billion years")
}

type ClockGettime = unsafe extern "C" fn(clockid_t, *mut timespec) -> c_int;

/// The C library's own `clock_gettime`.
fn real_clock_gettime() -> ClockGettime {
    const NAME: &[u8] = b"clock_gettime\0";
    static FUNCTION: OnceLock<ClockGettime> = OnceLock::new();
    *FUNCTION.get_or_init(|| {
        // SAFETY: the symbol after ours is the C library's, whose signature this is.
        unsafe {
            let symbol = libc::dlsym(libc::RTLD_NEXT, NAME.as_ptr().cast::<c_char>());
            assert!(
                !symbol.is_null(),
                "the C library has a function `clock_gettime`"
            );
            std::mem::transmute::<*mut c_void, ClockGettime>(symbol)
        }
    })
}
