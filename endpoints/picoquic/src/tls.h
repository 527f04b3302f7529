/* The settings of a picoquic context's TLS in a trial. */
#ifndef TLS_H
#define TLS_H

#include "picoquic.h"

#ifdef __cplusplus
extern "C" {
#endif

/* From now on OpenSSL, and with it picotls and picoquic, draws from `ep_random`. Before the context is made. */
void tls_seed(void);

/* The context takes every certificate, of Ed25519 too, and needs no clock for that. */
void tls_trust_all(picoquic_quic_t *quic);

#ifdef __cplusplus
}
#endif

#endif
