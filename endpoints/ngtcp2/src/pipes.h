/* The messages of virtual time (endpoints/CONTRACT.md) over file descriptors 3 and 4. Integers are
 * little-endian. */
#ifndef PIPES_H
#define PIPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum frame { HELLO = 1, READY, RUN, RAN, FINISH, BYE };

/* Bytes that grow. */
struct bytes {
    uint8_t *data;
    size_t size, capacity;
};

void bytes_append(struct bytes *bytes, const void *data, size_t size);
/* Appends the `size` lower bytes. */
void bytes_append_integer(struct bytes *bytes, uint64_t value, size_t size);
uint64_t read_integer(const uint8_t *bytes, size_t size);

/* Reads the next frame's body, followed by a 0, and returns its type; 0 when the coordinator went away. */
int frame_receive(struct bytes *body);

/* Writes a frame. */
void frame_send(enum frame type, const void *body, size_t size);

#endif
