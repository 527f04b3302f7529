"""Executors: who runs trial bundles. Here: this machine."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from bentpipe.execution import bundle as bundles
from bentpipe.execution.jobs import Answer, Trials
from bentpipe.plan.workload import www_file
from bentpipe.schema.bundle import Bundle
from bentpipe.stacks.model import Stack


class Executor(Protocol):
    """Runs bundles, and answers in its own time."""

    def submit(self, bundle: Bundle, folder: Path) -> Future[Answer]:
        """Have `bundle` run; what it leaves goes to `folder`. In place of an answer there may be an OSError:
        there was no room for its files.
        """
        ...

    def kill(self) -> None:
        """End all that runs; it answers `killed`, as does what is submitted later."""
        ...


class Local:
    """Runs bundles here, each in a process of its own, as many at a time as `pool` has threads."""

    def __init__(self, known: Mapping[str, Stack], scratch: Path, pool: ThreadPoolExecutor) -> None:
        """`known` are the stacks that there are; `scratch` is for what trials need, and the caller's to
        remove.
        """
        self._known, self._pool = known, pool
        self._www = scratch / "www"
        self._trials = Trials(scratch)
        self._making = threading.Lock()
        self._made: set[str] = set()  # files in www
        self._killed = False

    def submit(self, bundle: Bundle, folder: Path) -> Future[Answer]:
        return self._pool.submit(self._run, bundle, folder)

    def kill(self) -> None:
        self._killed = True
        self._trials.kill()

    def _run(self, bundle: Bundle, folder: Path) -> Answer:
        self._make_files(bundle)
        if self._killed:
            return Answer(None, killed=True)
        return self._trials.trial(bundles.resolve(bundle, self._known, self._www, folder))

    def _make_files(self, bundle: Bundle) -> None:
        """Make the files of a bundle that are not there yet; others wait for them meanwhile."""
        with self._making:
            self._www.mkdir(exist_ok=True)
            for name, size in bundle.files.items():
                if name not in self._made and not self._killed:
                    www_file(self._www, size, lambda: self._killed, name)
                    self._made.add(name)
