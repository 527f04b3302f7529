"""The program of `benches/noq-bulk`, a member of the workspace that `make setup` leaves out."""

from __future__ import annotations

import subprocess

from bentpipe import paths


def build() -> str:
    """Build it, if it is not there; its path. CalledProcessError if it cannot be built: cargo says why."""
    # `--workspace`, as for all other programs: with the same features nothing is compiled twice.
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--workspace"]
    subprocess.run([*command, "--bin", "bentpipe-noq-bulk"], cwd=paths.root(), check=True)
    return str(paths.work() / "release" / "bentpipe-noq-bulk")
