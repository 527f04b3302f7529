"""Writes a definition as a page of the reference: of each field name, type, unit, meaning, when null."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from definition import Definition, Field, Kind, Type, Words

WIDTH = 100


def write(definition: Definition) -> str:
    """The page, as Markdown."""
    return "\n\n".join(_parts(definition)) + "\n"


def _parts(definition: Definition) -> Iterator[str]:
    yield f"# {definition.title}"
    yield from ("\n".join(textwrap.wrap(one, WIDTH)) for one in definition.about.strip().split("\n\n"))
    yield "\n".join(
        textwrap.wrap(
            f"This page is generated from `schemas/{definition.name}.toml` by `make schemas`; so is the JSON "
            f"Schema, `schemas/{definition.name}.schema.json`. This is format {definition.format}"
            ". In files of an older format that can still be read, fields that came later are null, or "
            "empty. A type with `?` has null among its values.",
            WIDTH,
        )
    )
    first, *further = definition.objects
    for section, fields in _sections(first):
        if section:
            yield f"## {section}"
        yield _list(fields)
    for one in further:
        yield f"## `{one.name}`\n\n" + "\n".join(textwrap.wrap(one.about, WIDTH))
        yield _list(list(one.fields))
    for words in definition.words:
        yield _words(words)


def _sections(one: Type) -> Iterator[tuple[str, list[Field]]]:
    sections: list[tuple[str, list[Field]]] = []
    for field in one.fields:
        if field.section or not sections:
            sections.append((field.section, []))
        sections[-1][1].append(field)
    yield from sections


def _list(fields: list[Field]) -> str:
    """Fields one by one, in lines that fit a screen, which rows of a table would not."""
    return "\n".join(_item(f"`{field.name}`", _says(field)) for field in fields)


def _says(field: Field) -> str:
    kind = ", ".join(part for part in (_type(field.kind), field.unit) if part)
    null = f" Null: {field.null}." if field.null else ""
    since = f" Since format {field.since}." if field.since > 1 else ""
    absent = " May be absent." if field.optional else ""
    return f"({kind}): {field.meaning}{null}{absent}{since}"


def _item(name: str, says: str) -> str:
    return textwrap.fill(
        f"- {name} {says}", WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def _type(kind: Kind) -> str:
    text = kind.name if kind.name.islower() else f"`{kind.name}`"
    if kind.of:
        text = f"{'list of' if kind.name == 'list' else 'map to'} {_type(kind.of)}"
    return f"{text}?" if kind.nullable else text


def _words(one: Words) -> str:
    items = [_item(f"`{word}`:", f"{says}.") for word, says in one.words.items()]
    return "\n".join([f"## `{one.name}`", "", *textwrap.wrap(one.about, WIDTH), "", *items])
