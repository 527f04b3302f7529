"""The inputs of an installed stack: one hash over its sources, which names its folder in the cache.

Two checkouts with the same sources share what is installed, wherever they lie; a change of one byte asks for
a new installation. The inputs are the files of the stack's folder, the further ones that `[build]` names, its
command, and the kind of machine. The versions of tools are not among them: they are recorded.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable, Iterator
from pathlib import Path

# At the top of the stack's folder, no program is made of these. The command of stack.toml's `[build]` is
# hashed by itself: a new note in that file asks for no new build.
_NOT_SOURCES = {"README.md", "guest.toml", "middlebox.toml", "stack.toml"}
# Nowhere is a program made of these, nor of what begins with a dot: tests, and what builds leave behind.
_NO_SOURCES_ANYWHERE = {"tests", "tests.rs", "target", "__pycache__", "node_modules"}


def sha256(folder: Path, further: Iterable[tuple[str, Path]], words: Iterable[str]) -> str:
    """The hash of a stack in `folder` with the `further` inputs (as stack.toml writes it, where it is) and
    the `words` of its build. OSError for what cannot be read.
    """
    whole = hashlib.sha256()
    for word in (platform.system(), platform.machine(), *words):
        _add(whole, word.encode())
    for name, file in _files("", folder, _NOT_SOURCES):
        _add(whole, name.encode(errors="surrogateescape"), _content(file))
    for label, place in further:
        for name, file in _files(label, place, set()):
            _add(whole, name.encode(errors="surrogateescape"), _content(file))
    return whole.hexdigest()


def _add(whole: hashlib._Hash, *parts: bytes) -> None:
    """Each part with its length, so that no two lists of parts are the same bytes."""
    for part in parts:
        whole.update(len(part).to_bytes(8, "little"))
        whole.update(part)


def _content(file: Path) -> bytes:
    """The hashed part of a file: its bytes, whether it is a program; of a link to a folder, its target."""
    if file.is_dir():
        return b">" + os.fsencode(file.readlink())
    return (b"x" if os.access(file, os.X_OK) else b"-") + file.read_bytes()


def _files(label: str, place: Path, without: set[str]) -> Iterator[tuple[str, Path]]:
    """The files at or below `place` in order, each with its name from `label` on."""
    if not place.is_dir() or (label and place.is_symlink()):
        yield label, place
        return
    for entry in sorted(os.scandir(place), key=lambda entry: entry.name):
        if entry.name.startswith(".") or entry.name in _NO_SOURCES_ANYWHERE or entry.name in without:
            continue
        if entry.is_dir() or entry.is_file():
            yield from _files(f"{label}/{entry.name}", Path(entry.path), set())
