#!/bin/sh
# nginx behind Bentpipe's endpoint contract (endpoints/CONTRACT.md), as server in socket mode.
set -eu
here=$(dirname "$0")

nginx() {
    "$here/ld.so" --library-path "$here/lib" "$here/nginx" "$@"
}

fail() { # EXIT-CODE TEXT
    echo "bentpipe-endpoint-nginx: $2" >&2
    exit "$1"
}

if [ "${1-}" = --version ]; then
    nginx -v 2>&1 | sed 's/.*: //; s,/, ,'
    exit
fi

[ "${ROLE-}" = server ] || fail 127 "ROLE=${ROLE-}: nginx is a server"
case ${TESTCASE-} in
    transfer | handshake | longrtt | multiplexing | resumption) ;;
    *) fail 127 "TESTCASE=${TESTCASE-}: want transfer, handshake, longrtt, multiplexing or resumption" ;;
esac
case ${BENTPIPE_ALPN-hq-interop} in
    hq-interop) protocol="http3 off; http3_hq on;" ;;
    h3) protocol="http3 on; http3_hq off;" ;;
    *) fail 127 "BENTPIPE_ALPN=$BENTPIPE_ALPN: want hq-interop or h3" ;;
esac
settings=
for option in ${BENTPIPE_OPTIONS-}; do
    value=${option#*=}
    case $option in
        window=*)
            case $value in
                '' | *[!0-9]* | 0* | ???????????*) fail 127 "$option: want a number from 1 to 9999999999" ;;
            esac
            settings="$settings http3_stream_buffer_size $value;"
            ;;
        gso=on | gso=off) settings="$settings quic_gso $value;" ;;
        *) fail 127 "option $option: nginx takes window=BYTES, gso=on and gso=off" ;;
    esac
done
for folder in "$WWW" "$CERTS"; do
    case $folder in
        *[\"\$\\]*) fail 1 "$folder: a name with \", \$ or \\ cannot stand in nginx's configuration" ;;
    esac
done

scratch=$(mktemp -d)
pid=
trap 'rm -rf "$scratch"' EXIT
trap '[ -n "$pid" ] || exit 1; kill -TERM "$pid" 2>/dev/null || true' TERM INT

# One process: as root of a user namespace of one user, nginx's master could not start workers of another user.
cat >"$scratch/nginx.conf" <<END
daemon off;
master_process off;
pid "$scratch/pid";
error_log stderr warn;
events { worker_connections 1024; }
http {
    access_log off;
    client_body_temp_path "$scratch/body";
    proxy_temp_path "$scratch/proxy";
    fastcgi_temp_path "$scratch/fastcgi";
    uwsgi_temp_path "$scratch/uwsgi";
    scgi_temp_path "$scratch/scgi";
    default_type application/octet-stream;
    sendfile on;
    server {
        listen $BENTPIPE_LISTEN quic;
        $protocol
        $settings
        ssl_certificate "$CERTS/cert.pem";
        ssl_certificate_key "$CERTS/priv.key";
        root "$WWW";
    }
}
END
"$here/ld.so" --library-path "$here/lib" "$here/nginx" -e stderr -p "$scratch" -c "$scratch/nginx.conf" &
pid=$!
# nginx writes its pid when its sockets are open.
until [ -s "$scratch/pid" ]; do
    kill -0 "$pid" 2>/dev/null || fail 1 "nginx did not start"
    sleep 0.02
done
echo ready
# A signal that has a trap ends the first wait; the second one has nginx's own exit code.
wait "$pid" || true
wait "$pid"
