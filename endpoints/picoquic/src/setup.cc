#include "setup.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <jansson.h>
#include <netdb.h>
#include <sstream>

#include "clock.h"
#include "entropy.h"
#include "fail.h"
#include "files.h"

static const int CONTRACT = 1;
static const uint64_t LARGEST_SAVED = 1'000'000'000, LONGEST_SAVED_RTT_MS = 60'000;
static const uint64_t LARGEST_WINDOW = (uint64_t{1} << 60) - 1;

// A whole number at the start of `text`, which is moved behind it; none if there is none, or it is out of range.
static std::optional<uint64_t> take_number(const char *&text, uint64_t least, uint64_t most) {
    char *end;
    errno = 0;
    uint64_t number = strtoull(text, &end, 10);
    if (errno || *text < '0' || *text > '9' || number < least || number > most) return std::nullopt;
    text = end;
    return number;
}

static uint64_t parse_count(const std::string &name, const std::string &value, uint64_t most) {
    const char *at = value.c_str();
    auto number = take_number(at, 1, most);
    if (!number || *at) {
        unsupported("option %s=%s: give a whole number from 1 to %" PRIu64, name.c_str(), value.c_str(), most);
    }
    return *number;
}

static SavedPath parse_saved(const std::string &value) {
    const char *at = value.c_str();
    auto bytes = take_number(at, 1, LARGEST_SAVED);
    bool has_time = bytes && *at++ == '@';
    auto rtt_ms = has_time ? take_number(at, 1, LONGEST_SAVED_RTT_MS) : std::nullopt;
    if (!rtt_ms || strcmp(at, "ms") != 0) {
        unsupported("option saved=%s: write bytes and a round-trip time, such as 1500000@600ms, up to %" PRIu64
                    " and %" PRIu64 "ms", value.c_str(), LARGEST_SAVED, LONGEST_SAVED_RTT_MS);
    }
    return {*bytes, *rtt_ms * 1000};
}

static bool parse_switch(const std::string &name, const std::string &value) {
    if (value != "on" && value != "off") unsupported("option %s=%s: write on or off", name.c_str(), value.c_str());
    return value == "on";
}

static std::string parse_congestion(const std::string &value) {
    for (const char *known : {"newreno", "cubic", "dcubic", "fast", "bbr", "bbr1", "prague", "c4"}) {
        if (value == known) return value;
    }
    unsupported("option cc=%s: there are newreno, cubic, dcubic, fast, bbr, bbr1, prague, c4", value.c_str());
}

static bool parse_certificate(const std::string &value) {
    if (value != "rsa") unsupported("option cert=%s: there is rsa; leave it out for the one of the trial", value.c_str());
    return true;
}

static void parse_option(Options &options, const std::string &name, const std::string &value) {
    if (name == "cc") options.congestion = parse_congestion(value);
    else if (name == "window") options.window = parse_count(name, value, LARGEST_WINDOW);
    else if (name == "cwnd") options.largest_congestion_window = parse_count(name, value, LARGEST_WINDOW);
    else if (name == "resume") options.resumes = parse_switch(name, value);
    else if (name == "saved") options.saved = parse_saved(value);
    else if (name == "lossbits") options.loss_bits = parse_switch(name, value);
    else if (name == "cert") options.rsa = parse_certificate(value);
    else unsupported("option \"%s\"; there are cc, window, cwnd, resume, saved, lossbits, cert", name.c_str());
}

static bool parse_role(const std::string &role) {
    if (role != "client" && role != "server") unsupported("role \"%s\"", role.c_str());
    return role == "server";
}

static TestCase parse_testcase(const std::string &name) {
    for (const char *plain : {"transfer", "handshake", "longrtt", "multiplexing"}) {
        if (name == plain) return TestCase::transfer;
    }
    if (name == "resumption") return TestCase::resumption;
    if (name == "zerortt") return TestCase::zerortt;
    if (name == "upload") return TestCase::upload;
    unsupported("test case \"%s\"", name.c_str());
}

