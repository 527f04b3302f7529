/* The client of hq-interop (endpoints/contract/test-cases.md): asks for everything at once, or for the first request
 * and then, over a second connection, for the others; stores the replies, or in `upload` sends the files; closes. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "endpoint.h"
#include "fail.h"
#include "files.h"

struct request {
    struct stream stream; /* first: a stream is its request */
    char *path;           /* with its slash */
    char *question;
    struct mapping upload; /* the file that is sent, in `upload` */
    FILE *out;             /* the file that the reply is stored in, otherwise; NULL until it begins */
    uint64_t bytes, first_byte_at, last_byte_at;
    bool ended;
};

struct requests {
    struct request *all;
    struct connection *current; /* NULL: there is none yet, or it is gone */
    size_t asked, ended;
    size_t last;        /* the requests of the current connection end here */
    enum resume second; /* how the next connection begins; AFRESH: there is none */
    bool done;
};

static struct request new_request(const struct setup *setup, const char *url) {
    const char *slash = strncmp(url, "https://", 8) == 0 ? strchr(url + 8, '/') : NULL;
    if (!slash) fail("requests: \"%s\" is no URL such as https://server:443/1024", url);
    struct request request = {
        .path = format_text("%s", slash),
        .question = format_text("%s %s\r\n", setup->upload ? "PUT" : "GET", slash),
        .first_byte_at = NEVER,
        .last_byte_at = NEVER,
    };
    if (!setup->upload && !path_is_within(slash + 1)) {
        fail("requests: the path of \"%s\" must name a file within the downloads", url);
    }
    if (setup->upload && !file_map(setup->www, slash + 1, &request.upload)) {
        fail("requests: the path of \"%s\" names no file within %s", url, setup->www);
    }
    return request;
}

static struct requests *requests_of(struct endpoint *endpoint) {
    return endpoint->requests;
}

static void init(struct endpoint *endpoint) {
    struct setup *setup = &endpoint->setup;
    if (setup->upload) {
        char *www = realpath(setup->www, NULL);
        if (!www) fail("www: %s: %s", setup->www, strerror(errno));
        setup->www = www;
    }
    struct requests *requests = allocate(sizeof *requests);
    requests->all = allocate(setup->request_count * sizeof *requests->all);
    for (size_t i = 0; i < setup->request_count; i++) requests->all[i] = new_request(setup, setup->requests[i]);
    requests->second = setup->second;
    requests->last = setup->second != AFRESH && setup->request_count ? 1 : setup->request_count;
    endpoint->requests = requests;
}

static void start(struct endpoint *endpoint) {
    requests_of(endpoint)->current = endpoint_connect(endpoint, AFRESH);
}

static void ask(struct endpoint *endpoint, struct connection *connection) {
    struct requests *requests = requests_of(endpoint);
    while (connection == requests->current && requests->asked < requests->last) {
        struct request *request = &requests->all[requests->asked];
        struct stream *stream = &request->stream;
        *stream = (struct stream){.connection = connection};
        if (ngtcp2_conn_open_bidi_stream(connection->quic, &stream->id, stream) != 0) return;
        stream->unsent[0] = (ngtcp2_vec){(uint8_t *)request->question, strlen(request->question)};
        stream->unsent[1] = (ngtcp2_vec){request->upload.data, request->upload.size};
        stream_queue(stream);
        requests->asked++;
    }
}

/* What was sent in 0-RTT packets is lost: the second connection, which has all requests but the first, asks again. */
static void rejected(struct endpoint *endpoint, struct connection *connection) {
    struct requests *requests = requests_of(endpoint);
    if (connection == requests->current) requests->asked = 1;
}

static void sent(struct endpoint *endpoint, struct stream *stream) {
    struct request *request = (struct request *)stream;
    size_t left = stream_unsent(stream);
    if (!endpoint->setup.upload || left >= request->upload.size) return;
    request->bytes = request->upload.size - left;
    if (request->first_byte_at == NEVER) request->first_byte_at = endpoint->now;
}

/* An empty reply is a file, too. */
static void store(const struct endpoint *endpoint, struct request *request, const uint8_t *data, size_t size) {
    const char *downloads = endpoint->setup.downloads;
    if (!request->out) request->out = file_create(downloads, request->path + 1);
    if (!request->out) fail("%s%s cannot be written: %s", downloads, request->path, strerror(errno));
    if (size == 0) return;
    file_write(request->out, data, size);
    request->bytes += size;
    request->last_byte_at = endpoint->now;
    if (request->first_byte_at == NEVER) request->first_byte_at = endpoint->now;
}

