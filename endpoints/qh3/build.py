"""Builds the qh3 endpoint: its packages, the interposer of virtual time, and the program that starts it.

Everything goes into the folder that is given as the argument: `bentpipe-endpoint-qh3`, a shell script, and
the folder `qh3`. The packages are those of `requirements.lock`, checked by their hashes; they are put beside
Bentpipe's own, not among them. What is up to date is left alone.
"""

import hashlib
import shlex
import shutil
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
# -S: without the packages of the Python that runs it; qh3 offers more in its handshake if it finds brotli.
PYTHONPATH={packages} PYTHONHASHSEED=0 LD_PRELOAD={interposer} exec {python} -S {endpoint} "$@"
"""


def main(place: Path) -> str | None:
    """Builds into `place`; what went wrong, in words, or None."""
    if not sys.platform.startswith("linux"):
        return "qh3's randomness can be replaced on Linux only (LD_PRELOAD)"
    if any(sign in str(place) for sign in " :"):
        return f"{place}: LD_PRELOAD takes no path with a space or a colon; name another with BENTPIPE_BIN"
    folder, launcher = place / "qh3", place / "bentpipe-endpoint-qh3"
    packages, interposer = folder / "packages", folder / "interposer.so"
    script = LAUNCHER.format(
        packages=shlex.quote(str(packages)),
        interposer=shlex.quote(str(interposer)),
        python=shlex.quote(sys.executable),
        endpoint=shlex.quote(str(HERE / "endpoint.py")),
    )
    made_of = [LOCK.read_bytes(), SOURCE.read_bytes(), script.encode(), sys.version.encode()]
    mark, stamp = hashlib.sha256(b"\0".join(made_of)).hexdigest(), folder / "built"
    if launcher.exists() and stamp.exists() and stamp.read_text() == mark:
        return None
    launcher.unlink(missing_ok=True)  # it comes back when all that it starts is there
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for command in ([*PIP, "--target", str(packages)], [*COMPILER, str(interposer), str(SOURCE), "-ldl"]):
        done = subprocess.run(command, check=False)
        if done.returncode:
            return f"{shlex.join(command)} ended with {done.returncode}"
    launcher.write_text(script)
    launcher.chmod(0o755)
    stamp.write_text(mark)
    return None


if __name__ == "__main__":
    failed = main(Path(sys.argv[1]).resolve())
    if failed is not None:
        sys.exit(f"qh3: {failed}")
