# Builds the program: sh build.sh TARGET ENDPOINTS WORK PYTHON
set -eu
# Yours: build or find your library, and sh "$2/c-family/library.sh" "$3/family", which makes libendpoint.a there.
sh "$2/picoquic/library.sh" "$3" "$4"
"${CC:-cc}" -std=c11 -O2 -Wall -Wextra @"$3/cflags" -o "$1" endpoint.c @"$3/libs"
