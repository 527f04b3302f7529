// picoquic, as the options ask for it. It owns no socket and reads no clock; the drivers (virtual_time.cc, sockets.cc) call it.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "application.h"
#include "picoquic.h"
#include "setup.h"

// Where datagrams go: to whom, with which ECN bits, and the UDP payload.
using Sink = std::function<void(const sockaddr_storage &to, uint8_t ecn, const uint8_t *payload, size_t size)>;

class Quic {
public:
    explicit Quic(const Setup &setup);
    Quic(const Quic &) = delete;
    ~Quic();

    // Times are in nanoseconds since 1970. picoquic counts microseconds: it sees times rounded down.
    void set_time(uint64_t ns);
    uint64_t now() const { return now_ns_; }
    // When picoquic next wants to send or to look at a timer; not before now.
    uint64_t next_wake();

    void start() { application_->start(); }
    void receive(Address from, uint8_t ecn, const uint8_t *payload, size_t size);
    // Sends all that picoquic wants to send now.
    void send(const Sink &sink);
    bool is_done() const { return application_->is_done(); }
    // Completes all files, logs included. Nothing else may be called afterwards.
    Report finish();

    // For the application:
    picoquic_cnx_t *connect();
    bool has_ticket() const;
    bool had_connections() const { return had_connections_; }
    picoquic_quic_t *context() const { return context_; }

private:
    static int on_event(picoquic_cnx_t *connection, uint64_t stream, uint8_t *data, size_t size,
                        picoquic_call_back_event_t event, void *context, void *stream_context);
    void create();
    void apply_options();
    void open_logs();
    void seed_from_saved(picoquic_cnx_t *connection) const;
    void forget_connections();

    Setup setup_;
    uint64_t now_ns_ = 0, now_us_ = 0;
    picoquic_quic_t *context_ = nullptr;
    uint8_t ecn_ = 0;
    bool had_connections_ = false;
    std::unique_ptr<Application> application_;
};

// Why a connection was closed, in the words of the contract; empty if the peer said that all is well.
std::string reason_of_close(picoquic_cnx_t *connection, picoquic_call_back_event_t event);
