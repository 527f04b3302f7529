"""Limits of the wall time that programs get: longer than any that works needs on a busy machine."""

from __future__ import annotations

import os

from bentpipe.errors import UsageError

SOCKETS_S = 60.0  # in socket mode, which has real transfers, and in which Java virtual machines start


def silence_s() -> int:
    """The time for which an endpoint in virtual time may be silent (`endpoints/CONTRACT.md`), and that
    it may take to exit; tests of endpoints that hang make it short.
    """
    text = os.environ.get("BENTPIPE_SILENCE_S", "30")
    if not text.isdigit() or int(text) == 0:
        raise UsageError(
            f'BENTPIPE_SILENCE_S: "{text}" is no number of seconds', "give a whole number above 0"
        )
    return int(text)
