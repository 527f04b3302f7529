#!/bin/sh
# build.sh PROGRAM WORK: builds the stack in the current folder; what it makes on the way is in the folder WORK.
#
# Go takes the processor from a goroutine that has kept it for 10 ms of wall time, at an arbitrary point, and others
# overtake it. On a busy machine these are soon over, and packets do not repeat. It also walks maps in an order that it
# draws anew each time: net/http has its headers in maps, quic-go the streams with frames to send. So the programs have
# copies of four files of the runtime: the time is longer than any trial, and nothing is drawn for maps.
set -eu
program=$1 work=$2
source=$(go env GOROOT)/src
mkdir -p "$work"
work=$(cd "$work" && pwd)
replaced=

# replace FILE WHAT BY: in a copy of a file of Go's library
replace() {
    copy=$work/$(basename "$1")
    sed "s/$2/$3/" "$source/$1" >"$copy"
    if cmp -s "$source/$1" "$copy"; then
        echo "error: $source/$1: nothing matches: $2" >&2
        echo "hint: $(go version) is newer than what this is known to build with: Go 1.26" >&2
        exit 1
    fi
    replaced="$replaced${replaced:+, }\"$source/$1\": \"$copy\""
}

replace runtime/proc.go '^const forcePreemptNS = .*' 'const forcePreemptNS = 1 << 62'
replace runtime/alg.go 'bootstrapRand()' '0x9e3779b9'
replace internal/runtime/maps/map.go 'm\.seed = uintptr(rand())' 'm.seed = 0'
replace internal/runtime/maps/table.go 'Offset = rand()' 'Offset = 0'
printf '{"Replace": {%s}}\n' "$replaced" >"$work/overlay.json"
exec go test -c -overlay "$work/overlay.json" -tags netgo,osusergo -o "$program" .
