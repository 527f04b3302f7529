#include "quic.h"

#include <cinttypes>
#include <climits>
#include <cstdio>
#include <netinet/in.h>
#include <unistd.h>
#include <vector>

#include "fail.h"
#include "picoquic_qlog.h"
#include "picotls.h"

// picoquic_internal.h has these two, and much else.
struct st_picoquic_stored_ticket_t;
extern "C" {
st_picoquic_stored_ticket_t *picoquic_get_stored_ticket(picoquic_quic_t *quic, const char *sni, uint16_t sni_length,
                                                        const char *alpn, uint16_t alpn_length, uint32_t version,
                                                        int need_unused, uint64_t ticket_id);
void picoquic_seed_bandwidth(picoquic_cnx_t *connection, uint64_t rtt_min_us, uint64_t bytes, const uint8_t *ip,
                             uint8_t ip_length);
}

static const char SERVER_NAME[] = "server", ALPN[] = "hq-interop";
static const uint32_t MOST_CONNECTIONS = 256;
// picoquic keeps tickets if it is told a file. It reads this one, which is not there, and never writes it by itself.
static const char NO_FILE[] = "/nonexistent/tickets";
// Calls without a packet, at one instant, after which picoquic hangs.
static const int MOST_EMPTY_CALLS = 1000;

// picotls offers Ed25519 if a verifier asks for it. This one takes every certificate, and so needs no clock.
static int take_signature(void *, uint16_t, ptls_iovec_t, ptls_iovec_t) { return 0; }
static int take_certificate(ptls_verify_certificate_t *, ptls_t *, const char *,
                            int (**verify_signature)(void *, uint16_t, ptls_iovec_t, ptls_iovec_t), void **data,
                            ptls_iovec_t *, size_t) {
    *verify_signature = take_signature;
    *data = nullptr;
    return 0;
}
static const uint16_t SIGNATURES[] = {PTLS_SIGNATURE_ED25519, PTLS_SIGNATURE_ECDSA_SECP256R1_SHA256,
                                      PTLS_SIGNATURE_RSA_PSS_RSAE_SHA256, UINT16_MAX};
static ptls_verify_certificate_t verifier = {take_certificate, SIGNATURES};
static void keep_verifier(ptls_verify_certificate_t *) {}

Quic::Quic(const Setup &setup) : setup_(setup) {
    set_time(setup.zero_time_ns);
    create();
    apply_options();
    open_logs();
    application_ = setup.server ? make_server(setup_, *this) : make_client(setup_, *this);
}

Quic::~Quic() {
    if (context_) forget_connections();
}

// picoquic's own certificates, which lie beside the program.
static std::string own_certificates() {
    char path[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path);
    if (size < 0) fail("the program does not know where it is");
    std::string program(path, static_cast<size_t>(size));
    return program.substr(0, program.rfind('/')) + "/certs";
}

void Quic::create() {
    std::string folder = setup_.options.rsa ? own_certificates() : setup_.certs;
    std::string cert = folder + "/cert.pem", key = folder + (setup_.options.rsa ? "/key.pem" : "/priv.key");
    bool keeps_tickets = !setup_.server && setup_.has_two_connections();
    context_ = picoquic_create(MOST_CONNECTIONS, setup_.server ? cert.c_str() : nullptr,
                               setup_.server ? key.c_str() : nullptr, nullptr, ALPN, on_event, this, nullptr, nullptr,
                               nullptr, now_us_, &now_us_, keeps_tickets ? NO_FILE : nullptr, nullptr, 0);
    if (!context_) fail("picoquic cannot be set up; certificate: %s, key: %s", cert.c_str(), key.c_str());
    picoquic_set_verify_certificate_callback(context_, &verifier, keep_verifier);
    picoquic_disable_port_blocking(context_, 1);  // it takes datagrams of no port that other protocols have
}

void Quic::apply_options() {
    const Options &options = setup_.options;
    picoquic_register_all_congestion_control_algorithms();
    const picoquic_congestion_algorithm_t *algorithm = picoquic_get_congestion_algorithm(options.congestion.c_str());
    if (!algorithm) fail("picoquic lacks %s", options.congestion.c_str());
    picoquic_set_default_congestion_algorithm(context_, algorithm);
    ecn_ = algorithm->ecn_mark;
    // The two bits of draft-ferrieux-hamchaoui-quic-lossbits lie outside of header protection: readers must know of them.
    if (!options.loss_bits) picoquic_set_default_lossbit_policy(context_, picoquic_lossbit_none);
    if (options.largest_congestion_window) picoquic_set_cwin_max(context_, options.largest_congestion_window);
    if (options.window) {
        picoquic_set_max_data_control(context_, options.window);
        for (uint64_t side : {picoquic_tp_initial_max_stream_data_bidi_local, picoquic_tp_initial_max_stream_data_bidi_remote}) {
            picoquic_set_default_tp_value(context_, side, options.window);
        }
    }
}

void Quic::open_logs() {
    if (!setup_.keylog.empty()) picoquic_set_key_log_file(context_, setup_.keylog.c_str());
    if (setup_.qlog.empty()) return;
    picoquic_set_log_level(context_, 1);  // every packet, however many there are
    if (picoquic_set_qlog(context_, setup_.qlog.c_str()) != 0) fail("no qlog in %s", setup_.qlog.c_str());
}

