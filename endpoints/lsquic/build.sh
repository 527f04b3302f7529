#!/bin/sh
# Puts the program and bun, out of its npm package, into $1. Nothing of the package runs meanwhile.
set -eu
cp package.json package-lock.json ./*.mjs "$1/"
cd "$1"
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
mv "$(find node_modules/@oven -path '*/bin/bun' | head -n 1)" bun
rm -r node_modules
