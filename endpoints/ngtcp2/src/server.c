/* The server of hq-interop (endpoints/contract/test-cases.md): answers `GET /path` with the file, or in `upload` stores
 * the file of `PUT /path` and answers with FIN; or with RESET_STREAM. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "endpoint.h"
#include "fail.h"
#include "files.h"

/* A question longer than this is none. */
#define LONGEST_QUESTION 4096

struct exchange {
    struct stream stream; /* first: a stream is its exchange */
    char question[LONGEST_QUESTION + 1];
    size_t question_bytes;
    bool answered;
    struct exchange *next; /* of all exchanges of the endpoint */
    struct mapping file; /* the answer */
    FILE *upload;        /* the file that comes; NULL: its name is not known yet, or it is complete */
};

/* The real path, so that what is asked for can be compared with it. */
static void init(struct endpoint *endpoint) {
    struct setup *setup = &endpoint->setup;
    if (setup->upload) return;
    char *www = realpath(setup->www, NULL);
    if (!www) fail("www: %s: %s", setup->www, strerror(errno));
    setup->www = www;
}

/* Nothing more of the question is wanted, and nothing is answered. */
static void refuse(struct exchange *exchange) {
    exchange->answered = true;
    shutdown_stream(exchange->stream.connection->quic, exchange->stream.id, REFUSED);
}

static void answer(struct exchange *exchange) {
    struct stream *stream = &exchange->stream;
    exchange->answered = true;
    stream->unsent[0] = (ngtcp2_vec){exchange->file.data, exchange->file.size};
    stream->finished = false;
    stream_queue(stream);
}

/* Adds to the question; false if it gets too long. */
static bool keep_question(struct exchange *exchange, const uint8_t *data, size_t size) {
    if (size > LONGEST_QUESTION - exchange->question_bytes) return false;
    memcpy(exchange->question + exchange->question_bytes, data, size);
    exchange->question_bytes += size;
    return true;
}

/* The path of `METHOD /path\r\n`, without its first slash; NULL if the question is something else. */
static const char *asked_path(struct exchange *exchange, const char *method) {
    char *question = exchange->question;
    size_t length = exchange->question_bytes, start = strlen(method);
    while (length && (question[length - 1] == '\r' || question[length - 1] == '\n')) length--;
    question[length] = 0;
    bool right = strlen(question) == length && length > start && strncmp(question, method, start) == 0;
    return right ? question + start : NULL;
}

static void received_get(struct endpoint *endpoint, struct exchange *exchange, const uint8_t *data, size_t size,
                         bool is_end) {
    if (!keep_question(exchange, data, size)) {
        refuse(exchange);
    } else if (is_end) {
        const char *path = asked_path(exchange, "GET /");
        if (path && file_map(endpoint->setup.www, path, &exchange->file)) {
            answer(exchange);
        } else {
            refuse(exchange);
        }
    }
}

/* Opens the file that the question names; NULL if it is no PUT, leads out of the downloads, or cannot be made. */
static FILE *open_upload(struct exchange *exchange, const char *downloads) {
    const char *path = asked_path(exchange, "PUT /");
    return path && path_is_within(path) ? file_create(downloads, path) : NULL;
}

static void received_put(struct endpoint *endpoint, struct exchange *exchange, const uint8_t *data, size_t size,
                         bool is_end) {
    if (!exchange->upload) {
        const uint8_t *newline = size ? memchr(data, '\n', size) : NULL;
        size_t line = newline ? (size_t)(newline - data) + 1 : size;
        bool kept = keep_question(exchange, data, line);
        if (kept && newline) exchange->upload = open_upload(exchange, endpoint->setup.downloads);
        if (!kept || ((newline || is_end) && !exchange->upload)) {
            refuse(exchange);
            return;
        }
        data += line;
        size -= line;
    }
    if (size) file_write(exchange->upload, data, size);
    if (!is_end) return;
    file_close(exchange->upload);
    exchange->upload = NULL;
    answer(exchange);
}

static struct exchange *new_exchange(struct connection *connection, int64_t id) {
    struct exchange *exchange = allocate(sizeof *exchange);
    exchange->next = connection->endpoint->requests;
    connection->endpoint->requests = exchange;
    exchange->stream.id = id;
    exchange->stream.connection = connection;
    /* There is nothing to send before the question is complete. */
    exchange->stream.finished = true;
    ngtcp2_conn_set_stream_user_data(connection->quic, id, &exchange->stream);
    return exchange;
}

static void received(struct endpoint *endpoint, struct connection *connection, struct stream *stream, int64_t id,
                     const uint8_t *data, size_t size, bool is_end) {
    struct exchange *exchange = stream ? (struct exchange *)stream : new_exchange(connection, id);
    if (exchange->answered) return;
    (endpoint->setup.upload ? received_put : received_get)(endpoint, exchange, data, size, is_end);
}

/* The question will not be completed. */
static void reset(struct endpoint *endpoint, struct stream *stream, uint64_t code) {
    (void)endpoint, (void)code;
    struct exchange *exchange = (struct exchange *)stream;
    if (!exchange->answered) refuse(exchange);
}

static void release(struct exchange *exchange) {
    file_unmap(&exchange->file);
    if (exchange->upload) file_close(exchange->upload);
    free(exchange);
}

static void stream_closed(struct endpoint *endpoint, struct stream *stream) {
    struct exchange *all = endpoint->requests, *before = NULL;
    for (struct exchange *at = all; &at->stream != stream; at = at->next) before = at;
    struct exchange *exchange = (struct exchange *)stream;
    if (before) {
        before->next = exchange->next;
    } else {
        endpoint->requests = exchange->next;
    }
    release(exchange);
}

static void connection_deleted(struct endpoint *endpoint, const struct connection *connection) {
    struct exchange *kept = NULL;
    for (struct exchange *at = endpoint->requests, *next; at; at = next) {
        next = at->next;
        if (at->stream.connection == connection) {
            release(at);
        } else {
            at->next = kept;
            kept = at;
        }
    }
    endpoint->requests = kept;
}

static void nothing(struct endpoint *endpoint) {
    (void)endpoint;
}

static void no_streams(struct endpoint *endpoint, struct connection *connection) {
    (void)endpoint, (void)connection;
}

static void no_matter(struct endpoint *endpoint, struct stream *stream) {
    (void)endpoint, (void)stream;
}

static json_t *no_requests(const struct endpoint *endpoint) {
    (void)endpoint;
    return json_array();
}

static bool is_done(const struct endpoint *endpoint) {
    for (size_t i = 0; i < endpoint->connection_count; i++) {
        if (endpoint->connections[i]->life == ACTIVE) return false;
    }
    return endpoint->had_any;
}

const struct application server = {
    .init = init,
    .start = nothing,
    .streams_allowed = no_streams,
    .sent = no_matter,
    .rejected = no_streams,
    .received = received,
    .reset = reset,
    .stream_closed = stream_closed,
    .connection_deleted = connection_deleted,
    .act = nothing,
    .is_done = is_done,
    .finish = nothing,
    .report = no_requests,
};
