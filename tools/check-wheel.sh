#!/bin/sh
# Installs the wheel as a user without compilers does, into a fresh environment, runs stacks there, and tries every command
# (tools/wheel/tried.py): check-wheel.sh [PYTHON [PROFILE]], as wheel.sh has them.
# It says how long the first result took, and holds the packets against those of this checkout if that is set up.
set -eu
cd "$(dirname "$0")/.."
[ "${2:-dist}" = dist ] && dist=dist || dist=target/$2-wheel
root=$PWD python=$(command -v "${1:-python3}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/nothing" "$scratch/home"
set -- --scenario sat --client noq --server noq,quinn --iterations 2

packets() { # packets RUN: what its records say that was on the wire
    grep -o '"packet_log_hash": *"xxh3:[0-9a-f]*"' "$1/records.jsonl" | sort
}

installed() { # installed ARGUMENT…: bentpipe, where there is nothing else
    (cd "$scratch" && env -i HOME="$scratch/home" PATH="$scratch/nothing" venv/bin/bentpipe "$@")
}

"$python" -m venv "$scratch/venv"
begin=$(date +%s)
PATH="$scratch/nothing" "$scratch/venv/bin/pip" install --quiet --disable-pip-version-check "$root/$dist"/*.whl
ready=$(date +%s)
installed run "$@" --out package
end=$(date +%s)
echo "check-wheel: $((end - begin)) s from pip install to the first result, $((ready - begin)) s of them pip's"
[ "$dist" != dist ] || [ $((end - begin)) -lt 120 ] || { echo "error: that is two minutes or more" >&2; exit 1; }
mkdir "$scratch/tried"
"$python" tools/wheel/tried.py "$scratch/venv" "$scratch/tried"

if [ -x .venv/bin/bentpipe ]; then
    .venv/bin/bentpipe run "$@" --no-report --out "$scratch/checkout" >"$scratch/log"
    [ -n "$(packets "$scratch/package")" ] && [ "$(packets "$scratch/package")" = "$(packets "$scratch/checkout")" ] || {
        echo "error: the packets are not those of the checkout's programs" >&2
        exit 1
    }
    echo "check-wheel: the packets are those of the checkout's programs"
fi
