#!/bin/sh
# The Rust stacks and examples that are workspaces of their own. Clippy needs what their build scripts make, BoringSSL in most, which takes
# minutes: it looks at those that were built in this checkout, in the folder of that build, and the others are named.
set -eu
cd "$(dirname "$0")/.."
for manifest in endpoints/*/Cargo.toml examples/*/Cargo.toml; do
    folder=$(dirname "$manifest")
    [ -f "$folder/Cargo.lock" ] || continue # a member of the workspace at the root
    stack=$(basename "$folder")
    cargo fmt --check --manifest-path "$manifest"
    case $folder in
    endpoints/*) built=target/stacks/$stack how="bentpipe stacks install --force $stack" ;;
    *) built=target/$stack how="make smoke" ;;
    esac
    if [ -d "$built/release" ]; then
        cargo clippy --release --locked --all-targets --quiet --manifest-path "$manifest" --target-dir "$built" -- -D warnings
    else
        echo "lint: $stack was not built in this checkout; clippy has not seen it (hint: $how)"
    fi
done
