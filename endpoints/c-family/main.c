#include <string.h>

#include "family.h"

int ep_main(int count, char **arguments, const struct ep_stack *stack) {
    family.stack = stack;
    if (count == 1) return run_sockets();
    if (count == 2 && strcmp(arguments[1], "--virtual-time") == 0) {
        run_virtual_time();
        return 0;
    }
    fprintf(stderr, "usage: %s [--virtual-time]\nendpoints/CONTRACT.md says what it does.\n", arguments[0]);
    return 2;
}
