"""Strict reading of TOML files: an unknown key, a missing one or a wrong value is an error that says where it
is, and what to write instead.

What a file may say is a structure of msgspec. A hint comes from the type of the key, or is the `description`
in its `msgspec.Meta`.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from bentpipe.errors import UsageError, one_of
from bentpipe.schema.reading import Fault, Place, fault, prepared, shown, value_at

T = TypeVar("T")


def read(path: Path, kind: type[T]) -> T:
    """The content of a TOML file, as a `kind`; UsageError if it cannot be read, or is not of that kind."""
    return convert(load(path), kind, str(path))


def load(path: Path) -> dict[str, Any]:
    """The values of a TOML file; UsageError if it cannot be read."""
    try:
        return tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from error


def convert(values: dict[str, Any], kind: type[T], file: str) -> T:
    """The values of `file` as a `kind`; UsageError if they are not valid."""
    try:
        return msgspec.convert(values, prepared(kind))
    except msgspec.ValidationError as error:
        try:
            found = _in_words(fault(error, values, kind), values, inspect.type_info(kind), file)
        except (LookupError, StopIteration, TypeError):
            # A key that is made to look like what msgspec says leads nowhere.
            found = UsageError(f"{file}: {error}", "are its keys as meant?")
        raise found from None


def wrong(file: Path | str, key: str, value: object, wanted: str) -> UsageError:
    """The error for a value that has the right type, and is not valid all the same."""
    return UsageError(f"{file}: {key}: {shown(value)} is not valid", f"write {wanted}")


def _in_words(found: Fault, values: dict[str, Any], top: inspect.Type, file: str) -> UsageError:
    place, kind, description = _described(found, top)
    key = _key(place)
    if found.how == "missing":
        return UsageError(f'{file}: the key "{key}" is missing', "add it")
    if found.how == "unknown":
        return UsageError(f'{file}: unknown key "{key}"', one_of(str(place[-1]), _keys(kind), "keys"))
    value = value_at(values, place)
    if isinstance(kind, inspect.LiteralType) and isinstance(value, str) and not description:
        hint = one_of(value, map(str, kind.values), "one of")
        return UsageError(f'{file}: {key}: "{value}" is not valid', hint)
    return wrong(file, key, value, description or _wanted(kind, key))


def _described(found: Fault, top: inspect.Type) -> tuple[Place, inspect.Type, str]:
    """The place to name, the type that is wanted there, and what its definition says of it: of a list the
    whole, not one of its values. Of a key that is missing or unknown, the type of the table that it is in.
    """
    if found.how != "wrong":
        kind = top
        for step in found.place[:-1]:
            kind = _inner(_bare(kind), step)
        return found.place, _bare(kind), ""
    kind = top
    for number, step in enumerate(found.place, start=1):
        kind = _inner(_bare(kind), step)
        if description := _description(kind):
            return found.place[:number], _bare(kind), description
        if isinstance(_bare(kind), inspect.VarTupleType) and not _is_of_tables(_bare(kind)):
            return found.place[:number], _bare(kind), ""
    return found.place, _bare(kind), ""


def _description(kind: inspect.Type) -> str:
    if isinstance(kind, inspect.UnionType):
        return next((found for one in kind.types if (found := _description(one))), "")
    schema = kind.extra_json_schema if isinstance(kind, inspect.Metadata) else None
    return str((schema or {}).get("description", ""))


def _is_of_tables(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.VarTupleType) and isinstance(_bare(kind.item_type), inspect.StructType)


def _inner(kind: inspect.Type, step: str | int) -> inspect.Type:
    """The type of what is in a value of this type."""
    if isinstance(kind, inspect.StructType):
        return next(field.type for field in kind.fields if field.encode_name == step)
    if isinstance(kind, inspect.DictType):
        return kind.value_type
    if isinstance(kind, inspect.VarTupleType):
        return kind.item_type
    raise TypeError(f"nothing is in {kind}")


def _bare(kind: inspect.Type) -> inspect.Type:
    """The type without what is said of it, and without null."""
    if isinstance(kind, inspect.Metadata):
        return _bare(kind.type)
    if isinstance(kind, inspect.UnionType):
        return _bare(next(one for one in kind.types if not isinstance(one, inspect.NoneType)))
    return kind


def _keys(kind: inspect.Type) -> list[str]:
    """The keys that a table may have."""
    if isinstance(kind, inspect.StructType):
        return [field.encode_name for field in kind.fields]
    if isinstance(kind, inspect.DictType) and isinstance(kind.key_type, inspect.LiteralType):
        return list(map(str, kind.key_type.values))
    return []


def _wanted(kind: inspect.Type, key: str) -> str:
    """The hint on what to write."""
    match kind:
        case inspect.StrType():
            return "a text in quotes"
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType(ge=1):
            return "a whole number of at least 1"
        case inspect.IntType(ge=0):
            return "a whole number of at least 0"
        case inspect.IntType():
            return "a whole number"
        case inspect.FloatType():
            return "a number above 0"
        case inspect.LiteralType(values=words):
            *most, last = (json.dumps(word) for word in words)
            return f"{', '.join(most)} or {last}" if most else last
        case inspect.VarTupleType(item_type=inspect.StructType()):
            return f"tables: [[{key}]]"
        case inspect.VarTupleType():
            return 'a list of texts: ["…", "…"]'
    return f"a table: [{key}]"


def _key(place: Place) -> str:
    """A place as people count: `build.needs`, `runs 2: campaign`."""
    text = ""
    for step in place:
        if isinstance(step, int):
            text += f" {step + 1}:"
        else:
            text += f" {step}" if text.endswith(":") else f".{step}"
    return text.lstrip(".").removesuffix(":")