void Quic::set_time(uint64_t ns) {
    now_ns_ = ns;
    now_us_ = ns / 1000;
}

uint64_t Quic::next_wake() {
    uint64_t us = picoquic_get_next_wake_time(context_, now_us_);
    if (us > NEVER / 1000) return NEVER;
    return us * 1000 > now_ns_ ? us * 1000 : now_ns_;
}

void Quic::receive(Address from, uint8_t ecn, const uint8_t *payload, size_t size) {
    std::vector<uint8_t> packet(payload, payload + size);  // it is decrypted in place
    picoquic_cnx_t *connection = nullptr;
    picoquic_incoming_packet_ex(context_, packet.data(), size, from.get(), setup_.local.get(), 0, ecn, &connection, now_us_);
    if (connection) {
        had_connections_ = true;
        if (setup_.server) seed_from_saved(connection);
    }
    application_->act();
}

void Quic::send(const Sink &sink) {
    uint8_t buffer[PICOQUIC_MAX_PACKET_SIZE];
    for (int empty = 0; picoquic_get_next_wake_time(context_, now_us_) <= now_us_;) {
        sockaddr_storage to = {}, from = {};
        size_t size = 0;
        int interface = 0;
        picoquic_cnx_t *last = nullptr;
        int result = picoquic_prepare_next_packet(context_, now_us_, buffer, sizeof buffer, &size, &to, &from, &interface,
                                                  nullptr, &last);
        if (result == 0 && size > 0) {
            sink(to, ecn_, buffer, size);
            empty = 0;
        } else if (++empty > MOST_EMPTY_CALLS) {
            fail("picoquic is awake at %" PRIu64 " us and sends nothing (0x%x)", now_us_, static_cast<unsigned>(result));
        }
    }
}

picoquic_cnx_t *Quic::connect() {
    picoquic_cnx_t *connection =
        picoquic_create_cnx(context_, {}, {}, setup_.remote.get(), now_us_, 0, SERVER_NAME, ALPN, 1);
    if (!connection) fail("picoquic makes no connection");
    picoquic_set_callback(connection, on_event, this);
    had_connections_ = true;
    seed_from_saved(connection);
    if (picoquic_start_client_cnx(connection) != 0) fail("picoquic starts no connection");
    return connection;
}

bool Quic::has_ticket() const {
    return picoquic_get_stored_ticket(context_, SERVER_NAME, sizeof SERVER_NAME - 1, ALPN, sizeof ALPN - 1, 0, 1, 0);
}

// picoquic looks at what it is told here when it has the first sample of the round-trip time.
void Quic::seed_from_saved(picoquic_cnx_t *connection) const {
    if (!setup_.options.saved || picoquic_get_cnx_state(connection) >= picoquic_state_ready) return;
    sockaddr *peer;
    picoquic_get_peer_addr(connection, &peer);
    bool ipv6 = peer->sa_family == AF_INET6;
    const void *ip = ipv6 ? static_cast<const void *>(&reinterpret_cast<sockaddr_in6 *>(peer)->sin6_addr)
                          : &reinterpret_cast<sockaddr_in *>(peer)->sin_addr;
    picoquic_seed_bandwidth(connection, setup_.options.saved->rtt_us, setup_.options.saved->bytes,
                            static_cast<const uint8_t *>(ip), ipv6 ? 16 : 4);
}

int Quic::on_event(picoquic_cnx_t *connection, uint64_t stream, uint8_t *data, size_t size,
                   picoquic_call_back_event_t event, void *context, void *stream_context) {
    return static_cast<Quic *>(context)->application_->handle(connection, stream, data, size, event, stream_context);
}

void Quic::forget_connections() {
    picoquic_set_default_callback(context_, nullptr, nullptr);
    for (picoquic_cnx_t *one = picoquic_get_first_cnx(context_); one; one = picoquic_get_next_cnx(one)) {
        picoquic_set_callback(one, nullptr, nullptr);
    }
    picoquic_free(context_);  // completes its logs
    context_ = nullptr;
}

Report Quic::finish() {
    Report report = application_->finish();
    forget_connections();
    return report;
}

std::string reason_of_close(picoquic_cnx_t *connection, picoquic_call_back_event_t event) {
    uint64_t local, remote, local_application, remote_application;
    picoquic_get_close_reasons(connection, &local, &remote, &local_application, &remote_application);
    if (local == PICOQUIC_ERROR_IDLE_TIMEOUT) return "idle timeout";
    if (local == PICOQUIC_ERROR_HANDSHAKE_TIMEOUT) return "handshake timeout";
    if (event == picoquic_callback_stateless_reset) return "stateless reset";
    bool by_peer = event == picoquic_callback_application_close || remote || remote_application;
    uint64_t code = !by_peer ? local : remote_application ? remote_application : remote;
    if (by_peer && code == 0) return "";
    char text[160];
    snprintf(text, sizeof text, "closed%s: 0x%" PRIx64 " (%s)", by_peer ? " by peer" : "", code, picoquic_error_name(code));
    return text;
}
