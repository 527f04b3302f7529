#!/bin/sh
# Builds the transfer between two ngtcp2s in one process: ngtcp2.sh TARGET WORK
set -eu
cd "$(dirname "$0")"
stack=../../endpoints/ngtcp2/src
family=../../endpoints/c-family
sh $family/library.sh "$2"
libraries="libngtcp2 libngtcp2_crypto_gnutls gnutls jansson"
# shellcheck disable=SC2046 # the flags are words
exec "${CC:-cc}" -std=c11 -D_DEFAULT_SOURCE -O2 -g -Wall -Wextra -Wshadow -Wstrict-prototypes \
    -Werror=incompatible-pointer-types -I$family -I$stack \
    -o "$1" ngtcp2.c $stack/connection.c $stack/settings.c $stack/tls.c $stack/tickets.c "$2/libendpoint.a" \
    $(pkg-config --cflags --libs $libraries)
