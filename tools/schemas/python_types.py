"""Writes the types of a definition as Python: structures of msgspec, which reads them strictly."""

from __future__ import annotations

import keyword
import textwrap

from definition import Definition, Field, Kind, Type, Words

WIDTH = 110
PLAIN = {"text": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "dict[str, Any]"}
LIST, TUPLE, MAP, NULLABLE = "list[{}]", "tuple[{}, ...]", "dict[str, {}]", "{} | None"
# The default where nothing was measured, and in files that are older than the field.
NOTHING = {
    "text": '""',
    "integer": "0",
    "number": "0.0",
    "boolean": "False",
    "list": "[]",
    "map": "{}",
    "object": "{}",
}
OPTIONS = "kw_only=True, forbid_unknown_fields=True"


def write(definition: Definition) -> str:
    """The source of a module."""
    parts = [f'"""{definition.title}: generated from schemas/{definition.name}.toml by `make schemas`."""']
    parts += ["from __future__ import annotations", f"{_typing(definition)}import msgspec"]
    parts.append(f"FORMAT = {definition.format}")
    parts += [_words(one) for one in definition.words]
    first, *further = definition.objects
    structures = [_structure(one, definition) for one in (*further, first)]  # what it is made of comes first
    tables = [_tables(definition)] if definition.unmeasured else []
    return "\n\n".join(parts) + "\n\n\n" + "\n\n\n".join([*structures, *tables]) + "\n"


def _typing(definition: Definition) -> str:
    objects = any(field.kind.innermost == "object" for one in definition.objects for field in one.fields)
    names = ["Any"] * objects + ["Literal"] * bool(definition.words)
    return f"from typing import {', '.join(names)}\n\n" if names else ""


def _words(one: Words) -> str:
    literal = "\n".join(f'    "{word}",' for word in one.words)
    name = one.name.upper().removesuffix("S") + "S"
    listed = f"{name}: tuple[{one.name}, ...] = (\n{literal}\n)"
    return f"# {one.about}\n{one.name} = Literal[\n{literal}\n]\n{listed}"


def _structure(one: Type, definition: Definition) -> str:
    lines = [
        f"class {one.name}(msgspec.Struct, {'' if one.mutable else 'frozen=True, '}{OPTIONS}):",
        *_docstring(one.about),
    ]
    for field in one.fields:
        comment = "; null ".join(part for part in (field.meaning.rstrip("."), field.null) if part)
        unit = (
            f", {field.unit}"
            if field.unit and not field.name.endswith(("_s", "_ms", "_bps", "_bytes"))
            else ""
        )
        lines += [f"    # {line}" for line in textwrap.wrap(f"{comment}{unit}.", WIDTH - 6)]
        empty = definition.unmeasured and one is definition.objects[0] and field.by == "testbed"
        may_lack = field.optional or field.since > 1 or (empty and field.kind.name != "Outcome")
        default = _default(field, definition) if may_lack else ""
        if one.tuples and default.startswith("["):
            default = f"({default[1:-1]},)" if default != "[]" else "()"
        lines.append(f"    {_declared(field, default, TUPLE if one.tuples else LIST)}")
    return "\n".join(lines)


def _docstring(text: str) -> list[str]:
    lines = textwrap.wrap(text, WIDTH - 8)
    if len(lines) == 1:
        return [f'    """{lines[0]}"""', ""]
    return [f'    """{lines[0]}', *(f"    {line}" for line in lines[1:]), '    """', ""]


def _declared(field: Field, default: str, list_: str) -> str:
    name = f"{field.name}_" if keyword.iskeyword(field.name) else field.name
    kind = _kind(field.kind, list_)
    if name != field.name:
        inside = f'default={default}, name="{field.name}"' if default else f'name="{field.name}"'
        return f"{name}: {kind} = msgspec.field({inside})"
    return f"{name}: {kind} = {default}" if default else f"{name}: {kind}"


def _kind(kind: Kind, list_: str) -> str:
    text = PLAIN.get(kind.name, kind.name)
    if kind.of:
        text = (list_ if kind.name == "list" else MAP).format(_kind(kind.of, list_))
    return NULLABLE.format(text) if kind.nullable else text


def _default(field: Field, definition: Definition) -> str:
    """The default where nothing was measured, or reported; "" for fields that are always there."""
    if field.name == "format":
        return "FORMAT"
    if field.default:
        return {"true": "True", "false": "False"}.get(field.default, field.default)
    kind = field.kind
    words = next((one for one in definition.words if one.name == kind.name), None)
    if kind.nullable:
        return "None"
    if words:
        return f'"{next(iter(words.words))}"'
    return NOTHING[kind.name]


def _tables(definition: Definition) -> str:
    """Requirements of the store of runs on the columns of a record."""
    columns = definition.objects[0].fields
    measured = [f'        "{it.name}",' for it in columns if it.by == "testbed"]
    lines = ["# Those that the testbed's program says.", "MEASURED = frozenset(", "    (", *measured]
    lines += ["    )", ")", ""]
    shown = [f'    "{it.name}",' for it in columns if it.shown]
    lines += ["# Those that the page of a cell shows, iteration by iteration.", "SHOWN = (", *shown, ")", ""]
    first = [f'        "{it.name}",' for it in columns if it.since == 1]
    lines += ["# Those that every file has.", "REQUIRED = frozenset(", "    (", *first, "    )", ")", ""]
    lines += ["# The columns of each type, with the types that their definition gives them."]
    lines += ["TYPES: dict[str, dict[str, str]] = {"]
    for one in definition.objects:
        lines += [
            f'    "{one.name}": {{',
            *(f'        "{it.name}": "{it.text}",' for it in one.fields),
            "    },",
        ]
    return "\n".join([*lines, "}"])
