/* A QUIC connection: ngtcp2's, its TLS session, its streams with something to send, and its end.
 *
 * Times are nanoseconds since 1970. */
#ifndef CONNECTION_H
#define CONNECTION_H

#include <gnutls/gnutls.h>
#include <stdbool.h>
#include <stdint.h>

#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>

#include "dialect.h"
#include "setup.h"
#include "tickets.h"

#define NEVER UINT64_MAX
/* The application error code for requests that cannot be answered. */
#define REFUSED 1
/* As ngtcp2's example programs have them. */
#define SERVER_CID_BYTES 18
#define CLIENT_CID_BYTES 17
#define INITIAL_CID_BYTES 18
#define LARGEST_PAYLOAD 65527

struct connection;
struct endpoint;

/* A bidirectional stream as the application knows it; ngtcp2 hands it back with each event. */
struct stream {
    int64_t id;
    struct connection *connection;
    ngtcp2_vec unsent[2]; /* one after the other; stay valid until the stream is closed: ngtcp2 sends again from them */
    bool finished;        /* the end was sent, or no more is to be sent */
    bool queued;
    struct stream *next;
};

/* What a datagram is handed to when it departs. */
struct sink {
    void (*depart)(void *context, const struct address *to, uint8_t ecn, const uint8_t *payload, size_t size);
    void *context;
};

/* RFC 9000, section 10.2. */
enum life { ACTIVE, CLOSING, DRAINING };

struct connection {
    struct endpoint *endpoint;
    ngtcp2_conn *quic;
    gnutls_session_t tls;
    ngtcp2_crypto_conn_ref reference;
    struct address local, remote;
    ngtcp2_path path;
    uint64_t begun;
    bool early_data; /* requests are sent in 0-RTT packets */
    FILE *qlog;
    struct stream *first, *last; /* streams that may have something to send, in turn */
    enum life life;
    uint64_t ends;  /* of the closing or draining period */
    uint64_t heard; /* datagrams that arrived in the closing period */
    bool answer;    /* a CONNECTION_CLOSE is to be sent */
    uint8_t close[1500];
    size_t close_bytes;
};

/* A client's connection to `remote`. */
struct connection *connection_to(struct endpoint *endpoint, const struct address *remote, enum resume resume,
                                 uint64_t now);

/* A server's connection for the Initial packet with header `initial`, which came from `remote`; `original` is the
 * destination connection ID of the Initial packet before a Retry, and NULL if there was none. */
struct connection *connection_from(struct endpoint *endpoint, const struct address *remote,
                                   const ngtcp2_pkt_hd *initial, const ngtcp2_cid *original, uint64_t now);

void connection_delete(struct connection *connection);

/* What is to become of a connection after a datagram. */
enum verdict {
    KEEP,
    FORGET, /* the first packet starts no handshake */
    RETRY,  /* as FORGET, and the client is to be asked for a token */
};

enum verdict connection_receive(struct connection *connection, uint64_t now, uint8_t ecn, const uint8_t *payload,
                                size_t size);

/* When connection_timeout wants to be called. */
uint64_t connection_expiry(const struct connection *connection);
void connection_timeout(struct connection *connection, uint64_t now);

/* Sends what congestion control, pacing and flow control allow now. */
void connection_send(struct connection *connection, uint64_t now, const struct sink *sink);

/* Closes with an application error code. Not within a callback of ngtcp2. */
void connection_close(struct connection *connection, uint64_t now, uint64_t code);

/* None of its streams has anything to send: the server rejected them all. */
void connection_forget_streams(struct connection *connection);

/* There is something to send on the stream, or its end. */
void stream_queue(struct stream *stream);
/* The stream sends no more. */
void stream_drop(struct stream *stream);
/* The bytes that ngtcp2 has not taken yet. */
size_t stream_unsent(const struct stream *stream);

#endif
