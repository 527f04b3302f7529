"""Reads what `schemas/` defines, strictly: what is wrong is said with its key and its value."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_MISSING = re.compile(r"Object missing required field `(.+?)`(?: - at `\$(.*)`)?")
_UNKNOWN = re.compile(r"Object contains unknown field `(.+?)`(?: - at `\$(.*)`)?")
_WRONG = re.compile(r"(.+?)(?: - at `\$(.*)`)?")


class FormatError(ValueError):
    """The file is of a format that this version does not read."""


def convert(values: Any, kind: type[T], newest: int, numbered: bool = False) -> T:
    """What came out of a JSON file, as a `kind` of a format up to `newest`; what a later format brought is
    empty in an older file. Unless all are `numbered`, one without a number is of the first. ValueError for
    anything else, FormatError for another format.
    """
    if not isinstance(values, dict):
        raise ValueError("it is no JSON object")
    if numbered and "format" not in values:
        raise ValueError('the key "format" is missing')
    check_format(values, newest)
    try:
        return msgspec.convert(values | {"format": newest}, kind)
    except msgspec.ValidationError as error:
        raise ValueError(_in_words(str(error), values)) from None


def check_format(values: dict[str, Any], newest: int) -> None:
    """FormatError if the file is of another format than 1 to `newest`."""
    found = values.get("format", 1)
    if isinstance(found, bool) or not isinstance(found, int) or not 1 <= found <= newest:
        raise FormatError(f"it is of format {found!r}, and this version of Bentpipe reads 1 to {newest}")


def _in_words(text: str, values: Any) -> str:
    """What msgspec says, with the key as people write it, and the value."""
    for pattern, words in ((_MISSING, 'the key "{}" is missing'), (_UNKNOWN, 'unknown key "{}"')):
        if said := pattern.fullmatch(text):
            return words.format(_key(f"{said[2] or ''}.{said[1]}"))
    said = _WRONG.fullmatch(text)
    if said is None or not said[2]:
        return text
    shown = _at(values, said[2])
    return f"{_key(said[2])}: {shown!r} is not valid: {said[1][0].lower()}{said[1][1:]}"


def _key(path: str) -> str:
    return path.removeprefix(".")


def _at(values: Any, path: str) -> Any:
    """The value at a path such as `.flows[0].client`; where a map's key is not told, the map's path ends."""
    for name, index in re.findall(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]", path):
        if index == "...":
            return values
        values = values[int(index)] if index else values[name]
    return values
