# Builds the program: sh build.sh TARGET WORK
set -eu
sh ../c-family/library.sh "$2"
libraries="libngtcp2 libngtcp2_crypto_gnutls gnutls jansson"
# shellcheck disable=SC2046 # the flags are words
exec "${CC:-cc}" -std=c11 -D_DEFAULT_SOURCE -O2 -g -Wall -Wextra -Wshadow -Wstrict-prototypes -I../c-family -o "$1" \
    src/*.c "$2/libendpoint.a" $(pkg-config --cflags --libs $libraries)
