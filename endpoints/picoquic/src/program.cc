// bentpipe-endpoint-picoquic: the C library picoquic behind endpoints/CONTRACT.md.
#include <algorithm>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstring>
#include <netinet/in.h>
#include <string>
#include <unistd.h>

#include "endpoint.h"
#include "options.h"
#include "picoquic.h"
#include "picoquic_qlog.h"
#include "picoquic_utils.h"
#include "tls.h"

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

static const ep_job *job;
static picoquic_quic_t *context;
static uint64_t clock_us;  // which picoquic reads
static uint8_t ecn_mark;   // of what is sent
static bool had_connections;
static picoquic_cnx_t *latest;  // a client's
static bool is_closing;         // it is closed here
static size_t opened_paths;     // of it, the first counts

static const char *version() { return "picoquic " PICOQUIC_VERSION; }

// Why a connection was closed, in the words of the contract; empty if the peer said that all is well.
static std::string reason_of_close(picoquic_cnx_t *connection, picoquic_call_back_event_t event) {
    uint64_t local, remote, local_application, remote_application;
    picoquic_get_close_reasons(connection, &local, &remote, &local_application, &remote_application);
    if (local == PICOQUIC_ERROR_IDLE_TIMEOUT) return "idle timeout";
    if (local == PICOQUIC_ERROR_HANDSHAKE_TIMEOUT) return "handshake timeout";
    if (event == picoquic_callback_stateless_reset) return "stateless reset";
    bool by_peer = event == picoquic_callback_application_close || remote || remote_application;
    uint64_t code = !by_peer ? local : remote_application ? remote_application : remote;
    if (by_peer && code == 0) return "";
    char text[160];
    snprintf(text, sizeof text, "closed%s: 0x%" PRIx64 " (%s)", by_peer ? " by peer" : "", code,
             picoquic_error_name(code));
    return text;
}

static void closed(picoquic_cnx_t *connection, picoquic_call_back_event_t event) {
    if (!job->server && (connection != latest || is_closing)) return;
    std::string reason = reason_of_close(connection, event);
    if (reason.empty() && !job->server) reason = "closed by peer: 0x0, before all requests had ended";
    if (!reason.empty()) ep_error("%s", reason.c_str());
}

// Hands picoquic what fits.
static int provide(ep_exchange *stream, void *buffer, size_t room) {
    size_t size = std::min(room, ep_unsent(stream));
    bool is_last = size == ep_unsent(stream);
    uint8_t *to = picoquic_provide_stream_data_buffer(buffer, size, is_last, !is_last);
    if (!to) return -1;
    ep_take(stream, to, size);
    return 0;
}

static bool has_all_paths() { return options.multipath.value_or(!job->migrates) && job->path_count > 1; }

// A server answers to wherever the client is.
static bool knows_paths() { return job->path_count > 1 && (job->server || job->migrates || has_all_paths()); }

static sockaddr *pointer_to(const ep_address &address) {
    return const_cast<sockaddr *>(reinterpret_cast<const sockaddr *>(&address.socket));
}

// A client opens the further paths as soon as it may: when the handshake is confirmed, and picoquic has connection IDs
// of both ends for each. Where it asks picoquic before, that takes the first path for a further one, or finds none. So
// it asks after each datagram, of which the IDs may be the last part, and not from within an event. With a server that
// has one path, picoquic would migrate.
static void open_paths() {
    if (!has_all_paths() || picoquic_get_cnx_state(latest) != picoquic_state_ready) return;
    if (picoquic_get_transport_parameters(latest, 0)->initial_max_path_id == 0) return;
    while (opened_paths < job->path_count) {
        const ep_path &path = job->paths[opened_paths];
        if (picoquic_probe_new_path_ex(latest, pointer_to(path.remote), pointer_to(path.local), 0, clock_us, 0) != 0) return;
        opened_paths++;
    }
}

