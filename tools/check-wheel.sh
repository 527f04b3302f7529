#!/bin/sh
# Installs the wheel in dist/ as a user without compilers does, into a fresh environment, and runs: sh check-wheel.sh [PYTHON]
# It says how long it took, and holds the packets against those of this checkout if that is set up.
set -eu
cd "$(dirname "$0")/.."
root=$PWD python=$(command -v "${1:-python3}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/nothing" "$scratch/home"
set -- --scenario sat --client noq --server noq,quinn --iterations 2

packets() { # packets RUN: what its records say that was on the wire
    grep -o '"packet_log_sha256": *"[0-9a-f]*"' "$1/records.jsonl" | sort
}

"$python" -m venv "$scratch/venv"
begin=$(date +%s)
PATH="$scratch/nothing" "$scratch/venv/bin/pip" install --quiet --disable-pip-version-check "$root"/dist/*.whl
installed=$(date +%s)
(cd "$scratch" && env -i HOME="$scratch/home" PATH="$scratch/nothing" venv/bin/bentpipe run "$@" --out package)
end=$(date +%s)
echo "check-wheel: $((end - begin)) s from pip install to the first result, $((installed - begin)) s of them pip's"
[ $((end - begin)) -lt 120 ] || { echo "error: that is two minutes or more" >&2; exit 1; }

if [ -x .venv/bin/bentpipe ]; then
    .venv/bin/bentpipe run "$@" --no-report --out "$scratch/checkout" >"$scratch/log"
    [ -n "$(packets "$scratch/package")" ] && [ "$(packets "$scratch/package")" = "$(packets "$scratch/checkout")" ] || {
        echo "error: the packets are not those of the checkout's programs" >&2
        exit 1
    }
    echo "check-wheel: the packets are those of the checkout's programs"
fi
