#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

/* ngtcp2's library has no defaults for these; they are those of its example programs. */
#define IDLE_TIMEOUT (30 * NGTCP2_SECONDS)
#define MEBIBYTE (UINT64_C(1) << 20)
#define CONNECTION_WINDOW (15 * MEBIBYTE)
#define STREAM_WINDOW (6 * MEBIBYTE)
#define LARGEST_CONNECTION_WINDOW (24 * MEBIBYTE)
#define LARGEST_STREAM_WINDOW (16 * MEBIBYTE)
#define STREAMS 100
#define CONNECTION_IDS 7

/* The times that ngtcp2 logs are relative to the start of the connection, which it does not tell: it writes 0. */
static size_t write_reference_time(const struct connection *connection, const char *data, size_t size) {
    static const char unknown[] = "\"reference_time\":0";
    const char *at = memmem(data, size, unknown, sizeof unknown - 1);
    if (!at) return 0;
    size_t before = (size_t)(at - data) + sizeof unknown - 2;
    fwrite(data, 1, before, connection->qlog);
    fprintf(connection->qlog, "%" PRIu64 ".%06" PRIu64, connection->begun / NGTCP2_MILLISECONDS,
            connection->begun % NGTCP2_MILLISECONDS);
    return before + 1;
}

static void write_qlog(void *context, uint32_t flags, const void *data, size_t size) {
    (void)flags;
    struct connection *connection = context;
    size_t written = ftell(connection->qlog) == 0 ? write_reference_time(connection, data, size) : 0;
    fwrite((const char *)data + written, 1, size - written, connection->qlog);
}

static void open_qlog(struct connection *connection) {
    const char *folder = endpoint.job->qlog, *role = endpoint.job->server ? "server" : "client";
    char *path = ++endpoint.qlog_count == 1 ? ep_format("%s/%s.sqlog", folder, role)
                                            : ep_format("%s/%s-%zu.sqlog", folder, role, endpoint.qlog_count);
    connection->qlog = fopen(path, "w");
    if (!connection->qlog) ep_fail("the qlog %s cannot be written: %s", path, strerror(errno));
    free(path);
}

ngtcp2_settings settings_for(struct connection *connection, const ngtcp2_cid *original) {
    const struct options *options = &endpoint.options;
    ngtcp2_settings settings;
    ngtcp2_settings_default(&settings);
    settings.initial_ts = endpoint.now;
    settings.cc_algo = options->congestion;
    if (!options->window) {
        settings.max_window = LARGEST_CONNECTION_WINDOW;
        settings.max_stream_window = LARGEST_STREAM_WINDOW;
    }
    if (options->udp_payload) {
        settings.max_tx_udp_payload_size = options->udp_payload;
        settings.no_tx_udp_payload_size_shaping = 1;
        settings.no_pmtud = 1;
    }
    if (options->ack_threshold) settings.ack_thresh = options->ack_threshold;
    if (endpoint.job->qlog) {
        open_qlog(connection);
        settings_qlog(&settings, *original);
    }
    return settings;
}

ngtcp2_transport_params params_for_connection(void) {
    uint64_t window = endpoint.options.window;
    ngtcp2_transport_params params;
    ngtcp2_transport_params_default(&params);
    params.initial_max_data = window ? window : CONNECTION_WINDOW;
    params.initial_max_stream_data_bidi_local = window ? window : STREAM_WINDOW;
    params.initial_max_stream_data_bidi_remote = window ? window : STREAM_WINDOW;
    params.initial_max_streams_bidi = endpoint.job->server ? STREAMS : 0;
    params.max_idle_timeout = IDLE_TIMEOUT;
    params.active_connection_id_limit = CONNECTION_IDS;
    return params;
}
