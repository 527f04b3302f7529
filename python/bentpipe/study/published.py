"""What was published of a study's question: figures that somebody typed into a TOML file beside its page.

A file has the tables that its study's types say, all of them and no others.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from bentpipe import strict


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of such a file; its fields are the keys."""


Said = TypeVar("Said", bound=Table)


def read(module: str, kind: type[Said], name: str = "published.toml") -> Said:
    """The file of that name beside a module, which says its own place: `__file__`."""
    return strict.read(Path(module).with_name(name), kind)
