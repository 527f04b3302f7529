"""The layout of what commands print: 80 columns, and no more rows than a screen has unless asked."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator, Sequence

WIDTH = 80
ROWS = 20  # of a table, before the others are counted


def folded(text: str, first: str = "", further: str = "") -> str:
    """Text in lines, the first of which begins with `first` and all others with `further`. Words, such as
    paths, are not broken.
    """
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=further,
        break_long_words=False,
        break_on_hyphens=False,
    )


def more(count: int, what: str, option: str = "--all") -> str:
    """The line below a table that leaves out `count` rows."""
    return f"… and {count} {what} more: {option} shows them"


def aligned(rows: Sequence[Sequence[str]], texts: Collection[int]) -> Iterator[str]:
    """Rows of a table, the columns `texts` flush left and the others right. Where it is too wide, the texts
    that a row begins with have lines of their own.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        [
            text.ljust(width) if place in texts else text.rjust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        for row in rows
    ]
    if all(len("  ".join(line).rstrip()) <= WIDTH for line in lines):
        yield from ("  ".join(line).rstrip() for line in lines)
        return
    leading = next((place for place in range(len(widths)) if place not in texts), len(widths))
    for line in lines:
        named = [text.strip() for text in line[:leading]]
        yield folded(", ".join(text for text in named if text), further="  ")
        yield folded("  ".join(line[leading:]).rstrip(), "    ", "        ")
