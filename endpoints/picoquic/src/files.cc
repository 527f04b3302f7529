#include "files.h"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fail.h"

static const size_t BUFFER = 1 << 18;

static File buffered(int descriptor, const char *mode) {
    File file(descriptor < 0 ? nullptr : fdopen(descriptor, mode));
    if (file) setvbuf(file.get(), nullptr, _IOFBF, BUFFER);
    return file;
}

bool path_is_plain(const std::string &path) {
    if (path.empty() || path[0] != '/' || path.find('\0') != std::string::npos) return false;
    for (size_t at = 1; at <= path.size();) {
        size_t end = std::min(path.find('/', at), path.size());
        std::string part = path.substr(at, end - at);
        if (part.empty() || part == "." || part == "..") return false;
        at = end + 1;
    }
    return path.size() > 1;
}

File open_for_reading(const std::string &folder, const std::string &path, uint64_t &size) {
    if (!path_is_plain(path)) return nullptr;
    char real_folder[PATH_MAX], real[PATH_MAX];
    if (!realpath(folder.c_str(), real_folder)) fail("%s: %s", folder.c_str(), strerror(errno));
    if (!realpath((folder + path).c_str(), real)) return nullptr;
    std::string within = std::string(real_folder) + "/";
    if (strncmp(real, within.c_str(), within.size()) != 0) return nullptr;
    File file = buffered(open(real, O_RDONLY | O_CLOEXEC), "rb");
    struct stat status;
    if (!file || fstat(fileno(file.get()), &status) != 0 || !S_ISREG(status.st_mode)) return nullptr;
    size = static_cast<uint64_t>(status.st_size);
    return file;
}

File open_for_writing(const std::string &folder, const std::string &path) {
    if (!path_is_plain(path)) return nullptr;
    int within = open(folder.c_str(), O_DIRECTORY | O_CLOEXEC);
    size_t at = 1;
    for (size_t slash; within >= 0 && (slash = path.find('/', at)) != std::string::npos; at = slash + 1) {
        std::string part = path.substr(at, slash - at);
        bool there = mkdirat(within, part.c_str(), 0777) == 0 || errno == EEXIST;
        int next = there ? openat(within, part.c_str(), O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
        close(within);
        within = next;
    }
    if (within < 0) return nullptr;
    int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
    File file = buffered(openat(within, path.c_str() + at, flags, 0666), "wb");
    close(within);
    return file;
}

void write_file(const File &file, const uint8_t *data, size_t size) {
    if (fwrite(data, 1, size, file.get()) != size) fail("a file cannot be written: %s", strerror(errno));
}

void close_file(File &file) {
    if (file && fclose(file.release()) != 0) fail("a file cannot be written: %s", strerror(errno));
}
