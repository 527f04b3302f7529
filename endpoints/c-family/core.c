#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "family.h"

/* A timer that is due again right after it was handled waits this number of nanoseconds, so that time goes on. */
#define TIMER_RESOLUTION 1000

struct family family = {.migrate_after = EP_NEVER};

static uint64_t timer_floor; /* timers are not handled before */
static uint64_t handshake_at = EP_NEVER;

static uint64_t ticks(void) {
    return family.now / family.stack->tick;
}

static const struct side *side(void) {
    return family.job.server ? &server_side : &client_side;
}

void family_init(void) {
    family.stack->init(&family.job, ticks());
    side()->init();
    family.started = family.job.server;
}

void family_receive(const struct ep_address *from, uint8_t ecn, uint8_t *payload, size_t size) {
    family.stack->receive(from, ecn, payload, size, ticks());
    client_act();
}

uint64_t family_wake(void) {
    if (!family.started) return family.now;
    uint64_t tick = family.stack->tick, timer = family.stack->next_timer(ticks());
    uint64_t wake = timer > (EP_NEVER - 1) / tick ? EP_NEVER : timer * tick, migration = migration_wake();
    if (wake < timer_floor) wake = timer_floor;
    if (wake > migration) wake = migration;
    return wake < family.now ? family.now : wake;
}

void family_act(void) {
    if (!family.started) client_start();
    family.started = true;
    if (family.stack->on_timer && family.now >= timer_floor) {
        if (family.stack->on_timer(ticks())) timer_floor = family.now + TIMER_RESOLUTION;
        client_act();
    }
    migration_act();
    family.stack->poll_send(ticks());
}

void family_finish(void) {
    side()->finish();
    family.stack->finish();
    secrets_close();
}

json_t *trial_time(uint64_t time) {
    return time == EP_NEVER ? json_null() : json_integer((json_int_t)(time - family.zero_time));
}

json_t *family_report(void) {
    return json_pack("{s:o, s:o, s:s?}", "handshake_ns", trial_time(handshake_at), "requests", client_report(), "error",
                     family.error);
}

void ep_send(const struct ep_address *to, uint8_t ecn, const uint8_t *payload, size_t size) {
    family.depart(0, to, ecn, payload, size);
}

void ep_send_on(size_t path, const struct ep_address *to, uint8_t ecn, const uint8_t *payload, size_t size) {
    family.depart(path, to, ecn, payload, size);
}

void ep_handshake_complete(void) {
    if (handshake_at == EP_NEVER) handshake_at = family.now;
}

void ep_error(const char *format, ...) {
    if (family.error) return;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *words = ep_allocate((size_t)length + 1);
    va_start(arguments, format);
    vsnprintf(words, (size_t)length + 1, format, arguments);
    va_end(arguments);
    json_t *text = json_string(words); /* NULL if it is not UTF-8, as a peer's reason may be */
    for (char *at = words; !text && *at; at++) {
        if (*at < ' ' || *at > '~') *at = '?';
    }
    json_decref(text);
    family.error = words;
}

void ep_received(struct ep_exchange *exchange, const uint8_t *data, size_t size, bool end) {
    side()->received(exchange, data, size, end);
}

void ep_reset(struct ep_exchange *exchange, uint64_t code) {
    side()->reset(exchange, code);
}

void ep_stream_closed(struct ep_exchange *exchange) {
    side()->stream_closed(exchange);
}

void ep_connection_closed(const void *connection) {
    side()->connection_closed(connection);
}

size_t ep_unsent(const struct ep_exchange *exchange) {
    return exchange->unsent[0].size + exchange->unsent[1].size;
}

void ep_sent(struct ep_exchange *exchange, size_t size) {
    for (struct ep_part *part = exchange->unsent; size > 0; part++) {
        size_t taken = size < part->size ? size : part->size;
        part->data += taken;
        part->size -= taken;
        size -= taken;
    }
    side()->sent(exchange);
}

void ep_take(struct ep_exchange *exchange, void *buffer, size_t size) {
    size_t first = exchange->unsent[0].size < size ? exchange->unsent[0].size : size;
    if (first) memcpy(buffer, exchange->unsent[0].data, first);
    if (size > first) memcpy((uint8_t *)buffer + first, exchange->unsent[1].data, size - first);
    ep_sent(exchange, size);
}
