#!/bin/sh
# build.sh PROGRAM WORK: builds the stack in the current folder; what it makes on the way is in the folder WORK.
#
# Go takes the processor from a goroutine that has kept it for 10 ms of wall time, at an arbitrary point, and others
# overtake it. On a busy machine these are soon over, and packets do not repeat. So the programs have a copy of
# runtime/proc.go in which the time is longer than any trial.
set -eu
program=$1 work=$2
runtime=$(go env GOROOT)/src/runtime/proc.go
mkdir -p "$work"
work=$(cd "$work" && pwd)
sed 's/^const forcePreemptNS = .*/const forcePreemptNS = 1 << 62/' "$runtime" >"$work/proc.go"
if cmp -s "$runtime" "$work/proc.go"; then
    echo "error: $runtime: no line begins with: const forcePreemptNS =" >&2
    echo "hint: $(go version) is newer than what this is known to build with: Go 1.26" >&2
    exit 1
fi
printf '{"Replace": {"%s": "%s"}}\n' "$runtime" "$work/proc.go" >"$work/overlay.json"
exec go test -c -overlay "$work/overlay.json" -tags netgo,osusergo -o "$program" .
