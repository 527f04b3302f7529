#include "retry.h"

#include "program.h"

#define TOKEN_LIFETIME (10 * NGTCP2_SECONDS)

void retry_ask(const struct ep_address *remote, const ngtcp2_pkt_hd *initial) {
    struct retry *retry = &endpoint.retry;
    uint8_t token[NGTCP2_CRYPTO_MAX_RETRY_TOKENLEN];
    ngtcp2_cid source = {.datalen = SERVER_CID_BYTES};
    ep_random(source.data, source.datalen);
    ngtcp2_ssize token_bytes = ngtcp2_crypto_generate_retry_token(
        token, retry->secret, sizeof retry->secret, initial->version, (const struct sockaddr *)&remote->socket,
        remote->length, &source, &initial->dcid, endpoint.now);
    if (token_bytes < 0) ep_fail("no token can be made for Retry");
    ngtcp2_ssize size = ngtcp2_crypto_write_retry(retry->packet, sizeof retry->packet, initial->version, &initial->scid,
                                                  &source, &initial->dcid, token, (size_t)token_bytes);
    if (size < 0) ep_fail("no Retry can be written: %s", ngtcp2_strerror((int)size));
    retry->size = (size_t)size;
    retry->remote = *remote;
}

bool retry_answered(const struct ep_address *remote, const ngtcp2_pkt_hd *initial,
                    ngtcp2_cid *original) {
    ngtcp2_vec token = token_of(initial);
    return token.len > 0 && token.base[0] == NGTCP2_CRYPTO_TOKEN_MAGIC_RETRY &&
           ngtcp2_crypto_verify_retry_token(original, token.base, token.len, endpoint.retry.secret,
                                            sizeof endpoint.retry.secret, initial->version,
                                            (const struct sockaddr *)&remote->socket, remote->length, &initial->dcid,
                                            TOKEN_LIFETIME, endpoint.now) == 0;
}
