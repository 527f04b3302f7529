"""Writes a definition as a JSON Schema (draft 2020-12)."""

from __future__ import annotations

import json
from typing import Any

from definition import Definition, Field, Kind, Type, Words

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
        "required": [field.name for field in one.fields if field.since == 1 and not field.optional],
        "additionalProperties": False,
    }


def _field(field: Field) -> dict[str, Any]:
    says = f"{field.meaning} Null: {field.null}." if field.null else field.meaning
    unit = {"unit": field.unit} if field.unit else {}
    default = {"default": json.loads(field.default)} if field.default else {}
    return {"description": says, **unit, **_kind(field.kind), **default}


def _kind(kind: Kind) -> dict[str, Any]:
    schema: dict[str, Any] = {"$ref": f"#/$defs/{kind.name}"}
    if kind.of:
        inner = _kind(kind.of)
        schema = {"type": "array", "items": inner}
        if kind.name == "map":
            schema = {"type": "object", "additionalProperties": inner}
    elif kind.name in PLAIN:
        schema = {"type": PLAIN[kind.name]}
    return {"anyOf": [schema, {"type": "null"}]} if kind.nullable else schema


def _words(one: Words) -> dict[str, Any]:
    return {
        "description": one.about,
        "oneOf": [{"const": word, "description": says} for word, says in one.words.items()],
    }
