// Where randomness comes from in virtual time: from the seed of HELLO alone.
#pragma once
#include <cstdint>

// From now on OpenSSL, and with it picotls and picoquic, draws from `seed`; each role has a stream of its own.
void seed_entropy(uint64_t seed, bool server);
