#!/bin/sh
# Builds the program, and picoquic's own simulator, into a folder: sh build.sh TARGET WORK PYTHON
#
# picoquic has no releases. Its sources, and picotls's, are those within the source distribution of the Python package
# aiopquic, which pip fetches and checks against requirements.lock, wherever this machine's pip takes packages from.
# pip also asks that package for its metadata, which takes some seconds and is not used: only two folders are unpacked.
set -eu
target=$1 work=$2 python=$3
package=aiopquic-0.6.1
archive=$work/$package.tar.gz
hash=$(sed -n 's/.*--hash=sha256://p' requirements.lock)
mkdir -p "$work" "$target/certs"

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
        cmake --build "$work/build" --target bentpipe-endpoint-picoquic pico_sim
} >"$log" 2>&1 || {
    tail -n 40 "$log" >&2
    exit 1
}
cp "$work/build/bentpipe-endpoint-picoquic" "$work/build/picoquic/pico_sim" "$target/"
# pico_sim looks for these: `pico_sim -S TARGET …`
for file in cert.pem key.pem test-ca.crt; do cp "$work/sources/picoquic/certs/$file" "$target/certs/"; done
