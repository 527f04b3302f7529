"""Published values that a study compares with: a TOML file beside its page, read strictly."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from bentpipe import strict


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of such a file. Its fields are the keys, and no others are allowed."""


Said = TypeVar("Said", bound=Table)


def read(module: str, kind: type[Said], name: str = "published.toml") -> Said:
    """Read the file of that name in the folder of a module, which passes its `__file__`."""
    return strict.read(Path(module).with_name(name), kind)
