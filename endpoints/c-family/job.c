/* The job of the program: HELLO, or the environment of socket mode. */
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "family.h"

#define CONTRACT 1

static void take_option(const char *name, const char *value) {
    const struct ep_stack *stack = family.stack;
    if (migration_option(name, value) || (stack->options && stack->option(name, value))) return;
    ep_unsupported("option \"%s\"; there are %s", name, stack->options ? stack->options : "none");
}

static void set_role(const char *role) {
    family.job.server = strcmp(role, "server") == 0;
    bool client = strcmp(role, "client") == 0 && family.stack->connect;
    if (!client && !(family.job.server && family.stack->answer)) ep_unsupported("role \"%s\"", role);
}

static void set_testcase(const char *name) {
    static const char *const transfers[] = {"transfer", "handshake", "longrtt", "multiplexing"};
    for (size_t i = 0; i < sizeof transfers / sizeof *transfers; i++) {
        if (strcmp(name, transfers[i]) == 0) return;
    }
    bool twice = strcmp(name, "resumption") == 0 || strcmp(name, "zerortt") == 0;
    if (strcmp(name, "upload") == 0) {
        family.job.upload = true;
    } else if (twice && family.stack->has_ticket) {
        family.job.tickets = true;
        family.second = *name == 'z' ? EP_EARLY_DATA : EP_WITH_TICKET;
    } else {
        ep_unsupported("test case \"%s\"", name);
    }
}

static void add_request(const char *url) {
    family.requests = ep_reallocate(family.requests, (family.request_count + 1) * sizeof *family.requests);
    family.requests[family.request_count++] = url;
}

struct ep_address parse_address(const char *text, const char *field) {
    struct ep_address address = {.length = 0};
    const char *colon = strrchr(text, ':');
    char *host = ep_format("%.*s", colon ? (int)(colon - text) : 0, text), *name = host;
    size_t length = strlen(host);
    if (length > 1 && host[0] == '[' && host[length - 1] == ']') {
        host[length - 1] = 0;
        name++;
    }
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_DGRAM}, *found;
    if (!*name || getaddrinfo(name, colon + 1, &hints, &found) != 0) {
        ep_fail("%s is \"%s\": write an IP address and a port, such as 127.0.0.1:4433", field, text);
    }
    memcpy(&address.socket, found->ai_addr, found->ai_addrlen);
    address.length = found->ai_addrlen;
    freeaddrinfo(found);
    free(host);
    return address;
}

static void check_folders(void) {
    const struct ep_job *job = &family.job;
    const char *role = job->server ? "server" : "client";
    bool stores = job->server == job->upload;
    if (!stores && !job->www) ep_fail("www (WWW) is missing, but a %s needs it", role);
    if (stores && !job->downloads) ep_fail("downloads (DOWNLOADS) is missing, but a %s needs it", role);
}

static const char *optional_string(const json_t *hello, const char *key) {
    const json_t *value = json_object_get(hello, key);
    if (!value || json_is_null(value)) return NULL;
    if (!json_is_string(value)) ep_fail("HELLO: \"%s\" is not the string that it should be", key);
    return json_string_value(value);
}

static const char *needed_string(const json_t *hello, const char *key) {
    const char *text = optional_string(hello, key);
    if (!text) ep_fail("HELLO: \"%s\" is missing", key);
    return text;
}

static uint64_t needed_number(const json_t *hello, const char *key) {
    const json_t *value = json_object_get(hello, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        ep_fail("HELLO: \"%s\" is not the whole number that it should be", key);
    }
    return (uint64_t)json_integer_value(value);
}

/* Both sides of a trial may be given the same seed, and draw from separate streams. */
static void seed_from(const char *text) {
    char *end;
    uint64_t seed = strtoull(text, &end, 16);
    if (*end || end == text) ep_fail("HELLO: \"seed\" is \"%s\": write up to 16 hexadecimal digits", text);
    seed_entropy(seed, family.job.server);
}

static void read_lists(json_t *hello) {
    size_t index;
    json_t *url, *value, *requests = json_object_get(hello, "requests"), *options = json_object_get(hello, "options");
    const char *name;
    if (requests && !json_is_null(requests) && !json_is_array(requests)) ep_fail("HELLO: \"requests\" is no array");
    if (options && !json_is_null(options) && !json_is_object(options)) ep_fail("HELLO: \"options\" is no object");
    json_array_foreach(requests, index, url) {
        if (!json_is_string(url)) ep_fail("HELLO: \"requests\" has what is no string");
        add_request(json_string_value(url));
    }
    json_object_foreach(options, name, value) take_option(name, needed_string(options, name));
}

