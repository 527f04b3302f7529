"""Installing stacks: which of them are built, and as many builds in parallel as cores and memory allow.

What is finished stays finished, whatever becomes of the others. Compilers keep to one number of processes for
all builds together, by a jobserver as GNU make has it, which cargo keeps to as well.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from bentpipe import paths
from bentpipe.errors import BentpipeError
from bentpipe.stacks import installed, needs
from bentpipe.stacks.building import BuildJob, BuildResult
from bentpipe.stacks.installable import Build, Installable

KILL_AFTER_S = 3.0  # the time that builds get to stop
_UNKNOWN_MIB = 1024  # taken for what is free where the system does not say
_ENTRY = re.compile(r"\.?([A-Za-z0-9-]+-[0-9a-f]{16})(?:\..*)?")


class Watcher(Protocol):
    """An observer of the progress of builds."""

    every_s: float | None  # how often it wants to see what is at work; None: never

    def begins(self, job: BuildJob) -> None: ...

    def ends(self, result: BuildResult) -> None: ...

    def looks(self, running: Sequence[BuildJob], waiting: int) -> None: ...


def install(wanted: Sequence[Installable], watcher: Watcher, force: bool = False) -> list[BuildResult]:
    """Install stacks; their results, in the order given. KeyboardInterrupt ends all builds first."""
    results: dict[str, BuildResult] = {}
    left: list[tuple[Installable, Build]] = []
    for stack in wanted:
        result = _without_build(stack, force)
        if result is None and stack.build is not None:
            left.append((stack, stack.build))
        elif result is not None:
            results[stack.name] = result
            watcher.ends(result)
    if left:
        _check_cache()
        left.sort(key=lambda one: -one[1].memory_mib)  # what takes much takes long
        with _jobserver() as jobserver:
            jobs = [BuildJob(stack, build, force, jobserver) for stack, build in left]
            results |= {result.stack: result for result in _side_by_side(jobs, watcher)}
    return [results[stack.name] for stack in wanted]


def prune(known: Iterable[Installable]) -> tuple[int, int]:
    """Remove from the cache what none of the `known` stacks is installed from; how many folders, and bytes.
    Builds under way are left alone.
    """
    keep = {stack.entry.name for stack in known if stack.build is not None}
    count = size = 0
    for place in (paths.cache() / "stacks", paths.cache() / "logs"):
        for found in sorted(place.iterdir()) if place.is_dir() else ():
            name = _ENTRY.fullmatch(found.name)
            if name is None or found.name in keep or (name[1] in keep and place.name == "logs"):
                continue
            with installed.unused(name[1]) as unused:
                if unused:
                    size += installed.size(found)
                    count += found.is_dir()
                    shutil.rmtree(found) if found.is_dir() else found.unlink()
    return count, size


def _without_build(stack: Installable, force: bool) -> BuildResult | None:
    """The result for a stack that need not or cannot be built; None if it is to be."""
    if stack.build is None:
        why = stack.not_installed()
        left_out = f"{stack.name}: {why}; {stack.how_to_install}" if why else None
        return BuildResult(stack.name, left_out=left_out)
    if stack.entry.why_not() is None and not force:
        found = installed.read(stack.entry.folder)
        return BuildResult(stack.name, found.version if found else None)
    left_out = needs.what_is_missing(stack)
    return BuildResult(stack.name, left_out=left_out) if left_out else None


def _check_cache() -> None:
    """BentpipeError if nothing can be written to the cache."""
    place = paths.cache() / "stacks"
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        raise BentpipeError(
            f"{place}: cannot be written: {error.strerror}", "name another folder with BENTPIPE_CACHE"
        ) from error


def _side_by_side(left: list[BuildJob], watcher: Watcher) -> Iterator[BuildResult]:
    """Run the jobs, and yield each one's result when it ends."""
    ended: queue.SimpleQueue[tuple[BuildJob, BuildResult | BaseException]] = queue.SimpleQueue()
    running: dict[BuildJob, threading.Thread] = {}
    cores, memory_mib = os.cpu_count() or 1, _available_mib()
    try:
        while left or running:
            for job in _that_fit(left, list(running), cores, memory_mib):
                left.remove(job)
                watcher.begins(job)
                running[job] = threading.Thread(target=_work, args=(job, ended), daemon=True)
                running[job].start()
            try:
                job, result = ended.get(timeout=watcher.every_s)
            except queue.Empty:
                watcher.looks(list(running), len(left))
                continue
            running.pop(job).join()
            if isinstance(result, BaseException):
                raise result
            watcher.ends(result)
            yield result
    finally:
        _stop(running)


def _that_fit(left: list[BuildJob], running: list[BuildJob], cores: int, memory_mib: int) -> list[BuildJob]:
    """The jobs to start now: in order, passing over those for which there is no memory, or whose target is in
    use. One always fits.
    """
    found: list[BuildJob] = []
    for job in left:
        at_work = [*running, *found]
        used = sum(other.build.memory_mib for other in at_work)
        in_use = {other.build.target for other in at_work} - {""}
        fits = len(at_work) < cores and used + job.build.memory_mib <= memory_mib
        if not at_work or (fits and job.build.target not in in_use):
            found.append(job)
    return found


def _work(job: BuildJob, ended: queue.SimpleQueue[tuple[BuildJob, BuildResult | BaseException]]) -> None:
    try:
        job.started = time.monotonic()
        ended.put((job, job.run()))
    except BaseException as error:  # a defect of ours: it belongs to the thread that can tell of it
        ended.put((job, error))


def _stop(running: dict[BuildJob, threading.Thread]) -> None:
    """End all builds: asked first, then killed."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + KILL_AFTER_S
        for job in running:
            job.stop(number)
        for thread in running.values():
            thread.join(max(deadline - time.monotonic(), 0.0))
        running = {job: thread for job, thread in running.items() if thread.is_alive()}


@contextlib.contextmanager
def _jobserver() -> Iterator[tuple[int, int]]:
    """A pipe with a byte for every process that may run beside the one that each build has anyway."""
    take, put = os.pipe()
    try:
        os.write(put, b"+" * ((os.cpu_count() or 1) - 1))
        yield take, put
    finally:
        os.close(take)
        os.close(put)


def _available_mib() -> int:
    """The memory that programs can have without others having to give theirs up."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) // 1024
    return _UNKNOWN_MIB
