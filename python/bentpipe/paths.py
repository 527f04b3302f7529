"""Where things are: the checkout, its programs, the cache of installed stacks, the folders of scenarios,
campaigns and stacks.

Bentpipe is installed from its checkout (`make setup`), so that the checkout is found from this file.
`BENTPIPE_ROOT` names another checkout, `BENTPIPE_BIN` another folder of its own programs, and
`BENTPIPE_CACHE` another cache.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from bentpipe.errors import BentpipeError


def root() -> Path:
    """The root of the Bentpipe checkout."""
    named = os.environ.get("BENTPIPE_ROOT")
    place = Path(named).resolve() if named else Path(__file__).resolve().parents[2]
    if not (place / "endpoints" / "CONTRACT.md").is_file():
        raise BentpipeError(
            f"no Bentpipe checkout at {place}",
            "install with `make setup` from a checkout, or name one with BENTPIPE_ROOT",
        )
    return place


def is_file(name: str) -> bool:
    """Whether there is a file of this name. A text that is too long for a name, as a list of many variants
    may be, is none.
    """
    try:
        return Path(name).is_file()
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        return False


def bin_folder() -> Path:
    """The folder of Bentpipe's own programs; it need not exist yet."""
    named = os.environ.get("BENTPIPE_BIN")
    if named:
        return Path(named).resolve()
    target = os.environ.get("CARGO_TARGET_DIR")
    return (root() / target if target else root() / "target") / "release"


def program(name: str) -> Path:
    """The path of one of Bentpipe's own programs, or an error that says how to build it."""
    path = bin_folder() / name
    if not os.access(path, os.X_OK) or not path.is_file():
        raise BentpipeError(
            f"the program {name} is not built: there is no {path}", "build it with `make setup`"
        )
    return path


def cache() -> Path:
    """The folder that stacks are installed into, shared by all checkouts; it need not exist yet."""
    named = os.environ.get("BENTPIPE_CACHE")
    if named:
        return Path(named).resolve()
    shared = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification has relative paths ignored.
    return (Path(shared) if Path(shared).is_absolute() else Path.home() / ".cache") / "bentpipe"


def scenarios() -> Path:
    return root() / "scenarios"


def campaigns() -> Path:
    return root() / "campaigns"


def endpoints() -> Path:
    return root() / "endpoints"


def certs() -> Path:
    """The certificates of virtual time, whose signatures always have the same length."""
    return endpoints() / "certs"


def socket_certs() -> Path:
    """The certificates of real time, of a kind that every TLS library takes."""
    return certs() / "p256"
