#include "program.h"

static int handshake_completed(ngtcp2_conn *quic, void *context) {
    struct connection *connection = context;
    ep_handshake_complete();
    if (endpoint.job->server && endpoint.job->tickets) tickets_send(connection->tls);
    if (connection->early_data && !early_data_accepted(connection->tls)) {
        if (early_data_rejected(quic) != 0) return NGTCP2_ERR_CALLBACK_FAILURE;
        connection_forget_streams(connection);
        ep_early_data_rejected();
    }
    if (connection == endpoint.latest) ep_ask();
    return 0;
}

static int streams_allowed(ngtcp2_conn *quic, uint64_t limit, void *context) {
    (void)limit;
    if (context == endpoint.latest && ngtcp2_conn_get_handshake_completed(quic)) ep_ask();
    return 0;
}

/* The family takes everything at once, so that flow control moves on with what arrives. */
static int received(ngtcp2_conn *quic, uint32_t flags, int64_t id, uint64_t offset, const uint8_t *data, size_t size,
                    void *context, void *stream) {
    (void)offset;
    if (!stream) {
        stream = ep_accept(context, id);
        ngtcp2_conn_set_stream_user_data(quic, id, stream);
    }
    ep_received(stream, data, size, flags & NGTCP2_STREAM_DATA_FLAG_FIN);
    ngtcp2_conn_extend_max_stream_offset(quic, id, size);
    ngtcp2_conn_extend_max_offset(quic, size);
    return 0;
}

static int stream_reset(ngtcp2_conn *quic, int64_t id, uint64_t final_size, uint64_t code, void *context,
                        void *stream) {
    (void)quic, (void)id, (void)final_size, (void)context;
    if (stream) ep_reset(stream, code);
    return 0;
}

/* ngtcp2 answers STOP_SENDING with RESET_STREAM by itself. */
static int stream_stopped(ngtcp2_conn *quic, int64_t id, uint64_t code, void *context, void *stream) {
    (void)quic, (void)id, (void)code, (void)context;
    if (stream) stream_drop(stream);
    return 0;
}

static int stream_closed(ngtcp2_conn *quic, uint32_t flags, int64_t id, uint64_t code, void *context, void *stream) {
    (void)flags, (void)code, (void)context;
    if (stream) {
        stream_drop(stream);
        ep_stream_closed(stream);
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
    ep_random(buffer, size);
}

static int new_cid(ngtcp2_conn *quic, ngtcp2_cid *cid, uint8_t *token, size_t size, void *context) {
    (void)quic;
    cid->datalen = size;
    ep_random(cid->data, size);
    ep_random(token, NGTCP2_STATELESS_RESET_TOKENLEN);
    route_add(cid, context);
    return 0;
}

static int cid_retired(ngtcp2_conn *quic, const ngtcp2_cid *cid, void *context) {
    (void)quic, (void)context;
    route_remove(cid);
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
