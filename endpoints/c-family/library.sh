#!/bin/sh
# Builds the family as a library, FOLDER/libendpoint.a: sh library.sh FOLDER
set -eu
family=$(dirname "$0")
mkdir -p "$1"
for source in "$family"/*.c; do
    # shellcheck disable=SC2046 # the flags are words
    "${CC:-cc}" -std=c11 -D_DEFAULT_SOURCE -O2 -g -Wall -Wextra -Wshadow -Wstrict-prototypes $(pkg-config --cflags jansson) \
        -c -o "$1/$(basename "$source" .c).o" "$source"
done
rm -f "$1/libendpoint.a"
ar rcs "$1/libendpoint.a" "$1"/*.o
