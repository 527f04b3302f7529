"""Where things are: Bentpipe's own files, its programs, the cache of installed stacks, the folders of
scenarios, campaigns, pages and stacks.

Bentpipe's own files are those of the checkout (`make setup`), or those of an installed package (`make
wheel`), where the folder `data` beside this file mirrors the checkout and has programs besides:

    wheel.json      what the package was made from (`bentpipe.origin`); only a package has it
    bin/            Bentpipe's own programs
    installed/      stacks that come with it, each as in the cache (`bentpipe.stacks.installed`)
    scenarios/ campaigns/ pages/ suites/ endpoints/ crates/ products/ … Cargo.toml Cargo.lock

Nothing is ever written there. `BENTPIPE_ROOT` names another checkout, `BENTPIPE_BIN` another folder of its
own programs, and `BENTPIPE_CACHE` another cache. A worker of a cluster finds the programs of a run where it
was brought them (`programs_in`).
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

from bentpipe.errors import BentpipeError

_HERE = Path(__file__).resolve()
_KIT: ContextVar[Path | None] = ContextVar("_KIT", default=None)
OF_A_PACKAGE = "wheel.json"  # what the package was made from: see `bentpipe.origin`


def root() -> Path:
    """The folder of Bentpipe's own files: the checkout, or the package's folder that mirrors it."""
    named = os.environ.get("BENTPIPE_ROOT")
    data = _HERE.parent / "data"
    place = Path(named).resolve() if named else data if data.is_dir() else _HERE.parents[2]
    if not (place / "endpoints" / "CONTRACT.md").is_file():
        raise BentpipeError(
            f"no Bentpipe checkout at {place}",
            "in a checkout, run `make setup`, or install the wheel that `make wheel` makes; or name a "
            "checkout with BENTPIPE_ROOT",
        )
    return place


def is_package() -> bool:
    """Whether Bentpipe's own files are those of an installed package, and not a checkout's."""
    return (root() / OF_A_PACKAGE).is_file()


def repair() -> str:
    """The command that restores a missing part of Bentpipe, for hints."""
    again = "install the package again: pip install --force-reinstall, with its wheel"
    return again if is_package() else "run `make setup`"


def is_file(name: str) -> bool:
    """Whether there is a file of this name. A text that is too long for a name, such as a list of many
    variants, is none.
    """
    try:
        return Path(name).is_file()
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        return False


def bin_folder() -> Path:
    """The folder of Bentpipe's own programs; it need not exist yet."""
    if (kit := _KIT.get()) is not None:
        return kit / "bin"
    named = os.environ.get("BENTPIPE_BIN")
    if named:
        return Path(named).resolve()
    return root() / "bin" if is_package() else work() / "release"


def program(name: str) -> Path:
    """The path of one of Bentpipe's own programs, or an error that says how to build it."""
    path = bin_folder() / name
    if not os.access(path, os.X_OK) or not path.is_file():
        what = "is missing" if is_package() else "is not built"
        raise BentpipeError(f"the program {name} {what}: there is no {path}", repair())
    return path


def work() -> Path:
    """The folder for what builds produce on the way: in a checkout cargo's target folder, in a package a
    folder of the cache; it need not exist yet.
    """
    if is_package():
        return cache() / "work"
    return root() / (os.environ.get("CARGO_TARGET_DIR") or "target")


def cache() -> Path:
    """The folder that stacks are installed into, shared by all checkouts and packages; it need not exist
    yet.
    """
    named = os.environ.get("BENTPIPE_CACHE")
    if named:
        return Path(named).resolve()
    shared = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification has relative paths ignored.
    return (Path(shared) if Path(shared).is_absolute() else Path.home() / ".cache") / "bentpipe"


@contextlib.contextmanager
def programs_in(kit: Path | None) -> Iterator[None]:
    """Have this thread find programs in a kit (`bentpipe.execution.kit`) while the block lasts; None: in
    their usual places.
    """
    before = _KIT.set(kit)
    try:
        yield
    finally:
        _KIT.reset(before)


def brought(name: str) -> Path | None:
    """The folder of an installation in the kit; None if there is no kit, or it is not in the kit."""
    kit = _KIT.get()
    folder = None if kit is None else kit / "stacks" / name
    return folder if folder is not None and folder.is_dir() else None


def shipped() -> Path:
    """The folder of the stacks that come with the package; a checkout has none."""
    return root() / "installed"


def scenarios() -> Path:
    return root() / "scenarios"


def pages() -> Path:
    return root() / "pages"


def suites() -> Path:
    return root() / "suites"


def campaigns() -> dict[str, Path]:
    """Every campaign by its name: those of studies, where a later folder replaces an earlier one of the same
    name, and those that stand alone, which nothing replaces.
    """
    found: dict[str, Path] = {}
    for place in study_folders():
        files = [*place.glob("campaigns/*.toml"), *place.glob("*/campaigns/*.toml")]
        found |= {file.stem: file for file in sorted(files)}
    return found | {file.stem: file for file in sorted((root() / "campaigns").glob("*.toml"))}


def study_folders() -> list[Path]:
    """The folders that are searched for studies, Bentpipe's own first."""
    named = os.environ.get("BENTPIPE_STUDIES", "")
    return [root() / "studies", *(Path(entry) for entry in named.split(":") if entry)]


def endpoints() -> Path:
    return root() / "endpoints"


def middleboxes() -> Path:
    return root() / "middleboxes"


def certs() -> Path:
    """The certificates of virtual time, whose signatures always have the same length."""
    return endpoints() / "certs"


def socket_certs() -> Path:
    """The certificates of real time, of a kind that every TLS library takes."""
    return certs() / "p256"
