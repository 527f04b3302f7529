"""Writes the types of a definition as TypeScript."""

from __future__ import annotations

from definition import Definition, Field, Type, Words

PLAIN = {
    "text": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "object": "{ [key: string]: Json }",
}


def write(definition: Definition, names: dict[str, str]) -> str:
    """The source of a module. `names` are those that types have in TypeScript, where they are others."""
    parts = [f"// {definition.title}: generated from schemas/{definition.name}.toml by `make schemas`."]
    parts += ['import type { Json } from "./json";'] if _has_objects(definition) else []
    parts += [_words(one) for one in definition.words]
    parts += [_interface(one, names) for one in definition.objects]
    return "\n\n".join(parts) + "\n"


def _has_objects(definition: Definition) -> bool:
    return any(field.kind.name == "object" for one in definition.objects for field in one.fields)


def _words(one: Words) -> str:
    lines = "".join(f'\n  | "{word}"' for word in one.words)
    return f"/** {one.about} */\nexport type {one.name} ={lines};"


def _interface(one: Type, names: dict[str, str]) -> str:
    lines = [f"/** {one.about} */", f"export interface {names.get(one.name, one.name)} {{"]
    for field in one.fields:
        says = f"{field.meaning} Null {field.null}." if field.null else field.meaning
        lines += [f"  /** {says} */", f"  {field.name}: {_kind(field)};"]
    return "\n".join([*lines, "}"])


def _kind(field: Field) -> str:
    kind = field.kind
    text = PLAIN.get(kind.name, kind.name)
    if kind.is_map:
        text = f"{{ [key: string]: {text} }}"
    if kind.is_list:
        text = f"{text}[]"
    return f"{text} | null" if kind.nullable else text
