"""Two commands in virtual time: `bentpipe-sim shell`, a process that ends with all that it has started, and
with the folder that these need.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bentpipe import paths
from bentpipe.errors import BentpipeError
from bentpipe.stacks import guest
from bentpipe.stacks.time_limits import silence_s

MEMORY_MIB = 512  # of each guest; what it does not touch costs nothing


@dataclass(frozen=True)
class GuestShell:
    """A command for the client and one for the server, and the path between their guests."""

    scenario: Mapping[str, Any]  # resolved
    server: str  # a command line
    command: tuple[str, ...]
    seed: int
    ip: int = 4  # the version that both guests have
    trace: Path | None = None

    def run(self) -> int:
        """Run both where this process is; the exit code of the client's. BentpipeError if there are no
        guests here.
        """
        program, job = paths.program("bentpipe-sim"), json.dumps(self._job())
        with tempfile.TemporaryDirectory(prefix="bentpipe-", ignore_cleanup_errors=True) as scratch:
            process = subprocess.Popen(
                [program, "shell"],
                stdin=subprocess.PIPE,
                # An interrupt from the terminal is for this process alone, which ends the others.
                process_group=0,
                env={**os.environ, "TMPDIR": scratch},
            )
            try:
                process.communicate(job.encode())
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return process.returncode if process.returncode >= 0 else 128 - process.returncode

    def _job(self) -> dict[str, Any]:
        return {
            "scenario": self.scenario,
            "ip": self.ip,
            "seed": f"{self.seed:016x}",
            "guest": str(paths.program("bentpipe-guest")),
            "kernel": str(_kernel()),
            "memory_mib": MEMORY_MIB,
            "folder": str(Path.cwd()),
            "server": self.server,
            "command": self.command,
            "trace": None if self.trace is None else str(self.trace),
            "silence_s": silence_s(),
        }


def _kernel() -> Path:
    kernel = guest.load()
    if why := kernel.not_installed():
        raise BentpipeError(
            f"virtual time needs a kernel for guests, and it is not installed: {why}",
            "install it, with a stack that lives in one: bentpipe stacks install linux",
        )
    return kernel.entry.folder / "linux"