static void end(struct endpoint *endpoint, struct request *request, char *failure) {
    if (!request->ended) requests_of(endpoint)->ended++;
    if (failure) endpoint_error(endpoint, failure);
    request->ended = true;
}

/* FIN alone is the answer, when the server has all. */
static void received_answer(struct endpoint *endpoint, struct request *request, size_t size, bool is_end) {
    if (size > 0) {
        end(endpoint, request, format_text("%s: answered with bytes, where none belong", request->path));
    } else if (is_end && !request->stream.finished) {
        end(endpoint, request, format_text("%s: the server answered before it had the file", request->path));
    } else if (is_end) {
        request->last_byte_at = endpoint->now;
        end(endpoint, request, NULL);
    }
}

static void received(struct endpoint *endpoint, struct connection *connection, struct stream *stream, int64_t id,
                     const uint8_t *data, size_t size, bool is_end) {
    (void)connection, (void)id;
    struct request *request = (struct request *)stream;
    if (request->ended) return;
    if (endpoint->setup.upload) {
        received_answer(endpoint, request, size, is_end);
        return;
    }
    store(endpoint, request, data, size);
    if (is_end) end(endpoint, request, NULL);
}

static void reset(struct endpoint *endpoint, struct stream *stream, uint64_t code) {
    struct request *request = (struct request *)stream;
    if (request->ended) return;
    end(endpoint, request, format_text("%s: reset by the server with code %" PRIu64, request->path, code));
}

static void stream_closed(struct endpoint *endpoint, struct stream *stream) {
    struct request *request = (struct request *)stream;
    if (!request->ended) end(endpoint, request, format_text("%s: the stream closed", request->path));
}

static void connection_deleted(struct endpoint *endpoint, const struct connection *connection) {
    struct requests *requests = requests_of(endpoint);
    if (requests->current != connection) return;
    requests->current = NULL;
    requests->done = true;
}

/* Closes a connection that has done its part, and goes on to the next, if there is one. */
static void act(struct endpoint *endpoint) {
    struct requests *requests = requests_of(endpoint);
    struct connection *current = requests->current;
    if (!current || current->life != ACTIVE || !ngtcp2_conn_get_handshake_completed(current->quic)) return;
    enum resume second = requests->second;
    if (requests->ended < requests->last || (second != AFRESH && !endpoint->tickets.session.size)) return;
    connection_close(current, endpoint->now, 0);
    if (second == AFRESH) return;
    requests->second = AFRESH;
    requests->last = endpoint->setup.request_count;
    requests->current = endpoint_connect(endpoint, second);
    if (second == EARLY_DATA) ask(endpoint, requests->current);
}

static bool is_done(const struct endpoint *endpoint) {
    const struct requests *requests = endpoint->requests;
    return requests->done || (requests->current && requests->current->life != ACTIVE);
}

static void finish(struct endpoint *endpoint) {
    for (size_t i = 0; i < endpoint->setup.request_count; i++) {
        struct request *request = &requests_of(endpoint)->all[i];
        if (request->out) file_close(request->out);
    }
}

static json_t *report(const struct endpoint *endpoint) {
    const struct requests *requests = endpoint->requests;
    json_t *all = json_array();
    for (size_t i = 0; i < endpoint->setup.request_count; i++) {
        const struct request *request = &requests->all[i];
        json_array_append_new(all, json_pack("{s:s, s:I, s:o, s:o}", "path", request->path,
                                             "bytes", (json_int_t)request->bytes,
                                             "first_byte_ns", trial_time(endpoint, request->first_byte_at),
                                             "last_byte_ns", trial_time(endpoint, request->last_byte_at)));
    }
    return all;
}

const struct application client = {
    .init = init,
    .start = start,
    .streams_allowed = ask,
    .sent = sent,
    .rejected = rejected,
    .received = received,
    .reset = reset,
    .stream_closed = stream_closed,
    .connection_deleted = connection_deleted,
    .act = act,
    .is_done = is_done,
    .finish = finish,
    .report = report,
};
