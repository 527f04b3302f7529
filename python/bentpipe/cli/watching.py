"""The option `--watch` of commands that carry out runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:  # a server takes long to import
    from bentpipe.explore.watch import Watch

HELP = "Show the report in the browser while trials run. The command then ends when the page is closed."
OPTION: Callable[[Any], Any] = click.option("--watch", is_flag=True, help=HELP)
_CURRENT: ContextVar[Watch | None] = ContextVar("_CURRENT", default=None)


@contextmanager
def watched(wanted: bool) -> Iterator[Callable[[Path], None]]:
    """While the block lasts, show the runs that it names; then wait until nobody looks at them any more. What
    is inside such a block shows its runs on the same page.
    """
    outer = _CURRENT.get()
    if outer is not None or not wanted:
        yield outer.show if outer is not None else lambda _run: None
        return
    from bentpipe.explore.watch import Watch

    watch = Watch(opens_browser=True)
    before = _CURRENT.set(watch)
    try:
        yield watch.show
        try:
            watch.finish()
        except KeyboardInterrupt:  # the runs are complete
            return
    finally:
        _CURRENT.reset(before)
        watch.close()
