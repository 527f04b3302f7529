# Unpacks nginx and puts the program before it: sh build.sh TARGET CACHE
set -eu
sh ../debian-family/unpack.sh "$1" "$2" nginx usr/sbin/nginx
install endpoint.sh "$1/bentpipe-endpoint-nginx"
install -m 644 types.conf "$1/types.conf"
