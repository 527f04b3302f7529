/* TLS secrets in NSS key log format, for whoever decrypts the trace. */
#include <errno.h>
#include <string.h>

#include "family.h"

static FILE *file;

bool ep_wants_secrets(void) {
    const char *path = family.job.keylog;
    if (!path || file) return path;
    file = fopen(path, family.job.virtual_time ? "w" : "a");
    if (!file) ep_fail("the key log %s cannot be written: %s", path, strerror(errno));
    return true;
}

static void write_hex(const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) fprintf(file, "%02x", bytes[i]);
}

void ep_secret(const char *label, const uint8_t *client_random, size_t random_size, const uint8_t *secret,
               size_t size) {
    fprintf(file, "%s ", label);
    write_hex(client_random, random_size);
    fputc(' ', file);
    write_hex(secret, size);
    fputc('\n', file);
}

void secrets_close(void) {
    if (file && fclose(file) != 0) ep_fail("the key log cannot be written");
    file = NULL;
}
