#!/bin/sh
# Makes the one wheel in dist/: the package with its data, its programs and two stacks, which needs no compiler where it is
# installed. The programs are linked against an old C library, by zig, so that the wheel is of any Linux that is not older.
# wheel.sh [PYTHON [PROFILE]], PROFILE being `dist`, or `release`: of the programs that `make setup` built, which nothing has to
# compile. All else is the same, but that wheel is not one to give away: it goes into target/release-wheel/.
set -eu
cd "$(dirname "$0")/.."
python=${1:-python3} profile=${2:-dist}
[ "$profile" = dist ] && dist=dist || dist=target/$profile-wheel
oldest=2.25 # of glibc that has `getrandom`, without which nothing repeats: crates/endpoint/src/entropy.rs
venv=target/wheel-venv work=target/wheel lock=tools/wheel/requirements.lock

fail() { # fail WHAT HOW
    echo "error: $1" >&2
    echo "hint: $2" >&2
    exit 1
}

command -v cargo >/dev/null || fail "cargo is not on the PATH" "install it from https://rustup.rs"
host=$(rustc -vV | sed -n 's/^host: //p')
case $host in
*-linux-gnu) ;;
*) fail "a wheel can be made on Linux with glibc, and this is $host" "on other systems: make setup" ;;
esac

if ! cmp -s "$lock" "$venv/installed.lock"; then
    echo "wheel: the tools that make it"
    rm -rf "$venv"
    "$python" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$lock"
    cp "$lock" "$venv/installed.lock"
fi

build() { # build COMMAND...: the programs
    # shellcheck disable=SC2086 # several words
    PATH="$PWD/$venv/bin:$PATH" "$@" --quiet --locked --profile "$profile" --target-dir target --workspace $programs
}

programs=$("$venv/bin/python" tools/wheel/programs.py)
rm -rf "$work"
mkdir -p "$work" "$dist"
echo "int main(void) { return 0; }" >"$work/empty.c"
folder=target/$host/$profile
[ "$profile" = release ] || echo "wheel: programs (cargo build; some minutes the first time)"
if [ "$profile" = release ]; then
    folder=${CARGO_TARGET_DIR:-target}/release
elif "$venv/bin/python-zig" cc -target "$(uname -m)-linux-gnu.$oldest" -o "$work/empty" "$work/empty.c" 2>"$work/zig.log"; then
    build cargo zigbuild --target "$host.$oldest"
else
    echo "wheel: zig cannot link here ($work/zig.log): the wheel will ask for the C library of this machine, or a newer one" >&2
    build cargo build --target "$host"
fi

# The name of the wheel says which C library it needs: what its programs ask for decides.
"$venv/bin/python" tools/wheel/pack.py "$work" "$folder"
made=$(echo "$work"/*.whl)
"$venv/bin/auditwheel" show --json "$made" >"$work/audit.json" 2>"$work/audit.log" ||
    fail "it cannot be told which C library the programs need" "see $work/audit.log"
tag=$("$venv/bin/python" -c 'import json, sys; print(json.load(sys.stdin)["overall_tag"])' <"$work/audit.json")
rm -f "$dist"/*.whl
cp "$work/$("$venv/bin/wheel" tags --platform-tag "$tag" "$made")" "$dist/"
made=$(echo "$dist"/*.whl)
echo "wheel: $made, $(du -h "$made" | cut -f 1)"
