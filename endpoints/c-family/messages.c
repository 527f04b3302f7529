#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "family.h"

#define FROM_COORDINATOR 3
#define TO_COORDINATOR 4
#define LARGEST_BODY (1u << 28)
#define HEADER 5
/* Added to the type of a message whose body is in shared memory. */
#define SHARED 0x80
/* Shorter messages go through the pipe. */
#define SHARED_FROM 2048

/* Shared memory: bodies to this program in the first half, from it in the second. NULL: there is none. */
static uint8_t *memory;
static size_t half;

void messages_share(int file, size_t size) {
    struct stat status;
    /* Behind a program that passes on the first four descriptors alone. */
    if (fstat(file, &status) != 0 || (size_t)status.st_size != size) return;
    memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) ep_fail("shared memory cannot be mapped: %s", strerror(errno));
    half = size / 2;
    close(file);
}

bool messages_shared(void) { return memory; }

static void reserve(struct bytes *bytes, size_t size) {
    if (size <= bytes->capacity) return;
    bytes->capacity = size > 2 * bytes->capacity ? size : 2 * bytes->capacity;
    const uint8_t *lent = bytes->lent ? bytes->data : NULL;
    bytes->data = ep_reallocate(lent ? NULL : bytes->data, bytes->capacity);
    if (lent) memcpy(bytes->data, lent, bytes->size);
    bytes->lent = false;
}

void message_begin(struct bytes *body) {
    body->size = 0;
    if (!memory || body->lent) return;
    free(body->data);
    *body = (struct bytes){.data = memory + half, .capacity = half, .lent = true};
}

void bytes_append(struct bytes *bytes, const void *data, size_t size) {
    reserve(bytes, bytes->size + size);
    memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
}

void bytes_append_integer(struct bytes *bytes, uint64_t value, size_t size) {
    uint8_t encoded[8];
    for (size_t i = 0; i < size; i++) encoded[i] = (uint8_t)(value >> 8 * i);
    bytes_append(bytes, encoded, size);
}

uint64_t read_integer(const uint8_t *bytes, size_t size) {
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

/* Whether all could be read before the end of the file. */
static bool read_all(uint8_t *buffer, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t count = read(FROM_COORDINATOR, buffer + done, size - done);
        if (count == 0) return false;
        if (count < 0 && errno != EINTR) ep_fail("reading file descriptor 3: %s", strerror(errno));
        if (count > 0) done += (size_t)count;
    }
    return true;
}

int message_receive(uint8_t **body, size_t *size) {
    static struct bytes from_pipe;
    uint8_t header[HEADER];
    if (!read_all(header, HEADER)) return 0;
    *size = read_integer(header, 4);
    if (header[4] & SHARED) {
        if (*size > half) ep_fail("a message of %zu bytes in shared memory", *size);
        *body = memory;
        return header[4] & ~SHARED;
    }
    if (*size > LARGEST_BODY) ep_fail("a message of %zu bytes; the contract allows 2^28", *size);
    reserve(&from_pipe, *size + 1);
    *body = from_pipe.data;
    if (!read_all(*body, *size)) return 0;
    (*body)[*size] = 0;
    return header[4];
}

static void write_all(const uint8_t *data, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t count = write(TO_COORDINATOR, data + done, size - done);
        if (count < 0 && errno != EINTR) ep_fail("writing file descriptor 4: %s", strerror(errno));
        if (count > 0) done += (size_t)count;
    }
}

void message_send(enum message type, const void *body, size_t size) {
    static struct bytes message;
    /* The coordinator learns from READY that the memory is used. */
    bool shared = type != READY && size >= SHARED_FROM && size <= half;
    if (shared && body != memory + half) memcpy(memory + half, body, size);
    message.size = 0;
    bytes_append_integer(&message, size, 4);
    bytes_append_integer(&message, shared ? type | SHARED : type, 1);
    if (!shared) bytes_append(&message, body, size);
    write_all(message.data, message.size);
}

void message_send_json(enum message type, json_t *answer) {
    char *text = json_dumps(answer, JSON_COMPACT);
    if (!text) ep_fail("there is no memory for an answer, or it is not UTF-8");
    message_send(type, text, strlen(text));
    free(text);
    json_decref(answer);
}
