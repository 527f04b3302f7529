// What either side of hq-interop does with the events of its connections (endpoints/contract/test-cases.md).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "picoquic.h"
#include "setup.h"

// What became of a request; times in nanoseconds since 1970, NEVER for what never was.
struct RequestReport {
    std::string path;
    uint64_t bytes, first_byte_at, last_byte_at;
};

struct Report {
    uint64_t handshake_at = NEVER;
    std::vector<RequestReport> requests;
    std::string error;  // empty: none
};

class Application {
public:
    virtual ~Application() = default;
    virtual void start() = 0;
    // An event of picoquic's; 0, or what picoquic is to make an error of.
    virtual int handle(picoquic_cnx_t *connection, uint64_t stream, uint8_t *data, size_t size,
                       picoquic_call_back_event_t event, void *stream_context) = 0;
    // Called after arrivals, outside of picoquic.
    virtual void act() = 0;
    virtual bool is_done() const = 0;
    // Completes the files, and says what became of everything.
    virtual Report finish() = 0;
};

class Quic;
std::unique_ptr<Application> make_client(const Setup &setup, Quic &quic);
std::unique_ptr<Application> make_server(const Setup &setup, Quic &quic);
