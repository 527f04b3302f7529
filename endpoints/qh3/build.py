"""Builds the qh3 endpoint: its packages, the interposer of virtual time, and the program that starts it.

Everything goes into the folder that is given as the argument, which may be called otherwise afterwards:
`bentpipe-endpoint-qh3`, a shell script, `interposer.so`, and the folder `packages`. These are those of
`requirements.lock`, checked by their hashes; they are put beside Bentpipe's own, not among them.
"""

import shlex
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
LOCK, SOURCE = HERE / "requirements.lock", HERE / "interposer.c"
PIP = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
PIP += ["--only-binary", ":all:", "--require-hashes", "--requirement", str(LOCK)]
COMPILER = ["cc", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-o"]
LAUNCHER = """\
#!/bin/sh
# PYTHON ENDPOINT [--virtual-time]: starts the endpoint program with what lies beside this file.
# -S: without the packages of the Python that runs it; qh3 offers more in its handshake if it finds brotli.
here=${0%/*} python=$1
shift
PYTHONPATH=$here/packages PYTHONHASHSEED=0 LD_PRELOAD=$here/interposer.so exec "$python" -S "$@"
"""


def main(place: Path) -> str | None:
    """Builds into `place`; what went wrong, in words, or None."""
    if not sys.platform.startswith("linux"):
        return "qh3's randomness can be replaced on Linux only (LD_PRELOAD)"
    if any(sign in str(place) for sign in " :"):
        return f"{place}: LD_PRELOAD takes no path with a space or a colon; name another with BENTPIPE_CACHE"
    place.mkdir(parents=True, exist_ok=True)
    packages, interposer = place / "packages", place / "interposer.so"
    for command in ([*PIP, "--target", str(packages)], [*COMPILER, str(interposer), str(SOURCE), "-ldl"]):
        done = subprocess.run(command, check=False)
        if done.returncode:
            return f"{shlex.join(command)} ended with {done.returncode}"
    launcher = place / "bentpipe-endpoint-qh3"
    launcher.write_text(LAUNCHER)
    launcher.chmod(0o755)
    return None


if __name__ == "__main__":
    failed = main(Path(sys.argv[1]).resolve())
    if failed is not None:
        sys.exit(f"qh3: {failed}")
