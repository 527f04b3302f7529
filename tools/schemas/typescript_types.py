"""Writes the types of a definition as TypeScript."""

from __future__ import annotations

from definition import Definition, Kind, Type, Words

WIDTH = 110  # prettier's
PLAIN = {
    "text": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "object": "{ [key: string]: Json }",
}
LIST, MAP, NULLABLE = "{}[]", "{{ [key: string]: {} }}", "{} | null"


def write(definition: Definition, names: dict[str, str]) -> str:
    """The source of a module. `names` are those that types have in TypeScript, where they are others."""
    parts = [f"// {definition.title}: generated from schemas/{definition.name}.toml by `make schemas`."]
    parts += ['import type { Json } from "../model";'] if _has_objects(definition) else []
    parts += [_words(one) for one in definition.words]
    parts += [_object(one, names) for one in definition.objects]
    parts += _shown(definition.objects[0], names)
    return "\n\n".join(parts) + "\n"


def _has_objects(definition: Definition) -> bool:
    return any(field.kind.innermost == "object" for one in definition.objects for field in one.fields)


def _words(one: Words) -> str:
    head, listed = f"export type {one.name} =", [f'"{word}"' for word in one.words]
    line = f"{head} {' | '.join(listed)};"
    if len(line) > WIDTH:
        line = f"{head}{''.join(f'{chr(10)}  | {word}' for word in listed)};"
    return f"/** {one.about} */\n{line}"


def _object(one: Type, names: dict[str, str]) -> str:
    lines = [f"/** {one.about} */", f"export type {names.get(one.name, one.name)} = {{"]
    for field in one.fields:
        says = f"{field.meaning} Null {field.null}." if field.null else field.meaning
        absent = "?" if field.optional and field.kind.nullable else ""
        lines += [f"  /** {says} */", f"  {field.name}{absent}: {_kind(field.kind)};"]
    return "\n".join([*lines, "};"])


def _shown(one: Type, names: dict[str, str]) -> list[str]:
    """The part of a record that the report shows of each iteration."""
    columns = [f'  | "{field.name}"' for field in one.fields if field.shown]
    if not columns:
        return []
    head = f"/** What the page of a cell shows of each iteration. */\nexport type Shown{one.name} = Pick<"
    return ["\n".join([head, f"  {names.get(one.name, one.name)},", *columns, ">;"])]


def _kind(kind: Kind) -> str:
    text = PLAIN.get(kind.name, kind.name)
    if kind.of:
        text = (LIST if kind.name == "list" else MAP).format(_kind(kind.of))
    return NULLABLE.format(text) if kind.nullable else text