static int on_event(picoquic_cnx_t *connection, uint64_t id, uint8_t *data, size_t size,
                    picoquic_call_back_event_t event, void *, void *stream_context) {
    ep_exchange *stream = static_cast<ep_exchange *>(stream_context);
    switch (event) {
    case picoquic_callback_stream_data:
    case picoquic_callback_stream_fin:
        if (!stream && job->server && (id & 3) == 0) {  // a client's, of both directions
            stream = ep_accept(connection, static_cast<int64_t>(id));
            if (picoquic_set_app_stream_ctx(connection, id, stream) != 0) return -1;
        }
        if (stream) ep_received(stream, data, size, event == picoquic_callback_stream_fin);
        break;
    case picoquic_callback_prepare_to_send:
        return stream ? provide(stream, data, size) : -1;
    case picoquic_callback_stop_sending:
        picoquic_reset_stream(connection, id, 0);
        [[fallthrough]];
    case picoquic_callback_stream_reset:
        if (stream) ep_reset(stream, picoquic_get_remote_stream_error(connection, id));
        break;
    case picoquic_callback_stream_released:
        if (stream) ep_stream_closed(stream);
        break;
    case picoquic_callback_almost_ready:
    case picoquic_callback_ready:
        ep_handshake_complete();
        break;
    case picoquic_callback_path_available:
        if (options.backup && !job->server && id > 0) picoquic_set_path_status(connection, id, picoquic_path_status_backup);
        break;
    case picoquic_callback_stateless_reset:
    case picoquic_callback_close:
    case picoquic_callback_application_close:
        closed(connection, event);
        break;
    default:
        break;
    }
    return 0;
}

// picoquic's own certificates, which lie beside the program.
static std::string own_certificates() {
    char path[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path);
    if (size < 0) ep_fail("the program does not know where it is");
    std::string program(path, static_cast<size_t>(size));
    return program.substr(0, program.rfind('/')) + "/certs";
}

static void create() {
    std::string folder = options.rsa ? own_certificates() : job->certs;
    std::string cert = folder + "/cert.pem", key = folder + (options.rsa ? "/key.pem" : "/priv.key");
    bool keeps_tickets = !job->server && job->tickets;
    context = picoquic_create(MOST_CONNECTIONS, job->server ? cert.c_str() : nullptr,
                              job->server ? key.c_str() : nullptr, nullptr, ALPN, on_event, nullptr, nullptr, nullptr,
                              nullptr, clock_us, &clock_us, keeps_tickets ? NO_FILE : nullptr, nullptr, 0);
    if (!context) ep_fail("picoquic cannot be set up; certificate: %s, key: %s", cert.c_str(), key.c_str());
    tls_trust_all(context);
    picoquic_disable_port_blocking(context, 1);  // it takes datagrams of no port that other protocols have
}

static void apply_options() {
    picoquic_register_all_congestion_control_algorithms();
    const picoquic_congestion_algorithm_t *algorithm = picoquic_get_congestion_algorithm(options.congestion.c_str());
    if (!algorithm) ep_fail("picoquic lacks %s", options.congestion.c_str());
    picoquic_set_default_congestion_algorithm(context, algorithm);
    ecn_mark = algorithm->ecn_mark;
    // The two bits of draft-ferrieux-hamchaoui-quic-lossbits lie outside of header protection: readers must know of them.
    if (!options.loss_bits) picoquic_set_default_lossbit_policy(context, picoquic_lossbit_none);
    if (has_all_paths()) {
        picoquic_set_default_multipath_option(context, 1);
        picoquic_set_default_tp_value(context, picoquic_tp_initial_max_path_id, EP_MOST_PATHS - 1);
        picoquic_enable_path_callbacks_default(context, 1);
    }
    if (options.largest_congestion_window) picoquic_set_cwin_max(context, options.largest_congestion_window);
    if (options.window) {
        picoquic_set_max_data_control(context, options.window);
        for (uint64_t side :
             {picoquic_tp_initial_max_stream_data_bidi_local, picoquic_tp_initial_max_stream_data_bidi_remote}) {
            picoquic_set_default_tp_value(context, side, options.window);
        }
    }
}

