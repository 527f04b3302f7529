#!/bin/sh
# curl, with the QUIC of OpenSSL, behind Bentpipe's endpoint contract (endpoints/CONTRACT.md), as client in socket mode.
set -eu
here=$(dirname "$0")

curl() {
    "$here/ld.so" --library-path "$here/lib" "$here/curl" "$@"
}

fail() { # EXIT-CODE TEXT
    echo "bentpipe-endpoint-curl: $2" >&2
    exit "$1"
}

if [ "${1-}" = --version ]; then
    curl --version | sed -n '1s/ (.*\(OpenSSL[^ ]*\).*/ with \1/p' | tr / ' '
    exit
fi

[ "${ROLE-}" = client ] || fail 127 "ROLE=${ROLE-}: curl is a client"
case ${TESTCASE-} in
    transfer | handshake | longrtt | multiplexing) ;;
    *) fail 127 "TESTCASE=${TESTCASE-}: want transfer, handshake, longrtt or multiplexing" ;;
esac
[ "${BENTPIPE_ALPN-}" = h3 ] || fail 127 "BENTPIPE_ALPN=${BENTPIPE_ALPN-}: curl knows h3 alone"
[ -z "${BENTPIPE_OPTIONS-}" ] || fail 127 "BENTPIPE_OPTIONS=$BENTPIPE_OPTIONS: curl's QUIC takes no options"
[ -n "${REQUESTS-}" ] || fail 1 "REQUESTS is empty: want URLs"

# Every request is for the server by its name, at the address and port of the first one.
authority=${REQUESTS#https://}
authority=${authority%%/*}
host=${authority%:*} port=${authority##*:}
set -- # options and URLs
count=0
for url in $REQUESTS; do
    path=/${url#https://*/}
    set -- "$@" --output "$DOWNLOADS$path" "https://server:$port$path"
    count=$((count + 1))
done
set -- --http3-only --insecure --resolve "server:$port:$host" --disable --noproxy '*' --silent --show-error --fail \
    --path-as-is --globoff --create-dirs "$@"
# On one connection; as many at once as curl itself has it (50), because it opens another one where streams run out.
[ "$count" = 1 ] || set -- --parallel "$@"
curl "$@"
# Of several files, curl's exit code is that of one.
for url in $REQUESTS; do
    path=/${url#https://*/}
    [ -e "$DOWNLOADS$path" ] || fail 1 "$path did not come"
done
