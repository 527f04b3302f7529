/* GnuTLS: one certificate, one set of credentials for all connections, and the log of secrets. */
#ifndef TLS_H
#define TLS_H

#include <gnutls/gnutls.h>
#include <ngtcp2/ngtcp2_crypto.h>

/* Reads a server's certificate. */
gnutls_certificate_credentials_t tls_credentials(void);

/* A session for one connection, which `reference` finds. `reference` must outlive it. `flags` are GnuTLS'. */
gnutls_session_t tls_session(ngtcp2_crypto_conn_ref *reference, unsigned flags);

/* Fails, saying what GnuTLS could not do, if `result` is an error. */
void tls_check(int result, const char *what);

#endif
