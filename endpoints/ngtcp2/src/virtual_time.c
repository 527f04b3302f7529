#include "virtual_time.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "determinism.h"
#include "endpoint.h"
#include "fail.h"
#include "pipes.h"

#define DRIVER                                                                                                       \
    "at each instant: all arrivals, then timers, then a burst of up to one send quantum, as pacing allows"
/* A timer that is due again right after it was handled waits this long, so that time goes on. */
#define TIMER_RESOLUTION 1000
#define DATAGRAM_HEADER 11
#define RUN_HEADER 12

struct driver {
    struct endpoint endpoint;
    uint64_t now;         /* since the start of the trial, in nanoseconds, as all times of this file */
    uint64_t timer_floor; /* timers are not handled before */
    bool started;         /* a server has nothing to start */
    struct bytes departures;
    uint32_t departure_count;
};

/* A datagram in the body of RUN. */
struct arrival {
    uint64_t time;
    uint8_t ecn;
    const uint8_t *payload;
    size_t size;
};

/* The datagrams of RUN that have not arrived yet. */
struct arrivals {
    const uint8_t *at, *end;
    uint64_t count, earliest;
};

static uint64_t stack_time(const struct driver *driver, uint64_t time) {
    return driver->endpoint.setup.zero_time + time;
}

static uint64_t next_wake(const struct driver *driver) {
    if (!driver->started) return driver->now;
    uint64_t expiry = endpoint_expiry(&driver->endpoint);
    if (expiry == NEVER) return NEVER;
    uint64_t zero = driver->endpoint.setup.zero_time, wake = expiry > zero ? expiry - zero : 0;
    if (wake < driver->timer_floor) wake = driver->timer_floor;
    return wake < driver->now ? driver->now : wake;
}

static void depart(void *context, const struct address *to, uint8_t ecn, const uint8_t *payload, size_t size) {
    (void)to;
    struct driver *driver = context;
    bytes_append_integer(&driver->departures, driver->now, 8);
    bytes_append_integer(&driver->departures, ecn, 1);
    bytes_append_integer(&driver->departures, size, 2);
    bytes_append(&driver->departures, payload, size);
    driver->departure_count++;
}

/* Handles timers and sends. */
static void act(struct driver *driver) {
    uint64_t now = stack_time(driver, driver->now);
    if (!driver->started) endpoint_start(&driver->endpoint, now);
    driver->started = true;
    if (driver->now >= driver->timer_floor && endpoint_timeout(&driver->endpoint, now)) {
        driver->timer_floor = driver->now + TIMER_RESOLUTION;
    }
    endpoint_send(&driver->endpoint, now, &(struct sink){depart, driver});
}

/* Takes the next arrival off the front of RUN; its time is NEVER if there is none. */
static struct arrival next_arrival(struct arrivals *left, uint64_t until) {
    if (left->count == 0) return (struct arrival){.time = NEVER};
    if (left->end - left->at < DATAGRAM_HEADER) fail("RUN ends within a datagram");
    const uint8_t *at = left->at;
    struct arrival arrival = {read_integer(at, 8), at[8], at + DATAGRAM_HEADER, read_integer(at + 9, 2)};
    if ((size_t)(left->end - arrival.payload) < arrival.size) fail("RUN ends within a datagram");
    if (arrival.time < left->earliest || arrival.time >= until) {
        fail("RUN until %" PRIu64 " has a datagram at %" PRIu64 ", out of order", until, arrival.time);
    }
    *left = (struct arrivals){arrival.payload + arrival.size, left->end, left->count - 1, arrival.time};
    return arrival;
}

static void send_ran(struct driver *driver, uint64_t until) {
    uint64_t wake = next_wake(driver);
    struct bytes ran = {0};
    bytes_append_integer(&ran, wake < until ? until : wake, 8);
    bytes_append_integer(&ran, driver->endpoint.application->is_done(&driver->endpoint), 1);
    bytes_append_integer(&ran, driver->departure_count, 4);
    bytes_append(&ran, driver->departures.data, driver->departures.size);
    frame_send(RAN, ran.data, ran.size);
    free(ran.data);
    driver->departures.size = 0;
    driver->departure_count = 0;
}

static void live(struct driver *driver, const struct bytes *run) {
    if (run->size < RUN_HEADER) fail("RUN has only %zu bytes", run->size);
    uint64_t until = read_integer(run->data, 8);
    if (until < driver->now) fail("RUN until %" PRIu64 ", but it is %" PRIu64 " already", until, driver->now);
    struct arrivals left = {run->data + RUN_HEADER, run->data + run->size, read_integer(run->data + 8, 4), driver->now};
    struct arrival arrival = next_arrival(&left, until);
    for (;;) {
        uint64_t wake = next_wake(driver), next = arrival.time < wake ? arrival.time : wake;
        if (next >= until) break;
        driver->now = next;
        uint64_t now = stack_time(driver, next);
        set_clock(now);
        for (; arrival.time == next; arrival = next_arrival(&left, until)) {
            endpoint_receive(&driver->endpoint, now, &driver->endpoint.setup.remote, arrival.ecn, arrival.payload,
                             arrival.size);
        }
        act(driver);
    }
    driver->now = until;
    send_ran(driver, until);
}

/* Sends an answer, and is done with it. */
static void send_json(enum frame type, json_t *answer) {
    char *text = json_dumps(answer, JSON_COMPACT);
    if (!text) fail("there is no memory for an answer, or it is not UTF-8");
    frame_send(type, text, strlen(text));
    free(text);
    json_decref(answer);
}

static json_t *ready(const struct driver *driver) {
    char *version = format_text("ngtcp2 %s, GnuTLS %s", ngtcp2_version(0)->version_str, gnutls_check_version(NULL));
    json_t *answer = json_pack("{s:s, s:s, s:s, s:o}", "stack", "ngtcp2", "version", version, "driver", DRIVER,
                               "next_wake", driver->endpoint.setup.server ? json_null() : json_integer(0));
    free(version);
    return answer;
}

static json_t *bye(const struct endpoint *endpoint) {
    return json_pack("{s:o, s:o, s:s?}", "handshake_ns", trial_time(endpoint, endpoint->handshake_at),
                     "requests", endpoint->application->report(endpoint), "error", endpoint->error);
}

void run_virtual_time(void) {
    struct bytes frame = {0};
    int type = frame_receive(&frame);
    if (type == 0) return;
    if (type != HELLO) fail("a frame of type %d in place of HELLO", type);
    struct driver driver = {0};
    struct setup setup = setup_from_hello((const char *)frame.data, frame.size);
    set_clock(setup.zero_time);
    endpoint_init(&driver.endpoint, setup);
    driver.started = setup.server;
    send_json(READY, ready(&driver));
    while ((type = frame_receive(&frame)) == RUN) live(&driver, &frame);
    if (type == 0) return;
    if (type != FINISH) fail("a frame of type %d in place of RUN or FINISH", type);
    endpoint_finish(&driver.endpoint);
    send_json(BYE, bye(&driver.endpoint));
}
