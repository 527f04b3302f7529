"""The scenarios, by their files: what `scenarios/*.toml` says, as a page."""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WIDTH = 100
SEGMENTS = ("access", "satellite", "ground")
DIRECTIONS = ("forward", "return")
# Keys of a direction that nearly all have, and what stands where one has not.
USUAL = {"rate": "", "delay": "0 ms", "queue": "", "loss": "none"}


def write(root: Path) -> str:
    """A section for each scenario, in the order of their names."""
    files = sorted((root / "scenarios").glob("*.toml"))
    return "\n\n".join(part for file in files for part in _parts(file.stem, tomllib.loads(file.read_text())))


def _parts(name: str, one: dict[str, Any]) -> Iterator[str]:
    yield f"## `{name}`"
    yield _folded(f"{one['title']}. A trial ends after {one['timeout']}.")
    yield _folded(f"Source: {one['source']}.")
    if notes := one.get("notes"):
        yield _folded(notes)
    if "paths" not in one:
        yield "\n".join(_table(one))
        return
    for path, segments in [(one["path"], one), *sorted(one["paths"].items())]:
        yield f"Path `{path}`:"
        yield "\n".join(_table(segments))


def _table(one: dict[str, Any]) -> Iterator[str]:
    yield "| segment | direction | rate | delay | queue | loss | further |"
    yield "|---|---|---|---|---|---|---|"
    for segment in SEGMENTS:
        for direction in DIRECTIONS:
            if (link := one.get(segment, {}).get(direction)) is None:
                continue
            usual = [_value(link.get(key, default)) for key, default in USUAL.items()]
            further = ", ".join(f"{key} {_value(link[key])}" for key in link if key not in USUAL)
            yield f"| {' | '.join([segment, direction, *usual, further])} |".replace("  ", " ")


def _value(value: object) -> str:
    """A value of the file in words: a table's keys with theirs."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_value(below)}" for key, below in value.items())
    if isinstance(value, list):
        apart = "; " if value and isinstance(value[0], list) else " "
        return apart.join(_value(below) for below in value)
    return str(value)


def _folded(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), WIDTH, break_long_words=False, break_on_hyphens=False)
