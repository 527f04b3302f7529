/* A transfer between two ngtcp2s in one process, as benches/reference/src/lib.rs has it for libraries in Rust: no
 * files, no pipes, 20 Mbit/s each way, 600 ms, a queue of 600 ms. Connections are made by the sources of
 * endpoints/ngtcp2, with the same settings; what happens from then on is between this file and ngtcp2. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "family.h"
#include "program.h"
#include "tls.h"

#define BITS_PER_SECOND UINT64_C(20000000)
#define DELAY (300 * NGTCP2_MILLISECONDS)
/* The most that a packet waits for its turn. */
#define QUEUE (600 * NGTCP2_MILLISECONDS)
/* IPv4 and UDP, which the link carries, too. */
#define HEADER_BYTES 28
/* A timer that is due again right after it was handled waits this long, so that time goes on. */
#define TIMER_RESOLUTION 1000
#define START (UINT64_C(946684800) * NGTCP2_SECONDS)
/* The reply is made of copies of this many bytes. */
#define PIECE_BYTES (1 << 20)

struct packet {
    struct packet *behind;
    uint64_t arrival;
    uint32_t ecn;
    size_t size;
    uint8_t payload[];
};

/* One direction: a queue of limited delay, a rate, a delay. */
struct link {
    uint64_t free; /* when the transmitter is */
    struct packet *first, *last;
    uint64_t packets;
};

static struct end {
    struct ep_job job;
    gnutls_certificate_credentials_t credentials;
    struct connection *connection;
    struct link sends;
    uint64_t wake, floor; /* timers are not handled before `floor` */
    int64_t stream;       /* -1: there is nothing to send */
    uint64_t left;        /* bytes that are to be sent */
    bool close, done;
} client, server;

static const uint8_t question[] = "GET /reply\r\n";
static uint8_t piece[PIECE_BYTES];
static uint64_t reply_bytes;

struct endpoint endpoint = {.options.congestion = NGTCP2_CC_ALGO_CUBIC};
static const struct ep_stack stack = {.name = "ngtcp2"};

/* There is one connection at each end. */
void route_add(const ngtcp2_cid *cid, struct connection *connection) { (void)cid, (void)connection; }

static void transmit(struct link *link, uint32_t ecn, const uint8_t *payload, size_t size) {
    link->packets++;
    uint64_t took = (size + HEADER_BYTES) * 8 * NGTCP2_SECONDS / BITS_PER_SECOND;
    uint64_t start = link->free > family.now ? link->free : family.now;
    if (start + took - family.now > QUEUE) return;
    link->free = start + took;
    struct packet *packet = malloc(sizeof *packet + size);
    if (!packet) ep_fail("there is no memory for a packet");
    packet->behind = NULL;
    packet->arrival = link->free + DELAY;
    packet->ecn = ecn;
    packet->size = size;
    memcpy(packet->payload, payload, size);
    *(link->first ? &link->last->behind : &link->first) = packet;
    link->last = packet;
}

/* What ngtcp2 calls. */

static int may_begin(ngtcp2_conn *quic, void *context) {
    (void)context;
    if (endpoint.job->server) return 0;
    client.left = sizeof question - 1;
    return ngtcp2_conn_open_bidi_stream(quic, &client.stream, NULL) ? NGTCP2_ERR_CALLBACK_FAILURE : 0;
}

static int received(ngtcp2_conn *quic, uint32_t flags, int64_t id, uint64_t offset, const uint8_t *data, size_t size,
                    void *context, void *user) {
    (void)offset, (void)data, (void)context, (void)user;
    ngtcp2_conn_extend_max_stream_offset(quic, id, size);
    ngtcp2_conn_extend_max_offset(quic, size);
    if (!(flags & NGTCP2_STREAM_DATA_FLAG_FIN)) return 0;
    if (endpoint.job->server) {
        server.stream = id;
        server.left = reply_bytes;
    } else {
        client.close = true;
    }
    return 0;
}

static void draw(uint8_t *buffer, size_t size, const ngtcp2_rand_ctx *context) {
    (void)context;
    ep_random(buffer, size);
}

