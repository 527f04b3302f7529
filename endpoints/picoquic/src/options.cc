#include "options.h"

#include <cinttypes>
#include <cstdlib>
#include <cstring>

#include "endpoint.h"

static const uint64_t LARGEST_SAVED = 1'000'000'000, LONGEST_SAVED_RTT_MS = 60'000;
static const uint64_t LARGEST_WINDOW = (uint64_t{1} << 60) - 1;

Options options;

// A whole number at the start of `text`, which is moved behind it; none if there is none, or it is out of range.
static std::optional<uint64_t> take_number(const char *&text, uint64_t most) {
    char *end;
    errno = 0;
    uint64_t number = strtoull(text, &end, 10);
    if (errno || *text < '0' || *text > '9' || number < 1 || number > most) return std::nullopt;
    text = end;
    return number;
}

static SavedPath parse_saved(const char *value) {
    const char *at = value;
    auto bytes = take_number(at, LARGEST_SAVED);
    bool has_time = bytes && *at++ == '@';
    auto rtt_ms = has_time ? take_number(at, LONGEST_SAVED_RTT_MS) : std::nullopt;
    if (!rtt_ms || strcmp(at, "ms") != 0) {
        ep_unsupported("option saved=%s: write bytes and a round-trip time, such as 1500000@600ms, up to %" PRIu64
                       " and %" PRIu64 "ms", value, LARGEST_SAVED, LONGEST_SAVED_RTT_MS);
    }
    return {*bytes, *rtt_ms * 1000};
}

static bool parse_switch(const std::string &name, const std::string &value) {
    if (value != "on" && value != "off") ep_unsupported("option %s=%s: write on or off", name.c_str(), value.c_str());
    return value == "on";
}

static std::string parse_congestion(const std::string &value) {
    for (const char *known : {"newreno", "cubic", "dcubic", "fast", "bbr", "bbr1", "prague", "c4"}) {
        if (value == known) return value;
    }
    ep_unsupported("option cc=%s: there are newreno, cubic, dcubic, fast, bbr, bbr1, prague, c4", value.c_str());
}

static bool parse_certificate(const std::string &value) {
    if (value == "rsa") return true;
    ep_unsupported("option cert=%s: there is rsa; leave it out for the one of the trial", value.c_str());
}

bool parse_option(const char *name, const char *value) {
    std::string which = name;
    if (which == "cc") options.congestion = parse_congestion(value);
    else if (which == "window") options.window = ep_count(name, value, 1, LARGEST_WINDOW);
    else if (which == "cwnd") options.largest_congestion_window = ep_count(name, value, 1, LARGEST_WINDOW);
    else if (which == "resume") options.resumes = parse_switch(name, value);
    else if (which == "saved") options.saved = parse_saved(value);
    else if (which == "lossbits") options.loss_bits = parse_switch(name, value);
    else if (which == "multipath") options.multipath = parse_switch(name, value);
    else if (which == "backup") options.backup = parse_switch(name, value);
    else if (which == "cert") options.rsa = parse_certificate(value);
    else return false;
    return true;
}

void check_options(bool migrates) {
    if (migrates && options.multipath.value_or(false)) {
        ep_unsupported("option multipath=on: a client that migrates has one path at a time; write off");
    }
    if (options.resumes != options.saved.has_value()) {
        ep_unsupported("options resume=on and saved=BYTES@MILLISECONDSms come together");
    }
}