static void open_logs() {
    if (job->keylog) picoquic_set_key_log_file(context, job->keylog);
    if (!job->qlog) return;
    picoquic_set_log_level(context, 1);  // every packet, however many there are
    if (picoquic_set_qlog(context, job->qlog) != 0) ep_fail("no qlog in %s", job->qlog);
}

static void init(const ep_job *asked, uint64_t now) {
    job = asked;
    check_options(job->migrates);
    clock_us = now;
    if (job->virtual_time) tls_seed();
    create();
    apply_options();
    open_logs();
}

// picoquic looks at what it is told here when it has the first sample of the round-trip time.
static void seed_from_saved(picoquic_cnx_t *connection) {
    if (!options.saved || picoquic_get_cnx_state(connection) >= picoquic_state_ready) return;
    sockaddr *peer;
    picoquic_get_peer_addr(connection, &peer);
    bool ipv6 = peer->sa_family == AF_INET6;
    const void *ip = ipv6 ? static_cast<const void *>(&reinterpret_cast<sockaddr_in6 *>(peer)->sin6_addr)
                          : &reinterpret_cast<sockaddr_in *>(peer)->sin_addr;
    picoquic_seed_bandwidth(connection, options.saved->rtt_us, options.saved->bytes, static_cast<const uint8_t *>(ip),
                            ipv6 ? 16 : 4);
}

// The first connection asks at once: streams that may not be opened yet wait in picoquic.
static void open_connection(ep_resume how, uint64_t now) {
    latest = picoquic_create_cnx(context, {}, {}, pointer_to(job->remote), now, 0, SERVER_NAME, ALPN, 1);
    if (!latest) ep_fail("picoquic makes no connection");
    picoquic_set_callback(latest, on_event, nullptr);
    had_connections = true;
    is_closing = false;
    opened_paths = 1;
    seed_from_saved(latest);
    if (picoquic_start_client_cnx(latest) != 0) ep_fail("picoquic starts no connection");
    if (how == EP_AFRESH) ep_ask();
}

static bool is_open() {
    if (!latest) return false;
    picoquic_state_enum state = picoquic_get_cnx_state(latest);
    return state >= picoquic_state_client_almost_ready && state < picoquic_state_disconnecting;
}

static void receive(const ep_address *from, uint8_t ecn, uint8_t *payload, size_t size, uint64_t now) {
    clock_us = now;
    picoquic_cnx_t *connection = nullptr;
    const ep_address &local = job->path_count ? job->paths[ep_arrival_path()].local : job->local;
    picoquic_incoming_packet_ex(context, payload, size, pointer_to(*from), pointer_to(local), 0, ecn, &connection, now);
    if (connection) {
        had_connections = true;
        if (job->server) seed_from_saved(connection);
    }
    if (!job->server) open_paths();
    if (is_open()) ep_ask();
}

static uint64_t next_timer(uint64_t now) {
    clock_us = now;
    return picoquic_get_next_wake_time(context, now);
}

// The path between these addresses; the first, where picoquic does not know its own yet.
static size_t path_between(const sockaddr_storage &local, const sockaddr_storage &remote) {
    return ep_path_between(reinterpret_cast<const sockaddr *>(&local), reinterpret_cast<const sockaddr *>(&remote));
}

static void poll_send(uint64_t now) {
    uint8_t buffer[PICOQUIC_MAX_PACKET_SIZE];
    clock_us = now;
    for (int empty = 0; picoquic_get_next_wake_time(context, now) <= now;) {
        ep_address to = {};
        sockaddr_storage from = {};
        size_t size = 0;
        int interface = 0;
        picoquic_cnx_t *last = nullptr;
        int result = picoquic_prepare_next_packet(context, now, buffer, sizeof buffer, &size, &to.socket, &from,
                                                  &interface, nullptr, &last);
        if (result == 0 && size > 0) {
            ep_send_on(path_between(from, to.socket), &to, ecn_mark, buffer, size);
            empty = 0;
        } else if (++empty > MOST_EMPTY_CALLS) {
            ep_fail("picoquic is awake at %" PRIu64 " us and sends nothing (0x%x)", now, static_cast<unsigned>(result));
        }
    }
}

