/* The client of hq-interop (endpoints/CONTRACT.md, section 2): asks for everything at once, stores the replies, closes. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "endpoint.h"
#include "fail.h"
#include "json.h"

#define BUFFER_BYTES (1 << 18)

struct request {
    struct stream stream; /* first: a stream is its request */
    char *path;           /* with its slash */
    char *question;
    char *file;
    FILE *out;
    uint64_t bytes, first_byte_at, last_byte_at;
    bool ended;
};

struct requests {
    struct request *all;
    size_t asked, ended;
};

/* Whether each part of the path is a name, so that the file is within the downloads. */
static bool is_within(const char *path) {
    for (;;) {
        size_t length = strcspn(path, "/");
        if (length == 0 || (length <= 2 && strncmp(path, "..", length) == 0)) return false;
        if (!path[length]) return true;
        path += length + 1;
    }
}

static struct request new_request(const struct setup *setup, const char *url) {
    const char *slash = strncmp(url, "https://", 8) == 0 ? strchr(url + 8, '/') : NULL;
    if (!slash) fail("requests: \"%s\" is no URL such as https://server:443/1024", url);
    if (!is_within(slash + 1)) fail("requests: the path of \"%s\" must name a file within the downloads", url);
    return (struct request){
        .path = format_text("%s", slash),
        .question = format_text("GET %s\r\n", slash),
        .file = format_text("%s%s", setup->downloads, slash),
        .first_byte_at = NEVER,
        .last_byte_at = NEVER,
    };
}

static struct requests *requests_of(struct endpoint *endpoint) {
    return endpoint->requests;
}

static void init(struct endpoint *endpoint) {
    const struct setup *setup = &endpoint->setup;
    struct requests *requests = allocate(sizeof *requests);
    requests->all = allocate(setup->request_count * sizeof *requests->all);
    for (size_t i = 0; i < setup->request_count; i++) requests->all[i] = new_request(setup, setup->requests[i]);
    endpoint->requests = requests;
}

static void ask(struct endpoint *endpoint, struct connection *connection) {
    struct requests *requests = requests_of(endpoint);
    while (requests->asked < endpoint->setup.request_count) {
        struct request *request = &requests->all[requests->asked];
        struct stream *stream = &request->stream;
        if (ngtcp2_conn_open_bidi_stream(connection->quic, &stream->id, stream) != 0) return;
        stream->connection = connection;
        stream->unsent = (const uint8_t *)request->question;
        stream->unsent_bytes = strlen(request->question);
        stream_queue(stream);
        requests->asked++;
    }
}

static void make_folders(const char *file) {
    char *path = format_text("%s", file);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(path, 0777) != 0 && errno != EEXIST) fail("the folder %s cannot be made: %s", path, strerror(errno));
        *slash = '/';
    }
    free(path);
}

/* An empty reply is a file, too. */
static void store(struct request *request, uint64_t now, const uint8_t *data, size_t size) {
    if (!request->out) {
        make_folders(request->file);
        request->out = fopen(request->file, "w");
        if (!request->out) fail("%s cannot be written: %s", request->file, strerror(errno));
        setvbuf(request->out, NULL, _IOFBF, BUFFER_BYTES);
    }
    if (size == 0) return;
    if (fwrite(data, 1, size, request->out) != size) fail("%s cannot be written: %s", request->file, strerror(errno));
    request->bytes += size;
    request->last_byte_at = now;
    if (request->first_byte_at == NEVER) request->first_byte_at = now;
}

static void end(struct endpoint *endpoint, struct request *request, char *failure) {
    if (!request->ended) requests_of(endpoint)->ended++;
    if (failure) endpoint_error(endpoint, failure);
    request->ended = true;
}

static void received(struct endpoint *endpoint, struct connection *connection, struct stream *stream, int64_t id,
                     const uint8_t *data, size_t size, bool is_end) {
    (void)connection, (void)id;
    struct request *request = (struct request *)stream;
    store(request, endpoint->now, data, size);
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
    (void)endpoint, (void)connection;
}

static void act(struct endpoint *endpoint) {
    if (endpoint->connection_count == 0 || endpoint->handshake_at == NEVER) return;
    struct connection *connection = endpoint->connections[0];
    bool all = requests_of(endpoint)->ended == endpoint->setup.request_count;
    if (all && connection->life == ACTIVE) connection_close(connection, endpoint->now, 0);
}

static bool is_done(const struct endpoint *endpoint) {
    return endpoint->had_any;
}

static void finish(struct endpoint *endpoint) {
    for (size_t i = 0; i < endpoint->setup.request_count; i++) {
        struct request *request = &requests_of(endpoint)->all[i];
        if (request->out && fclose(request->out) != 0) fail("%s cannot be written: %s", request->file, strerror(errno));
    }
}

static void write_time(FILE *out, const char *key, uint64_t time, uint64_t zero) {
    if (time == NEVER) {
        fprintf(out, ",\"%s\":null", key);
    } else {
        fprintf(out, ",\"%s\":%" PRIu64, key, time - zero);
    }
}

static void report(const struct endpoint *endpoint, FILE *out) {
    const struct requests *requests = endpoint->requests;
    for (size_t i = 0; i < endpoint->setup.request_count; i++) {
        const struct request *request = &requests->all[i];
        fputs(i ? ",{\"path\":" : "{\"path\":", out);
        json_write_string(out, request->path);
        fprintf(out, ",\"bytes\":%" PRIu64, request->bytes);
        write_time(out, "first_byte_ns", request->first_byte_at, endpoint->setup.zero_time);
        write_time(out, "last_byte_ns", request->last_byte_at, endpoint->setup.zero_time);
        fputc('}', out);
    }
}

const struct application client = {
    .init = init,
    .streams_allowed = ask,
    .received = received,
    .reset = reset,
    .stream_closed = stream_closed,
    .connection_deleted = connection_deleted,
    .act = act,
    .is_done = is_done,
    .finish = finish,
    .report = report,
};
