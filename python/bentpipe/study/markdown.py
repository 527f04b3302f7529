"""Markdown for the pages of studies: tables, numbers, escaped text."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterable, Sequence

from bentpipe import labels
from bentpipe.analysis import trial_marks
from bentpipe.analysis.cells import Cell
from bentpipe.study.source import without_folders

WIDTH = 100  # of a line of prose
_ITEM = re.compile(r"(?:[-*]|\d+\.) ")


def page(parts: Iterable[str]) -> str:
    """A page of these parts. Prose is wrapped; tables, code and headings stay as they are."""
    return "\n\n".join(_folded(part) for part in parts) + "\n"


def _folded(part: str) -> str:
    if part.startswith(("|", "#", "```", "<", "!")):
        return part
    paragraphs: list[str] = []
    for line in part.splitlines():
        if paragraphs and line and paragraphs[-1] and not line.startswith("|") and not _ITEM.match(line):
            paragraphs[-1] += f" {line.strip()}"
        else:
            paragraphs.append(line)
    return "\n".join(_filled(one) for one in paragraphs)


def _filled(paragraph: str) -> str:
    if paragraph.startswith("|"):
        return paragraph
    if trial_marks.read(paragraph):  # where it would change where lines end
        raise ValueError(f"a mark of trials outside of a table: {paragraph!r}")
    item = _ITEM.match(paragraph)
    indent = " " * item.end() if item else ""
    return textwrap.fill(
        paragraph, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A table whose first `left` columns are texts and whose others are numbers."""
    lines = [_line(head), "|" + "---|" * left + "---:|" * (len(head) - left)]
    return "\n".join([*lines, *map(_line, rows)])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def literal(text: str) -> str:
    """Text from outside, escaped: no markup, one line, without this machine's folders."""
    plain = " ".join(without_folders(text).split())
    for mark in "\\`*_[]<>|":
        plain = plain.replace(mark, f"\\{mark}")
    return plain


def code(text: str) -> str:
    """A code block of commands; a long one is continued on the next line."""
    lines = [
        " \\\n  ".join(textwrap.wrap(line, WIDTH - 4, break_long_words=False, break_on_hyphens=False))
        for line in without_folders(text).splitlines()
    ]
    return "\n".join(["```sh", *lines, "```"])


def mbit(bps: float | None) -> str:
    return "-" if bps is None else f"{bps / 1e6:.2f}"


def number(value: float | None, digits: int = 2, unit: str = "") -> str:
    """A number such as `8.74 s`; a dash if it is not known."""
    return "-" if value is None else f"{value:.{digits}f}{unit}"


def percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"


def pair(cell: Cell | None) -> str:
    """Mean goodput of a pair in Mbit/s, and how many of its trials failed; its most frequent outcome if none
    succeeded.
    """
    if cell is None:
        return ""
    if not cell.ok:
        return cell.failures.most_common(1)[0][0].replace("_", " ")
    failed = sum(cell.failures.values())
    return mbit(cell.goodput_mean_bps) + (f" ({failed})" if failed else "")


def listed(parts: Iterable[str]) -> str:
    """An enumeration in a sentence: `a`, `a and b`, `a, b and c`."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def several(count: int, one: str) -> str:
    """`1 trial`, `2 trials`."""
    return f"{count} {one}" if count == 1 else f"{count} {one}s"


def trials(counts: Collection[int]) -> str:
    """The number of trials per setting: `3 trials`, `3 to 5 trials`."""
    least, most = min(counts), max(counts)
    return several(most, "trial") if least == most else f"{least} to {most} trials"


def bytes_as(count: int) -> str:
    """Bytes as `100 kB`, `10 MB`."""
    for unit, factor in (("MB", 1_000_000), ("kB", 1000)):
        if count >= factor:
            return f"{count / factor:g} {unit}"
    return f"{count} B"


def path(scenario: str) -> str:
    """The label of a scenario in words: `sat, queue 1 BDP`."""
    named = labels.scenario(scenario)
    return literal(str(named.without_queue)) + (f", queue {named.queue}" if named.queue else "")
