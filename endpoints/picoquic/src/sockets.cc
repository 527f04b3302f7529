#include <arpa/inet.h>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "clock.h"
#include "drivers.h"
#include "fail.h"
#include "quic.h"

static const int BATCH = 64;  // datagrams that are read before anything is sent
static const int ECN_BITS = 3;
static const size_t LARGEST_PAYLOAD = 65536;

class Socket {
public:
    // Binds a server to its address, and a client to any; `setup` then says which it is.
    explicit Socket(Setup &setup) : family_((setup.server ? setup.local : setup.remote).socket.ss_family) {
        Address &local = setup.local;
        if (!setup.server) {
            local.socket.ss_family = static_cast<sa_family_t>(family_);
            local.length = family_ == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
        }
        descriptor_ = socket(family_, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (descriptor_ < 0) fail("making a socket: %s", strerror(errno));
        // ECN bits of what arrives are wanted, and datagrams must not be fragmented: picoquic probes for the MTU.
        if (family_ == AF_INET6) {
            set(IPPROTO_IPV6, IPV6_RECVTCLASS, 1, "IPV6_RECVTCLASS");
            set(IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE, "IPV6_MTU_DISCOVER");
        } else {
            set(IPPROTO_IP, IP_RECVTOS, 1, "IP_RECVTOS");
            set(IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE, "IP_MTU_DISCOVER");
        }
        if (bind(descriptor_, local.get(), local.length) != 0) fail("binding the socket: %s", strerror(errno));
        getsockname(descriptor_, local.get(), &local.length);
    }

    int descriptor() const { return descriptor_; }

    void send(const sockaddr_storage &to, uint8_t ecn, const uint8_t *payload, size_t size) const {
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
        iovec data = {const_cast<uint8_t *>(payload), size};
        msghdr message = {};
        message.msg_name = const_cast<sockaddr_storage *>(&to);
        message.msg_namelen = family_ == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
        message.msg_iov = &data;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = family_ == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;
        header->cmsg_type = family_ == AF_INET6 ? IPV6_TCLASS : IP_TOS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        int bits = ecn;
        memcpy(CMSG_DATA(header), &bits, sizeof bits);
        // A datagram that the kernel does not take is lost: a probe for a larger MTU, for example.
        while (sendmsg(descriptor_, &message, 0) < 0 && errno == EINTR) continue;
    }

    // Reads what there is, up to a batch.
    void receive(Quic &quic) const {
        static uint8_t buffer[LARGEST_PAYLOAD];
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
        for (int count = 0; count < BATCH; count++) {
            Address from;
            iovec data = {buffer, sizeof buffer};
            msghdr message = {};
            message.msg_name = &from.socket;
            message.msg_namelen = sizeof from.socket;
            message.msg_iov = &data;
            message.msg_iovlen = 1;
            message.msg_control = control;
            message.msg_controllen = sizeof control;
            ssize_t size = recvmsg(descriptor_, &message, MSG_DONTWAIT);
            if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
            if (size < 0) fail("receiving: %s", strerror(errno));
            from.length = message.msg_namelen;
            quic.set_time(read_clock());
            quic.receive(from, ecn_of(message), buffer, static_cast<size_t>(size));
        }
    }

private:
    void set(int level, int name, int value, const char *what) const {
        if (setsockopt(descriptor_, level, name, &value, sizeof value) != 0) fail("setting %s: %s", what, strerror(errno));
    }

    // Linux gives IPv4's bits as one byte, IPv6's as an int in the machine's order.
    static uint8_t ecn_of(msghdr &message) {
        for (cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
            int bits = 0;
            if (header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_TOS) bits = *CMSG_DATA(header);
            else if (header->cmsg_level == IPPROTO_IPV6 && header->cmsg_type == IPV6_TCLASS) {
                memcpy(&bits, CMSG_DATA(header), sizeof bits);
            } else continue;
            return static_cast<uint8_t>(bits & ECN_BITS);
        }
        return 0;
    }

    int family_, descriptor_;
};

// A descriptor that can be read once SIGTERM has come.
static int catch_termination() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    int descriptor = signalfd(-1, &signals, SFD_CLOEXEC);
    if (descriptor < 0) fail("waiting for SIGTERM: %s", strerror(errno));
    return descriptor;
}

// Sleeps until a datagram, a timer or SIGTERM, and reads datagrams; false at SIGTERM.
static bool wait(Quic &quic, const Socket &udp, int termination) {
    quic.set_time(read_clock());
    uint64_t wake = quic.next_wake(), left = wake - quic.now();
    timespec timeout = {static_cast<time_t>(left / NANOSECONDS), static_cast<long>(left % NANOSECONDS)};
    pollfd wanted[] = {{udp.descriptor(), POLLIN, 0}, {termination, POLLIN, 0}};
    if (ppoll(wanted, 2, wake == NEVER ? nullptr : &timeout, nullptr) < 0 && errno != EINTR) {
        fail("waiting for the socket: %s", strerror(errno));
    }
    if (wanted[1].revents) return false;
    if (wanted[0].revents) udp.receive(quic);
    return true;
}

int run_sockets() {
    Setup setup = setup_from_environment();
    Socket udp(setup);
    int termination = catch_termination();
    Quic quic(setup);
    quic.start();
    if (setup.server) puts("ready"), fflush(stdout);
    do {
        quic.set_time(read_clock());
        quic.send([&](const sockaddr_storage &to, uint8_t ecn, const uint8_t *payload, size_t size) {
            udp.send(to, ecn, payload, size);
        });
    } while ((setup.server || !quic.is_done()) && wait(quic, udp, termination));
    std::string error = quic.finish().error;
    if (setup.server || error.empty()) return 0;
    fprintf(stderr, "bentpipe-endpoint-picoquic: %s\n", error.c_str());
    return 1;
}
