#!/bin/sh
# Builds the family as a library, FOLDER/libendpoint.a: sh library.sh FOLDER
set -eu
family=$(dirname "$0")
mkdir -p "$1"
rm -f "$1"/*.o "$1/libendpoint.a"
flags=$(pkg-config --cflags jansson)
for source in "$family"/*.c; do
    # shellcheck disable=SC2086 # the flags are words
    "${CC:-cc}" -std=c11 -D_DEFAULT_SOURCE -O2 -g -Wall -Wextra -Wshadow -Wstrict-prototypes $flags -c -o \
        "$1/$(basename "$source" .c).o" "$source"
done
ar rcs "$1/libendpoint.a" "$1"/*.o
