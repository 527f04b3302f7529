#!/bin/sh
# Builds one of this workspace's endpoint programs into FOLDER/bin: build.sh PROGRAM FOLDER
# `--workspace` has cargo choose features as for `make setup` and the tests: what one of them compiled is not compiled again.
set -eu
cd "$(dirname "$0")/../../.."
cargo build --quiet --release --locked --workspace --bin "$1"
mkdir -p "$2/bin"
cp "${CARGO_TARGET_DIR:-target}/release/$1" "$2/bin/$1"
