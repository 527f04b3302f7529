/* The server of hq-interop (endpoints/contract/test-cases.md): answers `GET /path` with the file, or in `upload` stores
 * the file of `PUT /path` and answers with FIN; or with RESET_STREAM. */
#include <stdlib.h>
#include <string.h>

#include "family.h"

/* A longer request line is refused. */
#define LONGEST_QUESTION 4096

struct answer {
    struct ep_exchange exchange; /* first: an exchange is its answer */
    char question[LONGEST_QUESTION + 1];
    size_t question_bytes;
    bool understood; /* the request is complete, and the file open */
    bool answered;   /* or refused */
    struct mapping file; /* the answer */
    struct file *upload; /* the file that comes; NULL: its name is not known yet, or it is complete */
    struct answer *next; /* of all */
};

static struct answer *answers;

/* The real path, so that requested paths can be compared with it. */
static void init(void) {
    if (!family.job.upload) family.job.www = real_folder(family.job.www);
}

struct ep_exchange *ep_accept(void *connection, int64_t id) {
    struct answer *answer = ep_allocate(sizeof *answer);
    answer->exchange.connection = connection;
    answer->exchange.id = id;
    /* There is nothing to send before the request is complete. */
    answer->exchange.finished = true;
    answer->next = answers;
    answers = answer;
    return &answer->exchange;
}

/* The rest of the request is ignored, and nothing is answered. */
static void refuse(struct answer *answer) {
    answer->answered = true;
    family.stack->refuse(&answer->exchange);
}

static void send_answer(struct answer *answer) {
    answer->answered = true;
    answer->exchange.finished = false;
    answer->exchange.unsent[0] = (struct ep_part){answer->file.data, answer->file.size};
    family.stack->answer(&answer->exchange);
}

/* Opens the file that the request names; false if it is of another method, or leads out of the folder. */
static bool understand(struct answer *answer) {
    char *question = answer->question;
    size_t length = answer->question_bytes - 1; /* without \n */
    if (length && question[length - 1] == '\r') length--;
    question[length] = 0;
    const char *method = family.job.upload ? "PUT /" : "GET /", *path = question + strlen(method);
    if (strlen(question) != length || strncmp(question, method, strlen(method)) != 0) return false;
    if (!path_is_within(path)) return false;
    if (!family.job.upload) return file_map(family.job.www, path, &answer->file);
    answer->upload = file_create(family.job.downloads, path);
    return answer->upload;
}

/* Takes of `data` what is of the question, up to \n, and returns how much that is. Refuses what is none. */
static size_t take_question(struct answer *answer, const uint8_t *data, size_t size, bool is_end) {
    const uint8_t *newline = size ? memchr(data, '\n', size) : NULL;
    size_t line = newline ? (size_t)(newline - data) + 1 : size;
    bool fits = line <= LONGEST_QUESTION - answer->question_bytes;
    if (fits && line) memcpy(answer->question + answer->question_bytes, data, line);
    if (fits) answer->question_bytes += line;
    answer->understood = fits && newline && understand(answer);
    if (!fits || ((newline || is_end) && !answer->understood)) refuse(answer);
    return line;
}

static void received(struct ep_exchange *exchange, const uint8_t *data, size_t size, bool is_end) {
    struct answer *answer = (struct answer *)exchange;
    if (answer->answered) return;
    if (!answer->understood) {
        size_t line = take_question(answer, data, size, is_end);
        if (!answer->understood) return;
        data += line;
        size -= line;
    }
    if (answer->upload && size) file_write(answer->upload, data, size);
    if (!is_end) return;
    if (answer->upload) file_close(answer->upload);
    answer->upload = NULL;
    send_answer(answer);
}

static void sent(struct ep_exchange *exchange) {
    (void)exchange;
}

/* The question will not be completed. */
static void reset(struct ep_exchange *exchange, uint64_t code) {
    (void)code;
    struct answer *answer = (struct answer *)exchange;
    if (!answer->answered) refuse(answer);
}

static void release(struct answer *answer) {
    file_unmap(&answer->file);
    if (answer->upload) file_close(answer->upload);
    free(answer);
}

/* Releases those of a connection, or the one. */
static void release_some(const void *connection, const struct ep_exchange *exchange) {
    for (struct answer **at = &answers; *at;) {
        struct answer *answer = *at;
        if (&answer->exchange == exchange || (connection && answer->exchange.connection == connection)) {
            *at = answer->next;
            release(answer);
        } else {
            at = &answer->next;
        }
    }
}

static void stream_closed(struct ep_exchange *exchange) {
    release_some(NULL, exchange);
}

static void connection_closed(const void *connection) {
    release_some(connection, NULL);
}

static void finish(void) {
    for (struct answer *at = answers; at; at = at->next) {
        if (at->upload) file_close(at->upload);
        at->upload = NULL;
    }
}

const struct side server_side = {
    .init = init,
    .received = received,
    .sent = sent,
    .reset = reset,
    .stream_closed = stream_closed,
    .connection_closed = connection_closed,
    .finish = finish,
};
