/* bentpipe-endpoint-ngtcp2: the C library ngtcp2 behind endpoints/CONTRACT.md. */
#include <stdio.h>
#include <string.h>

#include "sockets.h"
#include "virtual_time.h"

int main(int count, char **arguments) {
    if (count == 1) return run_sockets();
    if (count == 2 && strcmp(arguments[1], "--virtual-time") == 0) {
        run_virtual_time();
        return 0;
    }
    fputs("usage: bentpipe-endpoint-ngtcp2 [--virtual-time]\nendpoints/CONTRACT.md says what it does.\n", stderr);
    return 2;
}
