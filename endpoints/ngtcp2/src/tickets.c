#include "tickets.h"

#include <stdlib.h>
#include <string.h>

#include "program.h"
#include "tls.h"

/* The only value that QUIC allows (RFC 9001, section 4.6.1). */
#define LARGEST_EARLY_DATA 0xffffffffu

/* GnuTLS asks this of every ticket with early data; within its window, a ticket that comes again is a replay. */
static int remember(void *context, time_t expires, const gnutls_datum_t *key, const gnutls_datum_t *data) {
    (void)expires, (void)data;
    struct tickets *tickets = context;
    for (size_t i = 0; i < tickets->seen_count; i++) {
        const gnutls_datum_t *seen = &tickets->seen[i];
        if (seen->size == key->size && memcmp(seen->data, key->data, key->size) == 0) return GNUTLS_E_DB_ENTRY_EXISTS;
    }
    tickets->seen = ep_reallocate(tickets->seen, (tickets->seen_count + 1) * sizeof *tickets->seen);
    gnutls_datum_t copy = {ep_allocate(key->size), key->size};
    memcpy(copy.data, key->data, key->size);
    tickets->seen[tickets->seen_count++] = copy;
    return 0;
}

void tickets_init(void) {
    struct tickets *tickets = &endpoint.tickets;
    if (!endpoint.job->server || !endpoint.job->tickets) return;
    tls_check(gnutls_session_ticket_key_generate(&tickets->key), "making a key for tickets");
    tls_check(gnutls_anti_replay_init(&tickets->anti_replay), "preparing for 0-RTT");
    gnutls_anti_replay_set_add_function(tickets->anti_replay, remember);
    gnutls_anti_replay_set_ptr(tickets->anti_replay, tickets);
}

unsigned tickets_flags(enum ep_resume resume) {
    /* QUIC has no EndOfEarlyData (RFC 9001, section 8.3). */
    unsigned early = GNUTLS_ENABLE_EARLY_DATA | GNUTLS_NO_END_OF_EARLY_DATA;
    if (endpoint.job->server) return endpoint.job->tickets ? early | GNUTLS_NO_AUTO_SEND_TICKET : 0;
    return resume == EP_EARLY_DATA ? early : 0;
}

/* A ticket has come to a client. */
static int ticket_came(gnutls_session_t session, unsigned message, unsigned when, unsigned incoming,
                       const gnutls_datum_t *bytes) {
    (void)message, (void)when, (void)incoming, (void)bytes;
    const ngtcp2_crypto_conn_ref *reference = gnutls_session_get_ptr(session);
    struct connection *connection = reference->user_data;
    struct tickets *tickets = &endpoint.tickets;
    gnutls_free(tickets->session.data);
    tls_check(gnutls_session_get_data2(session, &tickets->session), "storing a ticket");
    ngtcp2_ssize size = save_parameters(connection->quic, tickets->parameters, sizeof tickets->parameters);
    if (size < 0) ep_fail("storing transport parameters: %s", ngtcp2_strerror((int)size));
    tickets->parameter_bytes = (size_t)size;
    return 0;
}

void tickets_enable(gnutls_session_t session, enum ep_resume resume) {
    struct tickets *tickets = &endpoint.tickets;
    if (!endpoint.job->tickets) return;
    if (endpoint.job->server) {
        tls_check(gnutls_session_ticket_enable_server(session, &tickets->key), "enabling tickets");
        gnutls_anti_replay_enable(session, tickets->anti_replay);
        tls_check(gnutls_record_set_max_early_data_size(session, LARGEST_EARLY_DATA), "enabling 0-RTT");
        return;
    }
    gnutls_handshake_set_hook_function(session, GNUTLS_HANDSHAKE_NEW_SESSION_TICKET, GNUTLS_HOOK_POST, ticket_came);
    if (resume == EP_AFRESH) return;
    tls_check(gnutls_session_set_data(session, tickets->session.data, tickets->session.size), "offering a ticket");
}

void tickets_allow_early_data(ngtcp2_conn *quic) {
    const struct tickets *tickets = &endpoint.tickets;
    int result = restore_parameters(quic, tickets->parameters, tickets->parameter_bytes);
    if (result != 0) ep_fail("restoring transport parameters: %s", ngtcp2_strerror(result));
}

void tickets_send(gnutls_session_t session) {
    tls_check(gnutls_session_ticket_send(session, 1, 0), "sending a ticket");
}

bool early_data_accepted(gnutls_session_t session) {
    return gnutls_session_get_flags(session) & GNUTLS_SFLAGS_EARLY_DATA;
}
