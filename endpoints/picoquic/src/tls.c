/* OpenSSL 3 calls a RAND_METHOD deprecated; a provider in its place would be ten times as long. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "tls.h"

#include <openssl/rand.h>

#include "endpoint.h"
#include "picotls.h"

/* picoquic asks OpenSSL for the seeds of its own generators, and picotls for everything: one method serves all. */
static int draw(unsigned char *buffer, int size) {
    ep_random(buffer, (size_t)size);
    return 1;
}

static int take_seed(const void *bytes, int size) {
    (void)bytes, (void)size;
    return 1;
}

static int take_more(const void *bytes, int size, double entropy) {
    (void)bytes, (void)size, (void)entropy;
    return 1;
}

static int is_seeded(void) {
    return 1;
}

void tls_seed(void) {
    static const RAND_METHOD method = {take_seed, draw, NULL, take_more, draw, is_seeded};
    RAND_set_rand_method(&method);
}

static int take_signature(void *data, uint16_t algorithm, ptls_iovec_t signed_bytes, ptls_iovec_t signature) {
    (void)data, (void)algorithm, (void)signed_bytes, (void)signature;
    return 0;
}

static int take_certificate(ptls_verify_certificate_t *self, ptls_t *tls, const char *name,
                            int (**verify)(void *, uint16_t, ptls_iovec_t, ptls_iovec_t), void **data,
                            ptls_iovec_t *certificates, size_t count) {
    (void)self, (void)tls, (void)name, (void)certificates, (void)count;
    *verify = take_signature;
    *data = NULL;
    return 0;
}

static void keep(ptls_verify_certificate_t *verifier) {
    (void)verifier;
}

/* picotls offers Ed25519 if a verifier asks for it. */
void tls_trust_all(picoquic_quic_t *quic) {
    static const uint16_t signatures[] = {PTLS_SIGNATURE_ED25519, PTLS_SIGNATURE_ECDSA_SECP256R1_SHA256,
                                          PTLS_SIGNATURE_RSA_PSS_RSAE_SHA256, UINT16_MAX};
    static ptls_verify_certificate_t verifier = {take_certificate, signatures};
    picoquic_set_verify_certificate_callback(quic, &verifier, keep);
}
