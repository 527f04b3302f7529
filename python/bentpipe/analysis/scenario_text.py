"""The text of scenario files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

SEGMENTS = ("access", "satellite", "ground")
_WIDTH = 100


def text(scenario: Mapping[str, Any]) -> str:
    """A scenario as TOML: tables by segment and direction; what is deeper stands inline, long lists in lines
    of their own.
    """
    lines = [f"{key} = {_value(value)}" for key, value in scenario.items() if key not in SEGMENTS]
    for segment in SEGMENTS:
        for direction, fields in scenario.get(segment, {}).items():
            lines += ["", f"[{segment}.{direction}]"]
            lines += [f"{key} = {_value(value)}" for key, value in fields.items() if value is not None]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_value(one)}' for key, one in value.items())} }}"
    if isinstance(value, list):
        items = list(map(_value, value))
        if sum(map(len, items)) <= _WIDTH:
            return f"[{', '.join(items)}]"
        return "\n".join(("[", *_folded(items), "]"))
    # A basic string of TOML escapes as JSON does; what JSON leaves as it is, TOML takes too.
    return json.dumps(value, ensure_ascii=False)


def _folded(items: list[str]) -> Iterator[str]:
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > _WIDTH and line.strip():
            yield line
            line = "   "
        line += f" {item},"
    yield line
