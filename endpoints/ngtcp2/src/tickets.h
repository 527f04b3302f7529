/* Session tickets and 0-RTT (RFC 8446, sections 2.2, 2.3 and 8): what a server needs to issue and accept them, and what
 * a client remembers of its first connection for the second. */
#ifndef TICKETS_H
#define TICKETS_H

#include <gnutls/gnutls.h>

#include <ngtcp2/ngtcp2.h>

#include "endpoint.h"

struct tickets {
    /* A server's: the key of its tickets, and the early data that it has seen, so that it takes none twice. */
    gnutls_datum_t key;
    gnutls_anti_replay_t anti_replay;
    gnutls_datum_t *seen;
    size_t seen_count;
    /* A client's: the latest ticket, none if it has no size, and the server's transport parameters. */
    gnutls_datum_t session;
    uint8_t parameters[512];
    size_t parameter_bytes;
};

void tickets_init(void);

/* The flags of a new GnuTLS session. */
unsigned tickets_flags(enum ep_resume resume);

/* A server's session accepts tickets; a client's stores those that come, and may offer one. */
void tickets_enable(gnutls_session_t session, enum ep_resume resume);

/* The client may send as much early data as the server's transport parameters allowed last time. */
void tickets_allow_early_data(ngtcp2_conn *quic);

/* Sends the client a ticket. */
void tickets_send(gnutls_session_t session);

bool early_data_accepted(gnutls_session_t session);

#endif
