/* The endpoint: its options, its connections, and the connection IDs that lead to them. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "connection.h"
#include "tickets.h"

/* The variant's options; 0 leaves a number to the library. */
struct options {
    ngtcp2_cc_algo congestion;
    uint64_t window;      /* bytes, of connection and streams */
    size_t udp_payload;   /* bytes: the largest that is sent */
    size_t burst;         /* datagrams that are sent at once, before pacing has a say */
    size_t ack_threshold; /* ack-eliciting packets until an ACK is sent at once */
};

struct route {
    ngtcp2_cid cid;
    struct connection *connection;
};

/* A Retry packet that waits to be sent, if it has a size, and the key of its token. */
struct retry {
    uint8_t secret[32];
    uint8_t packet[512];
    size_t size;
    struct ep_address remote;
};

extern struct endpoint {
    const struct ep_job *job;
    struct options options;
    gnutls_certificate_credentials_t credentials;
    struct tickets tickets;
    struct connection **connections;
    size_t connection_count;
    size_t qlog_count;
    struct route *routes;
    size_t route_count;
    struct retry retry;
    uint64_t now;
    struct connection *latest; /* a client's; NULL: there is none yet, or it is gone */
    bool is_lost;              /* it is gone */
    bool had_any;              /* a connection came to an end */
} endpoint;

void route_add(const ngtcp2_cid *cid, struct connection *connection);
void route_remove(const ngtcp2_cid *cid);

/* settings.c: what ngtcp2 is told of a connection before it begins. */

/* `original` is the destination connection ID of the client's first Initial packet. Opens the qlog. */
ngtcp2_settings settings_for(struct connection *connection, const ngtcp2_cid *original);
ngtcp2_transport_params params_for_connection(void);

/* callbacks.c: what ngtcp2 reports. TLS and packet protection go to its own GnuTLS helper, streams to the family. */
extern const ngtcp2_callbacks client_callbacks, server_callbacks;

#endif