/* The paths between client and server, where there are several. */
static void read_paths(const json_t *hello) {
    size_t index;
    json_t *path, *paths = json_object_get(hello, "paths");
    if (json_array_size(paths) > EP_MOST_PATHS) ep_fail("HELLO: \"paths\" has more than %d", EP_MOST_PATHS);
    json_array_foreach(paths, index, path) {
        family.job.paths[index].local = parse_address(needed_string(path, "local"), "local of a path");
        family.job.paths[index].remote = parse_address(needed_string(path, "remote"), "remote of a path");
        family.job.path_count++;
    }
}

static void share_memory(const json_t *hello) {
    const json_t *memory = json_object_get(hello, "shared_memory");
    if (!memory || json_is_null(memory)) return;
    messages_share((int)needed_number(memory, "fd"), (size_t)needed_number(memory, "bytes"));
}

/* The job points into the HELLO that was read, which is kept to the end. */
void job_from_hello(const char *text, size_t size) {
    json_error_t error;
    json_object_seed(1); /* else it asks the system for a random one */
    json_t *hello = json_loadb(text, size, 0, &error);
    if (!hello) ep_fail("HELLO is no JSON: line %d, column %d: %s", error.line, error.column, error.text);
    if (!json_is_object(hello)) ep_fail("HELLO is no JSON object");
    uint64_t contract = needed_number(hello, "contract");
    if (contract != CONTRACT) ep_unsupported("version %" PRIu64 " of the contract; this is %d", contract, CONTRACT);
    struct ep_job *job = &family.job;
    job->virtual_time = true;
    set_testcase(needed_string(hello, "testcase"));
    set_role(needed_string(hello, "role"));
    seed_from(needed_string(hello, "seed"));
    read_lists(hello);
    job->local = parse_address(needed_string(hello, "local"), "local");
    job->remote = parse_address(needed_string(hello, "remote"), "remote");
    read_paths(hello);
    migration_check();
    job->www = optional_string(hello, "www");
    job->downloads = optional_string(hello, "downloads");
    job->certs = needed_string(hello, "certs");
    job->keylog = optional_string(hello, "keylog");
    job->qlog = optional_string(hello, "qlog");
    family.zero_time = family.now = needed_number(hello, "epoch_unix_s") * NANOSECONDS;
    share_memory(hello);
    check_folders();
}

static char *variable(const char *name) {
    char *value = getenv(name);
    return value && *value ? value : NULL;
}

static char *needed(const char *name) {
    char *value = variable(name);
    if (!value) ep_fail("the environment variable %s must be set (endpoints/contract/socket-mode.md)", name);
    return value;
}

/* The address in the first of the URLs. */
static struct ep_address address_of(const char *url) {
    if (strncmp(url, "https://", 8) != 0) {
        ep_fail("REQUESTS: \"%s\" is no URL such as https://127.0.0.1:4433/1024", url);
    }
    char *authority = ep_format("%.*s", (int)strcspn(url + 8, "/"), url + 8);
    struct ep_address address = parse_address(authority, "REQUESTS");
    free(authority);
    return address;
}

static void read_requests(void) {
    for (char *url = strtok(needed("REQUESTS"), " \t\n"); url; url = strtok(NULL, " \t\n")) add_request(url);
    if (!family.requests) ep_fail("REQUESTS is empty: write URLs such as https://127.0.0.1:4433/1024");
    family.job.remote = address_of(family.requests[0]);
}

void job_from_environment(void) {
    struct ep_job *job = &family.job;
    set_testcase(needed("TESTCASE"));
    set_role(needed("ROLE"));
    char *options = variable("BENTPIPE_OPTIONS");
    for (char *pair = options ? strtok(options, " \t\n") : NULL; pair; pair = strtok(NULL, " \t\n")) {
        char *equals = strchr(pair, '=');
        if (!equals) ep_fail("BENTPIPE_OPTIONS: \"%s\" is no option: write name=value", pair);
        *equals = 0;
        take_option(pair, equals + 1);
    }
    if (job->server) {
        job->local = parse_address(needed("BENTPIPE_LISTEN"), "BENTPIPE_LISTEN");
    } else {
        read_requests();
    }
    char *paths = variable("BENTPIPE_PATHS");
    if (paths) paths_from_environment(paths);
    migration_check();
    job->www = variable("WWW");
    job->downloads = variable("DOWNLOADS");
    job->certs = needed("CERTS");
    job->keylog = variable("SSLKEYLOGFILE");
    job->qlog = variable("QLOGDIR");
    check_folders();
}
