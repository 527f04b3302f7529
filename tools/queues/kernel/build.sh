#!/bin/sh
# Builds the kernel of guests once more, with queue disciplines and a link of a given rate:
# build.sh FOLDER, which gets `linux` and, by their digests, `sources`.
# A kernel of its own: with other options the same seed gives guests other bytes.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$here/../../.."
copy=$(mktemp -d "$folder/guest.XXXXXX")
trap 'rm -rf "$copy"' EXIT
cp guest/* "$copy"
cat "$here/disciplines.config" >>"$copy/kernel.config"
patch --quiet --strip=2 --directory="$copy" <"$here/rate.patch"
sh "$copy/build.sh" "$folder"
sha256sum guest/* tools/queues/kernel/* >"$folder/sources"
