#!/bin/sh
# Every test there is, cheapest first. What a machine lacks is named, and its tests are left out.
set -eu
cd "$(dirname "$0")/.."

echo "test: Rust"
cargo test --workspace --release --quiet
cargo test --release --quiet -p bentpipe-endpoint --features interposed-clock --test interposed_clock

if command -v go >/dev/null 2>&1 && (cd endpoints/quic-go && go list ./... >/dev/null 2>&1); then
    echo "test: Go"
    (cd endpoints/go-family && go vet ./... && go test ./...)
    (cd endpoints/quic-go && go vet ./... && go test ./...)
    (cd endpoints/x-net && go vet ./...) # its tests are among Python's
else
    echo "test: no Go 1.26 or newer on the PATH; the tests of quic-go are left out (hint: https://go.dev/dl)"
fi

if command -v npm >/dev/null 2>&1; then
    echo "test: report site"
    (cd report-ui && npm ci --silent && npm run --silent check-types && npm run --silent check-format &&
        npm test --silent && npm run --silent check-bundle)
else
    echo "test: npm is not on the PATH; the tests of report-ui are left out (hint: apt install npm)"
fi

absent=$(.venv/bin/bentpipe stacks --json | .venv/bin/python -c \
    'import json, sys; print(*(stack["name"] for stack in json.load(sys.stdin) if not stack["installed"]))')
if [ -n "$absent" ]; then
    echo "test: not installed, so that their tests are left out: $absent (hint: bentpipe stacks install --all)"
fi

echo "test: Python, end to end"
.venv/bin/python -m pytest tests/python
