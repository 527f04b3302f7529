"""Markdown as the pages of results use it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bentpipe.analysis.cells import Cell
from bentpipe.study.source import without_folders


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A table whose first `left` columns are texts and whose others are numbers."""
    lines = [_line(head), "|" + "---|" * left + "---:|" * (len(head) - left)]
    return "\n".join([*lines, *map(_line, rows)])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def literal(text: str) -> str:
    """A text from outside as it is: no markup of its own, in one line, without this machine's folders."""
    plain = " ".join(without_folders(text).split())
    for mark in "\\`*_[]<>|":
        plain = plain.replace(mark, f"\\{mark}")
    return plain


def code(text: str) -> str:
    """A command in a block of its own."""
    return f"```sh\n{without_folders(text)}\n```"


def mbit(bps: float | None) -> str:
    return "-" if bps is None else f"{bps / 1e6:.2f}"


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


def several(count: int, one: str) -> str:
    """`1 trial`, `2 trials`."""
    return f"{count} {one}" if count == 1 else f"{count} {one}s"
