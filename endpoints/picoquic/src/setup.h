// What the program is asked to do: HELLO (endpoints/CONTRACT.md), or the environment of socket mode
// (endpoints/contract/socket-mode.md).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <vector>

// A time that never comes, in nanoseconds or microseconds.
const uint64_t NEVER = UINT64_MAX;

struct Address {
    sockaddr_storage socket = {};
    socklen_t length = 0;

    sockaddr *get() { return reinterpret_cast<sockaddr *>(&socket); }
};

// What is known of a path from earlier.
struct SavedPath {
    uint64_t bytes;  // in a round trip
    uint64_t rtt_us;
};

struct Options {
    std::string congestion = "newreno";    // what picoquic takes where nobody says
    uint64_t window = 0;                   // 0: picoquic's own
    uint64_t largest_congestion_window = 0;  // 0: none
    bool loss_bits = false;
    bool rsa = false;  // a server shows picoquic's own certificate
    bool resumes = false;
    std::optional<SavedPath> saved;
};

enum class TestCase { transfer, resumption, zerortt, upload };

struct Setup {
    bool server = false;
    TestCase testcase = TestCase::transfer;
    Options options;
    std::vector<std::string> paths;  // of the requests, each with its slash
    Address local, remote;
    std::string www, downloads, certs, keylog, qlog;  // empty: none
    uint64_t zero_time_ns = 0;  // since 1970, when the trial began

    bool has_two_connections() const { return testcase == TestCase::resumption || testcase == TestCase::zerortt; }
};

// Both end the program if they are asked for what it does not know.
Setup setup_from_hello(const char *text, size_t size);
Setup setup_from_environment();
