#include "clock.h"

#include <ctime>

static uint64_t read_one(clockid_t clock) {
    timespec now;
    clock_gettime(clock, &now);
    return static_cast<uint64_t>(now.tv_sec) * NANOSECONDS + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t read_clock() {
    static const uint64_t offset = read_one(CLOCK_REALTIME) - read_one(CLOCK_MONOTONIC);
    return read_one(CLOCK_MONOTONIC) + offset;
}
