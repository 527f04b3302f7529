/* The files that are sent, and those that come. */
#ifndef FILES_H
#define FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A file in memory: what is not sent is not read, and nothing is copied. */
struct mapping {
    void *data; /* NULL: it is empty */
    size_t size;
};

/* Maps the file that `path` means; false if there is none within `folder`, which is a real path. */
bool file_map(const char *folder, const char *path, struct mapping *file);
void file_unmap(struct mapping *file);

/* Whether each part of the path is a name, so that the file is within the folder. */
bool path_is_within(const char *path);

/* Makes the file, whose path is within the folder, and the folders on the way, and follows no link; NULL, and errno says
 * why, if that can't be. */
FILE *file_create(const char *downloads, const char *path);

/* Fails when the bytes cannot be written. */
void file_write(FILE *file, const uint8_t *data, size_t size);
void file_close(FILE *file);

#endif
