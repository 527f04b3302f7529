"""A test run that is killed leaves nothing behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import children

# Starts processes as tests do, some of which get away; then says who they are, and waits to be killed.
RUN = """
import os, subprocess, sys, time
sys.path.insert(0, sys.argv[1])
import children
keeper = children.Keeper()
keeper.public.mkdir()
waits = "import time; time.sleep(4242)"
own = subprocess.Popen([sys.executable, "-c", waits], start_new_session=True)
orphan = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', %r], stdout=2).pid)" % waits
other = subprocess.run([sys.executable, "-c", orphan], stdout=subprocess.PIPE, text=True, check=True).stdout
bare = subprocess.Popen(["sh", "-c", "env -i sleep 4242 & echo $!; wait"], stdout=subprocess.PIPE, text=True)
print(keeper.public, own.pid, int(other), bare.pid, bare.stdout.readline(), flush=True)
time.sleep(4242)
"""


def test_what_tests_started_dies_with_them() -> None:
    """In whatever group and session it is, whoever its parent is; one of them hides its environment."""
    folder = str(Path(children.__file__).parent)
    run = subprocess.Popen([sys.executable, "-c", RUN, folder], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    public, *numbers = run.stdout.readline().split()
    processes = [int(number) for number in numbers]
    assert len(processes) == 4 and all(children.runs(one) for one in processes)
    run.send_signal(signal.SIGKILL)
    run.wait()
    run.stdout.close()
    assert children.wait_until_gone(*processes) == []
    children.wait_for("the end of the folder", lambda: not Path(public).exists())
