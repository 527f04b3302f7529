"""The programs of members of the workspace that `make setup` leaves out: `benches/noq-bulk` and
`benches/reference`.
"""

from __future__ import annotations

import subprocess

from bentpipe import paths


def build(program: str) -> str:
    """Build it, if it is not there; its path. CalledProcessError if it cannot be built: cargo says why."""
    # `--workspace`, as for all other programs: with the same features nothing is compiled twice.
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--workspace"]
    subprocess.run([*command, "--bin", program], cwd=paths.root(), check=True)
    return str(paths.work() / "release" / program)
