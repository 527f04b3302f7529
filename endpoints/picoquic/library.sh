#!/bin/sh
# Builds picoquic's libraries, and its simulator, in a folder: sh library.sh WORK PYTHON. What compilers need to be told
# of them is then in WORK/cflags and WORK/libs.
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

from=$work/sources tls=$work/build/_deps/picotls-build
echo "-isystem $from/picoquic/picoquic -isystem $from/picoquic/loglib -isystem $from/picotls/include" >"$work/cflags"
# picotls takes brotli if it is there.
brotli=$(pkg-config --libs libbrotlidec libbrotlienc 2>/dev/null || true)
echo "$work/build/picoquic/libpicoquic-log.a $work/build/picoquic/libpicoquic-core.a $tls/libpicotls-openssl.a" \
    "$tls/libpicotls-minicrypto.a $tls/libpicotls-core.a $brotli $(pkg-config --libs openssl)" >"$work/libs"
