/* The server of hq-interop (endpoints/CONTRACT.md, section 2): answers `GET /path` with the file, or with RESET_STREAM. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "endpoint.h"
#include "fail.h"

/* A question longer than this is none. */
#define LONGEST_QUESTION 4096

struct exchange {
    struct stream stream; /* first: a stream is its exchange */
    char question[LONGEST_QUESTION + 1];
    size_t question_bytes;
    bool answered;
    struct exchange *next; /* of all exchanges of the endpoint */
    void *file;            /* mapped; NULL: there is none, or it is empty */
    size_t file_bytes;
};

/* The real path, so that what is asked for can be compared with it. */
static void init(struct endpoint *endpoint) {
    struct setup *setup = &endpoint->setup;
    char *www = realpath(setup->www, NULL);
    if (!www) fail("www: %s: %s", setup->www, strerror(errno));
    setup->www = www;
}

/* The file that is meant, opened; -1 if there is none within `www`. */
static int open_file(const char *www, const char *path) {
    char *asked = format_text("%s/%s", www, path), *real = realpath(asked, NULL);
    free(asked);
    size_t length = strlen(www);
    bool within = real && strncmp(real, www, length) == 0 && real[length] == '/';
    int file = within ? open(real, O_RDONLY | O_CLOEXEC) : -1;
    free(real);
    return file;
}

/* Maps the file of `GET /path\r\n`: what is not sent is not read, and nothing is copied. */
static bool load(struct exchange *exchange, const char *www) {
    char *question = exchange->question;
    size_t length = exchange->question_bytes;
    while (length && (question[length - 1] == '\r' || question[length - 1] == '\n')) length--;
    question[length] = 0;
    if (strlen(question) != length || strncmp(question, "GET /", 5) != 0 || !question[5]) return false;
    int file = open_file(www, question + 5);
    if (file < 0) return false;
    struct stat status;
    bool regular = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
    if (regular && status.st_size > 0) {
        exchange->file_bytes = (size_t)status.st_size;
        exchange->file = mmap(NULL, exchange->file_bytes, PROT_READ, MAP_PRIVATE, file, 0);
        if (exchange->file == MAP_FAILED) fail("a file cannot be mapped: %s", strerror(errno));
    }
    close(file);
    return regular;
}

static void answer(struct endpoint *endpoint, struct exchange *exchange) {
    struct stream *stream = &exchange->stream;
    exchange->answered = true;
    if (!load(exchange, endpoint->setup.www)) {
        stream->finished = true;
        shutdown_stream(stream->connection->quic, stream->id, REFUSED);
        return;
    }
    stream->unsent = exchange->file ? exchange->file : (const uint8_t *)"";
    stream->unsent_bytes = exchange->file_bytes;
    stream->finished = false;
    stream_queue(stream);
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
    size_t room = LONGEST_QUESTION - exchange->question_bytes;
    memcpy(exchange->question + exchange->question_bytes, data, size < room ? size : room);
    exchange->question_bytes += size < room ? size : room;
    if (size > room) {
        exchange->answered = true;
        shutdown_stream(connection->quic, id, REFUSED);
    } else if (is_end) {
        answer(endpoint, exchange);
    }
}

/* The question will not be completed. */
static void reset(struct endpoint *endpoint, struct stream *stream, uint64_t code) {
    (void)endpoint, (void)code;
    struct exchange *exchange = (struct exchange *)stream;
    if (exchange->answered) return;
    exchange->answered = true;
    shutdown_stream(stream->connection->quic, stream->id, REFUSED);
}

static void release(struct exchange *exchange) {
    if (exchange->file) munmap(exchange->file, exchange->file_bytes);
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

static void no_requests(const struct endpoint *endpoint, FILE *out) {
    (void)endpoint, (void)out;
}

static bool is_done(const struct endpoint *endpoint) {
    for (size_t i = 0; i < endpoint->connection_count; i++) {
        if (endpoint->connections[i]->life == ACTIVE) return false;
    }
    return endpoint->had_any;
}

const struct application server = {
    .init = init,
    .streams_allowed = no_streams,
    .received = received,
    .reset = reset,
    .stream_closed = stream_closed,
    .connection_deleted = connection_deleted,
    .act = nothing,
    .is_done = is_done,
    .finish = nothing,
    .report = no_requests,
};
