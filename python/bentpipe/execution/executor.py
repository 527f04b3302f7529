"""Executors, which run trial bundles. Here: this machine; `dask_executor`: many.

Whoever runs a bundle does it as `BundleRunner` does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from bentpipe.errors import BentpipeError
from bentpipe.execution import bundle as bundles
from bentpipe.execution.jobs import Answer, TrialProcesses
from bentpipe.schema.bundle import Bundle
from bentpipe.stacks.model import Stack
from bentpipe.workload import www_file
from bentpipe.workload.page.content import PageContent


class LostExecutor(BentpipeError):
    """The loss of what runs bundles. What was finished before is kept."""


class Executor(Protocol):
    """An executor, which runs bundles and answers when they end."""

    @property
    def window(self) -> int:
        """The number of bundles that it takes at a time, now: those that run, and a few in reserve."""
        ...

    def prepare(self, files: Mapping[str, int], contents: Mapping[str, bytes]) -> None:
        """Create these files, by name and size, before the trials that are served them; `contents` are those
        of some of them. OSError if the disk is full.
        """
        ...

    def submit(self, bundle: Bundle, folder: Path) -> Future[Answer]:
        """Run `bundle`; the files that it leaves go to `folder`. Instead of an answer there may be an
        OSError, if its files do not fit on the disk, or a LostExecutor, if nothing can be run there any more.
        """
        ...

    def kill(self) -> None:
        """End everything that runs; it answers `killed`, as does what is submitted later."""
        ...


class BundleRunner:
    """The runner of bundles on this machine, each in its own process, in the thread that calls it."""

    def __init__(
        self,
        known: Mapping[str, Stack],
        scratch: Path,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """`known` are the stacks that there are; `scratch` is for what trials need, and the caller's to
        remove. Once `stopped` says so, no more is written.
        """
        self._known, self._stopped = known, stopped
        self._www = scratch / "www"
        self._making = threading.Lock()
        self._made: set[str] = set()  # files in www

    def prepare(self, files: Mapping[str, int], contents: Mapping[str, bytes]) -> None:
        """Create files as an executor does. Where trials need the processors in time, nothing of it is left
        for later.
        """
        with self._making:
            self._www.mkdir(exist_ok=True)
            for name, size in files.items():
                if name not in self._made and not self._stopped():
                    www_file(self._www, size, self._stopped, name, contents.get(name))
                    self._made.add(name)

    def run(self, bundle: Bundle, folder: Path, processes: TrialProcesses) -> Answer:
        """Run a bundle to its end, among `processes`; the files that it leaves go to `folder`."""
        if not self._made.issuperset(bundle.files):
            self.prepare(bundle.files, _contents(bundle))
        if self._stopped():
            return Answer(None, killed=True)
        try:
            trial = bundles.resolve(bundle, self._known, self._www, folder)
        except BentpipeError as error:
            return Answer(None, f"{error}; {error.hint}" if error.hint else str(error))
        return processes.run(trial)


class LocalExecutor:
    """The executor that is this machine: as many bundles at a time as `pool` has threads."""

    def __init__(
        self,
        known: Mapping[str, Stack],
        scratch: Path,
        pool: ThreadPoolExecutor,
        window: int = 1,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """As `BundleRunner`."""
        self.window = window
        self._pool = pool
        self._killed = False
        self._runner = BundleRunner(known, scratch, lambda: self._killed or stopped())
        self._processes = TrialProcesses(scratch)

    def prepare(self, files: Mapping[str, int], contents: Mapping[str, bytes]) -> None:
        self._runner.prepare(files, contents)

    def submit(self, bundle: Bundle, folder: Path) -> Future[Answer]:
        return self._pool.submit(self._runner.run, bundle, folder, self._processes)

    def kill(self) -> None:
        self._killed = True
        self._processes.kill()


def _contents(bundle: Bundle) -> dict[str, bytes]:
    """The contents of the files of its pages."""
    found: dict[str, bytes] = {}
    for flow in bundle.flows:
        if flow.page:
            names = [path.removeprefix("/") for path in flow.requests[-len(flow.page) :]]
            found |= PageContent(names, flow.page).files
    return found
