/* What a trial asks of the program, from HELLO (endpoints/CONTRACT.md) or from the environment
 * (endpoints/contract/socket-mode.md). */
#ifndef SETUP_H
#define SETUP_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include <ngtcp2/ngtcp2.h>

/* An IP address and a port. */
struct address {
    struct sockaddr_storage socket;
    socklen_t length;
};

/* The variant's options; 0 leaves a number to the stack. */
struct options {
    ngtcp2_cc_algo congestion;
    uint64_t window;      /* bytes, of connection and streams */
    size_t udp_payload;   /* bytes: the largest that is sent */
    size_t burst;         /* datagrams that are sent at once, before pacing has a say */
    size_t ack_threshold; /* ack-eliciting packets until an ACK is sent at once */
};

/* How a connection begins. */
enum resume {
    AFRESH,
    WITH_TICKET,
    EARLY_DATA, /* with a ticket and 0-RTT packets */
};

struct setup {
    bool server;
    bool upload;        /* the client sends the files */
    bool tickets;       /* the server issues session tickets, and the client takes them */
    enum resume second; /* how a client's second connection begins; AFRESH: there is none */
    const char **requests; /* a client's URLs; ends with NULL */
    size_t request_count;
    struct options options;
    struct address local, remote; /* in socket mode a server does not know the other side, nor a client its own */
    const char *www, *downloads, *certs;
    FILE *keylog;       /* NULL: none is written */
    const char *qlog;   /* a folder; NULL: none is written */
    uint64_t zero_time; /* of the trial, in nanoseconds since 1970, as all times that ngtcp2 is told */
};

struct setup setup_from_hello(const char *hello, size_t size);
struct setup setup_from_environment(void);

/* Reads an IP address and a port, such as 127.0.0.1:4433. `field` names where it comes from. */
struct address parse_address(const char *text, const char *field);

#endif
