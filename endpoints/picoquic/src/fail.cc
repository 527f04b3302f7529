#include "fail.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

[[noreturn]] static void end(int code, const char *format, va_list arguments) {
    fputs("bentpipe-endpoint-picoquic: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    exit(code);
}

void unsupported(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    end(127, format, arguments);
}

void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    end(1, format, arguments);
}
