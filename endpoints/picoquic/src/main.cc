// bentpipe-endpoint-picoquic: picoquic behind endpoints/CONTRACT.md.
#include <cstdio>
#include <cstring>

#include "drivers.h"

int main(int count, char **arguments) {
    if (count == 1) return run_sockets();
    if (count == 2 && strcmp(arguments[1], "--virtual-time") == 0) return run_virtual_time();
    fputs("usage: bentpipe-endpoint-picoquic [--virtual-time]\nendpoints/CONTRACT.md says what it does.\n", stderr);
    return 2;
}
