"""JSON files, with errors that name the key."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from bentpipe.analysis.measurements.numbers import printable
from bentpipe.errors import UsageError

Kind = TypeVar("Kind")


def decoded(file: str, content: bytes, kind: type[Kind], hint: str) -> Kind:
    """The JSON as a `kind`. UsageError, naming the key, if it is none."""
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        said = str(error).replace("`$.", "`")
        raise UsageError(f"{file}: {printable(said)}", hint) from None
