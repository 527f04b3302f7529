/* A start for the adapter of your own QUIC library: copy this folder, and put your library's calls in the place of
 * those that begin with picoquic_. All else, from the coordinator's messages to files and sockets, is the family's;
 * endpoints/c-family/endpoint.h describes each function. It works as it is, with picoquic. */
#include "endpoint.h"
#include "picoquic.h"
#include "tls.h" /* of endpoints/picoquic: takes all certificates, and seeds OpenSSL by ep_random */

static const struct ep_job *job;
static picoquic_quic_t *quic;
static picoquic_cnx_t *latest; /* a client's connection */
static uint64_t microseconds;

static const char *version(void) {
    return "picoquic " PICOQUIC_VERSION; /* yours: name and version, for records */
}

/* The library's events, in the family's terms. */
static int on_event(picoquic_cnx_t *from, uint64_t id, uint8_t *data, size_t size, picoquic_call_back_event_t event,
                    void *context, void *stream) {
    (void)context;
    if (event == picoquic_callback_stream_data || event == picoquic_callback_stream_fin) {
        if (!stream) picoquic_set_app_stream_ctx(from, id, stream = ep_accept(from, (int64_t)id));
        ep_received(stream, data, size, event == picoquic_callback_stream_fin);
    } else if (event == picoquic_callback_prepare_to_send) {
        size_t left = ep_unsent(stream), part = left < size ? left : size;
        ep_take(stream, picoquic_provide_stream_data_buffer(data, part, part == left, part < left), part);
    } else if (event == picoquic_callback_stream_reset) {
        ep_reset(stream, picoquic_get_remote_stream_error(from, id));
    } else if (event == picoquic_callback_stream_released) {
        ep_stream_closed(stream);
    } else if (event == picoquic_callback_almost_ready) {
        ep_handshake_complete();
    } else if (event == picoquic_callback_close && picoquic_get_local_error(from) == PICOQUIC_ERROR_IDLE_TIMEOUT) {
        ep_error("idle timeout");
    }
    return 0;
}

/* Certificates, options, secrets: whatever comes before the first packet. */
static void init(const struct ep_job *asked, uint64_t now) {
    job = asked;
    microseconds = now;
    char *certificate = ep_format("%s/cert.pem", job->certs), *key = ep_format("%s/priv.key", job->certs);
    tls_seed();
    quic = picoquic_create(16, job->server ? certificate : NULL, job->server ? key : NULL, NULL, "hq-interop", on_event,
                           NULL, NULL, NULL, NULL, now, &microseconds, NULL, NULL, 0);
    tls_trust_all(quic);
    picoquic_disable_port_blocking(quic, 1); /* any port may be drawn */
    if (job->keylog) picoquic_set_key_log_file(quic, job->keylog);
}

static void open_connection(enum ep_resume how, uint64_t now) {
    (void)how; /* with has_ticket: whether to offer a ticket */
    picoquic_connection_id_t drawn = {.id_len = 0}; /* by picoquic */
    latest = picoquic_create_cnx(quic, drawn, drawn, (struct sockaddr *)&job->remote.socket, now, 0, "server",
                                 "hq-interop", 1);
    picoquic_start_client_cnx(latest);
    ep_ask(); /* picoquic holds back what may not be sent yet; yours may want to ask when the handshake is complete */
}

static void receive(const struct ep_address *from, uint8_t ecn, uint8_t *payload, size_t size, uint64_t now) {
    microseconds = now;
    picoquic_incoming_packet(quic, payload, size, (struct sockaddr *)&from->socket,
                             (struct sockaddr *)&job->local.socket, 0, ecn, now);
}

static uint64_t next_timer(uint64_t now) {
    return picoquic_get_next_wake_time(quic, now);
}

static void poll_send(uint64_t now) {
    microseconds = now;
    while (picoquic_get_next_wake_time(quic, now) <= now) {
        uint8_t payload[PICOQUIC_MAX_PACKET_SIZE];
        struct ep_address to;
        struct sockaddr_storage from;
        size_t size = 0;
        int interface;
        picoquic_prepare_next_packet(quic, now, payload, sizeof payload, &size, &to.socket, &from, &interface, NULL,
                                     NULL);
        if (size > 0) ep_send(&to, 0, payload, size);
    }
}

static void answer(struct ep_exchange *stream) {
    picoquic_mark_active_stream(stream->connection, (uint64_t)stream->id, 1, stream);
}

static bool open_stream(struct ep_exchange *stream) {
    stream->connection = latest;
    stream->id = (int64_t)picoquic_get_next_local_stream_id(latest, 0);
    answer(stream);
    return true;
}

static void refuse(struct ep_exchange *stream) {
    picoquic_reset_stream(stream->connection, (uint64_t)stream->id, EP_REFUSED);
    picoquic_stop_sending(stream->connection, (uint64_t)stream->id, EP_REFUSED);
}

static bool is_open(void) {
    if (!picoquic_get_first_cnx(quic)) return false;
    picoquic_state_enum state = picoquic_get_cnx_state(latest);
    return state >= picoquic_state_client_almost_ready && state < picoquic_state_disconnecting;
}

static void close_connection(uint64_t now) {
    (void)now;
    picoquic_close(latest, 0);
}

static bool is_done(void) {
    picoquic_cnx_t *one = picoquic_get_first_cnx(quic);
    static bool had_any; /* picoquic deletes connections that have ended */
    had_any = had_any || one;
    while (one && picoquic_get_cnx_state(one) >= picoquic_state_closing_received) one = picoquic_get_next_cnx(one);
    return had_any && !one;
}

static void finish(void) {
    picoquic_set_default_callback(quic, NULL, NULL);
    picoquic_free(quic);
}

int main(int count, char **arguments) {
    static const struct ep_stack stack = {
        .name = "template-c",
        .driver = "at each instant: all arrivals, then packets while picoquic is awake",
        .tick = 1000, /* picoquic counts microseconds; 1 where yours counts nanoseconds */
        .version = version,
        .init = init,
        .connect = open_connection,
        .receive = receive,
        .next_timer = next_timer,
        .poll_send = poll_send,
        .open_stream = open_stream,
        .answer = answer,
        .refuse = refuse,
        .is_open = is_open,
        .close = close_connection,
        .is_done = is_done,
        .finish = finish,
    };
    return ep_main(count, arguments, &stack);
}
