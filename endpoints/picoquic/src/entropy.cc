// picoquic asks OpenSSL for the seeds of its own generators, and picotls for everything: one method serves all.
// OpenSSL 3 calls a RAND_METHOD deprecated; a provider in its place would be ten times as long.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "entropy.h"

#include <openssl/rand.h>

static uint64_t state;

// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
static uint64_t mix(uint64_t word) {
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
    return word ^ (word >> 31);
}

// Always little-endian, so that every machine draws the same.
static int draw(unsigned char *buffer, int size) {
    uint64_t word = 0;
    for (int i = 0; i < size; i++, word >>= 8) {
        if (i % 8 == 0) word = mix(state += 0x9e3779b97f4a7c15u);
        buffer[i] = static_cast<unsigned char>(word);
    }
    return 1;
}

static int take_seed(const void *, int) { return 1; }
static int take_more(const void *, int, double) { return 1; }
static int is_seeded() { return 1; }

void seed_entropy(uint64_t seed, bool server) {
    static const RAND_METHOD method = {take_seed, draw, nullptr, take_more, draw, is_seeded};
    state = mix(mix(seed) + server);
    RAND_set_rand_method(&method);
}
