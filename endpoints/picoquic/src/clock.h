// This machine's clock, which socket mode alone reads.
#pragma once
#include <cstdint>

const uint64_t NANOSECONDS = 1'000'000'000;

// Nanoseconds since 1970, which never go back.
uint64_t read_clock();
