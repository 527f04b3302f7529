#include "tls.h"

#include <stdlib.h>

#include <ngtcp2/ngtcp2_crypto_gnutls.h>

#include "program.h"

/* One group, so that there is one key share of one length. */
#define PRIORITIES                                                                                                   \
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM:+CHACHA20-POLY1305:"                      \
    "-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:%DISABLE_TLS13_COMPAT_MODE"

void tls_check(int result, const char *what) {
    if (result < 0) ep_fail("%s: %s", what, gnutls_strerror(result));
}

static int log_secret(gnutls_session_t session, const char *label, const gnutls_datum_t *secret) {
    gnutls_datum_t client_random, server_random;
    gnutls_session_get_random(session, &client_random, &server_random);
    ep_secret(label, client_random.data, client_random.size, secret->data, secret->size);
    return 0;
}

gnutls_certificate_credentials_t tls_credentials(void) {
    gnutls_certificate_credentials_t credentials;
    tls_check(gnutls_certificate_allocate_credentials(&credentials), "making TLS credentials");
    if (endpoint.job->server) {
        char *certificate = ep_format("%s/cert.pem", endpoint.job->certs);
        char *key = ep_format("%s/priv.key", endpoint.job->certs);
        int result = gnutls_certificate_set_x509_key_file(credentials, certificate, key, GNUTLS_X509_FMT_PEM);
        if (result < 0) ep_fail("reading %s and %s: %s", certificate, key, gnutls_strerror(result));
        free(certificate);
        free(key);
    }
    return credentials;
}

gnutls_session_t tls_session(ngtcp2_crypto_conn_ref *reference, unsigned flags) {
    static const char server_name[] = "server", protocol[] = "hq-interop";
    gnutls_session_t session;
    tls_check(gnutls_init(&session, (endpoint.job->server ? GNUTLS_SERVER : GNUTLS_CLIENT) | flags), "making a TLS session");
    tls_check(gnutls_priority_set_direct(session, PRIORITIES, NULL), "choosing TLS algorithms");
    int configured = endpoint.job->server ? ngtcp2_crypto_gnutls_configure_server_session(session)
                                   : ngtcp2_crypto_gnutls_configure_client_session(session);
    if (configured != 0) ep_fail("GnuTLS cannot be made ready for QUIC");
    gnutls_session_set_ptr(session, reference);
    tls_check(gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, endpoint.credentials), "setting TLS credentials");
    gnutls_datum_t alpn = {(unsigned char *)protocol, sizeof protocol - 1};
    tls_check(gnutls_alpn_set_protocols(session, &alpn, 1, GNUTLS_ALPN_MANDATORY), "setting ALPN");
    if (!endpoint.job->server) {
        tls_check(gnutls_server_name_set(session, GNUTLS_NAME_DNS, server_name, sizeof server_name - 1), "setting SNI");
    }
    if (ep_wants_secrets()) gnutls_session_set_keylog_function(session, log_secret);
    return session;
}
