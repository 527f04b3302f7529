/* The client of hq-interop (endpoints/contract/test-cases.md): asks for everything at once, or for the first request
 * and then, over a second connection, for the others; stores the replies, or in `upload` sends the files; closes. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "family.h"

struct request {
    struct ep_exchange exchange; /* first: an exchange is its request */
    char *path;                  /* with its slash */
    char *question;
    struct mapping upload; /* the file that is sent, in `upload` */
    struct file *out;      /* the file that the reply is stored in, otherwise; NULL until it begins */
    uint64_t bytes, first_byte_at, last_byte_at;
    bool ended;
};

static struct request *requests;
static size_t asked, ended;
static size_t last; /* the requests of the current connection end here */

static struct request new_request(const char *url) {
    const char *slash = strncmp(url, "https://", 8) == 0 ? strchr(url + 8, '/') : NULL;
    if (!slash) ep_fail("requests: \"%s\" is no URL such as https://server:443/1024", url);
    bool upload = family.job.upload;
    struct request request = {
        .path = ep_format("%s", slash),
        .question = ep_format("%s %s\r\n", upload ? "PUT" : "GET", slash),
        .first_byte_at = EP_NEVER,
        .last_byte_at = EP_NEVER,
    };
    if (!upload && !path_is_within(slash + 1)) {
        ep_fail("requests: the path of \"%s\" must name a file within the downloads", url);
    }
    if (upload && !file_map(family.job.www, slash + 1, &request.upload)) {
        ep_fail("requests: the path of \"%s\" names no file within %s", url, family.job.www);
    }
    return request;
}

static void init(void) {
    if (family.job.upload) family.job.www = real_folder(family.job.www);
    requests = ep_allocate(family.request_count * sizeof *requests);
    for (size_t i = 0; i < family.request_count; i++) requests[i] = new_request(family.requests[i]);
    last = family.second != EP_AFRESH && family.request_count ? 1 : family.request_count;
}

static void open_connection(enum ep_resume how) {
    family.stack->connect(how, family.now / family.stack->tick);
}

void client_start(void) {
    open_connection(EP_AFRESH);
}

/* Before a request is asked again, after early data were rejected, its stream is made anew. */
void ep_ask(void) {
    for (; asked < last; asked++) {
        struct request *request = &requests[asked];
        request->exchange = (struct ep_exchange){
            .unsent = {{(const uint8_t *)request->question, strlen(request->question)},
                       {request->upload.data, request->upload.size}},
        };
        if (!family.stack->open_stream(&request->exchange)) return;
    }
}

/* The second connection has all requests but the first. */
void ep_early_data_rejected(void) {
    asked = 1;
}

static void sent(struct ep_exchange *exchange) {
    struct request *request = (struct request *)exchange;
    size_t left = ep_unsent(exchange);
    if (!family.job.upload || left >= request->upload.size) return;
    request->bytes = request->upload.size - left;
    if (request->first_byte_at == EP_NEVER) request->first_byte_at = family.now;
}

/* An empty reply is a file, too. */
static void store(struct request *request, const uint8_t *data, size_t size) {
    const char *downloads = family.job.downloads;
    if (!request->out) request->out = file_create(downloads, request->path + 1);
    if (!request->out) ep_fail("%s%s cannot be written: %s", downloads, request->path, strerror(errno));
    if (size == 0) return;
    file_write(request->out, data, size);
    request->bytes += size;
    request->last_byte_at = family.now;
    if (request->first_byte_at == EP_NEVER) request->first_byte_at = family.now;
}

static void end(struct request *request) {
    if (!request->ended) ended++;
    request->ended = true;
}

/* FIN alone is the answer, when the server has all. */
static void received_answer(struct request *request, size_t size, bool is_end) {
    if (size > 0) {
        ep_error("%s: answered with bytes, where none belong", request->path);
        end(request);
    } else if (is_end && ep_unsent(&request->exchange) > 0) {
        ep_error("%s: the server answered before it had the file", request->path);
        end(request);
    } else if (is_end) {
        request->last_byte_at = family.now;
        end(request);
    }
}

static void received(struct ep_exchange *exchange, const uint8_t *data, size_t size, bool is_end) {
    struct request *request = (struct request *)exchange;
    if (request->ended) return;
    if (family.job.upload) {
        received_answer(request, size, is_end);
        return;
    }
    store(request, data, size);
    if (is_end) end(request);
}

static void reset(struct ep_exchange *exchange, uint64_t code) {
    struct request *request = (struct request *)exchange;
    if (request->ended) return;
    ep_error("%s: reset by the server with code %" PRIu64, request->path, code);
    end(request);
}

static void stream_closed(struct ep_exchange *exchange) {
    struct request *request = (struct request *)exchange;
    if (request->ended) return;
    ep_error("%s: the stream closed", request->path);
    end(request);
}

static void connection_closed(const void *connection) {
    (void)connection; /* its requests are reported as far as they came */
}

void client_act(void) {
    if (family.job.server || !family.started || !family.stack->is_open() || ended < last) return;
    enum ep_resume second = family.second;
    if (second != EP_AFRESH && !family.stack->has_ticket()) return;
    family.stack->close(family.now / family.stack->tick);
    if (second == EP_AFRESH) return;
    family.second = EP_AFRESH;
    last = family.request_count;
    open_connection(second);
    if (second == EP_EARLY_DATA) ep_ask();
}

static void finish(void) {
    for (size_t i = 0; i < family.request_count; i++) {
        if (requests[i].out) file_close(requests[i].out);
    }
}

json_t *client_report(void) {
    json_t *all = json_array();
    for (size_t i = 0; !family.job.server && i < family.request_count; i++) {
        const struct request *request = &requests[i];
        json_array_append_new(all, json_pack("{s:s, s:I, s:o, s:o}", "path", request->path, "bytes",
                                             (json_int_t)request->bytes, "first_byte_ns",
                                             trial_time(request->first_byte_at), "last_byte_ns",
                                             trial_time(request->last_byte_at)));
    }
    return all;
}

const struct side client_side = {
    .init = init,
    .received = received,
    .sent = sent,
    .reset = reset,
    .stream_closed = stream_closed,
    .connection_closed = connection_closed,
    .finish = finish,
};
