#include "endpoint.h"

#include <stdlib.h>
#include <string.h>

#include "determinism.h"
#include "fail.h"
#include "retry.h"
#include "tls.h"

void endpoint_init(struct endpoint *endpoint, struct setup setup) {
    *endpoint = (struct endpoint){.setup = setup, .handshake_at = NEVER};
    endpoint->application = setup.server ? &server : &client;
    endpoint->credentials = tls_credentials(&endpoint->setup);
    random_bytes(endpoint->retry.secret, sizeof endpoint->retry.secret);
    tickets_init(&endpoint->tickets, &endpoint->setup);
    endpoint->application->init(endpoint);
}

static struct connection *keep(struct endpoint *endpoint, struct connection *connection) {
    size_t size = (endpoint->connection_count + 1) * sizeof *endpoint->connections;
    endpoint->connections = reallocate(endpoint->connections, size);
    endpoint->connections[endpoint->connection_count++] = connection;
    return connection;
}

void endpoint_start(struct endpoint *endpoint, uint64_t now) {
    endpoint->now = now;
    endpoint->application->start(endpoint);
}

struct connection *endpoint_connect(struct endpoint *endpoint, enum resume resume) {
    return keep(endpoint, connection_to(endpoint, &endpoint->setup.remote, resume, endpoint->now));
}

static void forget(struct endpoint *endpoint, size_t index) {
    struct connection *connection = endpoint->connections[index];
    size_t kept = 0;
    for (size_t i = 0; i < endpoint->route_count; i++) {
        if (endpoint->routes[i].connection != connection) endpoint->routes[kept++] = endpoint->routes[i];
    }
    endpoint->route_count = kept;
    size_t behind = --endpoint->connection_count - index;
    memmove(endpoint->connections + index, endpoint->connections + index + 1, behind * sizeof connection);
    connection_delete(connection);
}

/* Forgets the connections whose closing or draining period is over. */
static void forget_ended(struct endpoint *endpoint, uint64_t now) {
    for (size_t i = endpoint->connection_count; i-- > 0;) {
        const struct connection *connection = endpoint->connections[i];
        if (connection->life != ACTIVE && now >= connection->ends) forget(endpoint, i);
    }
}

void route_add(struct endpoint *endpoint, const ngtcp2_cid *cid, struct connection *connection) {
    endpoint->routes = reallocate(endpoint->routes, (endpoint->route_count + 1) * sizeof *endpoint->routes);
    endpoint->routes[endpoint->route_count++] = (struct route){*cid, connection};
}

void route_remove(struct endpoint *endpoint, const ngtcp2_cid *cid) {
    size_t kept = 0;
    for (size_t i = 0; i < endpoint->route_count; i++) {
        if (!ngtcp2_cid_eq(&endpoint->routes[i].cid, cid)) endpoint->routes[kept++] = endpoint->routes[i];
    }
    endpoint->route_count = kept;
}

static struct connection *find(const struct endpoint *endpoint, const ngtcp2_version_cid *header) {
    for (size_t i = 0; i < endpoint->route_count; i++) {
        const struct route *route = &endpoint->routes[i];
        if (route->cid.datalen == header->dcidlen && memcmp(route->cid.data, header->dcid, header->dcidlen) == 0) {
            return route->connection;
        }
    }
    return NULL;
}

/* A datagram that belongs to no connection may start one, at a server. */
static void accept_datagram(struct endpoint *endpoint, const struct address *remote, uint8_t ecn,
                            const uint8_t *payload, size_t size) {
    ngtcp2_pkt_hd initial;
    if (!endpoint->setup.server || ngtcp2_accept(&initial, payload, size) != 0) return;
    ngtcp2_cid original;
    bool retried = retry_answered(endpoint, remote, &initial, &original);
    struct connection *connection =
        keep(endpoint, connection_from(endpoint, remote, &initial, retried ? &original : NULL, endpoint->now));
    enum verdict verdict = connection_receive(connection, endpoint->now, ecn, payload, size);
    if (verdict != KEEP) forget(endpoint, endpoint->connection_count - 1);
    if (verdict == RETRY) retry_ask(endpoint, remote, &initial);
}

void endpoint_receive(struct endpoint *endpoint, uint64_t now, const struct address *remote, uint8_t ecn,
                      const uint8_t *payload, size_t size) {
    endpoint->now = now;
    forget_ended(endpoint, now);
    ngtcp2_version_cid header;
    size_t cid_bytes = endpoint->setup.server ? SERVER_CID_BYTES : CLIENT_CID_BYTES;
    if (ngtcp2_pkt_decode_version_cid(&header, payload, size, cid_bytes) != 0) return;
    struct connection *connection = find(endpoint, &header);
    if (connection) {
        /* Only the first datagram can end in anything but KEEP. */
        connection_receive(connection, now, ecn, payload, size);
    } else {
        accept_datagram(endpoint, remote, ecn, payload, size);
    }
    endpoint->application->act(endpoint);
}

uint64_t endpoint_expiry(const struct endpoint *endpoint) {
    uint64_t first = NEVER;
    for (size_t i = 0; i < endpoint->connection_count; i++) {
        uint64_t expiry = connection_expiry(endpoint->connections[i]);
        if (expiry < first) first = expiry;
    }
    return first;
}

bool endpoint_timeout(struct endpoint *endpoint, uint64_t now) {
    endpoint->now = now;
    bool any = false;
    for (size_t i = 0; i < endpoint->connection_count; i++) {
        if (connection_expiry(endpoint->connections[i]) > now) continue;
        connection_timeout(endpoint->connections[i], now);
        any = true;
    }
    endpoint->application->act(endpoint);
    return any;
}

void endpoint_send(struct endpoint *endpoint, uint64_t now, const struct sink *sink) {
    endpoint->now = now;
    struct retry *retry = &endpoint->retry;
    if (retry->size) sink->depart(sink->context, &retry->remote, 0, retry->packet, retry->size);
    retry->size = 0;
    for (size_t i = 0; i < endpoint->connection_count; i++) connection_send(endpoint->connections[i], now, sink);
}

void endpoint_finish(struct endpoint *endpoint) {
    endpoint->application->finish(endpoint);
    for (size_t i = 0; i < endpoint->connection_count; i++) connection_delete(endpoint->connections[i]);
    endpoint->connection_count = 0;
    FILE *keylog = endpoint->setup.keylog;
    if (keylog && fclose(keylog) != 0) fail("the key log cannot be written");
}

void endpoint_error(struct endpoint *endpoint, char *words) {
    if (endpoint->error) {
        free(words);
        return;
    }
    json_t *text = json_string(words); /* NULL if it is not UTF-8, as a peer's reason may be */
    for (char *at = words; !text && *at; at++) {
        if (*at < ' ' || *at > '~') *at = '?';
    }
    json_decref(text);
    endpoint->error = words;
}

json_t *trial_time(const struct endpoint *endpoint, uint64_t time) {
    return time == NEVER ? json_null() : json_integer((json_int_t)(time - endpoint->setup.zero_time));
}
