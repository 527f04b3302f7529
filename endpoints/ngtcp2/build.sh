# Builds the program: sh build.sh TARGET
set -eu
libraries="libngtcp2 libngtcp2_crypto_gnutls gnutls jansson"
# shellcheck disable=SC2046 # the flags are words
exec "${CC:-cc}" -std=c11 -D_DEFAULT_SOURCE -O2 -g -Wall -Wextra -Wshadow -Wstrict-prototypes -o "$1" src/*.c \
    $(pkg-config --cflags --libs $libraries)
