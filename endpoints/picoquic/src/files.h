// Files of a folder that peers name: nothing outside of it is read or written.
#pragma once
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

struct CloseFile {
    void operator()(FILE *file) const { fclose(file); }
};
using File = std::unique_ptr<FILE, CloseFile>;

// Whether `path`, as in `/a/b`, has no part that is empty, `.` or `..`.
bool path_is_plain(const std::string &path);
// Opens `folder` + `path` for reading, and says how long it is; null if that is no file within the folder.
File open_for_reading(const std::string &folder, const std::string &path, uint64_t &size);
// Makes `folder` + `path`, and the folders that lead to it; null if it cannot be, or leads through a symbolic link.
File open_for_writing(const std::string &folder, const std::string &path);
// Ends the program if the disk does not take them.
void write_file(const File &file, const uint8_t *data, size_t size);
void close_file(File &file);
