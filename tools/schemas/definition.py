"""Reads the definition of a file format: a `schemas/NAME.toml`, whose head says what stands in it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

PLAIN = ("text", "integer", "number", "boolean", "object")
WRITERS = ("testbed", "plan", "store")
# The ending of a name says its unit.
UNITS = {"_s": "s", "_ms": "ms", "_bps": "bit/s", "_bytes": "bytes", "_bytes_per_s": "bytes/s"}


class DefinitionError(Exception):
    """A definition that cannot be understood: the file, the key, what is wrong with it."""


@dataclass(frozen=True)
class Kind:
    """The type of a field: a plain one or the name of a type or of a list of words; or a list or a map of
    such.
    """

    name: str  # "list" and "map" have an `of`
    of: Kind | None = None
    nullable: bool = False

    @classmethod
    def parse(cls, text: str) -> Kind:
        """From `integer?`, `[text]`, `{[text]}` or `Outcome`. ValueError for anything else."""
        if text.endswith("?"):
            return replace(cls.parse(text[:-1]), nullable=True)
        for brackets, name in (("[]", "list"), ("{}", "map")):
            if text[:1] + text[-1:] == brackets:
                return cls(name, cls.parse(text[1:-1]))
        if not text.isalpha():
            raise ValueError(f'"{text}" is no type')
        return cls(text)

    @property
    def innermost(self) -> str:
        """The name of what it is, or is a list or map of."""
        return self.of.innermost if self.of else self.name


@dataclass(frozen=True)
class Field:
    """A column, or a key of an object."""

    name: str
    text: str  # its type, as it is written
    kind: Kind
    unit: str
    meaning: str  # one line
    null: str
    since: int
    optional: bool  # may be absent
    default: str  # what it is then, as JSON; "": nothing
    by: str
    section: str
    shown: bool  # in the report, iteration by iteration
    flatten: bool
    rust: str


@dataclass(frozen=True)
class Type:
    """An object with its fields."""

    name: str
    about: str
    own: tuple[Field, ...]  # as they are defined
    fields: tuple[Field, ...]  # as they are in the file: in place of one that is flattened, those of its type
    mutable: bool  # in Python
    tuples: bool  # in Python, in place of lists
    rust: str  # further derives


@dataclass(frozen=True)
class Words:
    """A list of words, each with what it says."""

    name: str
    about: str
    words: Mapping[str, str]


@dataclass(frozen=True)
class Definition:
    """A file format. The first of its types is what the file, or a line of it, is."""

    name: str
    file: str
    title: str
    format: int
    unmeasured: bool  # what the testbed says may be left out in Python: it is then empty
    about: str
    types: tuple[Type, ...]
    words: tuple[Words, ...]

    @property
    def objects(self) -> tuple[Type, ...]:
        """The types that are objects of their own in the file."""
        flat = {field.kind.name for one in self.types for field in one.own if field.flatten}
        return tuple(one for one in self.types if one.name not in flat)


def read(path: Path) -> Definition:
    """Read a definition; DefinitionError if it is not whole and right."""
    try:
        values = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise DefinitionError(f"{path}: {error}") from error
    tables = {name: table for name, table in values.items() if isinstance(table, dict)}
    try:
        types = _types({name: table for name, table in tables.items() if "words" not in table})
        words = tuple(
            Words(name, _line(table["about"]), {word: _line(says) for word, says in table["words"].items()})
            for name, table in tables.items()
            if "words" in table
        )
        head = {key: values[key] for key in ("file", "title", "format", "about")}
        head["unmeasured"] = values.get("unmeasured", False)
        definition = Definition(name=path.stem, types=types, words=words, **head)
        _check(definition)
    except KeyError as error:
        raise DefinitionError(f"{path}: the key {error} is missing") from error
    except ValueError as error:
        raise DefinitionError(f"{path}: {error}") from error
    return definition


def _types(tables: Mapping[str, Mapping[str, Any]]) -> tuple[Type, ...]:
    """All types; only those that are in the file as objects, not those that are flattened alone."""
    own = {name: tuple(_fields(name, table)) for name, table in tables.items()}

    def expanded(field: Field) -> Iterator[Field]:
        if not field.flatten:
            yield field
            return
        for number, one in enumerate(own[field.kind.name]):
            section = field.section if number == 0 else one.section
            null = ", and ".join(part for part in (field.null, one.null) if part)
            yield replace(one, section=section, null=null, by=field.by, since=max(field.since, one.since))

    return tuple(
        Type(
            name,
            _line(table["about"]),
            own[name],
            tuple(it for field in own[name] for it in expanded(field)),
            table.get("mutable", False),
            table.get("tuples", False),
            table.get("rust", ""),
        )
        for name, table in tables.items()
    )


def _fields(where: str, table: Mapping[str, Any]) -> Iterator[Field]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield _field(where, name, value)


def _field(where: str, name: str, table: Mapping[str, Any]) -> Field:
    known = {one.name for one in fields(Field)} - {"name", "text", "kind"} | {"type"}
    if unknown := set(table) - known:
        raise ValueError(
            f"{where}.{name}: unknown key {', '.join(sorted(unknown))}; one of {', '.join(sorted(known))}"
        )
    if (by := table.get("by", WRITERS[0])) not in WRITERS:
        raise ValueError(f'{where}.{name}: by "{by}" is none of {", ".join(WRITERS)}')
    ending = max((end for end in UNITS if name.endswith(end)), key=len, default="")
    return Field(
        name=name,
        text=table["type"],
        kind=Kind.parse(table["type"]),
        unit=table.get("unit", UNITS.get(ending, "")),
        meaning=_line(table["meaning"]),
        null=_line(table.get("null", "")),
        since=table.get("since", 1),
        optional=table.get("optional", False),
        default=table.get("default", ""),
        by=by,
        section=table.get("section", ""),
        shown=table.get("shown", False),
        flatten=table.get("flatten", False),
        rust=table.get("rust", ""),
    )


def _check(definition: Definition) -> None:
    """ValueError if a type is named that is not there, or a field is newer than the format."""
    known = {*PLAIN, *(one.name for one in definition.types), *(one.name for one in definition.words)}
    for one in definition.types:
        for field in one.own:
            if field.kind.innermost not in known:
                raise ValueError(f'{one.name}.{field.name}: there is no type "{field.kind.innermost}"')
            if field.since > definition.format:
                raise ValueError(
                    f"{one.name}.{field.name}: since {field.since}, where the format is {definition.format}"
                )


def _line(text: str) -> str:
    return " ".join(text.split())
