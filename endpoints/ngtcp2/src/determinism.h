/* The kernel's entropy and clocks, replaced in virtual time.
 *
 * ngtcp2 is given random bytes and the time by call. GnuTLS takes its own: it seeds a generator from getrandom, mixes the
 * time of clock_gettime in, and reads the clock for its session. The program defines these functions of the C library
 * itself, and dynamic linking lets GnuTLS find them first. Before seed_entropy and without it, which is socket mode, the
 * calls go to the kernel. */
#ifndef DETERMINISM_H
#define DETERMINISM_H

#include <stddef.h>
#include <stdint.h>

/* From now on every random byte is a function of `seed` and `stream`, and the clocks show what set_clock says. */
void seed_entropy(uint64_t seed, uint64_t stream);

/* Nanoseconds since 1970. */
void set_clock(uint64_t time);

/* For socket mode: nanoseconds since 1970 when first read, and monotonic from then on. */
uint64_t read_clock(void);

/* Random bytes, from the seed or from the kernel. */
void random_bytes(void *buffer, size_t size);

#endif
