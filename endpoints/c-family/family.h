/* The declarations that the files of the family share. A stack includes endpoint.h alone. */
#ifndef FAMILY_H
#define FAMILY_H

#include <jansson.h>
#include <stdio.h>

#include "endpoint.h"

#define NANOSECONDS 1000000000u

/* core.c: the shared state, and the stack with both sides of hq-interop, which virtual_time.c and sockets.c drive. */

extern struct family {
    const struct ep_stack *stack;
    struct ep_job job;
    enum ep_resume second; /* how a client's second connection begins; EP_AFRESH: there is none */
    const char **requests; /* a client's URLs */
    size_t request_count;
    uint64_t zero_time; /* of the trial, in nanoseconds since 1970, as all times within the family */
    uint64_t now;       /* the time at which the stack lives */
    bool started;       /* a server has nothing to start */
    const char *error;  /* why a connection ended early; NULL: none did */
    size_t arrival_path; /* of the datagram that is being received */
    uint64_t migrate_after; /* nanoseconds from `zero_time` on; EP_NEVER: a client stays where it is */
    /* Where datagrams go. */
    void (*depart)(size_t path, const struct ep_address *to, uint8_t ecn, const uint8_t *payload, size_t size);
} family;

/* Sets up the stack and its side of hq-interop. */
void family_init(void);
void family_receive(const struct ep_address *from, uint8_t ecn, uint8_t *payload, size_t size);
/* When the stack wants to be called. */
uint64_t family_wake(void);
/* Lets a client connect, handles the timers that are due, and sends. */
void family_act(void);
/* Completes the files. */
void family_finish(void);
/* BYE, which is the caller's. */
json_t *family_report(void);

/* job.c */

void job_from_hello(const char *hello, size_t size);
void job_from_environment(void);
/* Reads an IP address and a port, such as 127.0.0.1:4433. `field` says where it comes from. */
struct ep_address parse_address(const char *text, const char *field);

/* paths.c */

/* Takes the option that says when a client migrates, if the stack can; else false. */
bool migration_option(const char *name, const char *value);
/* Fails if a client is to migrate, and there is one path. */
void migration_check(void);
/* When the stack is asked to migrate, if that was not yet; else EP_NEVER. */
uint64_t migration_wake(void);
/* Asks it, if that is due. */
void migration_act(void);
/* Reads BENTPIPE_PATHS: the names and the client's addresses. */
void paths_from_environment(char *list);

/* client.c and server.c: events of streams. */

struct side {
    void (*init)(void);
    void (*received)(struct ep_exchange *exchange, const uint8_t *data, size_t size, bool end);
    void (*sent)(struct ep_exchange *exchange);
    void (*reset)(struct ep_exchange *exchange, uint64_t code);
    void (*stream_closed)(struct ep_exchange *exchange);
    void (*connection_closed)(const void *connection);
    void (*finish)(void);
};
extern const struct side client_side, server_side;

void client_start(void);
/* Closes a connection that has done its part, and goes on to the next, if there is one. */
void client_act(void);
/* BYE's array `requests`, which is the caller's. */
json_t *client_report(void);
/* Nanoseconds of the trial; null for what never was. */
json_t *trial_time(uint64_t time);

/* files.c */

/* A file in memory: parts that are not sent are not read, and nothing is copied. */
struct mapping {
    void *data; /* NULL: it is empty */
    size_t size;
};

/* The real path of the folder that files are sent from. */
const char *real_folder(const char *www);
/* Maps the file that `path` means; false if there is none within `folder`, which is a real path. */
bool file_map(const char *folder, const char *path, struct mapping *file);
void file_unmap(struct mapping *file);
/* Whether each part of the path is a name, so that the file is within the folder. */
bool path_is_within(const char *path);
/* Makes the file, whose path is within the folder, and the folders on the way, and follows no link; NULL, and errno
 * says why, if that cannot be. */
struct file *file_create(const char *downloads, const char *path);
/* Fail when the bytes cannot be written. */
void file_write(struct file *file, const uint8_t *data, size_t size);
void file_close(struct file *file);

/* entropy.c */

/* From now on every random byte is a function of `seed` and `stream`, and all clocks show `family.now`. */
void seed_entropy(uint64_t seed, uint64_t stream);
/* For socket mode: nanoseconds since 1970 when first read, and monotonic from then on. */
uint64_t read_clock(void);

/* secrets.c */

/* Completes the file of TLS secrets, if there is one. */
void secrets_close(void);

/* messages.c: those of virtual time (endpoints/CONTRACT.md), over file descriptors 3 and 4 and in shared memory.
 * Integers are little-endian. */

enum message { HELLO = 1, READY, RUN, RAN, FINISH, BYE };

/* Bytes that grow. */
struct bytes {
    uint8_t *data;
    size_t size, capacity;
    bool lent; /* `data` is shared memory */
};

void bytes_append(struct bytes *bytes, const void *data, size_t size);
/* Appends the `size` lower bytes. */
void bytes_append_integer(struct bytes *bytes, uint64_t value, size_t size);
uint64_t read_integer(const uint8_t *bytes, size_t size);
/* Maps the memory that HELLO offers, if it is there. */
void messages_share(int memory, size_t size);
/* Whether that was done. */
bool messages_shared(void);
/* Empties the bytes that become the next message's body, and has them grow where no copy is needed. */
void message_begin(struct bytes *body);
/* Returns the next message's type, and where its body is until the next call; 0 when the coordinator went away. A body
 * that came through the pipe is followed by a 0. */
int message_receive(uint8_t **body, size_t *size);
void message_send(enum message type, const void *body, size_t size);
/* Sends an answer, and frees it. */
void message_send_json(enum message type, json_t *answer);

/* virtual_time.c, sockets.c */

void run_virtual_time(void);
/* The exit code. */
int run_sockets(void);

#endif
