/* How the program gives up: in words on standard error, and by its exit code (endpoints/CONTRACT.md). */
#ifndef FAIL_H
#define FAIL_H

#include <stddef.h>

/* Exit code 127: the role, test case, option or value is not supported. Only before the first packet. */
_Noreturn void unsupported(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Exit code 1: anything else. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* As malloc and realloc, zeroed when new; fails when there is no memory. */
void *allocate(size_t size);
void *reallocate(void *memory, size_t size);

/* A new string, as printf makes it. */
char *format_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
