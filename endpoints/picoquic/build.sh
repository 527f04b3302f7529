#!/bin/sh
# Builds the program, and picoquic's own simulator, into a folder: sh build.sh TARGET WORK PYTHON
set -eu
target=$1 work=$2 python=$3
sh library.sh "$work" "$python"
"${CXX:-c++}" -std=c++20 -O2 -Wall -Wextra -Wshadow @"$work/cflags" -o "$target/bentpipe-endpoint-picoquic" src/*.cc \
    @"$work/libs"
cp "$work/build/picoquic/pico_sim" "$target/"
sh simulator.sh "$target" "$work"
# pico_sim looks for these: `pico_sim -S TARGET …`
mkdir -p "$target/certs"
for file in cert.pem key.pem test-ca.crt; do cp "$work/sources/picoquic/certs/$file" "$target/certs/"; done
