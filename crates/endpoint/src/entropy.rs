//! All randomness of the process, from one seed.
//!
//! A QUIC stack draws connection IDs, TLS randoms, key shares and hash seeds in many places, some
//! of them out of reach of its configuration (quinn's BBR is one). They all end in the kernel's
//! `getrandom`, which libraries call by the C library's function of that name or by its `syscall`.
//! The program defines both itself, and so becomes the source of its own entropy: after [`seed`]
//! the bytes come from a generator, before it and without it from the kernel.
//!
//! Some libraries look for `getrandom` by its name while the program runs. They find the program's
//! own only if the linker exported it, which it does where the C library that it linked against has
//! a function of that name: glibc from 2.25 on.

#![expect(
    unsafe_code,
    reason = "taking the place of a C function needs its calling convention"
)]

use std::cell::RefCell;
use std::ffi::CStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use libc::{c_char, c_long, c_uint, c_void, size_t, ssize_t};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

static GENERATOR: Mutex<Option<ChaCha8Rng>> = Mutex::new(None);

thread_local! {
    static OF_THREAD: RefCell<Option<ChaCha8Rng>> = const { RefCell::new(None) };
}

/// From now on every random byte of this process is a function of `seed` and `stream`.
///
/// # Panics If libraries that look for `getrandom` by name would find another one, so that nothing
/// would repeat.
pub fn seed(seed: u64, stream: u64) {
    assert!(
        is_ours(c"getrandom", getrandom as *const c_void)
            && is_ours(c"syscall", syscall as *const c_void),
        "the program exports its own `getrandom` and `syscall`: link it against glibc 2.25 or newer"
    );
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(stream);
    *generator_lock() = Some(generator);
}

/// Whether who looks for the function called `name` finds `ours`, or in a static program none at
/// all.
fn is_ours(name: &CStr, ours: *const c_void) -> bool {
    // SAFETY: a name that ends with a zero byte.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    found.is_null() || found.cast_const() == ours
}

/// From now on every random byte that this thread asks for is a function of `seed`: tests share a
/// process, and run at once. What a library has drawn from before and stretches itself stays what
/// it was, so this comes first in a thread.
pub fn seed_thread(seed: u64) {
    OF_THREAD.set(Some(ChaCha8Rng::seed_from_u64(seed)));
}

fn generator_lock() -> MutexGuard<'static, Option<ChaCha8Rng>> {
    GENERATOR.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Fills the buffer if there is a seed.
unsafe fn fill(buffer: *mut c_void, size: size_t) -> Option<ssize_t> {
    let draw = |generator: &mut Option<ChaCha8Rng>| {
        let generator = generator.as_mut()?;
        if size > 0 {
            // SAFETY: the caller of getrandom promises `size` writable bytes.
            unsafe {
                buffer.write_bytes(0, size);
                generator.fill_bytes(std::slice::from_raw_parts_mut(buffer.cast(), size));
            }
        }
        ssize_t::try_from(size).ok()
    };
    let own = OF_THREAD.try_with(|own| draw(&mut own.borrow_mut()));
    own.ok().flatten().or_else(|| draw(&mut generator_lock()))
}

/// Takes the place of the C library's function.
///
/// # Safety
/// As `getrandom(2)`: `buffer` has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(buffer: *mut c_void, size: size_t, flags: c_uint) -> ssize_t {
    // SAFETY: both calls have the contract of this function.
    unsafe {
        fill(buffer, size).unwrap_or_else(|| {
            let result = real_syscall(
                libc::SYS_getrandom,
                [
                    buffer as c_long,
                    size.cast_signed() as c_long,
                    c_long::from(flags),
                    0,
                    0,
                    0,
                ],
            );
            ssize_t::try_from(result).unwrap_or(-1)
        })
    }
}

/// Takes the place of the C library's function, and passes on all calls but one.
///
/// # Safety
/// As `syscall(2)`, whatever the number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall(
    number: c_long,
    a1: c_long,
    a2: c_long,
    a3: c_long,
    a4: c_long,
    a5: c_long,
    a6: c_long,
) -> c_long {
    // SAFETY: the arguments are the caller's.
    unsafe {
        if number == libc::SYS_getrandom
            && let Ok(size) = size_t::try_from(a2)
            && let Some(filled) = fill(a1 as *mut c_void, size)
        {
            return filled as c_long;
        }
        real_syscall(number, [a1, a2, a3, a4, a5, a6])
    }
}

/// The C library's own `syscall`.
unsafe fn real_syscall(number: c_long, arguments: [c_long; 6]) -> c_long {
    const NAME: &[u8] = b"syscall\0";
    // SAFETY: the symbol after ours is the C library's, a variadic function that takes integers;
    // reading up to six of them is harmless whatever the number.
    unsafe {
        let symbol = libc::dlsym(libc::RTLD_NEXT, NAME.as_ptr().cast::<c_char>());
        assert!(!symbol.is_null(), "the C library has a function `syscall`");
        let function: unsafe extern "C" fn(c_long, ...) -> c_long = std::mem::transmute(symbol);
        let [a1, a2, a3, a4, a5, a6] = arguments;
        function(number, a1, a2, a3, a4, a5, a6)
    }
}

/// An address fits the arguments of `syscall`.
const _: () = assert!(size_of::<c_long>() == size_of::<*const c_void>());
