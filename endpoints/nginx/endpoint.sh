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

# The congestion control of the host's TCP, by the contract's name of it.
choose_congestion_control() {
    kernel=/proc/sys/net/ipv4
    there=$(sed 's/\<reno\>/newreno/' $kernel/tcp_available_congestion_control)
    case " $there " in
        *" $1 "*) ;;
        *) fail 127 "option cc=$1: this kernel has $(echo "$there" | sed 's/ /, /g') (hint: sudo modprobe tcp_$1 loads one more)" ;;
    esac
    name=$(echo "$1" | sed 's/^newreno$/reno/')
    [ "$(cat $kernel/tcp_congestion_control)" != "$name" ] || return 0
    [ "${BENTPIPE_OWN_NAMESPACE-}" = 1 ] ||
        fail 127 "option cc=$1: it is the whole host's, and this network namespace is not the trial's own"
    (echo "$name" >$kernel/tcp_congestion_control) 2>/dev/null ||
        fail 127 "option cc=$1: for a namespace there is what the machine allows (hint: sudo sysctl net.ipv4.tcp_allowed_congestion_control)"
}

if [ "${1-}" = --version ]; then
    nginx -v 2>&1 | sed 's/.*: //; s,/, ,'
    exit
fi

[ "${ROLE-}" = server ] || fail 127 "ROLE=${ROLE-}: nginx is a server"
alpn=${BENTPIPE_ALPN-hq-interop} testcase=${TESTCASE-}
case $alpn in
    hq-interop) over=quic protocol="http3 off; http3_hq on;" ;;
    h3) over=quic protocol="http3 on; http3_hq off;" ;;
    h2) over=tcp protocol="http2 on;" ;;
    http/1.1) over=tcp protocol="http2 off;" ;;
    *) fail 127 "BENTPIPE_ALPN=$alpn: want hq-interop, h3, h2 or http/1.1" ;;
esac
case $over:$testcase in
    quic:transfer | quic:handshake | quic:longrtt | quic:multiplexing | quic:resumption) ;;
    *:page | *:page-resumption | *:live) [ "$alpn" != hq-interop ] || fail 127 "TESTCASE=$testcase: it is of HTTP, not of hq-interop" ;;
    quic:*) fail 127 "TESTCASE=$testcase: want transfer, handshake, longrtt, multiplexing, resumption, page, page-resumption or live" ;;
    tcp:*) fail 127 "TESTCASE=$testcase: over $alpn there is page, page-resumption and live alone" ;;
esac

settings='' cc='' tls=on altsvc=on
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
        cc=?*) cc=$value ;;
        tls=on | tls=off) tls=$value ;;
        altsvc=on | altsvc=off) altsvc=$value ;;
        *) fail 127 "option $option: nginx takes window=BYTES, gso=on|off, cc=NAME, tls=on|off and altsvc=on|off" ;;
    esac
    case $option:$over:$alpn in
        window=*:quic:* | gso=*:quic:* | cc=*:tcp:* | tls=on:* | tls=off:tcp:http/1.1 | altsvc=*:h3) ;;
        *) fail 127 "option $option: it is not of $alpn (window and gso are of QUIC, cc of TCP, tls=off of http/1.1, altsvc of h3)" ;;
    esac
done
[ -z "$cc" ] || choose_congestion_control "$cc"

for folder in "$WWW" "$CERTS"; do
    case $folder in
        *[\"\$\\]*) fail 1 "$folder: a name with \", \$ or \\ cannot stand in nginx's configuration" ;;
    esac
done
case $over:$tls in
    quic:*) listen="$BENTPIPE_LISTEN quic" ;;
    tcp:on) listen="$BENTPIPE_LISTEN ssl" ;;
    tcp:off) listen=$BENTPIPE_LISTEN ;;
esac
# HTTP/0.9 has no status: the page of an error would be taken for the file. So the stream is reset.
[ "$alpn" != hq-interop ] || settings="$settings error_page 404 = @absent; location @absent { return 444; }"
# Chromium has fewer requests under way unless responses name HTTP/3 at their port.
[ "$alpn:$altsvc" != h3:on ] || settings="$settings add_header Alt-Svc 'h3=\":${BENTPIPE_LISTEN##*:}\"';"

scratch=$(mktemp -d)
pid=
trap 'rm -rf "$scratch"' EXIT
trap '[ -n "$pid" ] || exit 1; kill -TERM "$pid" 2>/dev/null || true' TERM INT

# One process: as root of a user namespace of one user, nginx's master could not start workers of another user.
# Files are answered with the whole of them, whatever a client has.
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
    include "$here/types.conf";
    keepalive_requests 1000000000; # connections end when clients say so
    keepalive_time 1d;
    sendfile on;
    etag off;
    if_modified_since off;
    max_ranges 0;
    server {
        listen $listen;
        $protocol
        $settings
        add_header Last-Modified ""; # when a file was made is the machine's, and does not repeat
        ssl_protocols TLSv1.3;
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
