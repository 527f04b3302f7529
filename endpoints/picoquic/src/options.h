// The variant's options (stack.toml says what they mean).
#pragma once
#include <cstdint>
#include <optional>
#include <string>

// Values remembered of an earlier path.
struct SavedPath {
    uint64_t bytes;  // in a round trip
    uint64_t rtt_us;
};

struct Options {
    std::string congestion = "newreno";      // what picoquic takes where nobody says
    uint64_t window = 0;                     // 0: picoquic's own
    uint64_t largest_congestion_window = 0;  // 0: none
    bool loss_bits = false;
    bool rsa = false;  // a server shows picoquic's own certificate
    std::optional<bool> multipath;  // over the further paths of a job that has some; none: unless it migrates
    bool backup = false;            // these carry data only while the first does not
    bool resumes = false;
    std::optional<SavedPath> saved;
};

extern Options options;

bool parse_option(const char *name, const char *value);
// Ends the program if one of them lacks another, or a client that migrates is to have several paths at once.
void check_options(bool migrates);