static bool open_stream(ep_exchange *stream) {
    uint64_t id = picoquic_get_next_local_stream_id(latest, 0);
    if (job->upload) return picoquic_mark_active_stream(latest, id, 1, stream) == 0;
    ep_part question = stream->unsent[0];
    ep_sent(stream, question.size);
    return picoquic_add_to_stream_with_ctx(latest, id, question.data, question.size, 1, stream) == 0;
}

static picoquic_cnx_t *connection_of(const ep_exchange *stream) {
    return static_cast<picoquic_cnx_t *>(stream->connection);
}

static void answer(ep_exchange *stream) {
    uint64_t id = static_cast<uint64_t>(stream->id);
    if (job->upload) picoquic_add_to_stream_with_ctx(connection_of(stream), id, nullptr, 0, 1, stream);
    else picoquic_mark_active_stream(connection_of(stream), id, 1, stream);
}

static void refuse(ep_exchange *stream) {
    uint64_t id = static_cast<uint64_t>(stream->id);
    picoquic_reset_stream(connection_of(stream), id, EP_REFUSED);
    picoquic_stop_sending(connection_of(stream), id, EP_REFUSED);
}

static bool has_ticket() {
    return picoquic_get_stored_ticket(context, SERVER_NAME, sizeof SERVER_NAME - 1, ALPN, sizeof ALPN - 1, 0, 1, 0);
}

// picoquic looks whether the new path works, and then has it in place of the one before. That alone does not wake it.
static bool migrate(size_t number, uint64_t now) {
    clock_us = now;
    const ep_path &path = job->paths[number];
    if (picoquic_probe_new_path(latest, pointer_to(path.remote), pointer_to(path.local), now) != 0) return false;
    picoquic_set_app_wake_time(latest, now);
    return true;
}

static void close_connection(uint64_t) {
    is_closing = true;
    picoquic_close(latest, 0);
}

static bool is_done() {
    if (!job->server) return latest && picoquic_get_cnx_state(latest) >= picoquic_state_closing_received;
    for (picoquic_cnx_t *one = picoquic_get_first_cnx(context); one; one = picoquic_get_next_cnx(one)) {
        if (picoquic_get_cnx_state(one) < picoquic_state_closing_received) return false;
    }
    return had_connections;
}

static void finish() {
    picoquic_set_default_callback(context, nullptr, nullptr);
    for (picoquic_cnx_t *one = picoquic_get_first_cnx(context); one; one = picoquic_get_next_cnx(one)) {
        picoquic_set_callback(one, nullptr, nullptr);
    }
    picoquic_free(context);  // completes its logs
}

static const ep_stack stack = {
    .name = "picoquic",
    .driver = "at each instant: all arrivals, then packets while picoquic is awake; "
              "its clock counts microseconds, rounded down",
    .tick = 1000,
    .version = version,
    .options = "cc, window, cwnd, multipath, backup, migrate, resume, saved, lossbits, cert",
    .option = parse_option,
    .init = init,
    .connect = open_connection,
    .receive = receive,
    .next_timer = next_timer,
    .on_timer = nullptr,
    .poll_send = poll_send,
    .open_stream = open_stream,
    .answer = answer,
    .refuse = refuse,
    .is_open = is_open,
    .has_ticket = has_ticket,
    .close = close_connection,
    .is_done = is_done,
    .knows_paths = knows_paths,
    .migrate = migrate,
    .finish = finish,
};

int main(int count, char **arguments) { return ep_main(count, arguments, &stack); }
