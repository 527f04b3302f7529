"""The file that `-o` names: whether a command may make it, and the error if it cannot be written."""

from __future__ import annotations

from pathlib import Path

from bentpipe.errors import UsageError


def check(out: Path, force: bool) -> None:
    """UsageError if a file of this name cannot be written, or is there and not to be replaced."""
    if not out.parent.is_dir():
        raise UsageError(f"-o: {out}: there is no folder {out.parent}", "make it first, or name another")
    if out.exists() and not force:
        raise UsageError(
            f"{out}: is there already", "choose another name with -o, or replace it with --force"
        )


def write(out: Path, text: str) -> None:
    """Write a file. UsageError if it cannot be."""
    try:
        out.write_text(text)
    except OSError as error:
        raise not_written(out, error) from error


def not_written(out: Path, error: OSError) -> UsageError:
    return UsageError(f"-o: {out}: cannot be written: {error.strerror}", "name another file")
