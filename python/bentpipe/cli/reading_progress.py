"""The progress that a user sees while long captures are read: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator

from bentpipe.analysis import traces

SHOWN_AFTER_S = 2.0  # most captures are read before


@contextlib.contextmanager
def shown() -> Iterator[None]:
    """Show how far analyses come that begin in this context."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console  # takes long
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=16),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    task = bar.add_task("", total=None)
    began = time.monotonic()

    def watch(what: str, done: int, total: int) -> None:
        bar.update(task, description=what, completed=done, total=total)
        if time.monotonic() - began >= SHOWN_AFTER_S:
            bar.start()  # once more does no harm

    token = traces.watcher.set(watch)
    try:
        yield
    finally:
        traces.watcher.reset(token)
        bar.stop()
