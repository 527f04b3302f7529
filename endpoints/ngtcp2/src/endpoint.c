#include "endpoint.h"

#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "tls.h"

void endpoint_init(struct endpoint *endpoint, struct setup setup) {
    *endpoint = (struct endpoint){.setup = setup, .handshake_at = NEVER};
    endpoint->application = setup.server ? &server : &client;
    endpoint->credentials = tls_credentials(&endpoint->setup);
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
    if (!endpoint->setup.server) keep(endpoint, connection_to(endpoint, &endpoint->setup.remote, now));
}

/* Forgets the connections whose closing or draining period is over. */
static void forget_ended(struct endpoint *endpoint, uint64_t now) {
    size_t kept = 0;
    for (size_t i = 0; i < endpoint->connection_count; i++) {
        struct connection *connection = endpoint->connections[i];
        if (connection->life == ACTIVE || now < connection->ends) {
            endpoint->connections[kept++] = connection;
            continue;
        }
        size_t routes = 0;
        for (size_t j = 0; j < endpoint->route_count; j++) {
            if (endpoint->routes[j].connection != connection) endpoint->routes[routes++] = endpoint->routes[j];
        }
        endpoint->route_count = routes;
        connection_delete(connection);
    }
    endpoint->connection_count = kept;
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

void endpoint_receive(struct endpoint *endpoint, uint64_t now, const struct address *remote, uint8_t ecn,
                      const uint8_t *payload, size_t size) {
    endpoint->now = now;
    forget_ended(endpoint, now);
    ngtcp2_version_cid header;
    size_t cid_bytes = endpoint->setup.server ? SERVER_CID_BYTES : CLIENT_CID_BYTES;
    if (ngtcp2_pkt_decode_version_cid(&header, payload, size, cid_bytes) != 0) return;
    struct connection *connection = find(endpoint, &header);
    if (!connection) {
        ngtcp2_pkt_hd initial;
        if (!endpoint->setup.server || ngtcp2_accept(&initial, payload, size) != 0) return;
        connection = keep(endpoint, connection_from(endpoint, remote, &initial, now));
    }
    connection_receive(connection, now, ecn, payload, size);
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
    } else {
        endpoint->error = words;
    }
}
