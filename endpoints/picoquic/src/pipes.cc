#include "pipes.h"

#include <cerrno>
#include <cstring>
#include <unistd.h>

#include "fail.h"

static const int FROM_COORDINATOR = 3, TO_COORDINATOR = 4;
static const size_t HEADER = 5, LARGEST_BODY = size_t{1} << 28;

void append_integer(Bytes &to, uint64_t value, size_t size) {
    for (size_t i = 0; i < size; i++) to.push_back(static_cast<uint8_t>(value >> 8 * i));
}

uint64_t read_integer(const uint8_t *from, size_t size) {
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) value |= uint64_t{from[i]} << 8 * i;
    return value;
}

// Whether all could be read before the end of the file.
static bool read_all(uint8_t *buffer, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t count = read(FROM_COORDINATOR, buffer + done, size - done);
        if (count == 0) return false;
        if (count < 0 && errno != EINTR) fail("reading file descriptor 3: %s", strerror(errno));
        if (count > 0) done += static_cast<size_t>(count);
    }
    return true;
}

Frame receive_frame(Bytes &body) {
    uint8_t header[HEADER];
    if (!read_all(header, HEADER)) return Frame::none;
    size_t size = read_integer(header, 4);
    if (size > LARGEST_BODY) fail("a frame of %zu bytes; the contract allows 2^28", size);
    body.resize(size);
    if (!read_all(body.data(), size)) return Frame::none;
    return static_cast<Frame>(header[4]);
}

void send_frame(Frame type, const void *body, size_t size) {
    Bytes frame;
    frame.reserve(HEADER + size);
    append_integer(frame, size, 4);
    append_integer(frame, static_cast<uint8_t>(type), 1);
    const uint8_t *begin = static_cast<const uint8_t *>(body);
    frame.insert(frame.end(), begin, begin + size);
    for (size_t done = 0; done < frame.size();) {
        ssize_t count = write(TO_COORDINATOR, frame.data() + done, frame.size() - done);
        if (count < 0 && errno != EINTR) fail("writing file descriptor 4: %s", strerror(errno));
        if (count > 0) done += static_cast<size_t>(count);
    }
}
