"""The drawing of a path: its hosts, and between them in boxes what packets meet, in that order."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bentpipe.cli.layout import WIDTH, folded

_INDENT = "    "
_ARROW, _PLAIN_ARROW = "─▶", "->"  # the other where the first cannot be shown

_BOUND = "\N{NO-BREAK SPACE}"


def drawn(way: Mapping[str, Any], has_blocks: bool) -> Iterator[str]:
    """The lines of one direction, as `bentpipe-sim scenario` says it; `has_blocks` beyond ASCII."""
    arrow = _ARROW if has_blocks else _PLAIN_ARROW
    yield from _chain([_shown(one) for one in way["nodes"]], arrow)
    for one in way["nodes"]:
        if one.get("parameters"):
            yield _parameters(one["parameters"])
    for one in way["beside"]:
        yield folded(f"also {_shown(one)}, of {one['segment']}", f"{_INDENT}  ", f"{_INDENT}    ")


def _shown(one: Mapping[str, Any]) -> str:
    return str(one["host"]) if "host" in one else f"[{one['key'].replace('_', ' ')} {one['text']}]"


def _parameters(text: str) -> str:
    """Parameters in lines that end behind a value, not between a number and its unit."""
    bound = text.replace(" ", _BOUND).replace(f",{_BOUND}", ", ")
    return folded(bound, f"{_INDENT}  ", f"{_INDENT}    ").replace(_BOUND, " ")


def _chain(shown: Sequence[str], arrow: str) -> Iterator[str]:
    """As many as fit in each line, with an arrow before each but the first."""
    line = f"{_INDENT}{shown[0]}"
    for one in shown[1:]:
        if len(longer := f"{line} {arrow} {one}") <= WIDTH:
            line = longer
            continue
        yield line
        *full, line = _broken(f"{_INDENT}{arrow} {one}", " " * len(f"{_INDENT}{arrow} ["))
        yield from full
    yield line


def _broken(line: str, further: str) -> list[str]:
    """A box that is wider than all columns takes several lines."""
    return textwrap.wrap(line, WIDTH, subsequent_indent=further, drop_whitespace=True)
