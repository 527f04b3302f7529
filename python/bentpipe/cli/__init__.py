"""The command line: `bentpipe`.

Commands are in the modules beside; `commands` puts them together. This one loads them, which takes a moment
in which Ctrl-C must already end the program in an orderly way.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType


def main() -> None:
    """Entry point of the `bentpipe` program."""
    signal.signal(signal.SIGINT, _leave)
    signal.signal(signal.SIGTERM, _leave)
    from bentpipe.cli import commands

    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        code = commands.invoke(sys.argv[1:])
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done and said
    except KeyboardInterrupt:  # before or after the command itself
        code = 130
    sys.exit(code)


def invoke(arguments: list[str]) -> int:
    """Run one command; its exit code (`commands.invoke`)."""
    from bentpipe.cli import commands

    return commands.invoke(arguments)


def _leave(_number: int, _frame: FrameType | None) -> None:
    """End at once: nothing has been started that would need an end, and an import cannot be broken off."""
    os.write(2, b"error: interrupted\n")
    os._exit(130)
