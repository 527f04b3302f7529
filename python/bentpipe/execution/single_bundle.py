"""The execution of a single trial bundle, without a run around it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

from bentpipe.execution import bundle as bundles
from bentpipe.execution.executor import LocalExecutor
from bentpipe.execution.jobs import Answer
from bentpipe.execution.stop_request import StopRequest
from bentpipe.schema.bundle import Bundle
from bentpipe.stacks.model import Stack

_TICK_S = 0.25  # how soon a signal is noticed


def execute(bundle: Bundle, known: Mapping[str, Stack], out: Path | None) -> Answer:
    """Run a bundle with the stacks that are known; what it leaves goes to `out`, if that is given. Its answer
    is `killed` after a signal. BentpipeError if something that it needs is not here.
    """
    with (
        tempfile.TemporaryDirectory(prefix="bentpipe-", ignore_cleanup_errors=True) as scratch,
        ThreadPoolExecutor(1) as pool,
    ):
        executor = LocalExecutor(known, Path(scratch), pool)
        folder = out.resolve() if out else Path(scratch, "trial")
        bundles.resolve(bundle, known, Path(scratch), folder)  # what is missing is no answer
        stop = StopRequest()
        with stop.by_signals():
            return _wait(executor.submit(bundle, folder), executor, stop)


def _wait(future: Future[Answer], executor: LocalExecutor, stop: StopRequest) -> Answer:
    """The answer; once a stop is asked for, that of the trial that was ended."""
    while not future.done() and not stop.made:
        wait([future], timeout=_TICK_S)
    if stop.made:
        executor.kill()
    return future.result()
