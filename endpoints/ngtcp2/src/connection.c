#include "connection.h"

#include <stdlib.h>
#include <string.h>

#include "program.h"
#include "tls.h"

static ngtcp2_conn *connection_of(ngtcp2_crypto_conn_ref *reference) {
    return ((struct connection *)reference->user_data)->quic;
}

static ngtcp2_path path_between(const struct ep_address *local, const struct ep_address *remote) {
    return (ngtcp2_path){
        .local = {(struct sockaddr *)&local->socket, local->length},
        .remote = {(struct sockaddr *)&remote->socket, remote->length},
    };
}

/* The path that the datagram from `from` came over which is being received. */
static ngtcp2_path arrival_path(const struct ep_address *from) {
    const struct ep_job *job = endpoint.job;
    return path_between(job->path_count ? &job->paths[ep_arrival_path()].local : &job->local, from);
}

static struct connection *new_connection(const struct ep_address *remote, enum ep_resume resume) {
    struct connection *connection = ep_allocate(sizeof *connection);
    connection->begun = endpoint.now;
    connection->remote = *remote;
    connection->reference = (ngtcp2_crypto_conn_ref){connection_of, connection};
    connection->tls = tls_session(&connection->reference, tickets_flags(resume));
    tickets_enable(connection->tls, resume);
    return connection;
}

static ngtcp2_cid random_cid(size_t size) {
    ngtcp2_cid cid = {.datalen = size};
    ep_random(cid.data, size);
    return cid;
}

struct connection *connection_to_server(enum ep_resume resume) {
    struct connection *connection = new_connection(&endpoint.job->remote, resume);
    ngtcp2_cid destination = random_cid(INITIAL_CID_BYTES), source = random_cid(CLIENT_CID_BYTES);
    ngtcp2_settings settings = settings_for(connection, &destination);
    ngtcp2_transport_params params = params_for_connection();
    ngtcp2_path path = path_between(&endpoint.job->local, &connection->remote);
    int result = ngtcp2_conn_client_new(&connection->quic, &destination, &source, &path,
                                        NGTCP2_PROTO_VER_V1, &client_callbacks, &settings, &params, NULL, connection);
    if (result != 0) ep_fail("ngtcp2_conn_client_new: %s", ngtcp2_strerror(result));
    ngtcp2_conn_set_tls_native_handle(connection->quic, connection->tls);
    connection->early_data = resume == EP_EARLY_DATA;
    if (connection->early_data) tickets_allow_early_data(connection->quic);
    route_add(&source, connection);
    return connection;
}

struct connection *connection_from(const struct ep_address *remote, const ngtcp2_pkt_hd *initial,
                                   const ngtcp2_cid *original) {
    struct connection *connection = new_connection(remote, EP_AFRESH);
    ngtcp2_cid source = random_cid(SERVER_CID_BYTES);
    ngtcp2_settings settings = settings_for(connection, original ? original : &initial->dcid);
    ngtcp2_transport_params params = params_for_connection();
    params_original_dcid(&params, original ? *original : initial->dcid);
    if (original) {
        params.retry_scid = initial->dcid;
        params.retry_scid_present = 1;
        settings_token(&settings, token_of(initial));
    }
    params.stateless_reset_token_present = 1;
    ep_random(params.stateless_reset_token, sizeof params.stateless_reset_token);
    ngtcp2_path path = arrival_path(remote);
    int result = ngtcp2_conn_server_new(&connection->quic, &initial->scid, &source, &path,
                                        initial->version, &server_callbacks, &settings, &params, NULL, connection);
    if (result != 0) ep_fail("ngtcp2_conn_server_new: %s", ngtcp2_strerror(result));
    ngtcp2_conn_set_tls_native_handle(connection->quic, connection->tls);
    route_add(&source, connection);
    route_add(&initial->dcid, connection);
    return connection;
}

void connection_delete(struct connection *connection) {
    ep_connection_closed(connection);
    ngtcp2_conn_del(connection->quic);
    gnutls_deinit(connection->tls);
    if (connection->qlog && fclose(connection->qlog) != 0) ep_fail("a qlog cannot be written");
    free(connection);
}

/* Enters the closing or draining period: three times the PTO (RFC 9000, section 10.2). */
static void end(struct connection *connection, enum life life) {
    connection->life = life;
    connection->ends = endpoint.now + 3 * ngtcp2_conn_get_pto(connection->quic);
    endpoint.had_any = true;
}

