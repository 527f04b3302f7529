#!/bin/sh
# Makes the site of the documentation in site/, with a generator in an environment of its own. site.sh [PYTHON]
set -eu
cd "$(dirname "$0")/.."
python=${1:-python3} venv=target/site-venv lock=tools/site/requirements.lock

if ! cmp -s "$lock" "$venv/installed.lock"; then
    echo "site: the generator"
    rm -rf "$venv"
    "$python" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$lock"
    cp "$lock" "$venv/installed.lock"
fi
exec "$venv/bin/python" tools/site/build.py site target/site
