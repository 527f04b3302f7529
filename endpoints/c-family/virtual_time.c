/* Virtual time (endpoints/CONTRACT.md): lives between two pipes, from message to message. */
#include <inttypes.h>
#include <stdlib.h>

#include "family.h"

#define DATAGRAM_HEADER 11
#define RUN_HEADER 12
#define RAN_HEADER 13
/* In the byte of a datagram with its ECN bits: the number of its path. */
#define ECN_BITS 0x03
#define PATH_BITS 0x30
#define PATH_SHIFT 4

/* A datagram in the body of RUN. Its time is in nanoseconds since the start of the trial, as all times of messages. */
struct arrival {
    uint64_t time;
    uint8_t ecn;
    size_t path;
    uint8_t *payload;
    size_t size;
};

/* The datagrams of RUN that have not arrived yet. */
struct arrivals {
    uint8_t *at, *end;
    uint64_t count, earliest, until;
};

/* The body of RAN in the making: room for what goes before the datagrams, and these. */
static struct bytes ran;
static uint32_t departure_count;

static void depart(size_t path, const struct ep_address *to, uint8_t ecn, const uint8_t *payload, size_t size) {
    (void)to;
    if (path && path >= family.job.path_count) ep_fail("a datagram to be sent on path %zu", path);
    uint64_t time = family.now - family.zero_time;
    uint8_t mark = (uint8_t)(ecn | path << PATH_SHIFT);
    uint8_t header[DATAGRAM_HEADER] = {[8] = mark, [9] = (uint8_t)size, [10] = (uint8_t)(size >> 8)};
    for (size_t i = 0; i < 8; i++) header[i] = (uint8_t)(time >> 8 * i);
    bytes_append(&ran, header, sizeof header);
    bytes_append(&ran, payload, size);
    departure_count++;
}

/* Takes the next arrival off the front of RUN; its time is EP_NEVER if there is none. */
static struct arrival next_arrival(struct arrivals *left) {
    if (left->count == 0) return (struct arrival){.time = EP_NEVER};
    if (left->end - left->at < DATAGRAM_HEADER) ep_fail("RUN ends within a datagram");
    uint8_t *at = left->at;
    struct arrival arrival = {
        .time = read_integer(at, 8),
        .ecn = at[8] & ECN_BITS,
        .path = (at[8] & PATH_BITS) >> PATH_SHIFT,
        .payload = at + DATAGRAM_HEADER,
        .size = read_integer(at + 9, 2),
    };
    if (at[8] & ~(ECN_BITS | PATH_BITS)) ep_fail("RUN has a datagram with ecn %d", at[8]);
    if (arrival.path && arrival.path >= family.job.path_count) ep_fail("RUN has a datagram on path %zu", arrival.path);
    if ((size_t)(left->end - arrival.payload) < arrival.size) ep_fail("RUN ends within a datagram");
    if (arrival.time < left->earliest || arrival.time >= left->until) {
        ep_fail("RUN until %" PRIu64 " has a datagram at %" PRIu64 ", out of order", left->until, arrival.time);
    }
    left->at = arrival.payload + arrival.size;
    left->earliest = arrival.time;
    left->count--;
    return arrival;
}

static uint64_t next_wake(void) {
    uint64_t wake = family_wake();
    return wake == EP_NEVER ? EP_NEVER : wake - family.zero_time;
}

static void begin_ran(void) {
    static const uint8_t room[RAN_HEADER];
    message_begin(&ran);
    bytes_append(&ran, room, RAN_HEADER);
    departure_count = 0;
}

static void send_ran(void) {
    size_t size = ran.size;
    ran.size = 0;
    bytes_append_integer(&ran, next_wake(), 8);
    bytes_append_integer(&ran, family.stack->is_done(), 1);
    bytes_append_integer(&ran, departure_count, 4);
    message_send(RAN, ran.data, size);
}

/* At each instant: all arrivals, then timers, then what is to be sent. */
static void live(uint8_t *run, size_t size) {
    begin_ran();
    uint64_t begin = family.now - family.zero_time;
    if (size < RUN_HEADER) ep_fail("RUN has only %zu bytes", size);
    struct arrivals left = {run + RUN_HEADER, run + size, read_integer(run + 8, 4), begin, read_integer(run, 8)};
    if (left.until < begin) ep_fail("RUN until %" PRIu64 ", but it is %" PRIu64 " already", left.until, begin);
    struct arrival arrival = next_arrival(&left);
    for (;;) {
        uint64_t wake = next_wake(), next = arrival.time < wake ? arrival.time : wake;
        if (next >= left.until) break;
        family.now = family.zero_time + next;
        for (; arrival.time == next; arrival = next_arrival(&left)) {
            family.arrival_path = arrival.path;
            const struct ep_job *job = &family.job;
            const struct ep_address *from = job->path_count ? &job->paths[arrival.path].remote : &job->remote;
            family_receive(from, arrival.ecn, arrival.payload, arrival.size);
        }
        family_act();
    }
    family.now = family.zero_time + left.until;
    send_ran();
}

static json_t *ready(void) {
    bool paths = family.job.path_count && family.stack->knows_paths && family.stack->knows_paths();
    return json_pack("{s:s, s:s, s:s, s:o, s:b, s:b}", "stack", family.stack->name, "version", family.stack->version(),
                     "driver", family.stack->driver, "next_wake", family.job.server ? json_null() : json_integer(0),
                     "shared_memory", messages_shared(), "paths", paths);
}

void run_virtual_time(void) {
    uint8_t *body;
    size_t size;
    int type = message_receive(&body, &size);
    if (type == 0) return;
    if (type != HELLO) ep_fail("a message of type %d in place of HELLO", type);
    job_from_hello((const char *)body, size);
    family.depart = depart;
    family_init();
    message_send_json(READY, ready());
    while ((type = message_receive(&body, &size)) == RUN) live(body, size);
    if (type == 0) return;
    if (type != FINISH) ep_fail("a message of type %d in place of RUN or FINISH", type);
    family_finish();
    message_send_json(BYE, family_report());
}
