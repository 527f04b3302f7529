/* An endpoint: its connections, the connection IDs that lead to them, and the application on top of them.
 *
 * It owns no socket and reads no clock; the drivers (virtual_time.c, sockets.c) call it. */
#ifndef ENDPOINT_H
#define ENDPOINT_H

#include <jansson.h>

#include "connection.h"
#include "setup.h"

/* What either side of hq-interop does with the events of a connection. From `streams_allowed` to `stream_closed`, all
 * are called from within ngtcp2, but for `sent`. `stream` is NULL for a stream that the application did not start to use
 * yet. */
struct application {
    /* Checks what it is asked for, before the first packet. */
    void (*init)(struct endpoint *endpoint);
    /* Connects, if it is a client. */
    void (*start)(struct endpoint *endpoint);
    /* The handshake is complete, or the peer allows more streams. */
    void (*streams_allowed)(struct endpoint *endpoint, struct connection *connection);
    void (*received)(struct endpoint *endpoint, struct connection *connection, struct stream *stream, int64_t id,
                     const uint8_t *data, size_t size, bool end);
    /* ngtcp2 took bytes of the stream, or its end. */
    void (*sent)(struct endpoint *endpoint, struct stream *stream);
    /* The server rejected the early data; all streams are gone. */
    void (*rejected)(struct endpoint *endpoint, struct connection *connection);
    /* The peer reset the stream. */
    void (*reset)(struct endpoint *endpoint, struct stream *stream, uint64_t code);
    /* Nothing more will be heard of the stream. */
    void (*stream_closed)(struct endpoint *endpoint, struct stream *stream);
    /* Nothing more will be heard of any stream of the connection. */
    void (*connection_deleted)(struct endpoint *endpoint, const struct connection *connection);
    /* May close connections; called after events, outside of ngtcp2. */
    void (*act)(struct endpoint *endpoint);
    bool (*is_done)(const struct endpoint *endpoint);
    /* Completes files. */
    void (*finish)(struct endpoint *endpoint);
    /* BYE's array `requests`, which is the caller's. */
    json_t *(*report)(const struct endpoint *endpoint);
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
    struct address remote;
};

struct endpoint {
    struct setup setup;
    const struct application *application;
    void *requests; /* a client's or a server's, see client.c and server.c */
    gnutls_certificate_credentials_t credentials;
    struct tickets tickets;
    struct connection **connections;
    size_t connection_count;
    size_t qlog_count;
    struct route *routes;
    size_t route_count;
    struct retry retry;
    uint64_t now;
    uint64_t handshake_at; /* of the first connection; NEVER: not yet */
    bool had_any;          /* a connection came to an end */
    char *error;           /* why the first connection that failed did; NULL: none did */
};

extern const struct application client, server;

void endpoint_init(struct endpoint *endpoint, struct setup setup);
/* Lets a client connect. */
void endpoint_start(struct endpoint *endpoint, uint64_t now);
/* Starts a client's next connection. */
struct connection *endpoint_connect(struct endpoint *endpoint, enum resume resume);
void endpoint_receive(struct endpoint *endpoint, uint64_t now, const struct address *remote, uint8_t ecn,
                      const uint8_t *payload, size_t size);
uint64_t endpoint_expiry(const struct endpoint *endpoint);
/* Handles the timers that are due; whether there were any. */
bool endpoint_timeout(struct endpoint *endpoint, uint64_t now);
void endpoint_send(struct endpoint *endpoint, uint64_t now, const struct sink *sink);
/* Completes the files. */
void endpoint_finish(struct endpoint *endpoint);

/* Keeps the first reason, and frees the others. */
void endpoint_error(struct endpoint *endpoint, char *words);

void route_add(struct endpoint *endpoint, const ngtcp2_cid *cid, struct connection *connection);
void route_remove(struct endpoint *endpoint, const ngtcp2_cid *cid);

/* Nanoseconds of the trial for BYE; null for what never was. */
json_t *trial_time(const struct endpoint *endpoint, uint64_t time);

#endif
