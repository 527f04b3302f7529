"""The command line: `bentpipe`.

Commands are in the modules beside; `commands` puts them together. This one loads them, which takes a moment
in which Ctrl-C must already end the program in an orderly way.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_AGAIN_S = 0.01


def main() -> None:
    """Entry point of the `bentpipe` program."""
    signal.signal(signal.SIGINT, _leave)
    signal.signal(signal.SIGTERM, _leave)
    from bentpipe.cli import commands

    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
            signal.signal(number, signal.default_int_handler)
        sys.unraisablehook = _unraisable
        code = commands.invoke(sys.argv[1:])
        _ignore_signals()
    except KeyboardInterrupt:  # before or after the command itself
        code = 130
        _ignore_signals()
    sys.exit(code)


def invoke(arguments: list[str]) -> int:
    """Run one command; its exit code (`commands.invoke`)."""
    from bentpipe.cli import commands

    return commands.invoke(arguments)


def _ignore_signals() -> None:
    """All is done and said: a signal that comes while Python winds up would change the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)


def _unraisable(what: UnraisableHookArgs) -> None:
    """Let an interrupt come again that came where no exception can leave: in a weak reference's callback."""
    if what.exc_type is KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
    else:
        sys.__unraisablehook__(what)


def _leave(_number: int, _frame: FrameType | None) -> None:
    """End at once: nothing has been started that would need an end, and an import cannot be broken off."""
    os.write(2, b"error: interrupted\n")
    os._exit(130)
