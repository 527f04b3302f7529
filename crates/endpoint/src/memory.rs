//! How the allocator treats freed memory.

/// Keeps freed memory for later use, instead of handing large blocks back to the kernel at once.
///
/// The buffers of an epoch are as large as those of the one before. Without this, glibc maps and
/// unmaps each of them, and the kernel clears every page anew: a sixth of the wall time of a 10 MiB
/// trial. Elsewhere it does nothing.
pub fn keep_freed_memory() {
    #[cfg(target_env = "gnu")]
    {
        const BYTES: libc::c_int = 1 << 30;
        #[expect(unsafe_code, reason = "mallopt only sets parameters of the allocator")]
        // SAFETY: called from main, before another thread runs; unknown parameters are ignored.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, BYTES);
            libc::mallopt(libc::M_TRIM_THRESHOLD, BYTES);
            libc::mallopt(libc::M_TOP_PAD, 1 << 23);
        }
    }
}
