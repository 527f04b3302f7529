// The messages of virtual time (endpoints/CONTRACT.md).
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

enum class Frame : uint8_t { none = 0, hello, ready, run, ran, finish, bye };  // none: the coordinator went away

using Bytes = std::vector<uint8_t>;

// Integers of frames are little-endian.
void append_integer(Bytes &to, uint64_t value, size_t size);
uint64_t read_integer(const uint8_t *from, size_t size);

Frame receive_frame(Bytes &body);
void send_frame(Frame type, const void *body, size_t size);
