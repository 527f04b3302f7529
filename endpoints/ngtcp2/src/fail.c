#include "fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void complain(const char *format, va_list arguments) {
    fputs("bentpipe-endpoint-ngtcp2: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

void unsupported(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    complain(format, arguments);
    va_end(arguments);
    exit(127);
}

void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    complain(format, arguments);
    va_end(arguments);
    exit(1);
}

void *allocate(size_t size) {
    void *memory = calloc(1, size ? size : 1);
    if (!memory) fail("there is no memory for %zu bytes", size);
    return memory;
}

void *reallocate(void *memory, size_t size) {
    memory = realloc(memory, size ? size : 1);
    if (!memory) fail("there is no memory for %zu bytes", size);
    return memory;
}

char *format_text(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = allocate((size_t)length + 1);
    va_start(arguments, format);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return text;
}
