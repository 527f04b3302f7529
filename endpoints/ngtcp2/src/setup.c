#include "setup.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "determinism.h"
#include "fail.h"

#define CONTRACT 1
#define NANOSECONDS 1000000000u

static uint64_t parse_count(const char *name, const char *value, uint64_t least, uint64_t most) {
    char *end;
    errno = 0;
    uint64_t number = strtoull(value, &end, 10);
    if (errno || *end || *value < '0' || *value > '9' || number < least || number > most) {
        unsupported("option %s=%s: give a whole number from %" PRIu64 " to %" PRIu64, name, value, least, most);
    }
    return number;
}

static ngtcp2_cc_algo parse_congestion(const char *value) {
    if (strcmp(value, "newreno") == 0) return NGTCP2_CC_ALGO_RENO;
    if (strcmp(value, "cubic") == 0) return NGTCP2_CC_ALGO_CUBIC;
#if NGTCP2_VERSION_NUM < 0x010000
    if (strcmp(value, "bbr") == 0) return NGTCP2_CC_ALGO_BBR;
    if (strcmp(value, "bbr2") == 0) return NGTCP2_CC_ALGO_BBR2;
#else
    /* Version 1 has one of them only, and calls it by the other's name. */
    if (strcmp(value, "bbr2") == 0) return NGTCP2_CC_ALGO_BBR;
#endif
    unsupported("option cc=%s: ngtcp2 %s has no such congestion control", value, NGTCP2_VERSION);
}

static void parse_option(struct options *options, const char *name, const char *value) {
    if (strcmp(name, "cc") == 0) {
        options->congestion = parse_congestion(value);
    } else if (strcmp(name, "window") == 0) {
        options->window = parse_count(name, value, 1, (UINT64_C(1) << 62) - 1);
    } else if (strcmp(name, "mtu") == 0) {
        options->udp_payload = parse_count(name, value, NGTCP2_MAX_UDP_PAYLOAD_SIZE, 65507);
    } else if (strcmp(name, "burst") == 0) {
        options->burst = parse_count(name, value, 1, 1000);
    } else if (strcmp(name, "ack") == 0) {
        options->ack_threshold = parse_count(name, value, 1, 1000);
    } else {
        unsupported("option \"%s\"; there are cc, window, mtu, burst, ack", name);
    }
}

static bool parse_role(const char *role) {
    if (strcmp(role, "client") != 0 && strcmp(role, "server") != 0) unsupported("role \"%s\"", role);
    return strcmp(role, "server") == 0;
}

static void set_testcase(struct setup *setup, const char *name) {
    static const char *const transfers[] = {"transfer", "handshake", "longrtt", "multiplexing"};
    for (size_t i = 0; i < sizeof transfers / sizeof *transfers; i++) {
        if (strcmp(name, transfers[i]) == 0) return;
    }
    if (strcmp(name, "upload") == 0) {
        setup->upload = true;
    } else if (strcmp(name, "resumption") == 0 || strcmp(name, "zerortt") == 0) {
        setup->tickets = true;
        setup->second = *name == 'z' ? EARLY_DATA : WITH_TICKET;
    } else {
        unsupported("test case \"%s\"", name);
    }
}

static void add_request(struct setup *setup, const char *url) {
    setup->requests = reallocate(setup->requests, (setup->request_count + 2) * sizeof *setup->requests);
    setup->requests[setup->request_count++] = url;
    setup->requests[setup->request_count] = NULL;
}

struct address parse_address(const char *text, const char *field) {
    struct address address = {.length = 0};
    const char *colon = strrchr(text, ':');
    char *host = format_text("%.*s", colon ? (int)(colon - text) : 0, text), *name = host;
    size_t length = strlen(host);
    if (length > 1 && host[0] == '[' && host[length - 1] == ']') {
        host[length - 1] = 0;
        name++;
    }
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_DGRAM}, *found;
    if (!*name || getaddrinfo(name, colon + 1, &hints, &found) != 0) {
        fail("%s is \"%s\": write an IP address and a port, such as 127.0.0.1:4433", field, text);
    }
    memcpy(&address.socket, found->ai_addr, found->ai_addrlen);
    address.length = found->ai_addrlen;
    freeaddrinfo(found);
    free(host);
    return address;
}

static FILE *open_keylog(const char *path, const char *mode) {
    FILE *file = fopen(path, mode);
    if (!file) fail("the key log %s cannot be written: %s", path, strerror(errno));
    return file;
}

static void check_folders(const struct setup *setup) {
    const char *role = setup->server ? "server" : "client";
    bool stores = setup->server == setup->upload;
    if (!stores && !setup->www) fail("www (WWW) is missing, but a %s needs it", role);
    if (stores && !setup->downloads) fail("downloads (DOWNLOADS) is missing, but a %s needs it", role);
}

static const char *optional_string(const json_t *hello, const char *key) {
    const json_t *value = json_object_get(hello, key);
    if (!value || json_is_null(value)) return NULL;
    if (!json_is_string(value)) fail("HELLO: \"%s\" is not the string that it should be", key);
    return json_string_value(value);
}

static const char *needed_string(const json_t *hello, const char *key) {
    const char *text = optional_string(hello, key);
    if (!text) fail("HELLO: \"%s\" is missing", key);
    return text;
}

