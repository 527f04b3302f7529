#!/bin/sh
# Installs the wheel in dist/ as a user without compilers does, into a fresh environment, and runs stacks, and a
# study of the user's own with proxies: sh check-wheel.sh [PYTHON]
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

installed() { # installed ARGUMENT…: bentpipe, where there is nothing else
    (cd "$scratch" && env -i HOME="$scratch/home" PATH="$scratch/nothing" BENTPIPE_STUDIES="$scratch/studies" \
        venv/bin/bentpipe "$@")
}

"$python" -m venv "$scratch/venv"
begin=$(date +%s)
PATH="$scratch/nothing" "$scratch/venv/bin/pip" install --quiet --disable-pip-version-check "$root"/dist/*.whl
ready=$(date +%s)
mkdir -p "$scratch/studies/own/campaigns"
cat >"$scratch/studies/own/study.toml" <<'END'
name = "own"
title = "A study of the user's own"
question = "Does a wheel have all that a study needs?"
[[runs]]
campaign = "campaigns/own.toml"
about = "with proxies and without"
END
cat >"$scratch/studies/own/campaigns/own.toml" <<'END'
scenarios = ["sat"]
clients = ["noq"]
servers = ["noq"]
workloads = ["transfer:100kB"]
treatments = ["direct", "quic-pep"]
iterations = 1
END
cat >"$scratch/studies/own/page.py" <<'END'
def write(runs, folder):
    page = folder / "own.md"
    page.write_text("".join(f"{one.treatment}: {one.outcome}\n" for one in runs[0].in_order))
    return [page]
END
installed run "$@" --out package
end=$(date +%s)
echo "check-wheel: $((end - begin)) s from pip install to the first result, $((ready - begin)) s of them pip's"
[ $((end - begin)) -lt 120 ] || { echo "error: that is two minutes or more" >&2; exit 1; }
installed study own
printf 'direct: ok\nquic-pep terminal,gateway: ok\n' | cmp - "$scratch/studies/own/own.md"
installed study reno --help >"$scratch/log"
echo "check-wheel: a study ran, with proxies and without"

if [ -x .venv/bin/bentpipe ]; then
    .venv/bin/bentpipe run "$@" --no-report --out "$scratch/checkout" >"$scratch/log"
    [ -n "$(packets "$scratch/package")" ] && [ "$(packets "$scratch/package")" = "$(packets "$scratch/checkout")" ] || {
        echo "error: the packets are not those of the checkout's programs" >&2
        exit 1
    }
    echo "check-wheel: the packets are those of the checkout's programs"
fi
