#include "callbacks.h"

#include <ngtcp2/ngtcp2_crypto.h>

#include "determinism.h"
#include "endpoint.h"

static int handshake_completed(ngtcp2_conn *quic, void *context) {
    struct connection *connection = context;
    struct endpoint *endpoint = connection->endpoint;
    if (endpoint->handshake_at == NEVER) endpoint->handshake_at = endpoint->now;
    if (endpoint->setup.server && endpoint->setup.tickets) tickets_send(connection->tls);
    if (connection->early_data && !early_data_accepted(connection->tls)) {
        if (early_data_rejected(quic) != 0) return NGTCP2_ERR_CALLBACK_FAILURE;
        connection_forget_streams(connection);
        endpoint->application->rejected(endpoint, connection);
    }
    endpoint->application->streams_allowed(endpoint, connection);
    return 0;
}

static int streams_allowed(ngtcp2_conn *quic, uint64_t limit, void *context) {
    (void)limit;
    struct connection *connection = context;
    struct endpoint *endpoint = connection->endpoint;
    if (ngtcp2_conn_get_handshake_completed(quic)) endpoint->application->streams_allowed(endpoint, connection);
    return 0;
}

/* The application takes everything at once, so that flow control moves on with what arrives. */
static int received(ngtcp2_conn *quic, uint32_t flags, int64_t id, uint64_t offset, const uint8_t *data, size_t size,
                    void *context, void *stream) {
    (void)offset;
    struct connection *connection = context;
    struct endpoint *endpoint = connection->endpoint;
    bool end = flags & NGTCP2_STREAM_DATA_FLAG_FIN;
    endpoint->application->received(endpoint, connection, stream, id, data, size, end);
    ngtcp2_conn_extend_max_stream_offset(quic, id, size);
    ngtcp2_conn_extend_max_offset(quic, size);
    return 0;
}

static int stream_reset(ngtcp2_conn *quic, int64_t id, uint64_t final_size, uint64_t code, void *context,
                        void *stream) {
    (void)quic, (void)id, (void)final_size;
    struct endpoint *endpoint = ((struct connection *)context)->endpoint;
    if (stream) endpoint->application->reset(endpoint, stream, code);
    return 0;
}

/* ngtcp2 answers STOP_SENDING with RESET_STREAM by itself. */
static int stream_stopped(ngtcp2_conn *quic, int64_t id, uint64_t code, void *context, void *stream) {
    (void)quic, (void)id, (void)code, (void)context;
    if (stream) stream_drop(stream);
    return 0;
}

static int stream_closed(ngtcp2_conn *quic, uint32_t flags, int64_t id, uint64_t code, void *context, void *stream) {
    (void)flags, (void)code;
    struct endpoint *endpoint = ((struct connection *)context)->endpoint;
    if (stream) {
        stream_drop(stream);
        endpoint->application->stream_closed(endpoint, stream);
    }
    if (!ngtcp2_conn_is_local_stream(quic, id)) ngtcp2_conn_extend_max_streams_bidi(quic, 1);
    return 0;
}

static int stream_unblocked(ngtcp2_conn *quic, int64_t id, uint64_t limit, void *context, void *stream) {
    (void)quic, (void)id, (void)limit, (void)context;
    if (stream) stream_queue(stream);
    return 0;
}

static void draw(uint8_t *buffer, size_t size, const ngtcp2_rand_ctx *context) {
    (void)context;
    random_bytes(buffer, size);
}

static int new_cid(ngtcp2_conn *quic, ngtcp2_cid *cid, uint8_t *token, size_t size, void *context) {
    (void)quic;
    struct connection *connection = context;
    cid->datalen = size;
    random_bytes(cid->data, size);
    random_bytes(token, NGTCP2_STATELESS_RESET_TOKENLEN);
    route_add(connection->endpoint, cid, connection);
    return 0;
}

static int cid_retired(ngtcp2_conn *quic, const ngtcp2_cid *cid, void *context) {
    (void)quic;
    route_remove(((struct connection *)context)->endpoint, cid);
    return 0;
}

#define COMMON_CALLBACKS                                                                                             \
    .recv_crypto_data = ngtcp2_crypto_recv_crypto_data_cb, .encrypt = ngtcp2_crypto_encrypt_cb,                      \
    .decrypt = ngtcp2_crypto_decrypt_cb, .hp_mask = ngtcp2_crypto_hp_mask_cb,                                        \
    .update_key = ngtcp2_crypto_update_key_cb, .delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb,    \
    .delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb,                                           \
    .get_path_challenge_data = ngtcp2_crypto_get_path_challenge_data_cb,                                             \
    .version_negotiation = ngtcp2_crypto_version_negotiation_cb, .handshake_completed = handshake_completed,         \
    .recv_stream_data = received, .stream_reset = stream_reset, .stream_stop_sending = stream_stopped,               \
    .stream_close = stream_closed, .extend_max_stream_data = stream_unblocked, .rand = draw,                         \
    .get_new_connection_id = new_cid, .remove_connection_id = cid_retired

const ngtcp2_callbacks client_callbacks = {
    COMMON_CALLBACKS,
    .client_initial = ngtcp2_crypto_client_initial_cb,
    .recv_retry = ngtcp2_crypto_recv_retry_cb,
    .extend_max_local_streams_bidi = streams_allowed,
};

const ngtcp2_callbacks server_callbacks = {
    COMMON_CALLBACKS,
    .recv_client_initial = ngtcp2_crypto_recv_client_initial_cb,
};
