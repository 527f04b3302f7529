/* The parts of an endpoint program in C or C++ beside its QUIC library: the messages of endpoints/CONTRACT.md, the
 * job, files, virtual time, sockets, entropy, and both sides of hq-interop.
 *
 * A program fills in `struct ep_stack`, the calls that go to its library, and hands it to `ep_main`. The library must
 * be one that owns no socket and is told the time. What it reports goes to the functions at the end of this file. A
 * process is one endpoint: the family keeps its state in static variables, and nothing runs in threads. */
#ifndef ENDPOINT_H
#define ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EP_NEVER UINT64_MAX
/* The largest UDP payload that can arrive. */
#define EP_LARGEST_PAYLOAD 65527
/* The application error code for requests that cannot be answered. */
#define EP_REFUSED 1

/* An IP address and a port. */
struct ep_address {
    struct sockaddr_storage socket;
    socklen_t length;
};

/* The most paths between a client and a server. */
#define EP_MOST_PATHS 4

/* One of several paths: the addresses of both ends on it. */
struct ep_path {
    struct ep_address local, remote;
};

/* How a client's connection begins. */
enum ep_resume {
    EP_AFRESH,
    EP_WITH_TICKET,
    EP_EARLY_DATA, /* with a ticket, and requests in 0-RTT packets */
};

/* The job of the program, from HELLO or from the environment (endpoints/contract/socket-mode.md). Options
 * go to the stack one by one, requests to its `open_stream`. */
struct ep_job {
    bool server;
    bool upload;  /* the client sends the files */
    bool tickets; /* the server issues session tickets, accepts 0-RTT, and the client comes twice */
    bool virtual_time;
    struct ep_address local, remote; /* in socket mode a server does not know the other side */
    struct ep_path paths[EP_MOST_PATHS]; /* where there are several (endpoints/contract/paths.md), by number; the first
                                            has the addresses above */
    size_t path_count;                   /* 0: there is one, and nothing is known of its number */
    bool migrates;                       /* a client is to migrate from the first to the second: it has one at a time */
    const char *certs;               /* a folder with cert.pem and priv.key */
    const char *www, *downloads;     /* folders; NULL where the role has none */
    const char *keylog;              /* a file for TLS secrets; NULL: none are wanted */
    const char *qlog;                /* a folder; NULL: none is wanted */
};

/* Bytes that are to be sent. They stay valid until the stream is closed. */
struct ep_part {
    const uint8_t *data;
    size_t size;
};

/* A request of a client's, or its answer at the server: a bidirectional stream. */
struct ep_exchange {
    /* The part to be sent next, before further ones, and then FIN. `ep_sent` moves it on. */
    struct ep_part unsent[2];
    /* The rest is the stack's own, zero at first: which stream it is, and a queue of streams with something to send. */
    void *connection;
    int64_t id;
    bool finished, queued;
    struct ep_exchange *behind;
};

/* The callbacks of a stack. Times are in ticks of its library's clock since 1970; those before `now` mean now. */
struct ep_stack {
    const char *name;   /* as in stack.toml */
    const char *driver; /* how it batches arrivals and polls, for READY */
    uint64_t tick;      /* nanoseconds of a tick: 1, or 1000 where the library counts microseconds */
    const char *(*version)(void);

    /* The options that it has, for messages: "cc, window"; NULL if there are none. */
    const char *options;
    /* Takes an option, or calls `ep_unsupported`; false if it has none of that name. */
    bool (*option)(const char *name, const char *value);

    /* Sets the library up, after the options, before anything is sent. `job` stays. */
    void (*init)(const struct ep_job *job, uint64_t now);
    /* A client opens a connection to the job's `remote`. NULL: the client's role is not supported. */
    void (*connect)(enum ep_resume how, uint64_t now);
    /* A datagram arrives. Its bytes may be written to. */
    void (*receive)(const struct ep_address *from, uint8_t ecn, uint8_t *payload, size_t size, uint64_t now);
    /* When `on_timer`, or without one `poll_send`, wants to be called if nothing arrives; EP_NEVER: not at all. */
    uint64_t (*next_timer)(uint64_t now);
    /* Handles the timers that are due; whether there were any. They are then left alone for a microsecond, so that
     * time goes on. NULL: `poll_send` does it. */
    bool (*on_timer)(uint64_t now);
    /* Sends what the library has to send now, each datagram by `ep_send`. */
    void (*poll_send)(uint64_t now);

