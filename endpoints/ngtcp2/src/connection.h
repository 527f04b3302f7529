/* A QUIC connection: ngtcp2's, its TLS session, its streams with something to send, and its end.
 *
 * Times are nanoseconds since 1970. */
#ifndef CONNECTION_H
#define CONNECTION_H

#include <gnutls/gnutls.h>
#include <stdio.h>

#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>

#include "endpoint.h"
#include "dialect.h"

/* As ngtcp2's example programs have them. */
#define SERVER_CID_BYTES 18
#define CLIENT_CID_BYTES 17
#define INITIAL_CID_BYTES 18

/* RFC 9000, section 10.2. */
enum life { ACTIVE, CLOSING, DRAINING };

struct connection {
    ngtcp2_conn *quic;
    gnutls_session_t tls;
    ngtcp2_crypto_conn_ref reference;
    struct ep_address remote; /* where the latest datagram went, and over which path of the job */
    size_t path;
    uint64_t begun;
    bool early_data; /* requests are sent in 0-RTT packets */
    FILE *qlog;
    struct ep_exchange *first, *last; /* streams that may have something to send, in turn */
    enum life life;
    uint64_t ends;  /* of the closing or draining period */
    uint64_t heard; /* datagrams that arrived in the closing period */
    bool answer;    /* a CONNECTION_CLOSE is to be sent */
    uint8_t close[1500];
    size_t close_bytes;
};

/* A client's connection. */
struct connection *connection_to_server(enum ep_resume resume);

/* A server's connection for the Initial packet with header `initial`, which came from `remote`; `original` is the
 * destination connection ID of the Initial packet before a Retry, and NULL if there was none. */
struct connection *connection_from(const struct ep_address *remote, const ngtcp2_pkt_hd *initial,
                                   const ngtcp2_cid *original);

void connection_delete(struct connection *connection);

/* The next state of a connection after a datagram. */
enum verdict {
    KEEP,
    FORGET, /* the first packet starts no handshake */
    RETRY,  /* as FORGET, and the client is to be asked for a token */
};

enum verdict connection_receive(struct connection *connection, const struct ep_address *from, uint8_t ecn,
                                const uint8_t *payload, size_t size);

/* When connection_timeout wants to be called. */
uint64_t connection_expiry(const struct connection *connection);
void connection_timeout(struct connection *connection);

/* Sends what congestion control, pacing and flow control allow now. */
void connection_send(struct connection *connection);

/* Migrates to a path of the job at once, and has ngtcp2 validate it meanwhile; false: it cannot yet. */
bool connection_migrate(struct connection *connection, size_t path);

/* Closes with an application error code. Not within a callback of ngtcp2. */
void connection_close(struct connection *connection, uint64_t code);

/* None of its streams has anything to send: the server rejected them all. */
void connection_forget_streams(struct connection *connection);

/* There is something to send on the stream, or its end. */
void stream_queue(struct ep_exchange *stream);
/* The stream sends no more. */
void stream_drop(struct ep_exchange *stream);

#endif
