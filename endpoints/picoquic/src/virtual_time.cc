#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <jansson.h>
#include <optional>

#include "drivers.h"
#include "fail.h"
#include "pipes.h"
#include "quic.h"

static const char DRIVER[] = "at each instant: all arrivals, then packets while picoquic is awake; "
                             "its clock counts microseconds, rounded down";
static const size_t DATAGRAM_HEADER = 11, RUN_HEADER = 12;

// A datagram in the body of RUN; times of this file are in nanoseconds since the start of the trial.
struct Arrival {
    uint64_t time;
    uint8_t ecn;
    const uint8_t *payload;
    size_t size;
};

// The datagrams of RUN that have not arrived yet.
class Arrivals {
public:
    Arrivals(const Bytes &run, uint64_t earliest) : earliest_(earliest) {
        if (run.size() < RUN_HEADER) fail("RUN has only %zu bytes", run.size());
        until = read_integer(run.data(), 8);
        count_ = read_integer(run.data() + 8, 4);
        at_ = run.data() + RUN_HEADER;
        end_ = run.data() + run.size();
        if (until < earliest) fail("RUN until %" PRIu64 ", but it is %" PRIu64 " already", until, earliest);
    }

    // Takes the next one off the front, if there is one.
    std::optional<Arrival> take() {
        if (count_ == 0) return std::nullopt;
        if (end_ - at_ < static_cast<ptrdiff_t>(DATAGRAM_HEADER)) fail("RUN ends within a datagram");
        Arrival one = {read_integer(at_, 8), at_[8], at_ + DATAGRAM_HEADER, read_integer(at_ + 9, 2)};
        if (static_cast<size_t>(end_ - one.payload) < one.size) fail("RUN ends within a datagram");
        if (one.time < earliest_ || one.time >= until) {
            fail("RUN until %" PRIu64 " has a datagram at %" PRIu64 ", out of order", until, one.time);
        }
        earliest_ = one.time;
        at_ = one.payload + one.size;
        count_--;
        return one;
    }

    uint64_t until;

private:
    const uint8_t *at_, *end_;
    uint64_t count_, earliest_;
};

class Driver {
public:
    explicit Driver(const Setup &setup) : setup_(setup), quic_(setup), started_(setup.server) {}

    void live(const Bytes &run) {
        Arrivals arrivals(run, now_);
        Bytes departures;
        uint32_t count = 0;
        auto depart = [&](const sockaddr_storage &, uint8_t ecn, const uint8_t *payload, size_t size) {
            append_integer(departures, now_, 8);
            append_integer(departures, ecn, 1);
            append_integer(departures, size, 2);
            departures.insert(departures.end(), payload, payload + size);
            count++;
        };
        std::optional<Arrival> arrival = arrivals.take();
        for (;;) {
            uint64_t wake = next_wake();
            uint64_t next = arrival && arrival->time < wake ? arrival->time : wake;
            if (next >= arrivals.until) break;
            set_time(next);
            for (; arrival && arrival->time == next; arrival = arrivals.take()) {
                quic_.receive(setup_.remote, arrival->ecn, arrival->payload, arrival->size);
            }
            if (!started_) quic_.start();
            started_ = true;
            quic_.send(depart);
        }
        set_time(arrivals.until);
        Bytes ran;
        append_integer(ran, next_wake(), 8);
        append_integer(ran, quic_.is_done(), 1);
        append_integer(ran, count, 4);
        ran.insert(ran.end(), departures.begin(), departures.end());
        send_frame(Frame::ran, ran.data(), ran.size());
    }

    Report finish() { return quic_.finish(); }

private:
    void set_time(uint64_t time) {
        now_ = time;
        quic_.set_time(setup_.zero_time_ns + time);
    }

    uint64_t next_wake() {
        if (!started_) return now_;
        uint64_t wake = quic_.next_wake();
        return wake == NEVER ? NEVER : wake - setup_.zero_time_ns;
    }

    Setup setup_;
    Quic quic_;
    bool started_;  // a server has nothing to start
    uint64_t now_ = 0;
};

// Sends an answer, and is done with it.
static void send_json(Frame type, json_t *answer) {
    char *text = json_dumps(answer, JSON_COMPACT);
    if (!text) fail("there is no memory for an answer, or it is not UTF-8");
    send_frame(type, text, strlen(text));
    free(text);
    json_decref(answer);
}

static json_t *ready(const Setup &setup) {
    return json_pack("{s:s, s:s, s:s, s:o}", "stack", "picoquic", "version", "picoquic " PICOQUIC_VERSION, "driver",
                     DRIVER, "next_wake", setup.server ? json_null() : json_integer(0));
}

static json_t *trial_time(const Setup &setup, uint64_t ns) {
    return ns == NEVER ? json_null() : json_integer(static_cast<json_int_t>(ns - setup.zero_time_ns));
}

static json_t *bye(const Setup &setup, const Report &report) {
    json_t *requests = json_array();
    for (const RequestReport &one : report.requests) {
        json_array_append_new(requests, json_pack("{s:s, s:I, s:o, s:o}", "path", one.path.c_str(), "bytes",
                                                  static_cast<json_int_t>(one.bytes), "first_byte_ns",
                                                  trial_time(setup, one.first_byte_at), "last_byte_ns",
                                                  trial_time(setup, one.last_byte_at)));
    }
    return json_pack("{s:o, s:o, s:s?}", "handshake_ns", trial_time(setup, report.handshake_at), "requests", requests,
                     "error", report.error.empty() ? nullptr : report.error.c_str());
}

int run_virtual_time() {
    Bytes frame;
    Frame type = receive_frame(frame);
    if (type == Frame::none) return 0;
    if (type != Frame::hello) fail("a frame of type %d in place of HELLO", static_cast<int>(type));
    Setup setup = setup_from_hello(reinterpret_cast<const char *>(frame.data()), frame.size());
    Driver driver(setup);
    send_json(Frame::ready, ready(setup));
    while ((type = receive_frame(frame)) == Frame::run) driver.live(frame);
    if (type == Frame::none) return 0;
    if (type != Frame::finish) fail("a frame of type %d in place of RUN or FINISH", static_cast<int>(type));
    send_json(Frame::bye, bye(setup, driver.finish()));
    return 0;
}
