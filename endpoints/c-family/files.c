#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "family.h"

/* The most that is written at once: a page a call costs half as much again. */
#define BUFFER_BYTES (1 << 16)

struct file {
    int descriptor;
    size_t buffered;
    uint8_t buffer[BUFFER_BYTES];
};

const char *real_folder(const char *www) {
    char *real = realpath(www, NULL);
    if (!real) ep_fail("www: %s: %s", www, strerror(errno));
    return real;
}

/* The file that is meant, opened; -1 if there is none within the folder. */
static int open_file(const char *folder, const char *path) {
    char *asked = ep_format("%s/%s", folder, path), *real = realpath(asked, NULL);
    free(asked);
    size_t length = strlen(folder);
    bool within = real && strncmp(real, folder, length) == 0 && real[length] == '/';
    int file = within ? open(real, O_RDONLY | O_CLOEXEC) : -1;
    free(real);
    return file;
}

bool file_map(const char *folder, const char *path, struct mapping *mapping) {
    *mapping = (struct mapping){0};
    int file = open_file(folder, path);
    if (file < 0) return false;
    struct stat status;
    bool regular = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
    if (regular && status.st_size > 0) {
        mapping->size = (size_t)status.st_size;
        mapping->data = mmap(NULL, mapping->size, PROT_READ, MAP_PRIVATE, file, 0);
        if (mapping->data == MAP_FAILED) ep_fail("a file cannot be mapped: %s", strerror(errno));
    }
    close(file);
    return regular;
}

void file_unmap(struct mapping *file) {
    if (file->data) munmap(file->data, file->size);
    *file = (struct mapping){0};
}

bool path_is_within(const char *path) {
    for (;;) {
        size_t length = strcspn(path, "/");
        if (length == 0 || (length <= 2 && strncmp(path, "..", length) == 0)) return false;
        if (!path[length]) return true;
        path += length + 1;
    }
}

/* The folder `name` in `parent`, made if it is not there, opened; closes `parent`. */
static int enter(int parent, const char *name) {
    int folder = -1;
    if (mkdirat(parent, name, 0777) == 0 || errno == EEXIST) {
        folder = openat(parent, name, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    int why = errno;
    close(parent);
    errno = why;
    return folder;
}

struct file *file_create(const char *downloads, const char *path) {
    char *parts = ep_format("%s", path), *name = parts;
    int folder = open(downloads, O_DIRECTORY | O_CLOEXEC);
    for (char *slash = strchr(name, '/'); slash && folder >= 0; slash = strchr(name, '/')) {
        *slash = 0;
        folder = enter(folder, name);
        name = slash + 1;
    }
    int descriptor = -1;
    if (folder >= 0) {
        descriptor = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
        int why = errno;
        close(folder);
        errno = why;
    }
    free(parts);
    if (descriptor < 0) return NULL;
    /* As it is: a small file needs little of its buffer. */
    struct file *file = malloc(sizeof *file);
    if (!file) ep_fail("there is no memory for a file");
    file->descriptor = descriptor;
    file->buffered = 0;
    return file;
}

static void write_out(struct file *file) {
    for (size_t done = 0; done < file->buffered;) {
        ssize_t count = write(file->descriptor, file->buffer + done, file->buffered - done);
        if (count < 0 && errno != EINTR) ep_fail("a file cannot be written: %s", strerror(errno));
        if (count > 0) done += (size_t)count;
    }
    file->buffered = 0;
}

void file_write(struct file *file, const uint8_t *data, size_t size) {
    while (size > 0) {
        size_t room = BUFFER_BYTES - file->buffered, taken = size < room ? size : room;
        memcpy(file->buffer + file->buffered, data, taken);
        file->buffered += taken;
        data += taken;
        size -= taken;
        if (file->buffered == BUFFER_BYTES) write_out(file);
    }
}

void file_close(struct file *file) {
    write_out(file);
    if (close(file->descriptor) != 0) ep_fail("a file cannot be written: %s", strerror(errno));
    free(file);
}