static uint64_t needed_number(const json_t *hello, const char *key) {
    const json_t *value = json_object_get(hello, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        fail("HELLO: \"%s\" is not the whole number that it should be", key);
    }
    return (uint64_t)json_integer_value(value);
}

/* Both sides of a trial may be given the same seed, and draw from streams of their own. */
static void seed_from(const char *text, bool server) {
    char *end;
    uint64_t seed = strtoull(text, &end, 16);
    if (*end || end == text) fail("HELLO: \"seed\" is \"%s\": write up to 16 hexadecimal digits", text);
    seed_entropy(seed, server);
}

static void read_lists(struct setup *setup, json_t *hello) {
    size_t index;
    json_t *url, *value, *requests = json_object_get(hello, "requests"), *options = json_object_get(hello, "options");
    const char *name;
    if (requests && !json_is_null(requests) && !json_is_array(requests)) fail("HELLO: \"requests\" is no array");
    if (options && !json_is_null(options) && !json_is_object(options)) fail("HELLO: \"options\" is no object");
    json_array_foreach(requests, index, url) {
        if (!json_is_string(url)) fail("HELLO: \"requests\" has what is no string");
        add_request(setup, json_string_value(url));
    }
    json_object_foreach(options, name, value) {
        parse_option(&setup->options, name, needed_string(options, name));
    }
}

/* What it returns points into HELLO as it was read, which is kept to the end. */
struct setup setup_from_hello(const char *text, size_t size) {
    json_error_t error;
    json_object_seed(1); /* else it asks the system for a random one */
    json_t *hello = json_loadb(text, size, 0, &error);
    if (!hello) fail("HELLO is no JSON: line %d, column %d: %s", error.line, error.column, error.text);
    if (!json_is_object(hello)) fail("HELLO is no JSON object");
    uint64_t contract = needed_number(hello, "contract");
    if (contract != CONTRACT) unsupported("version %" PRIu64 " of the contract; this is %d", contract, CONTRACT);
    struct setup setup = {.options.congestion = NGTCP2_CC_ALGO_CUBIC};
    set_testcase(&setup, needed_string(hello, "testcase"));
    setup.server = parse_role(needed_string(hello, "role"));
    seed_from(needed_string(hello, "seed"), setup.server);
    read_lists(&setup, hello);
    setup.local = parse_address(needed_string(hello, "local"), "local");
    setup.remote = parse_address(needed_string(hello, "remote"), "remote");
    setup.www = optional_string(hello, "www");
    setup.downloads = optional_string(hello, "downloads");
    setup.certs = needed_string(hello, "certs");
    setup.qlog = optional_string(hello, "qlog");
    setup.zero_time = needed_number(hello, "epoch_unix_s") * NANOSECONDS;
    const char *keylog = optional_string(hello, "keylog");
    if (keylog) setup.keylog = open_keylog(keylog, "w");
    check_folders(&setup);
    return setup;
}

static char *variable(const char *name) {
    char *value = getenv(name);
    return value && *value ? value : NULL;
}

static char *needed(const char *name) {
    char *value = variable(name);
    if (!value) fail("the environment variable %s must be set (endpoints/contract/socket-mode.md)", name);
    return value;
}

/* The address in the first of the URLs. */
static struct address address_of(const char *url) {
    if (strncmp(url, "https://", 8) != 0) fail("REQUESTS: \"%s\" is no URL such as https://127.0.0.1:4433/1024", url);
    char *authority = format_text("%.*s", (int)strcspn(url + 8, "/"), url + 8);
    struct address address = parse_address(authority, "REQUESTS");
    free(authority);
    return address;
}

struct setup setup_from_environment(void) {
    struct setup setup = {.options.congestion = NGTCP2_CC_ALGO_CUBIC};
    set_testcase(&setup, needed("TESTCASE"));
    setup.server = parse_role(needed("ROLE"));
    char *options = variable("BENTPIPE_OPTIONS");
    for (char *pair = options ? strtok(options, " \t\n") : NULL; pair; pair = strtok(NULL, " \t\n")) {
        char *equals = strchr(pair, '=');
        if (!equals) fail("BENTPIPE_OPTIONS: \"%s\" is no option: write name=value", pair);
        *equals = 0;
        parse_option(&setup.options, pair, equals + 1);
    }
    if (setup.server) {
        setup.local = parse_address(needed("BENTPIPE_LISTEN"), "BENTPIPE_LISTEN");
    } else {
        for (char *url = strtok(needed("REQUESTS"), " \t\n"); url; url = strtok(NULL, " \t\n")) add_request(&setup, url);
        if (!setup.requests) fail("REQUESTS is empty: write URLs such as https://127.0.0.1:4433/1024");
        setup.remote = address_of(setup.requests[0]);
    }
    setup.www = variable("WWW");
    setup.downloads = variable("DOWNLOADS");
    setup.certs = needed("CERTS");
    setup.qlog = variable("QLOGDIR");
    if (variable("SSLKEYLOGFILE")) setup.keylog = open_keylog(variable("SSLKEYLOGFILE"), "a");
    setup.zero_time = read_clock();
    check_folders(&setup);
    return setup;
}
