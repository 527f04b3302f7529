#define _GNU_SOURCE
#include "sockets.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

#include "determinism.h"
#include "endpoint.h"
#include "fail.h"

#define NANOSECONDS 1000000000u
/* Datagrams that are read before anything is sent. */
#define BATCH 64
#define ECN_BITS 3

struct sockets {
    struct endpoint endpoint;
    int udp, termination;
    int family;
};

static void set_option(int udp, int level, int name, int value, const char *what) {
    if (setsockopt(udp, level, name, &value, sizeof value) != 0) fail("setting %s: %s", what, strerror(errno));
}

/* ECN bits of what arrives are wanted, and datagrams must not be fragmented: ngtcp2 probes for the MTU. */
static void set_options(const struct sockets *sockets) {
    if (sockets->family == AF_INET6) {
        set_option(sockets->udp, IPPROTO_IPV6, IPV6_RECVTCLASS, 1, "IPV6_RECVTCLASS");
        set_option(sockets->udp, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE, "IPV6_MTU_DISCOVER");
    } else {
        set_option(sockets->udp, IPPROTO_IP, IP_RECVTOS, 1, "IP_RECVTOS");
        set_option(sockets->udp, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE, "IP_MTU_DISCOVER");
    }
}

static void open_socket(struct sockets *sockets, struct setup *setup) {
    if (!setup->server) setup->local = parse_address(sockets->family == AF_INET6 ? "[::]:0" : "0.0.0.0:0", "local");
    struct address *local = &setup->local;
    sockets->udp = socket(sockets->family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (sockets->udp < 0) fail("making a socket: %s", strerror(errno));
    set_options(sockets);
    if (bind(sockets->udp, (struct sockaddr *)&local->socket, local->length) != 0) {
        fail("binding the socket: %s", strerror(errno));
    }
    getsockname(sockets->udp, (struct sockaddr *)&local->socket, &local->length);
}

static void catch_termination(struct sockets *sockets) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    sockets->termination = signalfd(-1, &signals, SFD_CLOEXEC);
    if (sockets->termination < 0) fail("waiting for SIGTERM: %s", strerror(errno));
}

static void depart(void *context, const struct address *to, uint8_t ecn, const uint8_t *payload, size_t size) {
    const struct sockets *sockets = context;
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec data = {(void *)payload, size};
    struct msghdr message = {
        .msg_name = (void *)&to->socket,
        .msg_namelen = to->length,
        .msg_iov = &data,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof control,
    };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    bool ipv6 = sockets->family == AF_INET6;
    header->cmsg_level = ipv6 ? IPPROTO_IPV6 : IPPROTO_IP;
    header->cmsg_type = ipv6 ? IPV6_TCLASS : IP_TOS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    int bits = ecn;
    memcpy(CMSG_DATA(header), &bits, sizeof bits);
    /* A datagram that the kernel does not take is lost: a probe for a larger MTU, for example. */
    while (sendmsg(sockets->udp, &message, 0) < 0 && errno == EINTR) continue;
}

static uint8_t ecn_of(struct msghdr *message) {
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
        bool ipv4 = header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_TOS;
        bool ipv6 = header->cmsg_level == IPPROTO_IPV6 && header->cmsg_type == IPV6_TCLASS;
        /* Linux gives IPv4's as one byte, IPv6's as an int in the machine's order. */
        int bits = 0;
        if (ipv4) bits = *(uint8_t *)CMSG_DATA(header);
        if (ipv6) memcpy(&bits, CMSG_DATA(header), sizeof bits);
        if (ipv4 || ipv6) return (uint8_t)(bits & ECN_BITS);
    }
    return 0;
}

static void receive(struct sockets *sockets) {
    static uint8_t buffer[LARGEST_PAYLOAD];
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    for (int count = 0; count < BATCH; count++) {
        struct address from;
        struct iovec data = {buffer, sizeof buffer};
        struct msghdr message = {
            .msg_name = &from.socket,
            .msg_namelen = sizeof from.socket,
            .msg_iov = &data,
            .msg_iovlen = 1,
            .msg_control = control,
            .msg_controllen = sizeof control,
        };
        ssize_t size = recvmsg(sockets->udp, &message, MSG_DONTWAIT);
        if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (size < 0) fail("receiving: %s", strerror(errno));
        from.length = message.msg_namelen;
        endpoint_receive(&sockets->endpoint, read_clock(), &from, ecn_of(&message), buffer, (size_t)size);
    }
}

/* Sleeps until a datagram, a timer or SIGTERM, and reads datagrams; false at SIGTERM. */
static bool wait(struct sockets *sockets) {
    uint64_t expiry = endpoint_expiry(&sockets->endpoint), now = read_clock();
    uint64_t left = expiry > now ? expiry - now : 0;
    struct timespec timeout = {(time_t)(left / NANOSECONDS), (long)(left % NANOSECONDS)};
    struct pollfd wanted[] = {{.fd = sockets->udp, .events = POLLIN}, {.fd = sockets->termination, .events = POLLIN}};
    if (ppoll(wanted, 2, expiry == NEVER ? NULL : &timeout, NULL) < 0 && errno != EINTR) {
        fail("waiting for the socket: %s", strerror(errno));
    }
    if (wanted[1].revents) return false;
    if (wanted[0].revents) receive(sockets);
    return true;
}

int run_sockets(void) {
    struct setup setup = setup_from_environment();
    struct sockets sockets = {.family = (setup.server ? &setup.local : &setup.remote)->socket.ss_family};
    open_socket(&sockets, &setup);
    catch_termination(&sockets);
    struct endpoint *endpoint = &sockets.endpoint;
    endpoint_init(endpoint, setup);
    endpoint_start(endpoint, read_clock());
    if (setup.server) puts("ready"), fflush(stdout);
    do {
        uint64_t now = read_clock();
        endpoint_timeout(endpoint, now);
        endpoint_send(endpoint, now, &(struct sink){depart, &sockets});
    } while ((setup.server || !endpoint->application->is_done(endpoint)) && wait(&sockets));
    endpoint_finish(endpoint);
    if (setup.server || !endpoint->error) return 0;
    fprintf(stderr, "bentpipe-endpoint-ngtcp2: %s\n", endpoint->error);
    return 1;
}
