"""Reads what `schemas/` defines, strictly: what is wrong is said with its key and its value."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import msgspec

T = TypeVar("T")
Place = tuple[str | int, ...]  # the keys and numbers that lead to a value

_SAID = re.compile(r"(?P<what>.+?)(?: - at (?P<of_key>`key` in )?`\$(?P<path>.*)`)?", re.DOTALL)
_ABSENT = re.compile(r"Object (?P<how>missing required|contains unknown) field `(?P<key>.+)`", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_LONGEST = 100  # characters of a value that is shown


_PREPARED: set[Any] = set()
_PREPARING = threading.Lock()


def prepared(kind: type[T]) -> type[T]:
    """`kind`, which from now on may be read in several threads at once. What msgspec (0.22) knows of a class
    it collects when it first reads one; other threads that do so meanwhile crash on what is missing yet.
    """
    with _PREPARING:
        if kind not in _PREPARED:
            msgspec.json.Decoder(kind)
            _PREPARED.add(kind)
    return kind


@dataclass(frozen=True)
class Fault:
    """The error in a value that was read: its place, and its kind."""

    how: Literal["missing", "unknown", "wrong"]
    place: Place  # of the key that is missing or unknown, or of the wrong value
    what: str  # as msgspec says it


class FormatError(ValueError):
    """The file is of a format that this version does not read."""


def convert(values: Any, kind: type[T], newest: int, numbered: bool = False) -> T:
    """The contents of a JSON file, as a `kind` of a format up to `newest`; what a later format brought is
    empty in an older file. Unless all are `numbered`, one without a number is of the first. ValueError for
    anything else, FormatError for another format.
    """
    if not isinstance(values, dict):
        raise ValueError("it is no JSON object")
    if numbered and "format" not in values:
        raise ValueError('the key "format" is missing')
    check_format(values, newest)
    current = values | {"format": newest}
    try:
        return msgspec.convert(current, prepared(kind))
    except msgspec.ValidationError as error:
        try:
            words = _in_words(fault(error, current, kind), values)
        except (LookupError, StopIteration, TypeError):
            words = str(error)  # a key that is made to look like what msgspec says leads nowhere
        raise ValueError(words) from None


def check_format(values: dict[str, Any], newest: int) -> None:
    """FormatError if the file is of another format than 1 to `newest`."""
    found = values.get("format", 1)
    if isinstance(found, bool) or not isinstance(found, int) or not 1 <= found <= newest:
        raise FormatError(f"it is of format {found!r}, and this version of Bentpipe reads 1 to {newest}")


def fault(error: msgspec.ValidationError, values: Any, kind: Any) -> Fault:
    """Where `values` are no `kind`, by the error that msgspec raised. It does not say which entry of a map it
    means: that is the first that raises the same error alone.
    """
    text = str(error)
    said = _SAID.fullmatch(text)
    assert said is not None, text
    place: Place = ()
    for name, number in _STEP.findall(said["path"] or ""):
        step = int(number) if number.isdigit() else name
        place += (_entry(text, values, kind, place) if number == "..." else step,)
    if said["of_key"]:
        return Fault("unknown", (*place, _entry(text, values, kind, place)), said["what"])
    if absent := _ABSENT.fullmatch(said["what"]):
        how: Literal["missing", "unknown"] = "missing" if absent["how"].startswith("missing") else "unknown"
        return Fault(how, (*place, absent["key"]), said["what"])
    return Fault("wrong", place, said["what"])


def value_at(values: Any, place: Place) -> Any:
    """The value at a place."""
    for step in place:
        values = values[step]
    return values


def shown(value: Any) -> str:
    """A value for a message, as much of it as can be taken in."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _entry(text: str, values: Any, kind: Any, place: Place) -> str:
    """The key, in the map at `place`, of the entry that `text` is about."""
    entries: Mapping[str, Any] = value_at(values, place)
    found = (key for key in entries if _raises(text, _with(values, place, {key: entries[key]}), kind))
    return next(found, "…")  # a key that is made to look like what msgspec says can hide which it is


def _raises(text: str, values: Any, kind: Any) -> bool:
    try:
        msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        return str(error) == text
    return False


def _with(values: Any, place: Place, new: Any) -> Any:
    """`values` with `new` at a place."""
    if not place:
        return new
    step, *rest = place
    copy: Any = list(values) if isinstance(values, list) else dict(values)
    copy[step] = _with(values[step], tuple(rest), new)
    return copy


def _in_words(found: Fault, values: Any) -> str:
    """The error, with the key as people write it, and the value."""
    key = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in found.place).lstrip(".")
    if found.how == "missing":
        return f'the key "{key}" is missing'
    if found.how == "unknown":
        return f'unknown key "{key}"'
    what = f"{found.what[0].lower()}{found.what[1:]}"
    return f"{key}: {shown(value_at(values, found.place))} is not valid: {what}" if key else what
