#!/bin/sh
# Unpacks programs of Debian trixie into a folder, with every library that they load, and leaves the system as it is:
# sh unpack.sh TARGET CACHE PACKAGE PROGRAM…, as in sh unpack.sh bin cache nginx usr/sbin/nginx.
#
# TARGET then holds the programs, `lib` with their libraries, the dynamic linker `ld.so`, and `packages`, which says what
# versions these are of. CACHE keeps apt's lists and packages for the next time. No root is needed: apt works in CACHE alone,
# where no package counts as installed, so that it finds all that the programs need.
#
# The mirror is the one that this machine's apt takes Debian from, or BENTPIPE_DEBIAN_MIRROR; apt checks the signatures.
set -eu
release=trixie
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

fail() {
    echo "$1" >&2
    exit 1
}

# `apt COMMAND …`: apt-get with all its folders in CACHE.
apt() {
    apt-get -qq -o Dir::Etc::sourcelist="$cache/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State="$cache/state" \
        -o Dir::State::status="$cache/status" -o Dir::Cache="$cache" -o APT::Sandbox::User=root \
        -o Acquire::Languages=none -o APT::Install-Recommends=false -o APT::Get::AllowUnauthenticated=false "$@"
}

# The first of this machine's sources that is called as Debian's own mirrors are.
mirror_of_this_machine() {
    # shellcheck disable=SC2016 # apt fills it in
    apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' | grep '/debian/*$' | head -n 1
}

target=$1 cache=$2 package=$3
shift 3
mkdir -p "$cache/state/lists/partial" "$cache/archives/partial" "$target/lib"
target=$(cd "$target" && pwd) cache=$(cd "$cache" && pwd)

[ -e "$keyring" ] || fail "$keyring is missing: install debian-archive-keyring"
mirror=${BENTPIPE_DEBIAN_MIRROR:-$(mirror_of_this_machine)}
[ -n "$mirror" ] || fail "apt of this machine knows no mirror of Debian: name one in BENTPIPE_DEBIAN_MIRROR"
echo "deb [signed-by=$keyring target=Packages] $mirror $release main" >"$cache/sources.list"
: >"$cache/status"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
apt update
apt install --download-only "$package"
mkdir -p "$scratch/none/partial" # apt does not list what it has already
apt install --print-uris -o Dir::Cache::archives="$scratch/none" "$package" | cut -d ' ' -f 2 >"$scratch/archives"
while read -r archive; do
    dpkg-deb -x "$cache/archives/$archive" "$scratch/root"
    dpkg-deb -W "$cache/archives/$archive" >>"$target/packages"
done <"$scratch/archives"

# Only what is loaded is kept: the linker lists it as it would load it.
folders=$(find "$scratch/root" -name '*.so*' -printf '%h\n' | sort -u | tr '\n' ':')
linker=$(find "$scratch/root" -name 'ld-linux*.so*' -type f)
[ -n "$linker" ] || fail "there is no dynamic linker in the packages of $package"
cp "$linker" "$target/ld.so"
for program in "$@"; do
    cp "$scratch/root/$program" "$target/"
    "$linker" --library-path "$folders" --list "$scratch/root/$program" >"$scratch/list"
    ! grep 'not found' "$scratch/list" || fail "a library of $program is missing"
    sed -n 's/.* => \(.*\) (.*/\1/p' "$scratch/list" | while read -r library; do cp "$library" "$target/lib/"; done
done