static int new_cid(ngtcp2_conn *quic, ngtcp2_cid *cid, uint8_t *token, size_t size, void *context) {
    (void)quic, (void)context;
    cid->datalen = size;
    ep_random(cid->data, size);
    ep_random(token, NGTCP2_STATELESS_RESET_TOKENLEN);
    return 0;
}

#define COMMON_CALLBACKS                                                                                             \
    .recv_crypto_data = ngtcp2_crypto_recv_crypto_data_cb, .encrypt = ngtcp2_crypto_encrypt_cb,                      \
    .decrypt = ngtcp2_crypto_decrypt_cb, .hp_mask = ngtcp2_crypto_hp_mask_cb,                                        \
    .update_key = ngtcp2_crypto_update_key_cb, .delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb,    \
    .delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb,                                           \
    .get_path_challenge_data = ngtcp2_crypto_get_path_challenge_data_cb,                                             \
    .version_negotiation = ngtcp2_crypto_version_negotiation_cb, .handshake_completed = may_begin,                   \
    .recv_stream_data = received, .rand = draw, .get_new_connection_id = new_cid

const ngtcp2_callbacks client_callbacks = {
    COMMON_CALLBACKS,
    .client_initial = ngtcp2_crypto_client_initial_cb,
    .recv_retry = ngtcp2_crypto_recv_retry_cb,
};

const ngtcp2_callbacks server_callbacks = {
    COMMON_CALLBACKS,
    .recv_client_initial = ngtcp2_crypto_recv_client_initial_cb,
};

/* What this file calls. */

/* From now on the sources of endpoints/ngtcp2 work for this end. */
static void turn_to(struct end *end) {
    endpoint.job = &end->job;
    endpoint.credentials = end->credentials;
    endpoint.now = family.now;
}

static struct end new_end(bool is_server, const char *certs) {
    struct ep_address addresses[] = {parse_address("192.0.2.1:50000", "client"),
                                     parse_address("198.51.100.1:443", "server")};
    struct end end = {
        .job = {.server = is_server, .certs = certs, .local = addresses[is_server], .remote = addresses[!is_server]},
        .wake = EP_NEVER,
        .stream = -1,
    };
    turn_to(&end);
    end.credentials = tls_credentials();
    return end;
}

static void receive(struct end *end, const struct packet *packet) {
    if (!end->connection) {
        ngtcp2_pkt_hd initial;
        if (ngtcp2_accept(&initial, packet->payload, packet->size) != 0) return;
        end->connection = connection_from(&end->job.remote, &initial, NULL);
    }
    ngtcp2_pkt_info info = {.ecn = (uint8_t)packet->ecn};
    struct connection *connection = end->connection;
    ngtcp2_path path = *ngtcp2_conn_get_path(connection->quic);
    int result = ngtcp2_conn_read_pkt(connection->quic, &path, &info, packet->payload, packet->size, family.now);
    if (result == NGTCP2_ERR_DRAINING) {
        end->done = true;
    } else if (result != 0) {
        ep_fail("ngtcp2_conn_read_pkt: %s", ngtcp2_strerror(result));
    }
}

static void close_connection(struct end *end) {
    static uint8_t buffer[1500];
    ngtcp2_pkt_info info;
    close_error error;
    close_error_default(&error);
    close_error_application(&error, 0);
    ngtcp2_ssize written = ngtcp2_conn_write_connection_close(end->connection->quic, NULL, &info, buffer,
                                                              sizeof buffer, &error, family.now);
    if (written < 0) ep_fail("ngtcp2_conn_write_connection_close: %s", ngtcp2_strerror((int)written));
    transmit(&end->sends, info.ecn, buffer, (size_t)written);
    end->done = true;
}

