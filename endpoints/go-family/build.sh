#!/bin/sh
# build.sh PROGRAM WORK: builds the stack in the current folder; what it makes on the way is in the folder WORK.
set -eu
overlay=$(sh "$(dirname "$0")/overlay.sh" "$2")
exec go test -c -overlay "$overlay" -tags netgo,osusergo -o "$1" .
