"""The files of the one folder that an end reads from or writes to.

No pathlib: its import is a noticeable part of a short process.
"""
# ruff: noqa: PTH103, PTH118, PTH120, PTH123

from __future__ import annotations

import os
from typing import BinaryIO

STORE_BUFFER = 1 << 20  # bytes; what is stored comes in pieces of a packet


def load(folder: str, path: str) -> bytes | None:
    """The contents of the file `path` below `folder`; None if there is none."""
    try:
        file = _inside(folder, path)
        if file is None:
            return None
        with open(file, "rb") as content:
            return content.read()
    except (OSError, ValueError):
        return None


def create(folder: str, path: str) -> BinaryIO | None:
    """The file `path` below `folder`, new and empty; None if it leads out of it."""
    file = _inside(folder, path)
    if file is None:
        return None
    os.makedirs(os.path.dirname(file), exist_ok=True)
    return open(file, "wb", buffering=STORE_BUFFER)


def _inside(folder: str, path: str) -> str | None:
    """The file `path` below `folder`; None if it leads out of it, also by a symbolic link."""
    root = os.path.realpath(folder)
    file = os.path.realpath(os.path.join(root, path.lstrip("/")))
    return file if file.startswith(root + os.sep) else None
