/* Randomness and clocks of the whole process, replaced in virtual time.
 *
 * TLS libraries take their own: GnuTLS seeds a generator from getrandom, mixes the time of clock_gettime in, and reads
 * the clock for its session. The program defines these functions of the C library itself, and dynamic linking lets
 * libraries find them first. Before seed_entropy and without it, which is socket mode, the calls go to the kernel. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "family.h"

static bool seeded;
static uint64_t state;

/* The finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
static uint64_t mix(uint64_t word) {
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
    return word ^ (word >> 31);
}

static uint64_t next_word(void) {
    state += 0x9e3779b97f4a7c15u;
    return mix(state);
}

void seed_entropy(uint64_t seed, uint64_t stream) {
    state = mix(mix(seed) + stream);
    seeded = true;
}

static uint64_t kernel_time(clockid_t clock) {
    struct timespec now;
    syscall(SYS_clock_gettime, clock, &now);
    return (uint64_t)now.tv_sec * NANOSECONDS + (uint64_t)now.tv_nsec;
}

uint64_t read_clock(void) {
    static uint64_t offset;
    uint64_t now = kernel_time(CLOCK_MONOTONIC);
    if (!offset) offset = kernel_time(CLOCK_REALTIME) - now;
    return now + offset;
}

void ep_random(void *buffer, size_t size) {
    for (size_t filled = 0; filled < size;) {
        ssize_t count = getrandom((uint8_t *)buffer + filled, size - filled, 0);
        if (count < 0) ep_fail("the kernel gives no random bytes");
        filled += (size_t)count;
    }
}

/* Replaces the C library's function. Always little-endian, so that every machine draws the same. */
ssize_t getrandom(void *buffer, size_t size, unsigned int flags) {
    if (!seeded) return syscall(SYS_getrandom, buffer, size, flags);
    uint8_t *bytes = buffer;
    uint64_t word = 0;
    for (size_t i = 0; i < size; i++, word >>= 8) {
        if (i % 8 == 0) word = next_word();
        bytes[i] = (uint8_t)word;
    }
    return (ssize_t)size;
}

/* Replaces the C library's function: all clocks are one. */
int clock_gettime(clockid_t clock, struct timespec *now) {
    if (!seeded) return (int)syscall(SYS_clock_gettime, clock, now);
    now->tv_sec = (time_t)(family.now / NANOSECONDS);
    now->tv_nsec = (long)(family.now % NANOSECONDS);
    return 0;
}

/* Replaces the C library's function. */
time_t time(time_t *seconds) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (seconds) *seconds = now.tv_sec;
    return now.tv_sec;
}
