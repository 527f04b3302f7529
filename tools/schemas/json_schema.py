"""Writes a definition as a JSON Schema (draft 2020-12)."""

from __future__ import annotations

import json
from typing import Any

from definition import Definition, Field, Type, Words

PLAIN = {"text": "string", "integer": "integer", "number": "number", "boolean": "boolean", "object": "object"}


def write(definition: Definition) -> str:
    """The text of the schema."""
    first, *further = definition.objects
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": definition.title,
        **_object(first),
        "$defs": {one.name: _object(one) for one in further}
        | {one.name: _words(one) for one in definition.words},
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _object(one: Type) -> dict[str, Any]:
    return {
        "description": one.about,
        "type": "object",
        "properties": {field.name: _field(field) for field in one.fields},
        "required": [field.name for field in one.fields if field.since == 1],
        "additionalProperties": False,
    }


def _field(field: Field) -> dict[str, Any]:
    kind = field.kind
    schema: dict[str, Any] = {"$ref": f"#/$defs/{kind.name}"}
    if kind.name in PLAIN:
        schema = {"type": PLAIN[kind.name]}
    if kind.is_map:
        schema = {"type": "object", "additionalProperties": schema}
    if kind.is_list:
        schema = {"type": "array", "items": schema}
    if kind.nullable:
        schema = {"anyOf": [schema, {"type": "null"}]}
    says = f"{field.meaning} Null: {field.null}." if field.null else field.meaning
    unit = {"unit": field.unit} if field.unit else {}
    return {"description": says, **unit, **schema}


def _words(one: Words) -> dict[str, Any]:
    return {
        "description": one.about,
        "oneOf": [{"const": word, "description": says} for word, says in one.words.items()],
    }
