"""Installed stacks: the folders of the cache (`paths.cache()`), each with the programs of one stack made of
certain sources, and `installed.json`, which says what they are and what made them. A package brings some
along in a folder of its own (`paths.shipped()`), which is only read.

    stacks/quinn-0123456789abcdef/     {bin} of the stack: its programs, and installed.json
    logs/quinn-0123456789abcdef.log    what the build printed
    locks/quinn-0123456789abcdef       held while it is built

A folder that has no `installed.json`, or a file that is not as written there, is not installed.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from bentpipe import paths

FILE = "installed.json"
NOT_BUILT = "it has not been built yet"
_DIGITS = 16  # of the hash, in a folder's name
_REQUIRED = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True)
class CacheEntry:
    """The place of a stack that was built from certain sources, whether it is there or not."""

    stack: str
    inputs_sha256: str

    @property
    def name(self) -> str:
        return f"{self.stack}-{self.inputs_sha256[:_DIGITS]}"

    @property
    def place(self) -> Path:
        """Its folder in the cache, where it is put when it is built."""
        return paths.cache() / "stacks" / self.name

    @property
    def folder(self) -> Path:
        """The folder where it is: in a kit that was brought; in the cache; or in the package if that has it
        and the cache does not, or not intact.
        """
        if (brought := paths.brought(self.name)) is not None:
            return brought
        shipped = paths.shipped() / self.name
        return shipped if shipped.is_dir() and _why_not(self.place) is not None else self.place

    @property
    def log(self) -> Path:
        return paths.cache() / "logs" / f"{self.name}.log"

    @property
    def lock(self) -> Path:
        return paths.cache() / "locks" / self.name

    def why_not(self) -> str | None:
        """The reason why it is not installed, in words; None if it is."""
        why = _why_not(self.folder)
        if why != NOT_BUILT:
            return why
        pattern = re.compile(rf"{re.escape(self.stack)}-[0-9a-f]{{{_DIGITS}}}")
        places = (self.place.parent, paths.shipped())
        others = (other.name for place in places if place.is_dir() for other in place.iterdir())
        changed = any(pattern.fullmatch(other) for other in others)
        return "its sources have changed since it was installed" if changed else NOT_BUILT


def _why_not(folder: Path) -> str | None:
    """Why what is in `folder` is no installation, in words; None if it is one."""
    if not folder.is_dir():
        return NOT_BUILT
    found = read(folder)
    if found is None:
        return f"{folder / FILE} is damaged"
    wrong = next(found.damages(folder), None)
    return f"{folder / wrong} is gone or was changed" if wrong else None


@dataclass(frozen=True)
class Installation:
    """The content of `installed.json`."""

    stack: str
    inputs_sha256: str
    version: str | None  # of the stack, as it gives it; null: it gives none
    programs: Mapping[str, str]  # those that its commands start → SHA-256
    tools: Mapping[str, str]  # what it was built with → version
    packages: Mapping[str, str]  # of Python, inside the folder → version
    installed: str  # UTC
    seconds: float  # that the build took
    files: Mapping[str, Mapping[str, int | str]]  # every file → what `_looks` and its SHA-256

    def write(self, folder: Path) -> None:
        (folder / FILE).write_text(json.dumps(asdict(self), indent=1) + "\n")

    def damages(self, folder: Path) -> Iterator[str]:
        """The files that are gone or changed. One whose size and time are unchanged is not read again."""
        for name, known in self.files.items():
            try:
                looks = _looks(folder / name)
                same = all(known.get(key) == value for key, value in looks.items())
                if not same and known.get("sha256") != _sha256_once(folder / name, *looks.values()):
                    yield name
            except OSError:
                yield name

    def to_mapping(self) -> dict[str, object]:
        """The entry that a manifest has of it."""
        return {key: value for key, value in asdict(self).items() if key not in ("stack", "files")}


def read(folder: Path) -> Installation | None:
    """The installation in `folder`; None if there is none that can be read."""
    try:
        found = Installation(**json.loads((folder / FILE).read_text()))
    except (OSError, ValueError, TypeError):
        return None
    tables: list[object] = [found.programs, found.tools, found.packages, found.files]
    if isinstance(found.files, dict):
        tables += found.files.values()
    return found if all(isinstance(table, dict) for table in tables) else None


def files(folder: Path) -> dict[str, dict[str, int | str]]:
    """Every file below `folder`, as `Installed.files` has it. Python rewrites its own caches as it likes."""
    found: dict[str, dict[str, int | str]] = {}
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            path = Path(place, name)
            if path.is_file():
                found[str(path.relative_to(folder))] = {"sha256": sha256(path), **_looks(path)}
    return found


def _looks(path: Path) -> dict[str, int]:
    found = path.stat()
    return {"bytes": found.st_size, "mtime_ns": found.st_mtime_ns, "ctime_ns": found.st_ctime_ns}


@functools.cache
def _sha256_once(path: Path, *_looks: int) -> str:
    """The hash of a file that looks so. One that a package brought never looks as it was left."""
    return sha256(path)


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def packages_in(folder: Path) -> dict[str, str]:
    """The Python packages that are installed somewhere below `folder`, and their versions."""
    places = {str(found.parent) for found in folder.rglob("*.dist-info")}
    found = {one.name: one.version for one in metadata.distributions(path=sorted(places))} if places else {}
    return dict(sorted(found.items()))


def packages_of(names: tuple[str, ...]) -> dict[str, str | None]:
    """Packages of Bentpipe's own Python and all that they require, and their versions; None: it is absent."""
    found: dict[str, str | None] = {}
    left = list(names)
    while left:
        name = left.pop()
        if name in found:
            continue
        try:
            one = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            if name in names:
                found[name] = None
            continue  # required on other systems only
        found[name] = one.version
        required = (text for text in one.requires or () if "extra ==" not in text)
        left += [match[0].lower() for text in required if (match := _REQUIRED.match(text))]
    return dict(sorted(found.items()))


@contextlib.contextmanager
def unused(name: str) -> Iterator[bool]:
    """Whether the entry called `name` is not being built; while the block lasts no build of it begins."""
    lock = paths.cache() / "locks" / name
    if not lock.parent.is_dir():
        yield True
        return
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def size(place: Path) -> int:
    """Bytes of a file, or of all files below a folder."""
    if not place.is_dir():
        return place.lstat().st_size
    return sum(file.lstat().st_size for file in place.rglob("*") if not file.is_dir())