/* Notes where a datagram goes that ngtcp2 has written. */
static void note_path(struct connection *connection, const ngtcp2_path *path) {
    memcpy(&connection->remote.socket, path->remote.addr, path->remote.addrlen);
    connection->remote.length = path->remote.addrlen;
    connection->path = ep_path_between(path->local.addr, path->remote.addr);
}

static void send_close(struct connection *connection, const close_error *error) {
    ngtcp2_pkt_info info;
    ngtcp2_path_storage path;
    ngtcp2_path_storage_zero(&path);
    ngtcp2_ssize written = ngtcp2_conn_write_connection_close(connection->quic, &path.path, &info, connection->close,
                                                              sizeof connection->close, error, endpoint.now);
    if (written > 0) note_path(connection, &path.path);
    end(connection, CLOSING);
    connection->close_bytes = written > 0 ? (size_t)written : 0;
    connection->answer = written > 0;
}

void connection_close(struct connection *connection, uint64_t code) {
    close_error error;
    close_error_default(&error);
    close_error_application(&error, code);
    send_close(connection, &error);
}

/* Closes because of what a call of ngtcp2 returned. */
static void break_off(struct connection *connection, int result) {
    close_error error;
    close_error_default(&error);
    if (result == NGTCP2_ERR_CRYPTO) {
        uint8_t alert = ngtcp2_conn_get_tls_alert(connection->quic);
        close_error_alert(&error, alert);
        ep_error("TLS alert %u", alert);
    } else {
        close_error_library(&error, result);
        ep_error("%s", ngtcp2_strerror(result));
    }
    send_close(connection, &error);
}

static void closed_by_peer(struct connection *connection) {
    close_error error;
    close_error_received(connection->quic, &error);
    end(connection, DRAINING);
    bool application = error.type == CLOSED_BY_APPLICATION;
    if (application && error.error_code == 0 && endpoint.job->server) return;
    unsigned long long code = error.error_code;
    ep_error("closed by peer: %s error %llu%s%.*s", application ? "application" : "transport", code,
             error.reasonlen ? ", " : "", (int)error.reasonlen, error.reasonlen ? (const char *)error.reason : "");
}

enum verdict connection_receive(struct connection *connection, const struct ep_address *from, uint8_t ecn,
                                const uint8_t *payload, size_t size) {
    if (connection->life == CLOSING) {
        /* Fewer and fewer answers: the first datagram, the second, the fourth and so on. */
        connection->heard++;
        connection->answer = (connection->heard & (connection->heard - 1)) == 0;
        return KEEP;
    }
    if (connection->life == DRAINING) return KEEP;
    ngtcp2_pkt_info info = {.ecn = ecn};
    ngtcp2_path path = arrival_path(from);
    int result = ngtcp2_conn_read_pkt(connection->quic, &path, &info, payload, size, endpoint.now);
    if (result == NGTCP2_ERR_RETRY) return RETRY;
    if (result == NGTCP2_ERR_DROP_CONN) return FORGET;
    if (result == NGTCP2_ERR_DRAINING) {
        closed_by_peer(connection);
    } else if (result != 0) {
        break_off(connection, result);
    }
    return KEEP;
}

uint64_t connection_expiry(const struct connection *connection) {
    return connection->life == ACTIVE ? ngtcp2_conn_get_expiry(connection->quic) : EP_NEVER;
}

bool connection_migrate(struct connection *connection, size_t number) {
    const struct ep_path *to = &endpoint.job->paths[number];
    ngtcp2_path path = path_between(&to->local, &to->remote);
    return ngtcp2_conn_initiate_immediate_migration(connection->quic, &path, endpoint.now) == 0;
}

void connection_timeout(struct connection *connection) {
    int result = ngtcp2_conn_handle_expiry(connection->quic, endpoint.now);
    if (result == NGTCP2_ERR_IDLE_CLOSE) {
        end(connection, DRAINING);
        ep_error("idle timeout");
    } else if (result == NGTCP2_ERR_HANDSHAKE_TIMEOUT) {
        end(connection, DRAINING);
        ep_error("handshake timeout");
    } else if (result != 0) {
        break_off(connection, result);
    }
}

