"""The kit of a run: the programs of its trials, each named by the hash of its content, as workers of a
cluster receive them.

A worker that has other programs than the client, or none, keeps those it was brought in its user's cache:

    brought/files/HASH         each file once, whichever run it came with
    brought/kits/HASH/bin/     Bentpipe's own programs, as in `paths.bin_folder()`
    brought/kits/HASH/stacks/  installed stacks and the kernel of guests, each folder as in the cache
    brought/lock               held while any of it is looked at or written

What is in kits are hard links to the files. Each file of a kit was read and had the hash that it is called
by before a run begins with it; trials then find their programs there (`paths.programs_in`), and nothing of
what the worker has of its own is touched. Workers of one host share the folder: what is whole stays where it
is, since others' trials may be running it, and what is damaged is replaced file by file.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bentpipe import paths
from bentpipe.errors import BentpipeError
from bentpipe.execution import libraries
from bentpipe.stacks import installed

PROGRAMS, STACKS = "bin", "stacks"
_DIGITS = 16  # of the hash, in a kit's name


@dataclass(frozen=True)
class KitFile:
    """A file of a kit."""

    sha256: str
    executable: bool


@dataclass(frozen=True)
class Kit:
    """The files of a kit, and the kind of machine that its programs are for."""

    files: Mapping[str, KitFile]  # by their paths in the kit
    machine: str = ""  # processor and C library, in words

    @classmethod
    def here(cls, programs: Iterable[Path], folders: Iterable[Path]) -> Kit:
        """The kit of some of Bentpipe's own programs, and of the folders of some installations."""
        found = {f"{PROGRAMS}/{one.name}": KitFile(installed.sha256(one), True) for one in programs}
        for folder in folders:
            names = [*_contents(folder), installed.FILE]
            found |= {f"{STACKS}/{folder.name}/{name}": _file(folder / name) for name in names}
        return cls(dict(sorted(found.items())), _machine())

    def content(self, sha256: str) -> bytes:
        """The content of a file, on the machine whose kit it is. OSError if it is gone."""
        path = next(path for path, file in self.files.items() if file.sha256 == sha256)
        return _own(path).read_bytes()

    def is_own(self) -> bool:
        """Whether this machine has the same programs itself, byte by byte, none of them damaged."""
        for path, file in self.files.items():
            if _is_statement(path):  # it differs in when and how that was installed
                if _entry(path).why_not() is not None:
                    return False
            elif not _is_whole(_own(path), file):
                return False
        return True

    def gone(self, folder: Path | None) -> Path | None:
        """A file that is not there or cannot be executed, in the folder of a kit that was brought, or,
        without one, among this machine's own; None if all are there. Their contents are not read.
        """
        for path, file in self.files.items():
            place = _own(path) if folder is None else folder / path
            if not os.access(place, os.X_OK if file.executable else os.R_OK):
                return place
        return None

    def misfit(self) -> str | None:
        """The reason why its programs cannot run on this machine, in words; None if there is none."""
        if self.machine == _machine():
            return None
        return (
            f"it has other programs than those for {self.machine}, and is {_machine()}, so that it is not "
            "brought them; install the same Bentpipe and stacks there"
        )

    @property
    def sha256(self) -> str:
        """A hash over the paths and contents of its files."""
        lines = (f"{file.sha256} {file.executable:d} {path}\n" for path, file in self.files.items())
        return hashlib.sha256("".join(lines).encode()).hexdigest()


