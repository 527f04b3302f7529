#!/bin/sh
# Builds what a program with picoquic is linked with, and picoquic's simulator, in a folder: sh library.sh WORK PYTHON.
# Compilers then take its headers by @WORK/cflags and its libraries by @WORK/libs.
#
# picoquic has no releases. Its sources, and picotls's, are those within the source distribution of the Python package
# aiopquic, which pip fetches and checks against requirements.lock, wherever this machine's pip takes packages from.
# pip also asks that package for its metadata, which takes some seconds and is not used: only two folders are unpacked.
set -eu
cd "$(dirname "$0")"
work=$1 python=$2
package=aiopquic-0.6.1
archive=$work/$package.tar.gz
hash=$(sed -n 's/.*--hash=sha256://p' requirements.lock)
mkdir -p "$work"

if ! echo "$hash  $archive" | sha256sum --check --status 2>/dev/null; then
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary aiopquic --ignore-requires-python \
        --require-hashes --requirement requirements.lock --dest "$work"
    rm -rf "$work/sources"
fi
if [ ! -d "$work/sources" ]; then
    rm -rf "$work/unpacked"
    mkdir "$work/unpacked"
    tar -xzf "$archive" -C "$work/unpacked" --strip-components=2 \
        "$package/third_party/picoquic" "$package/third_party/picotls"
    mv "$work/unpacked" "$work/sources"
fi

# What cmake and compilers say is of interest if they fail.
log=$work/build.log
{
    cmake -S . -B "$work/build" -G 'Unix Makefiles' -DSOURCES="$work/sources" &&
        cmake --build "$work/build" --target picoquic-log picotls-openssl picotls-minicrypto pico_sim
} >"$log" 2>&1 || {
    tail -n 40 "$log" >&2
    exit 1
}

sh ../c-family/library.sh "$work/family"
sources=$work/sources tls=$work/build/_deps/picotls-build
for folder in "$PWD/../c-family" "$PWD/src"; do echo "\"-I$folder\""; done >"$work/cflags"
for folder in picoquic/picoquic picoquic/loglib picotls/include; do
    echo "-isystem \"$sources/$folder\""
done >>"$work/cflags"
"${CC:-cc}" -std=c11 -O2 -Wall -Wextra -Wshadow @"$work/cflags" -c -o "$work/tls.o" src/tls.c
for file in tls.o family/libendpoint.a build/picoquic/libpicoquic-log.a build/picoquic/libpicoquic-core.a; do
    echo "\"$work/$file\""
done >"$work/libs"
for part in openssl minicrypto core; do echo "\"$tls/libpicotls-$part.a\""; done >>"$work/libs"
# picotls takes brotli if it is there.
pkg-config --libs libbrotlidec libbrotlienc >>"$work/libs" 2>/dev/null || true
pkg-config --libs openssl jansson >>"$work/libs"