void stream_queue(struct ep_exchange *stream) {
    struct connection *connection = stream->connection;
    if (stream->queued || stream->finished) return;
    stream->queued = true;
    stream->behind = NULL;
    *(connection->last ? &connection->last->behind : &connection->first) = stream;
    connection->last = stream;
}

/* Takes the stream whose turn it is. */
static struct ep_exchange *dequeue(struct connection *connection) {
    struct ep_exchange *stream = connection->first;
    connection->first = stream->behind;
    if (!connection->first) connection->last = NULL;
    stream->queued = false;
    return stream;
}

void stream_drop(struct ep_exchange *stream) {
    struct connection *connection = stream->connection;
    stream->finished = true;
    if (!stream->queued) return;
    struct ep_exchange *before = NULL, *at = connection->first;
    for (; at != stream; at = at->behind) before = at;
    *(before ? &before->behind : &connection->first) = stream->behind;
    if (connection->last == stream) connection->last = before;
    stream->queued = false;
}

void connection_forget_streams(struct connection *connection) {
    while (connection->first) dequeue(connection);
}

/* `taken` bytes were sent, or with -1 none, not even the end. */
static void sent(struct ep_exchange *stream, ngtcp2_ssize taken) {
    if (taken >= 0) ep_sent(stream, (size_t)taken);
    if (taken >= 0) stream->finished = ep_unsent(stream) == 0;
    stream_queue(stream);
}

/* Writes one datagram: its size, 0 if nothing may be sent now, or an error of ngtcp2. */
static ngtcp2_ssize write_datagram(struct connection *connection, ngtcp2_pkt_info *info, uint8_t *buffer,
                                   size_t size) {
    ngtcp2_path_storage path;
    ngtcp2_path_storage_zero(&path);
    for (;;) {
        bool allowed = connection->first && ngtcp2_conn_get_max_data_left(connection->quic) > 0;
        struct ep_exchange *stream = allowed ? dequeue(connection) : NULL;
        ngtcp2_vec data[2];
        size_t parts = 0;
        uint32_t flags = NGTCP2_WRITE_STREAM_FLAG_MORE;
        if (stream) {
            /* Empty parts are left out, but for one, which carries the end. */
            for (const struct ep_part *part = stream->unsent; part < stream->unsent + 2; part++) {
                if (part->size) data[parts++] = (ngtcp2_vec){(uint8_t *)part->data, part->size};
            }
            if (!parts) data[parts++] = (ngtcp2_vec){NULL, 0};
            flags |= NGTCP2_WRITE_STREAM_FLAG_FIN;
        }
        ngtcp2_ssize taken = -1;
        ngtcp2_ssize written =
            ngtcp2_conn_writev_stream(connection->quic, &path.path, info, buffer, size, &taken, flags,
                                      stream ? stream->id : -1, data, parts, endpoint.now);
        /* A stream that is blocked is queued again when the peer extends its limit. */
        if (written == NGTCP2_ERR_STREAM_DATA_BLOCKED || written == NGTCP2_ERR_STREAM_SHUT_WR ||
            written == NGTCP2_ERR_STREAM_NOT_FOUND) {
            continue;
        }
        if (stream) sent(stream, taken);
        if (written == NGTCP2_ERR_WRITE_MORE) continue;
        if (written > 0) note_path(connection, &path.path);
        return written;
    }
}

void connection_send(struct connection *connection) {
    static uint8_t buffer[EP_LARGEST_PAYLOAD];
    if (connection->life != ACTIVE) {
        if (connection->answer) {
            ep_send_on(connection->path, &connection->remote, 0, connection->close, connection->close_bytes);
        }
        connection->answer = false;
        return;
    }
    size_t size = ngtcp2_conn_get_max_tx_udp_payload_size(connection->quic);
    size_t quantum = ngtcp2_conn_get_send_quantum(connection->quic) / size;
    size_t most = endpoint.options.burst;
    if (!most || most > quantum) most = quantum ? quantum : 1;
    for (size_t count = 0; count < most; count++) {
        ngtcp2_pkt_info info;
        ngtcp2_ssize written = write_datagram(connection, &info, buffer, size);
        if (written < 0) {
            break_off(connection, (int)written);
            connection_send(connection);
            return;
        }
        if (written == 0) break;
        ep_send_on(connection->path, &connection->remote, (uint8_t)info.ecn, buffer, (size_t)written);
    }
    ngtcp2_conn_update_pkt_tx_time(connection->quic, endpoint.now);
}