static Address parse_address(const std::string &text, const char *field) {
    size_t colon = text.rfind(':');
    std::string host = text.substr(0, colon == std::string::npos ? 0 : colon);
    if (host.size() > 1 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    addrinfo hints = {}, *found;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    hints.ai_socktype = SOCK_DGRAM;
    if (host.empty() || getaddrinfo(host.c_str(), text.c_str() + colon + 1, &hints, &found) != 0) {
        fail("%s is \"%s\": write an IP address and a port, such as 127.0.0.1:4433", field, text.c_str());
    }
    Address address;
    memcpy(&address.socket, found->ai_addr, found->ai_addrlen);
    address.length = found->ai_addrlen;
    freeaddrinfo(found);
    return address;
}

// `https://AUTHORITY/PATH` → where its path begins.
static size_t find_path(const std::string &url) {
    size_t slash = url.compare(0, 8, "https://") == 0 ? url.find('/', 8) : std::string::npos;
    if (slash == std::string::npos) fail("requests: \"%s\" is no URL such as https://server:443/1024", url.c_str());
    return slash;
}

// What holds for both modes.
static void check(const Setup &setup) {
    bool stores = setup.server == (setup.testcase == TestCase::upload);
    if ((stores ? setup.downloads : setup.www).empty()) {
        fail("%s is missing, but a %s needs it", stores ? "downloads (DOWNLOADS)" : "www (WWW)",
             setup.server ? "server" : "client");
    }
    for (const std::string &path : setup.paths) {
        if (!path_is_plain(path)) fail("requests: %s leads out of the folder", path.c_str());
    }
    if (setup.options.resumes != setup.options.saved.has_value()) {
        unsupported("options resume=on and saved=BYTES@MILLISECONDSms come together");
    }
}

static std::string optional_string(const json_t *hello, const char *key) {
    const json_t *value = json_object_get(hello, key);
    if (!value || json_is_null(value)) return "";
    if (!json_is_string(value)) fail("HELLO: \"%s\" is not the string that it should be", key);
    return json_string_value(value);
}

static std::string needed_string(const json_t *hello, const char *key) {
    std::string text = optional_string(hello, key);
    if (text.empty()) fail("HELLO: \"%s\" is missing", key);
    return text;
}

static uint64_t needed_number(const json_t *hello, const char *key) {
    const json_t *value = json_object_get(hello, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        fail("HELLO: \"%s\" is not the whole number that it should be", key);
    }
    return static_cast<uint64_t>(json_integer_value(value));
}

static void take_seed(const std::string &text, bool server) {
    char *end;
    uint64_t seed = strtoull(text.c_str(), &end, 16);
    if (*end) fail("HELLO: \"seed\" is \"%s\": write up to 16 hexadecimal digits", text.c_str());
    seed_entropy(seed, server);
}

static void read_lists(Setup &setup, json_t *hello) {
    size_t index;
    const char *name;
    json_t *value, *requests = json_object_get(hello, "requests"), *options = json_object_get(hello, "options");
    if (requests && !json_is_null(requests) && !json_is_array(requests)) fail("HELLO: \"requests\" is no array");
    if (options && !json_is_null(options) && !json_is_object(options)) fail("HELLO: \"options\" is no object");
    json_array_foreach(requests, index, value) {
        if (!json_is_string(value)) fail("HELLO: \"requests\" has what is no string");
        std::string url = json_string_value(value);
        setup.paths.push_back(url.substr(find_path(url)));
    }
    json_object_foreach(options, name, value) parse_option(setup.options, name, needed_string(options, name));
}

Setup setup_from_hello(const char *text, size_t size) {
    json_error_t error;
    json_object_seed(1);  // else it asks the system for a random one
    json_t *hello = json_loadb(text, size, 0, &error);
    if (!hello) fail("HELLO is no JSON: line %d, column %d: %s", error.line, error.column, error.text);
    if (!json_is_object(hello)) fail("HELLO is no JSON object");
    uint64_t contract = needed_number(hello, "contract");
    if (contract != CONTRACT) unsupported("version %" PRIu64 " of the contract; this is %d", contract, CONTRACT);
    Setup setup;
    setup.testcase = parse_testcase(needed_string(hello, "testcase"));
    setup.server = parse_role(needed_string(hello, "role"));
    take_seed(needed_string(hello, "seed"), setup.server);
    read_lists(setup, hello);
    setup.local = parse_address(needed_string(hello, "local"), "local");
    setup.remote = parse_address(needed_string(hello, "remote"), "remote");
    setup.www = optional_string(hello, "www");
    setup.downloads = optional_string(hello, "downloads");
    setup.certs = needed_string(hello, "certs");
    setup.keylog = optional_string(hello, "keylog");
    setup.qlog = optional_string(hello, "qlog");
    setup.zero_time_ns = needed_number(hello, "epoch_unix_s") * NANOSECONDS;
    json_decref(hello);
    check(setup);
    return setup;
}

static std::string variable(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

static std::string needed_variable(const char *name) {
    std::string value = variable(name);
    if (value.empty()) fail("the environment variable %s must be set (endpoints/contract/socket-mode.md)", name);
    return value;
}

static void read_requests(Setup &setup) {
    std::istringstream words(needed_variable("REQUESTS"));
    for (std::string url; words >> url;) {
        size_t path = find_path(url);
        if (setup.paths.empty()) setup.remote = parse_address(url.substr(8, path - 8), "REQUESTS");
        setup.paths.push_back(url.substr(path));
    }
    if (setup.paths.empty()) fail("REQUESTS is empty: write URLs such as https://127.0.0.1:4433/1024");
}

Setup setup_from_environment() {
    Setup setup;
    setup.testcase = parse_testcase(needed_variable("TESTCASE"));
    setup.server = parse_role(needed_variable("ROLE"));
    std::istringstream pairs(variable("BENTPIPE_OPTIONS"));
    for (std::string pair; pairs >> pair;) {
        size_t equals = pair.find('=');
        if (equals == std::string::npos) {
            fail("BENTPIPE_OPTIONS: \"%s\" is no option: write name=value", pair.c_str());
        }
        parse_option(setup.options, pair.substr(0, equals), pair.substr(equals + 1));
    }
    if (setup.server) setup.local = parse_address(needed_variable("BENTPIPE_LISTEN"), "BENTPIPE_LISTEN");
    else read_requests(setup);
    setup.www = variable("WWW");
    setup.downloads = variable("DOWNLOADS");
    setup.certs = needed_variable("CERTS");
    setup.keylog = variable("SSLKEYLOGFILE");
    setup.qlog = variable("QLOGDIR");
    setup.zero_time_ns = read_clock();
    check(setup);
    return setup;
}
