#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "family.h"

__attribute__((noreturn)) static void end(int code, const char *format, va_list arguments) {
    fprintf(stderr, "bentpipe-endpoint-%s: ", family.stack->name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    exit(code);
}

void ep_unsupported(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    end(127, format, arguments);
}

void ep_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    end(1, format, arguments);
}

uint64_t ep_count(const char *name, const char *value, uint64_t least, uint64_t most) {
    char *end_of_number;
    errno = 0;
    uint64_t number = strtoull(value, &end_of_number, 10);
    if (errno || *end_of_number || *value < '0' || *value > '9' || number < least || number > most) {
        ep_unsupported("option %s=%s: give a whole number from %" PRIu64 " to %" PRIu64, name, value, least, most);
    }
    return number;
}

void *ep_allocate(size_t size) {
    void *memory = calloc(1, size ? size : 1);
    if (!memory) ep_fail("there is no memory for %zu bytes", size);
    return memory;
}

void *ep_reallocate(void *memory, size_t size) {
    memory = realloc(memory, size ? size : 1);
    if (!memory) ep_fail("there is no memory for %zu bytes", size);
    return memory;
}

char *ep_format(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = ep_allocate((size_t)length + 1);
    va_start(arguments, format);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return text;
}
