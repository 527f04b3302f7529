/* Socket mode (endpoints/contract/socket-mode.md): a UDP socket and this machine's clock. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>

#include "family.h"

/* Datagrams that are read before anything is sent. */
#define BATCH 64
#define ECN_BITS 3
/* Room for the control messages of a datagram: its ECN bits, and an address of its own. */
#define CONTROL_BYTES (CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct in6_pktinfo)))

static int udp, termination, ip;

static void set_option(int level, int name, int value, const char *what) {
    if (setsockopt(udp, level, name, &value, sizeof value) != 0) ep_fail("setting %s: %s", what, strerror(errno));
}

/* Whether this is a client with an address for each of several paths. */
static bool has_addresses(void) {
    return !family.job.server && family.job.path_count;
}

/* ECN bits of what arrives are wanted, with several paths also where it arrives, and datagrams must not be fragmented: libraries probe for the MTU. */
static void set_options(void) {
    if (ip == AF_INET6) {
        set_option(IPPROTO_IPV6, IPV6_RECVTCLASS, 1, "IPV6_RECVTCLASS");
        set_option(IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE, "IPV6_MTU_DISCOVER");
        set_option(IPPROTO_IPV6, IPV6_RECVPKTINFO, has_addresses(), "IPV6_RECVPKTINFO");
    } else {
        set_option(IPPROTO_IP, IP_RECVTOS, 1, "IP_RECVTOS");
        set_option(IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE, "IP_MTU_DISCOVER");
        set_option(IPPROTO_IP, IP_PKTINFO, has_addresses(), "IP_PKTINFO");
    }
}

/* The socket's port is that of the client's address on each path. */
static void add_port_to_paths(void) {
    struct ep_job *job = &family.job;
    in_port_t port = ((struct sockaddr_in *)&job->local.socket)->sin_port; /* where IPv6 has it, too */
    for (size_t path = 0; path < job->path_count; path++) {
        ((struct sockaddr_in *)&job->paths[path].local.socket)->sin_port = port;
    }
    job->local = job->paths[0].local;
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
    if (has_addresses()) add_port_to_paths();
}

static void catch_termination(void) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    termination = signalfd(-1, &signals, SFD_CLOEXEC);
    if (termination < 0) ep_fail("waiting for SIGTERM: %s", strerror(errno));
}

/* Has a message leave from the client's address on a path, which decides over which it goes. */
static void leave_from(struct cmsghdr *header, size_t path) {
    const struct sockaddr_storage *local = &family.job.paths[path].local.socket;
    if (ip == AF_INET6) {
        struct in6_pktinfo info = {.ipi6_addr = ((const struct sockaddr_in6 *)local)->sin6_addr};
        header->cmsg_level = IPPROTO_IPV6;
        header->cmsg_type = IPV6_PKTINFO;
        header->cmsg_len = CMSG_LEN(sizeof info);
        memcpy(CMSG_DATA(header), &info, sizeof info);
        return;
    }
    struct in_pktinfo info = {.ipi_spec_dst = ((const struct sockaddr_in *)local)->sin_addr};
    header->cmsg_level = IPPROTO_IP;
    header->cmsg_type = IP_PKTINFO;
    header->cmsg_len = CMSG_LEN(sizeof info);
    memcpy(CMSG_DATA(header), &info, sizeof info);
}

static void depart(size_t path, const struct ep_address *to, uint8_t ecn, const uint8_t *payload, size_t size) {
    if (path && path >= family.job.path_count) ep_fail("a datagram to be sent on path %zu", path);
    _Alignas(struct cmsghdr) char control[CONTROL_BYTES] = {0};
    size_t of_address = ip == AF_INET6 ? sizeof(struct in6_pktinfo) : sizeof(struct in_pktinfo);
    struct iovec data = {(void *)payload, size};
    struct msghdr message = {
        .msg_name = (void *)&to->socket,
        .msg_namelen = ip == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in),
        .msg_iov = &data,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = CMSG_SPACE(sizeof(int)) + (has_addresses() ? CMSG_SPACE(of_address) : 0),
    };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = ip == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;
    header->cmsg_type = ip == AF_INET6 ? IPV6_TCLASS : IP_TOS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    int bits = ecn;
    memcpy(CMSG_DATA(header), &bits, sizeof bits);
    if (has_addresses()) leave_from(CMSG_NXTHDR(&message, header), path);
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

/* The number of the path that a datagram from `from` came over. */
static size_t path_of(struct msghdr *message, const struct ep_address *from) {
    struct sockaddr_storage here = {.ss_family = (sa_family_t)ip};
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
        const unsigned char *data = CMSG_DATA(header);
        if (header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_PKTINFO) {
            memcpy(&((struct sockaddr_in *)&here)->sin_addr, data + offsetof(struct in_pktinfo, ipi_addr),
                   sizeof(struct in_addr));
        }
        if (header->cmsg_level == IPPROTO_IPV6 && header->cmsg_type == IPV6_PKTINFO) {
            memcpy(&((struct sockaddr_in6 *)&here)->sin6_addr, data + offsetof(struct in6_pktinfo, ipi6_addr),
                   sizeof(struct in6_addr));
        }
    }
    return ep_path_between((const struct sockaddr *)&here, (const struct sockaddr *)&from->socket);
}

static void receive(void) {
    static uint8_t buffer[EP_LARGEST_PAYLOAD];
    _Alignas(struct cmsghdr) char control[CONTROL_BYTES];
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
        family.arrival_path = path_of(&message, &from);
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
