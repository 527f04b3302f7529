"""Writes the types of a definition as Python: structures of msgspec, which reads them strictly."""

from __future__ import annotations

import keyword
import textwrap

from definition import Definition, Field, Type, Words

WIDTH = 110
PLAIN = {"text": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "dict[str, Any]"}
# What stands where nothing was measured, and in files that are older than the field.
NOTHING = {"text": '""', "integer": "0", "number": "0.0", "boolean": "False"}
OPTIONS = "msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True"


def write(definition: Definition) -> str:
    """The source of a module."""
    parts = [f'"""{definition.title}: generated from schemas/{definition.name}.toml by `make schemas`."""']
    parts += ["from __future__ import annotations", "from typing import Any, Literal\n\nimport msgspec"]
    parts.append(f"FORMAT = {definition.format}")
    parts += [_words(one) for one in definition.words]
    needed = sorted(
        definition.objects, key=lambda one: one is definition.objects[0]
    )  # what it is made of first
    structures = [_structure(one, definition) for one in needed]
    tables = [_tables(definition)]
    return "\n\n".join(parts) + "\n\n\n" + "\n\n\n".join([*structures, *tables]) + "\n"


def _words(one: Words) -> str:
    literal = "\n".join(f'    "{word}",' for word in one.words)
    name = one.name.upper()
    listed = f"{name}S: tuple[{one.name}, ...] = (\n{literal}\n)"
    return f"# {one.about}\n{one.name} = Literal[\n{literal}\n]\n{listed}"


def _structure(one: Type, definition: Definition) -> str:
    lines = [f"class {one.name}({OPTIONS}):", *_docstring(one.about)]
    for field in one.fields:
        comment = "; null ".join(part for part in (field.meaning.rstrip("."), field.null) if part)
        unit = (
            f", {field.unit}"
            if field.unit and not field.name.endswith(("_s", "_ms", "_bps", "_bytes"))
            else ""
        )
        lines += [f"    # {line}" for line in textwrap.wrap(f"{comment}{unit}.", WIDTH - 6)]
        default = _default(field, definition) if one is definition.objects[0] or field.since > 1 else ""
        lines.append(f"    {_declared(field, default)}")
    return "\n".join(lines)


def _docstring(text: str) -> list[str]:
    lines = textwrap.wrap(text, WIDTH - 8)
    if len(lines) == 1:
        return [f'    """{lines[0]}"""', ""]
    return [f'    """{lines[0]}', *(f"    {line}" for line in lines[1:]), '    """', ""]


def _declared(field: Field, default: str) -> str:
    name = f"{field.name}_" if keyword.iskeyword(field.name) else field.name
    if name != field.name:
        inside = ", ".join(
            part for part in (f"default={default}" if default else "", f'name="{field.name}"') if part
        )
        return f"{name}: {_kind(field)} = msgspec.field({inside})"
    return f"{name}: {_kind(field)} = {default}" if default else f"{name}: {_kind(field)}"


def _kind(field: Field) -> str:
    kind = field.kind
    text = PLAIN.get(kind.name, kind.name)
    if kind.is_map:
        text = f"dict[str, {text}]"
    if kind.is_list:
        text = f"list[{text}]"
    return f"{text} | None" if kind.nullable else text


def _default(field: Field, definition: Definition) -> str:
    """What stands where nothing was measured; "" for what is always there."""
    kind = field.kind
    if field.by == "store":
        return "FORMAT"
    if field.by == "plan" or any(kind.name == one.name for one in definition.words):
        return ""
    if kind.nullable:
        return "None"
    if kind.is_list:
        return "[]"
    return "{}" if kind.is_map or kind.name == "object" else NOTHING.get(kind.name, "")


def _tables(definition: Definition) -> str:
    first = definition.objects[0]
    measured = "\n".join(f'        "{field.name}",' for field in first.fields if field.by == "testbed")
    lines = [
        "# Those that the testbed's program says.",
        "MEASURED = frozenset(",
        "    (",
        measured,
        "    )",
        ")",
        "",
    ]
    lines += ["# The columns of each type, with the types that their definition gives them."]
    lines += ["TYPES: dict[str, dict[str, str]] = {"]
    for one in definition.objects:
        lines += [
            f'    "{one.name}": {{',
            *(f'        "{it.name}": "{it.text}",' for it in one.fields),
            "    },",
        ]
    return "\n".join([*lines, "}"])
