#!/bin/sh
# overlay.sh WORK: puts copies of files of Go's library into a folder below WORK, and prints the file that has `go` build with
# them (-overlay).
#
# Go takes the processor from a goroutine that has kept it for 10 ms of wall time, at an arbitrary point, and others
# overtake it. On a busy machine these are soon over, and packets do not repeat. It also walks maps in an order that it
# draws anew each time: net/http has its headers in maps, quic-go the streams with frames to send. In the copies the time
# is longer than any trial, and nothing is drawn for maps.
set -eu
source=$(go env GOROOT)/src
# Another version of Go has other files, and may be at work beside this one.
mkdir -p "$1/$(go env GOVERSION)"
work=$(CDPATH='' cd -- "$1/$(go env GOVERSION)" && pwd)
case $source$work in
*[\"\\]*)
    echo "error: $work: its path has a quote or a backslash in it" >&2
    echo "hint: build in another folder, by CARGO_TARGET_DIR" >&2
    exit 1
    ;;
esac
replaced=

# replace FILE COUNT WHAT BY: in a copy of a file of Go's library, in which WHAT occurs so often
replace() {
    copy=$work/$(basename "$1")
    if [ "$(grep -c "$3" "$source/$1")" != "$2" ]; then
        echo "error: $source/$1: not in $2 lines, as Go 1.26 has it: $3" >&2
        echo "hint: build with Go 1.26; this is $(go version)" >&2
        exit 1
    fi
    # Whoever builds at the same time has the same file, whole.
    sed "s/$3/$4/" "$source/$1" >"$copy.$$"
    mv "$copy.$$" "$copy"
    replaced="$replaced${replaced:+, }\"$source/$1\": \"$copy\""
}

# This is all that goes by the time slice.
replace runtime/proc.go 1 'schedwhen+forcePreemptNS <= now' 'schedwhen+(1 << 62) <= now'
replace runtime/alg.go 2 'bootstrapRand()' '0x9e3779b9'
replace internal/runtime/maps/map.go 4 'm\.seed = uintptr(rand())' 'm.seed = 0'
replace internal/runtime/maps/table.go 2 'Offset = rand()' 'Offset = 0'
printf '{"Replace": {%s}}\n' "$replaced" >"$work/overlay.json.$$"
mv "$work/overlay.json.$$" "$work/overlay.json"
echo "$work/overlay.json"
