#!/bin/sh
# Builds the kernel of guests: build.sh FOLDER, which gets `linux`.
# Its source is BENTPIPE_LINUX_SOURCE, a folder or a tar file, else that of the distribution's package.
set -eu
fail() {
    echo "build.sh: $1" >&2
    exit 1
}
here=$(cd "$(dirname "$0")" && pwd)
source=${BENTPIPE_LINUX_SOURCE:-/usr/src/linux-source-6.12.tar.xz}
bin=$1
scratch=$(mktemp -d "$bin/build.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/source"
case $source in
*.tar*)
    # Two thirds of the kernel are drivers that nothing here asks for, but for their Kconfig.
    set --
    for place in drivers/gpu drivers/media drivers/net/ethernet drivers/net/wireless drivers/staging sound; do
        set -- "$@" --exclude="*/$place/*.[ch]"
    done
    tar -xf "$source" -C "$scratch/source" --strip-components=1 "$@"
    ;;
*) cp -r "$source/." "$scratch/source" ;;
esac
cd "$scratch/source"
case $(make --silent kernelversion) in
6.12.*) ;;
*) fail "$source is of Linux $(make --silent kernelversion), and guests are of 6.12" ;;
esac
patch --quiet --strip=1 <"$here/kernel.patch"
cp "$here/ttnet.c" arch/um/kernel/ttnet.c
# Of the kernel's banner, which goes into its random numbers: nothing of the machine.
export KBUILD_BUILD_TIMESTAMP='2000-01-01' KBUILD_BUILD_USER=bentpipe KBUILD_BUILD_HOST=guest KBUILD_BUILD_VERSION=1
export ARCH=um
make --silent KCONFIG_ALLCONFIG="$here/kernel.config" allnoconfig
absent=$(sed -n 's/^\(CONFIG_[A-Z0-9_]*\)=.*/\1/p' "$here/kernel.config" | while read -r word; do
    grep -q "^$word=" .config || echo "$word"
done)
[ -z "$absent" ] || fail "this kernel has no $absent"
make --silent linux
strip --strip-debug -o "$bin/linux" linux
