"""Keeping idle processors from sleeping while trials run in real time.

A virtual machine gets a processor that it gave back late, by milliseconds on a busy host, and all that trials
do is late by as much. `bentpipe-emu awake` keeps processors busy with nothing, which gives way to all.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bentpipe import paths
from bentpipe.testbed import EMU


def is_virtual_machine(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether the processor says that it is virtual. Some do not: those of ARM never."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        return False
    return any("hypervisor" in line.split() for line in lines if line.startswith("flags"))


@contextmanager
def kept_awake() -> Iterator[None]:
    """Keep idle processors from sleeping while the block lasts. If this process is killed, that ends."""
    program = [str(paths.program(EMU.program)), "awake"]
    # Its priority counts within a session, so it must be of the same one as the trials.
    process = subprocess.Popen(program, stdin=subprocess.PIPE, process_group=0)
    assert process.stdin is not None
    try:
        yield
    finally:
        process.stdin.close()
        process.wait()
