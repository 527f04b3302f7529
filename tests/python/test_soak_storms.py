"""What is killed at any instant leaves nothing behind and nothing half done. `make soak` runs this, with
instants that nobody has tried.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import chance
import children
import pytest
from conftest import STACKS, Command, installed_or_skip

pytestmark = pytest.mark.soak
KILLS = 12
LONGEST_S = 3.0  # that a run lives before it is killed
RUN = ["run", "--scenario", "sat", "--client", "toy", "--server", "toy", "--iterations", "60",
       "--seed", "5", "--bytes", "20kB", "--no-report"]  # fmt: skip


def test_a_run_that_is_killed_again_and_again_ends_as_one_that_is_not(
    bentpipe: Command, tmp_path: Path
) -> None:
    draw = Random(chance.soak_seed() or 0)
    whole = bentpipe(*RUN, "--json", "--out", "whole").records()
    start = [*RUN, "--out", "killed"]
    for _ in range(KILLS):
        killed(start, draw.uniform(0.05, LONGEST_S), tmp_path)
        if (tmp_path / "killed" / "manifest.json").exists():
            start = ["run", "--resume", "killed", "--no-report"]
    done = bentpipe(*start, "--json")
    assert done.code == 0, done.err
    assert [one["packet_log_hash"] for one in done.records()] == [one["packet_log_hash"] for one in whole]
    assert not list((tmp_path / "killed" / "trials").glob("*.partial"))


def test_a_run_in_real_time_that_is_killed_leaves_no_process(namespaces: None, tmp_path: Path) -> None:
    installed_or_skip("noq")
    draw = Random(chance.soak_seed() or 0)
    for number in range(KILLS):
        run = ["run", "--testbed", "emu", "--scenario", "goodput", "--client", "noq", "--server", "noq",
               "--iterations", "4", "--no-report", "--out", f"R{number}"]  # fmt: skip
        killed(run, draw.uniform(0.05, LONGEST_S), tmp_path)


def killed(arguments: list[str], after_s: float, folder: Path) -> None:
    """Start the command line, kill it with no warning, and see that all that it started is gone."""
    mark = f"BENTPIPE_MARK={os.getpid()}-{time.monotonic_ns()}"
    process = subprocess.Popen(
        [sys.executable, "-m", "bentpipe", *arguments],
        cwd=folder,
        env=os.environ | {"BENTPIPE_STACKS": str(STACKS)} | dict([mark.split("=", 1)]),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert process.wait(after_s) == 0  # it ended before
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
    children.wait_for("the end of all that was started", lambda: not marked(mark.encode()))


def marked(mark: bytes) -> list[str]:
    """What still runs with `mark` in its environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found
