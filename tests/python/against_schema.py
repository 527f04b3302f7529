"""Holds a JSON value against a JSON Schema, with as much of the language as ours are written in; a keyword
that it does not know is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "null": (type(None),),
    "integer": (int,), "number": (int, float),
}  # fmt: skip
_SAID = {"$schema", "$defs", "title", "description", "default", "unit"}


def faults(value: Any, schema: dict[str, Any], root: dict[str, Any], at: str = "$") -> Iterator[str]:
    """What is wrong with `value`, place by place; nothing if it is as the `schema` says."""
    for keyword, wanted in schema.items():
        if keyword == "$ref":
            yield from faults(value, root["$defs"][wanted.removeprefix("#/$defs/")], root, at)
        elif keyword in ("anyOf", "oneOf"):
            tried = [list(faults(value, one, root, at)) for one in wanted]
            if [] not in tried:
                yield from min(tried, key=lambda found: (len(found) == 1, len(found)))
        elif keyword == "const":
            if value != wanted:
                yield f"{at}: {value!r} is not {wanted!r}"
        elif keyword == "type":
            other = isinstance(value, bool) and wanted != "boolean"
            if other or not isinstance(value, _TYPES[wanted]):
                yield f"{at}: {value!r} is no {wanted}"
                return  # what else the schema says is of that type
        elif keyword == "required":
            yield from (f"{at}: {name} is missing" for name in wanted if name not in value)
        elif keyword == "properties":
            for name in value.keys() & wanted.keys():
                yield from faults(value[name], wanted[name], root, f"{at}.{name}")
        elif keyword == "additionalProperties":
            for name in value.keys() - schema.get("properties", {}).keys():
                if wanted is False:
                    yield f"{at}: {name} is not in the schema"
                else:
                    yield from faults(value[name], wanted, root, f"{at}.{name}")
        elif keyword == "items":
            for place, item in enumerate(value):
                yield from faults(item, wanted, root, f"{at}[{place}]")
        elif keyword not in _SAID:
            raise NotImplementedError(keyword)


def keys(value: Any, schema: dict[str, Any], root: dict[str, Any], of: str = "") -> Iterator[tuple[str, str]]:
    """(type, key) of all that a value has, where `schema` names types; that of the root is ""."""
    if "$ref" in schema:
        of = schema["$ref"].removeprefix("#/$defs/")
        yield from keys(value, root["$defs"][of], root, of)
    for one in schema.get("anyOf", []):
        if not any(faults(value, one, root)):
            yield from keys(value, one, root, of)
    for name, inner in schema.get("properties", {}).items():
        if name in value:
            yield of, name
            yield from keys(value[name], inner, root, of)
    if "items" in schema:
        for item in value:
            yield from keys(item, schema["items"], root, of)


def defined(root: dict[str, Any]) -> set[tuple[str, str]]:
    """(type, key) of all that a schema names."""
    types = {"": root, **root["$defs"]}
    return {(name, key) for name, one in types.items() for key in one.get("properties", {})}