    /* A client opens a stream on its latest connection for what `exchange` sends; false if it has to wait. */
    bool (*open_stream)(struct ep_exchange *exchange);
    /* A server sends what the exchange has, and FIN. NULL: the server's role is not supported. */
    void (*answer)(struct ep_exchange *exchange);
    /* A server resets the stream with EP_REFUSED, and wants no more of it. */
    void (*refuse)(struct ep_exchange *exchange);
    /* The handshake of a client's latest connection is complete, and nobody closes it yet. */
    bool (*is_open)(void);
    /* A client has a ticket. NULL: `resumption` and `zerortt` are not supported. */
    bool (*has_ticket)(void);
    /* A client closes its latest connection, which is open, with code 0. */
    void (*close)(uint64_t now);
    /* A client's latest connection was closed and CONNECTION_CLOSE sent, or it is lost; of a server all were, and there
     * was one. */
    bool (*is_done)(void);
    /* Whether it takes the further paths of the job, after `init`: it sends by `ep_send_on`. NULL: no stack here does. */
    bool (*knows_paths)(void);
    /* A client's latest connection, which is open, migrates to a path of the job (RFC 9000, section 9); false if it
     * cannot yet, and is asked again. NULL: the option `migrate`, which the family takes, is not supported. */
    bool (*migrate)(size_t path, uint64_t now);
    /* Completes logs; nothing else is called any more. */
    void (*finish)(void);
};

/* Runs the program: socket mode without arguments, virtual time with --virtual-time. Returns its exit code. */
int ep_main(int count, char **arguments, const struct ep_stack *stack);

/* ---- How it ends early, in words on standard error ---- */

/* Exit code 127: an option or its value is not supported. Not after `init`. */
__attribute__((noreturn, format(printf, 1, 2))) void ep_unsupported(const char *format, ...);
/* Exit code 1: anything else. */
__attribute__((noreturn, format(printf, 1, 2))) void ep_fail(const char *format, ...);
/* The value of an option, a whole number from `least` to `most`; else `ep_unsupported`. */
uint64_t ep_count(const char *name, const char *value, uint64_t least, uint64_t most);

/* As malloc and realloc, zeroed when new; fail when there is no memory. */
void *ep_allocate(size_t size);
void *ep_reallocate(void *memory, size_t size);
/* A new string, as printf makes it. */
__attribute__((format(printf, 1, 2))) char *ep_format(const char *format, ...);

/* ---- Entropy and time ---- */

/* Random bytes: from the seed of HELLO, in socket mode from the kernel. In virtual time getrandom gives the same, and
 * clock_gettime and time give virtual time, to all libraries of the process. */
void ep_random(void *buffer, size_t size);

/* ---- TLS secrets, where the library does not write them itself ---- */

/* Makes the file; false if no secrets are wanted. */
bool ep_wants_secrets(void);
/* A line of it. `label` is one of NSS, such as CLIENT_TRAFFIC_SECRET_0. */
void ep_secret(const char *label, const uint8_t *client_random, size_t random_size, const uint8_t *secret,
               size_t size);

/* ---- Reports of the stack; from `receive` on, at any time ---- */

/* A datagram departs; only from within `poll_send`. The length of the address is not needed. */
void ep_send(const struct ep_address *to, uint8_t ecn, const uint8_t *payload, size_t size);

/* The same over one of the job's paths, by number. */
void ep_send_on(size_t path, const struct ep_address *to, uint8_t ecn, const uint8_t *payload, size_t size);
/* The number of the path over which the datagram came that `receive` has. */
size_t ep_arrival_path(void);
/* The number of the job's path between these addresses, whose ports do not count; the first if it is none of them, or
 * they are not known yet. */
size_t ep_path_between(const struct sockaddr *local, const struct sockaddr *remote);

/* The handshake of a connection is complete. */
void ep_handshake_complete(void);
/* A client may open streams: the family asks for what it has not asked for yet, by `open_stream`. */
void ep_ask(void);
/* The server rejected the early data, and all streams of the client's latest connection are gone: the next `ep_ask`
 * begins again. */
void ep_early_data_rejected(void);
/* Why a connection ended early, for BYE; the first one counts. "idle timeout" is said in exactly these words. */
__attribute__((format(printf, 1, 2))) void ep_error(const char *format, ...);

/* A client opened a stream of `connection` at the server. */
struct ep_exchange *ep_accept(void *connection, int64_t id);
/* The next bytes of a stream have arrived, or its end. */
void ep_received(struct ep_exchange *exchange, const uint8_t *data, size_t size, bool end);
/* The peer reset the stream. */
void ep_reset(struct ep_exchange *exchange, uint64_t code);
/* The stream has no further events. A server's exchange is gone after it, a client's is not. */
void ep_stream_closed(struct ep_exchange *exchange);
/* No stream of the connection has further events. */
void ep_connection_closed(const void *connection);

/* The number of bytes of the exchange that are still to be sent. */
size_t ep_unsent(const struct ep_exchange *exchange);
/* The library took this number of them. */
void ep_sent(struct ep_exchange *exchange, size_t size);
/* Copies this number of them to the library's buffer, which takes them. */
void ep_take(struct ep_exchange *exchange, void *buffer, size_t size);

#ifdef __cplusplus
}
#endif

#endif
