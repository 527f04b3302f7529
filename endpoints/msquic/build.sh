#!/bin/sh
# Builds the program into $1/bin and MsQuic's library, which cargo leaves among its intermediate files in $2, into $1/lib.
# (Linked into the program, MsQuic wants a static libnuma.)
set -eu
messages=$(cargo build --quiet --release --locked --target-dir "$2" --message-format json-render-diagnostics)
library=$(printf '%s\n' "$messages" |
    sed -n '/"reason":"build-script-executed"/s/.*"linked_paths":\["native=\([^"]*\/msquic-[^"]*\)"\].*/\1/p')
mkdir -p "$1/bin" "$1/lib"
cp "$2/release/bentpipe-endpoint-msquic" "$1/bin/"
cp "$library/libmsquic.so.2" "$1/lib/"
