#define _GNU_SOURCE
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fail.h"

#define BUFFER_BYTES (1 << 18)

/* The file that is meant, opened; -1 if there is none within the folder. */
static int open_file(const char *folder, const char *path) {
    char *asked = format_text("%s/%s", folder, path), *real = realpath(asked, NULL);
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
        if (mapping->data == MAP_FAILED) fail("a file cannot be mapped: %s", strerror(errno));
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

static bool make_folders(const char *file) {
    char *path = format_text("%s", file);
    bool made = true;
    for (char *slash = strchr(path + 1, '/'); slash && made; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        made = mkdir(path, 0777) == 0 || errno == EEXIST;
        *slash = '/';
    }
    free(path);
    return made;
}

FILE *file_create(const char *path) {
    FILE *file = make_folders(path) ? fopen(path, "we") : NULL;
    if (file) setvbuf(file, NULL, _IOFBF, BUFFER_BYTES);
    return file;
}

void file_write(FILE *file, const uint8_t *data, size_t size) {
    if (fwrite(data, 1, size, file) != size) fail("a file cannot be written: %s", strerror(errno));
}

void file_close(FILE *file) {
    if (fclose(file) != 0) fail("a file cannot be written: %s", strerror(errno));
}
