"""Errors that a user can act on: what is wrong, where, and what to do about it.

The command line prints them as `error: …` and `hint: …` in one place (`bentpipe.cli`); nothing else prints
errors.
"""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable

_LISTED = 24  # names of a hint, before the others are counted
_LIKELY = 8  # names of a long list that are shown
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class BentpipeError(Exception):
    """Something failed. The command ends with exit code 1."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(BentpipeError):
    """An input of the user is not valid. The command ends with exit code 2, before anything has started."""

    exit_code = 2


class Interrupted(BentpipeError):
    """The user asked the command to stop (Ctrl-C or SIGTERM). The command ends with exit code 130."""

    exit_code = 130


def is_full(error: OSError) -> bool:
    """Whether an operation failed for lack of space: a full disk, a quota, a limit on the size of files."""
    return error.errno in _FULL


def one_of(name: str, valid: Iterable[str], what: str) -> str:
    """A hint for an unknown name: the nearest valid one, if any is near, and the list of all; of a very long
    list, the most similar ones.
    """
    valid = list(valid)
    near = difflib.get_close_matches(name, valid, n=1)
    shown = valid
    if len(valid) > _LISTED:
        shown = difflib.get_close_matches(name, valid, n=_LIKELY, cutoff=0) if name else valid[:_LIKELY]
    more = f" and {len(valid) - len(shown)} more" if len(shown) < len(valid) else ""
    listed = f"{what}: {', '.join(shown)}{more}" if valid else f"{what}: none"
    return f'did you mean "{near[0]}"? {listed}' if near else listed
