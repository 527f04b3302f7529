#!/bin/sh
# Builds one of this workspace's endpoint programs into FOLDER/bin, by way of TARGET: build.sh PROGRAM FOLDER TARGET
# `--workspace` has cargo choose features as for `make setup` and the tests: what one of them compiled is not compiled again.
set -eu
cd "$(dirname "$0")/../.."
cargo build --quiet --release --locked --workspace --bin "$1" --target-dir "$3"
mkdir -p "$2/bin"
cp "$3/release/$1" "$2/bin/$1"
