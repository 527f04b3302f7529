/* bentpipe-endpoint-ngtcp2: the C library ngtcp2 behind endpoints/CONTRACT.md. */
#include "program.h"

#include <stdlib.h>
#include <string.h>

#include "retry.h"
#include "tls.h"

struct endpoint endpoint = {.options.congestion = NGTCP2_CC_ALGO_CUBIC};

static const char *version(void) {
    return ep_format("ngtcp2 %s, GnuTLS %s", ngtcp2_version(0)->version_str, gnutls_check_version(NULL));
}

static ngtcp2_cc_algo parse_congestion(const char *value) {
    if (strcmp(value, "newreno") == 0) return NGTCP2_CC_ALGO_RENO;
    if (strcmp(value, "cubic") == 0) return NGTCP2_CC_ALGO_CUBIC;
#if NGTCP2_VERSION_NUM < 0x010000
    if (strcmp(value, "bbr") == 0) return NGTCP2_CC_ALGO_BBR;
    if (strcmp(value, "bbr2") == 0) return NGTCP2_CC_ALGO_BBR2;
#else
    /* Version 1 has one of them only, and calls it by the other's name. */
    if (strcmp(value, "bbr2") == 0) return NGTCP2_CC_ALGO_BBR;
#endif
    ep_unsupported("option cc=%s: ngtcp2 %s has no such congestion control", value, NGTCP2_VERSION);
}

static bool option(const char *name, const char *value) {
    struct options *options = &endpoint.options;
    if (strcmp(name, "cc") == 0) {
        options->congestion = parse_congestion(value);
    } else if (strcmp(name, "window") == 0) {
        options->window = ep_count(name, value, 1, (UINT64_C(1) << 62) - 1);
    } else if (strcmp(name, "mtu") == 0) {
        options->udp_payload = ep_count(name, value, NGTCP2_MAX_UDP_PAYLOAD_SIZE, 65507);
    } else if (strcmp(name, "burst") == 0) {
        options->burst = ep_count(name, value, 1, 1000);
    } else if (strcmp(name, "ack") == 0) {
        options->ack_threshold = ep_count(name, value, 1, 1000);
    } else {
        return false;
    }
    return true;
}

static void init(const struct ep_job *job, uint64_t now) {
    endpoint.job = job;
    endpoint.now = now;
    endpoint.credentials = tls_credentials();
    ep_random(endpoint.retry.secret, sizeof endpoint.retry.secret);
    tickets_init();
}

static struct connection *keep(struct connection *connection) {
    size_t size = (endpoint.connection_count + 1) * sizeof *endpoint.connections;
    endpoint.connections = ep_reallocate(endpoint.connections, size);
    endpoint.connections[endpoint.connection_count++] = connection;
    return connection;
}

static void open_connection(enum ep_resume how, uint64_t now) {
    endpoint.now = now;
    endpoint.latest = keep(connection_to_server(how));
}

static void forget(size_t index) {
    struct connection *connection = endpoint.connections[index];
    size_t kept = 0;
    for (size_t i = 0; i < endpoint.route_count; i++) {
        if (endpoint.routes[i].connection != connection) endpoint.routes[kept++] = endpoint.routes[i];
    }
    endpoint.route_count = kept;
    size_t behind = --endpoint.connection_count - index;
    memmove(endpoint.connections + index, endpoint.connections + index + 1, behind * sizeof connection);
    if (connection == endpoint.latest) {
        endpoint.latest = NULL;
        endpoint.is_lost = true;
    }
    connection_delete(connection);
}

/* Forgets the connections whose closing or draining period is over. */
static void forget_ended(void) {
    for (size_t i = endpoint.connection_count; i-- > 0;) {
        const struct connection *connection = endpoint.connections[i];
        if (connection->life != ACTIVE && endpoint.now >= connection->ends) forget(i);
    }
}

void route_add(const ngtcp2_cid *cid, struct connection *connection) {
    endpoint.routes = ep_reallocate(endpoint.routes, (endpoint.route_count + 1) * sizeof *endpoint.routes);
    endpoint.routes[endpoint.route_count++] = (struct route){*cid, connection};
}

void route_remove(const ngtcp2_cid *cid) {
    size_t kept = 0;
    for (size_t i = 0; i < endpoint.route_count; i++) {
        if (!ngtcp2_cid_eq(&endpoint.routes[i].cid, cid)) endpoint.routes[kept++] = endpoint.routes[i];
    }
    endpoint.route_count = kept;
}

static struct connection *find(const ngtcp2_version_cid *header) {
    for (size_t i = 0; i < endpoint.route_count; i++) {
        const struct route *route = &endpoint.routes[i];
        if (route->cid.datalen == header->dcidlen && memcmp(route->cid.data, header->dcid, header->dcidlen) == 0) {
            return route->connection;
        }
    }
    return NULL;
}

