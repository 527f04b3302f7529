# Unpacks curl and puts the program before it: sh build.sh TARGET CACHE
set -eu
sh ../debian-family/unpack.sh "$1" "$2" curl usr/bin/curl
install endpoint.sh "$1/bentpipe-endpoint-curl"