class KitStore:
    """The files of a kit that this machine has."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._place = paths.cache() / "brought"
        self._files, self.folder = self._place / "files", self._place / "kits" / kit.sha256[:_DIGITS]

    def absent(self) -> list[str]:
        """The hashes of the files that must be brought; those that this machine has already, also among its
        own programs, are copied from there.
        """
        with self._locked():
            return self._absent()

    def _absent(self) -> list[str]:
        left = dict.fromkeys(file.sha256 for file in self._kit.files.values())
        for path, file in self._kit.files.items():
            if file.sha256 not in left:
                continue
            if not _has(self._files / file.sha256, file.sha256):
                if not _has(_own(path), file.sha256):
                    continue
                self._put(file.sha256, _own(path).read_bytes())
            del left[file.sha256]
        return list(left)

    def put(self, sha256: str, content: bytes) -> None:
        """Store a file. BentpipeError if its content does not match its hash, or it is none of the kit."""
        with self._locked():
            if not _has(self._files / sha256, sha256):  # else another worker of this host was brought it
                self._put(sha256, content)

    def _put(self, sha256: str, content: bytes) -> None:
        uses = [file for file in self._kit.files.values() if file.sha256 == sha256]
        if not uses or hashlib.sha256(content).hexdigest() != sha256:
            raise BentpipeError(f"a program is not what its hash {sha256} says", "start the run again")
        self._files.mkdir(parents=True, exist_ok=True)
        with _new(self._files) as scratch:
            file = scratch / sha256
            file.write_bytes(content)
            file.chmod(0o555 if any(one.executable for one in uses) else 0o444)
            file.replace(self._files / sha256)

    def complete(self) -> Path:
        """The kit's folder, created or repaired if need be. BentpipeError if a file does not match its hash,
        or a program lacks a library.
        """
        with self._locked():
            if damaged := self._damaged():
                self._make(damaged)
                damaged = self._damaged()
        if damaged:
            where = self.folder / damaged[0]
            raise BentpipeError(f"{where} cannot be made", "name another cache with BENTPIPE_CACHE")
        if (lack := next(self._lacks(), None)) is not None:
            raise BentpipeError(lack, "install that library there")
        return self.folder

    def _damaged(self) -> list[str]:
        """The files of the kit that are not there as they should be."""
        return [path for path, file in self._kit.files.items() if not _is_whole(self.folder / path, file)]

    def _make(self, damaged: list[str]) -> None:
        if absent := self._absent():
            raise BentpipeError(f"files are gone that were brought: {absent[0]}", "start the run again")
        self.folder.mkdir(parents=True, exist_ok=True)
        with _new(self.folder.parent) as scratch:
            for number, path in enumerate(damaged):
                file, link = self._kit.files[path], scratch / str(number)
                if file.executable:  # it may have been brought for another kit, as none
                    (self._files / file.sha256).chmod(0o555)
                link.hardlink_to(self._files / file.sha256)
                (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
                link.replace(self.folder / path)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Alone among the workers of this host."""
        self._place.mkdir(parents=True, exist_ok=True)
        with (self._place / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _lacks(self) -> Iterator[str]:
        """The programs that lack a shared library on this machine, and which."""
        for path in (path for path, file in self._kit.files.items() if file.executable):
            installation = str(Path(*Path(path).parts[:2]))
            brought = {Path(one).name for one in self._kit.files if Path(one).is_relative_to(installation)}
            if lack := libraries.lack(self.folder / path, brought):
                yield f"{path} was brought, and needs {lack}"


def _contents(folder: Path) -> list[str]:
    found = installed.read(folder)
    if found is None:
        raise BentpipeError(f"{folder / installed.FILE} cannot be read", "install the stack again")
    return list(found.files)


def _file(path: Path) -> KitFile:
    return KitFile(installed.sha256(path), os.access(path, os.X_OK))


def _own(path: str) -> Path:
    """Where this machine has a file of a kit of its own, if it has."""
    place, _, rest = path.partition("/")
    if place == PROGRAMS:
        return paths.bin_folder() / rest
    return _entry(path).folder / rest.partition("/")[2]


def _entry(path: str) -> installed.CacheEntry:
    """The installation that a file of a kit belongs to, on this machine."""
    stack, _, digits = Path(path).parts[1].rpartition("-")
    return installed.CacheEntry(stack, digits)


def _is_statement(path: str) -> bool:
    """Whether a file of a kit says what is installed in its folder."""
    return path.startswith(f"{STACKS}/") and Path(path).parts[2:] == (installed.FILE,)


def _is_whole(path: Path, file: KitFile) -> bool:
    return _has(path, file.sha256) and (not file.executable or os.access(path, os.X_OK))


def _has(path: Path, sha256: str) -> bool:
    try:
        return installed.sha256(path) == sha256
    except OSError:
        return False


def _machine() -> str:
    libc = " ".join(platform.libc_ver()).strip() or "a C library that cannot be told"
    return f"{platform.system()} on {platform.machine()} with {libc}"


@contextlib.contextmanager
def _new(beside: Path) -> Iterator[Path]:
    """A folder that is gone in the end, from which files can be moved to where they belong at once."""
    folder = Path(tempfile.mkdtemp(prefix=".", dir=beside))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