/* A datagram that belongs to no connection may start one, at a server. */
static void accept_datagram(const struct ep_address *remote, uint8_t ecn, const uint8_t *payload, size_t size) {
    ngtcp2_pkt_hd initial;
    if (!endpoint.job->server || ngtcp2_accept(&initial, payload, size) != 0) return;
    ngtcp2_cid original;
    bool retried = retry_answered(remote, &initial, &original);
    struct connection *connection = keep(connection_from(remote, &initial, retried ? &original : NULL));
    enum verdict verdict = connection_receive(connection, remote, ecn, payload, size);
    if (verdict != KEEP) forget(endpoint.connection_count - 1);
    if (verdict == RETRY) retry_ask(remote, &initial);
}

static void receive(const struct ep_address *from, uint8_t ecn, uint8_t *payload, size_t size, uint64_t now) {
    endpoint.now = now;
    forget_ended();
    ngtcp2_version_cid header;
    size_t cid_bytes = endpoint.job->server ? SERVER_CID_BYTES : CLIENT_CID_BYTES;
    if (ngtcp2_pkt_decode_version_cid(&header, payload, size, cid_bytes) != 0) return;
    struct connection *connection = find(&header);
    if (connection) {
        /* Only the first datagram can end in anything but KEEP. */
        connection_receive(connection, from, ecn, payload, size);
    } else {
        accept_datagram(from, ecn, payload, size);
    }
}

static uint64_t next_timer(uint64_t now) {
    (void)now;
    uint64_t first = EP_NEVER;
    for (size_t i = 0; i < endpoint.connection_count; i++) {
        uint64_t expiry = connection_expiry(endpoint.connections[i]);
        if (expiry < first) first = expiry;
    }
    return first;
}

static bool on_timer(uint64_t now) {
    endpoint.now = now;
    bool any = false;
    for (size_t i = 0; i < endpoint.connection_count; i++) {
        if (connection_expiry(endpoint.connections[i]) > now) continue;
        connection_timeout(endpoint.connections[i]);
        any = true;
    }
    return any;
}

static void poll_send(uint64_t now) {
    endpoint.now = now;
    struct retry *retry = &endpoint.retry;
    if (retry->size) ep_send(&retry->remote, 0, retry->packet, retry->size);
    retry->size = 0;
    for (size_t i = 0; i < endpoint.connection_count; i++) connection_send(endpoint.connections[i]);
}

static bool open_stream(struct ep_exchange *stream) {
    stream->connection = endpoint.latest;
    if (ngtcp2_conn_open_bidi_stream(endpoint.latest->quic, &stream->id, stream) != 0) return false;
    stream_queue(stream);
    return true;
}

static void refuse(struct ep_exchange *stream) {
    shutdown_stream(((struct connection *)stream->connection)->quic, stream->id, EP_REFUSED);
}

static bool is_open(void) {
    const struct connection *latest = endpoint.latest;
    return latest && latest->life == ACTIVE && ngtcp2_conn_get_handshake_completed(latest->quic);
}

/* A server answers to wherever the client is. */
static bool knows_paths(void) {
    return endpoint.job->path_count > 1 && (endpoint.job->server || endpoint.job->migrates);
}

static bool migrate(size_t path, uint64_t now) {
    endpoint.now = now;
    return connection_migrate(endpoint.latest, path);
}

static bool has_ticket(void) {
    return endpoint.tickets.session.size > 0;
}

static void close_connection(uint64_t now) {
    endpoint.now = now;
    connection_close(endpoint.latest, 0);
}

static bool is_done(void) {
    if (!endpoint.job->server) return endpoint.is_lost || (endpoint.latest && endpoint.latest->life != ACTIVE);
    for (size_t i = 0; i < endpoint.connection_count; i++) {
        if (endpoint.connections[i]->life == ACTIVE) return false;
    }
    return endpoint.had_any;
}

static void finish(void) {
    while (endpoint.connection_count) forget(endpoint.connection_count - 1);
}

static const struct ep_stack stack = {
    .name = "ngtcp2",
    .driver = "at each instant: all arrivals, then timers, then a burst of up to one send quantum, as pacing allows",
    .tick = 1,
    .version = version,
    .options = "cc, window, mtu, burst, ack, migrate",
    .option = option,
    .init = init,
    .connect = open_connection,
    .receive = receive,
    .next_timer = next_timer,
    .on_timer = on_timer,
    .poll_send = poll_send,
    .open_stream = open_stream,
    .answer = stream_queue,
    .refuse = refuse,
    .is_open = is_open,
    .has_ticket = has_ticket,
    .close = close_connection,
    .is_done = is_done,
    .knows_paths = knows_paths,
    .migrate = migrate,
    .finish = finish,
};

int main(int count, char **arguments) {
    return ep_main(count, arguments, &stack);
}
