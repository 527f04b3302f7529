/* Common names for ngtcp2 0.12 (Debian 12, Ubuntu 24.04) and ngtcp2 1.x (Debian 13). */
#ifndef DIALECT_H
#define DIALECT_H

#include <ngtcp2/ngtcp2.h>

#if NGTCP2_VERSION_NUM >= 0x010000

typedef ngtcp2_ccerr close_error;
#define CLOSED_BY_APPLICATION NGTCP2_CCERR_TYPE_APPLICATION
#define close_error_default ngtcp2_ccerr_default
#define close_error_application(error, code) ngtcp2_ccerr_set_application_error((error), (code), NULL, 0)
#define close_error_library(error, code) ngtcp2_ccerr_set_liberr((error), (code), NULL, 0)
#define close_error_alert(error, alert) ngtcp2_ccerr_set_tls_alert((error), (alert), NULL, 0)
#define close_error_received(conn, error) (*(error) = *ngtcp2_conn_get_ccerr(conn))
#define shutdown_stream(conn, id, code) ngtcp2_conn_shutdown_stream((conn), 0, (id), (code))
#define settings_qlog(settings, cid) ((settings)->qlog_write = write_qlog, (void)(cid))
#define params_original_dcid(params, cid) ((params)->original_dcid = (cid), (params)->original_dcid_present = 1)
#define token_of(header) ((ngtcp2_vec){(uint8_t *)(header)->token, (header)->tokenlen})
#define settings_token(settings, vector) ((settings)->token = (vector).base, (settings)->tokenlen = (vector).len)
#define early_data_rejected ngtcp2_conn_tls_early_data_rejected
#define save_parameters ngtcp2_conn_encode_0rtt_transport_params
#define restore_parameters ngtcp2_conn_decode_and_set_0rtt_transport_params

#else

typedef ngtcp2_connection_close_error close_error;
#define CLOSED_BY_APPLICATION NGTCP2_CONNECTION_CLOSE_ERROR_CODE_TYPE_APPLICATION
#define close_error_default ngtcp2_connection_close_error_default
#define close_error_application(error, code)                                                                         \
    ngtcp2_connection_close_error_set_application_error((error), (code), NULL, 0)
#define close_error_library(error, code)                                                                             \
    ngtcp2_connection_close_error_set_transport_error_liberr((error), (code), NULL, 0)
#define close_error_alert(error, alert)                                                                              \
    ngtcp2_connection_close_error_set_transport_error_tls_alert((error), (alert), NULL, 0)
#define close_error_received ngtcp2_conn_get_connection_close_error
#define shutdown_stream ngtcp2_conn_shutdown_stream
#define settings_qlog(settings, cid) ((settings)->qlog.write = write_qlog, (settings)->qlog.odcid = (cid))
#define params_original_dcid(params, cid) ((params)->original_dcid = (cid))
#define token_of(header) ((header)->token)
#define settings_token(settings, vector) ((settings)->token = (vector))
#define early_data_rejected ngtcp2_conn_early_data_rejected

/* The server's transport parameters that a client remembers, beside a ticket. */
static inline ngtcp2_ssize save_parameters(ngtcp2_conn *conn, uint8_t *bytes, size_t size) {
    return ngtcp2_encode_transport_params(bytes, size, NGTCP2_TRANSPORT_PARAMS_TYPE_ENCRYPTED_EXTENSIONS,
                                          ngtcp2_conn_get_remote_transport_params(conn));
}

static inline int restore_parameters(ngtcp2_conn *conn, const uint8_t *bytes, size_t size) {
    ngtcp2_transport_params params;
    int result =
        ngtcp2_decode_transport_params(&params, NGTCP2_TRANSPORT_PARAMS_TYPE_ENCRYPTED_EXTENSIONS, bytes, size);
    if (result == 0) ngtcp2_conn_set_early_remote_transport_params(conn, &params);
    return result;
}

#endif

#endif
