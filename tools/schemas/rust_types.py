"""Writes the types of a definition as Rust; of a record, what the testbed says of it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from definition import Definition, Field, Kind, Type, Words

WIDTH = 100
PLAIN = {"text": "String", "integer": "u64", "number": "f64", "boolean": "bool", "object": "Value"}
# Names of fields that are words of the language.
KEYWORDS = ("type",)
LIST, MAP, NULLABLE = "Vec<{}>", "BTreeMap<String, {}>", "Option<{}>"
# Where types come from that a definition names in `rust`.
FOREIGN = {
    "HostName": "bentpipe_link::HostName",
    "ResourceType": "crate::job::ResourceType",
    "Statistics": "bentpipe_endpoint::contract::Statistics",
    "Value": "serde_json::Value",
}


def write(definition: Definition, names: dict[str, str]) -> str:
    """The source of a module. `names` are those that types have in Rust, where they are others."""
    parts = [_words(one) for one in definition.words]
    parts += [_struct(one, names) for one in definition.types]
    body = "\n\n".join(parts)
    uses = sorted(f"use {path};" for name, path in FOREIGN.items() if f": {name}," in body)
    head = [
        *_comment(
            f"{definition.title}: generated from schemas/{definition.name}.toml by `make schemas`.", "//!"
        ),
        "",
        "#![allow(",
        "    clippy::doc_markdown,",
        "    clippy::struct_field_names,",
        '    reason = "words and names are those of the reference page"',
        ")]",
        "",
        *uses,
        "use serde::Serialize;",
    ]
    return "\n".join(head) + f"\n\n{body}\n"


def _struct(one: Type, names: dict[str, str]) -> str:
    derives = ", ".join(part for part in ("Debug", one.rust, "Serialize") if part)
    lines = [*_comment(one.about), f"#[derive({derives})]", f"pub struct {names.get(one.name, one.name)} {{"]
    for field in one.own:
        if field.by == "testbed":
            lines += [f"    {line}" for line in _comment(_meaning(field), width=WIDTH - 4)]
            lines += ["    #[serde(flatten)]"] if field.flatten else []
            name = f"r#{field.name}" if field.name in KEYWORDS else field.name
            lines.append(f"    pub {name}: {field.rust or _kind(field.kind)},")
    return "\n".join([*lines, "}"])


def _meaning(field: Field) -> str:
    return f"{field.meaning} Null: {field.null}." if field.null else field.meaning


def _kind(kind: Kind) -> str:
    text = PLAIN.get(kind.name, kind.name)
    if kind.of:
        text = (LIST if kind.name == "list" else MAP).format(_kind(kind.of))
    return NULLABLE.format(text) if kind.nullable else text


def _words(one: Words) -> str:
    lines = [
        *_comment(one.about),
        "#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]",
        '#[serde(rename_all = "snake_case")]',
        f"pub enum {one.name} {{",
    ]
    for number, (word, says) in enumerate(one.words.items()):
        lines += [f"    {line}" for line in _comment(f"{says[0].upper()}{says[1:]}.", width=WIDTH - 4)]
        lines += ["    #[default]"] if number == 0 else []
        lines.append(f"    {_variant(word)},")
    lines += ["}", "", f"impl {one.name} {{", "    /// The word, as it is in the file.", "    #[must_use]"]
    lines += ["    pub fn name(self) -> &'static str {", "        match self {"]
    lines += [f'            Self::{_variant(word)} => "{word}",' for word in one.words]
    return "\n".join([*lines, "        }", "    }", "}"])


def _variant(word: str) -> str:
    return "".join(part.capitalize() for part in word.split("_"))


def _comment(text: str, mark: str = "///", width: int = WIDTH) -> Iterator[str]:
    for line in textwrap.wrap(text, width - len(mark) - 1, break_long_words=False, break_on_hyphens=False):
        yield f"{mark} {line}"
