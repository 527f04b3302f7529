/* Socket mode (endpoints/contract/socket-mode.md): a UDP socket and this machine's clock. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>

#include "family.h"

/* Datagrams that are read before anything is sent. */
#define BATCH 64
#define ECN_BITS 3

static int udp, termination, ip;

static void set_option(int level, int name, int value, const char *what) {
    if (setsockopt(udp, level, name, &value, sizeof value) != 0) ep_fail("setting %s: %s", what, strerror(errno));
}

/* ECN bits of what arrives are wanted, and datagrams must not be fragmented: libraries probe for the MTU. */
static void set_options(void) {
    if (ip == AF_INET6) {
        set_option(IPPROTO_IPV6, IPV6_RECVTCLASS, 1, "IPV6_RECVTCLASS");
        set_option(IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE, "IPV6_MTU_DISCOVER");
    } else {
        set_option(IPPROTO_IP, IP_RECVTOS, 1, "IP_RECVTOS");
        set_option(IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE, "IP_MTU_DISCOVER");
    }
}

static void open_socket(void) {
    struct ep_address *local = &family.job.local;
    ip = (family.job.server ? local : &family.job.remote)->socket.ss_family;
    if (!family.job.server) *local = parse_address(ip == AF_INET6 ? "[::]:0" : "0.0.0.0:0", "local");
    udp = socket(ip, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (udp < 0) ep_fail("making a socket: %s", strerror(errno));
    set_options();
    if (bind(udp, (struct sockaddr *)&local->socket, local->length) != 0) {
        ep_fail("binding the socket: %s", strerror(errno));
    }
    getsockname(udp, (struct sockaddr *)&local->socket, &local->length);
}

static void catch_termination(void) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    termination = signalfd(-1, &signals, SFD_CLOEXEC);
    if (termination < 0) ep_fail("waiting for SIGTERM: %s", strerror(errno));
}

static void depart(const struct ep_address *to, uint8_t ecn, const uint8_t *payload, size_t size) {
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec data = {(void *)payload, size};
    struct msghdr message = {
        .msg_name = (void *)&to->socket,
        .msg_namelen = ip == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in),
        .msg_iov = &data,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof control,
    };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = ip == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;
    header->cmsg_type = ip == AF_INET6 ? IPV6_TCLASS : IP_TOS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    int bits = ecn;
    memcpy(CMSG_DATA(header), &bits, sizeof bits);
    /* A datagram that the kernel does not take is lost: a probe for a larger MTU, for example. */
    while (sendmsg(udp, &message, 0) < 0 && errno == EINTR) continue;
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

static void receive(void) {
    static uint8_t buffer[EP_LARGEST_PAYLOAD];
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    for (int count = 0; count < BATCH; count++) {
        struct ep_address from;
        struct iovec data = {buffer, sizeof buffer};
        struct msghdr message = {
            .msg_name = &from.socket,
            .msg_namelen = sizeof from.socket,
            .msg_iov = &data,
            .msg_iovlen = 1,
            .msg_control = control,
            .msg_controllen = sizeof control,
        };
        ssize_t size = recvmsg(udp, &message, MSG_DONTWAIT);
        if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (size < 0) ep_fail("receiving: %s", strerror(errno));
        from.length = message.msg_namelen;
        family.now = read_clock();
        family_receive(&from, ecn_of(&message), buffer, (size_t)size);
    }
}

/* Sleeps until a datagram, a timer or SIGTERM, and reads datagrams; false at SIGTERM. */
static bool wait_for_any(void) {
    family.now = read_clock();
    uint64_t wake = family_wake(), left = wake - family.now;
    struct timespec timeout = {(time_t)(left / NANOSECONDS), (long)(left % NANOSECONDS)};
    struct pollfd wanted[] = {{.fd = udp, .events = POLLIN}, {.fd = termination, .events = POLLIN}};
    if (ppoll(wanted, 2, wake == EP_NEVER ? NULL : &timeout, NULL) < 0 && errno != EINTR) {
        ep_fail("waiting for the socket: %s", strerror(errno));
    }
    if (wanted[1].revents) return false;
    if (wanted[0].revents) receive();
    return true;
}

int run_sockets(void) {
    family.zero_time = family.now = read_clock();
    job_from_environment();
    open_socket();
    catch_termination();
    family.depart = depart;
    family_init();
    bool server = family.job.server;
    if (server) puts("ready"), fflush(stdout);
    do {
        family.now = read_clock();
        family_act();
    } while ((server || !family.stack->is_done()) && wait_for_any());
    family_finish();
    if (server || !family.error) return 0;
    fprintf(stderr, "bentpipe-endpoint-%s: %s\n", family.stack->name, family.error);
    return 1;
}
