/* Several paths between a client and the server (endpoints/contract/paths.md), and the client's migration from the first
 * to the second, at a time. */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "family.h"

#define MILLISECOND 1000000u
#define LATEST_MS 3600000u

static bool is_asked, is_done; /* the stack was asked to migrate, and it did */

bool migration_option(const char *name, const char *value) {
    if (strcmp(name, "migrate") != 0 || !family.stack->migrate || family.job.server) return false;
    char *unit;
    unsigned long long number = strtoull(value, &unit, 10), ms = strcmp(unit, "s") == 0 ? 1000 : 1;
    bool has_unit = strcmp(unit, "s") == 0 || strcmp(unit, "ms") == 0;
    if (*value < '0' || *value > '9' || !has_unit || number > LATEST_MS / ms) {
        ep_unsupported("option migrate=%s: write a time since the start up to an hour, such as 2s or 1500ms", value);
    }
    family.migrate_after = number * ms * MILLISECOND;
    family.job.migrates = true;
    return true;
}

void migration_check(void) {
    if (!family.job.migrates || family.job.path_count > 1) return;
    ep_unsupported("option migrate: there is one path; choose a scenario with several, such as terrestrial-leo");
}

uint64_t migration_wake(void) {
    return is_asked || family.migrate_after == EP_NEVER ? EP_NEVER : family.zero_time + family.migrate_after;
}

void migration_act(void) {
    if (is_done || family.migrate_after == EP_NEVER || family.now < family.zero_time + family.migrate_after) return;
    is_asked = true;
    is_done = family.stack->is_open() && family.stack->migrate(1, family.now / family.stack->tick);
}

void paths_from_environment(char *list) {
    struct ep_job *job = &family.job;
    for (char *word = strtok(list, " \t\n"); word; word = strtok(NULL, " \t\n")) {
        const char *equals = strchr(word, '=');
        if (!equals) ep_fail("BENTPIPE_PATHS: \"%s\" is no path: write NAME=ADDRESS", word);
        if (job->path_count == EP_MOST_PATHS) ep_fail("BENTPIPE_PATHS has more than %d", EP_MOST_PATHS);
        char *text = ep_format(strchr(equals, ':') ? "[%s]:0" : "%s:0", equals + 1);
        struct ep_address client = parse_address(text, "BENTPIPE_PATHS");
        free(text);
        job->paths[job->path_count++] =
            job->server ? (struct ep_path){job->local, client} : (struct ep_path){client, job->remote};
    }
}

/* Whether two addresses are the same but for their ports. */
static bool same_host(const struct sockaddr *one, const struct sockaddr *other) {
    if (one->sa_family != other->sa_family) return false;
    if (one->sa_family == AF_INET6) {
        return memcmp(&((const struct sockaddr_in6 *)one)->sin6_addr, &((const struct sockaddr_in6 *)other)->sin6_addr,
                      sizeof(struct in6_addr)) == 0;
    }
    return one->sa_family == AF_INET && ((const struct sockaddr_in *)one)->sin_addr.s_addr ==
                                            ((const struct sockaddr_in *)other)->sin_addr.s_addr;
}

/* The client's address decides. */
size_t ep_path_between(const struct sockaddr *local, const struct sockaddr *remote) {
    const struct ep_job *job = &family.job;
    for (size_t path = 1; path < job->path_count; path++) {
        const struct ep_address *client = job->server ? &job->paths[path].remote : &job->paths[path].local;
        if (same_host((const struct sockaddr *)&client->socket, job->server ? remote : local)) return path;
    }
    return 0;
}

size_t ep_arrival_path(void) {
    return family.arrival_path;
}
