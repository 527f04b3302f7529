#!/bin/sh
# Makes a checkout ready to use: the Python environment, the Rust programs, and the four stacks that are quickly built.
# Safe to run again: what is up to date is left alone.
# setup.sh [PYTHON [WHAT]], WHAT being `demo` for no more programs than virtual time without proxies has.
set -eu
cd "$(dirname "$0")/.."
python=${1:-python3}
case ${2:-} in
# Of the whole workspace, and not by `--package`: features of dependencies would be others than those that stacks are built
# with (crates/endpoint/build.sh), and noq's and quinn's dependencies compiled twice.
demo) programs="--bin bentpipe-sim --bin bentpipe-trace --bin bentpipe-endpoint-noq --bin bentpipe-endpoint-quinn" ;;
*) programs="--exclude bentpipe-noq-bulk --exclude bentpipe-reference" ;; # benches/: built when they first need it
esac

need() { # need PROGRAM WHAT HOW
    command -v "$1" >/dev/null 2>&1 && return
    echo "error: $2 is missing: $1 is not on the PATH" >&2
    echo "hint: $3" >&2
    exit 1
}

need "$python" "Python 3.11 or newer" "apt install python3 python3-venv, or name another one: make PYTHON=python3.12"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "error: $python is $("$python" --version 2>&1), and Bentpipe needs Python 3.11 or newer" >&2
    echo "hint: apt install python3.11 python3.11-venv, then: make PYTHON=python3.11" >&2
    exit 1
}
need cargo "Rust 1.95 or newer" "install it from https://rustup.rs, or: apt install rustup && rustup default stable"
need cc "a C compiler" "apt install gcc"

if [ ! -x .venv/bin/python ]; then
    echo "setup: Python environment in .venv"
    "$python" -m venv .venv || {
        rm -rf .venv
        echo "error: $python cannot make a virtual environment" >&2
        echo "hint: apt install python3-venv" >&2
        exit 1
    }
fi
if ! cmp -s requirements.lock .venv/installed.lock || ! cmp -s pyproject.toml .venv/installed.toml; then
    echo "setup: Python packages"
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
    cp requirements.lock .venv/installed.lock
    cp pyproject.toml .venv/installed.toml
fi

echo "setup: programs (cargo build; a few minutes the first time)"
# shellcheck disable=SC2086 # several words
cargo build --release --quiet --locked --workspace $programs
.venv/bin/bentpipe stacks install noq quinn aioquic quic-go || echo "setup: what could not be installed is left out" >&2
echo "setup: more stacks: .venv/bin/bentpipe stacks install --all"