/* Writes one datagram: its size, 0 if nothing may be sent now. */
static size_t write_datagram(struct end *end, ngtcp2_pkt_info *info, uint8_t *buffer, size_t size) {
    /* What is sent next lies in the piece, at the end of which its start follows. */
    const uint8_t *bytes = end->job.server ? piece : question;
    size_t skipped = end->job.server ? (reply_bytes - end->left) % PIECE_BYTES : 0;
    size_t first = PIECE_BYTES - skipped < end->left ? PIECE_BYTES - skipped : end->left;
    size_t second = end->left - first < skipped ? end->left - first : skipped;
    const ngtcp2_vec data[] = {{(uint8_t *)bytes + skipped, first}, {(uint8_t *)bytes, second}};
    size_t parts = second ? 2 : 1;
    uint32_t flags = first + second == end->left ? NGTCP2_WRITE_STREAM_FLAG_FIN : 0;
    ngtcp2_ssize taken = -1, written = NGTCP2_ERR_STREAM_DATA_BLOCKED;
    if (end->stream >= 0) {
        written = ngtcp2_conn_writev_stream(end->connection->quic, NULL, info, buffer, size, &taken, flags,
                                            end->stream, data, parts, family.now);
    }
    if (written == NGTCP2_ERR_STREAM_DATA_BLOCKED) {
        written = ngtcp2_conn_writev_stream(end->connection->quic, NULL, info, buffer, size, NULL, 0, -1, NULL, 0,
                                            family.now);
    }
    if (taken >= 0) end->left -= (uint64_t)taken;
    if (taken >= 0 && end->left == 0) end->stream = -1;
    if (written < 0) ep_fail("ngtcp2_conn_writev_stream: %s", ngtcp2_strerror((int)written));
    return (size_t)written;
}

static void send_all(struct end *end) {
    static uint8_t buffer[EP_LARGEST_PAYLOAD];
    ngtcp2_conn *quic = end->connection->quic;
    size_t size = ngtcp2_conn_get_max_tx_udp_payload_size(quic);
    size_t most = ngtcp2_conn_get_send_quantum(quic) / size;
    for (size_t count = 0; count < (most ? most : 1); count++) {
        ngtcp2_pkt_info info;
        size_t written = write_datagram(end, &info, buffer, size);
        if (written == 0) break;
        transmit(&end->sends, info.ecn, buffer, written);
    }
    ngtcp2_conn_update_pkt_tx_time(quic, family.now);
}

/* All that has arrived, then timers, then what is to be sent. */
static void live(struct end *end, struct link *incoming) {
    turn_to(end);
    while (incoming->first && incoming->first->arrival <= family.now) {
        struct packet *packet = incoming->first;
        incoming->first = packet->behind;
        if (!end->done) receive(end, packet);
        free(packet);
    }
    end->wake = EP_NEVER;
    if (end->done || !end->connection) return;
    ngtcp2_conn *quic = end->connection->quic;
    if (family.now >= end->floor && ngtcp2_conn_get_expiry(quic) <= family.now) {
        int result = ngtcp2_conn_handle_expiry(quic, family.now);
        if (result != 0) ep_fail("ngtcp2_conn_handle_expiry: %s", ngtcp2_strerror(result));
        end->floor = family.now + TIMER_RESOLUTION;
    }
    if (end->close) {
        close_connection(end);
        return;
    }
    send_all(end);
    end->wake = ngtcp2_conn_get_expiry(quic);
    if (end->wake < end->floor) end->wake = end->floor;
}

static uint64_t next(const struct end *end, const struct link *incoming) {
    uint64_t arrival = incoming->first ? incoming->first->arrival : EP_NEVER;
    return arrival < end->wake ? arrival : end->wake;
}

static void run(void) {
    while (!client.done || !server.done) {
        uint64_t of_client = next(&client, &server.sends), of_server = next(&server, &client.sends);
        uint64_t now = of_client < of_server ? of_client : of_server;
        if (now == EP_NEVER) ep_fail("neither end has anything to wait for");
        if (now > family.now) family.now = now;
        if (of_client <= family.now) live(&client, &server.sends);
        if (of_server <= family.now) live(&server, &client.sends);
    }
}

int main(int count, char **arguments) {
    family.stack = &stack;
    if (count != 3) ep_unsupported("usage: CERTS BYTES");
    reply_bytes = ep_count("BYTES", arguments[2], 1, UINT64_C(1) << 40);
    family.now = START;
    seed_entropy(1, 0);
    server = new_end(true, arguments[1]);
    client = new_end(false, arguments[1]);
    turn_to(&client);
    client.connection = connection_to_server(EP_AFRESH);
    client.wake = family.now;
    run();
    printf("{\"forward_packets\": %" PRIu64 ", \"return_packets\": %" PRIu64 ", \"virtual_s\": %.9f}\n",
           server.sends.packets, client.sends.packets, (double)(family.now - START) / (double)NGTCP2_SECONDS);
    return 0;
}
