"""Marks in the tables of a study's page: the cell of a run that a number comes from.

Model: a mark is a comment in a table's cell, with a digest of the trials that its text is made from. It leads
somewhere only if a run has a cell of exactly these trials: what is made of several cells, of several runs or
of some of a cell's trials has no page of its own. Marks are for the site of a study alone:
`bentpipe.study.page` takes them out of the page that it leaves.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from bentpipe.analysis.cells import Cell
from bentpipe.runs.records import CellKey, Record

_MARK = re.compile(r"<!-- trials ([0-9a-f]{16}) -->")
_BYTES = 8


class RunCell(NamedTuple):
    """A cell in one of several runs."""

    run: Path
    key: CellKey


def marked(text: str, cell: Cell | None) -> str:
    """The text of a table's cell, with the mark of the trials that it is made from; without any where there
    are none, or no text.
    """
    return marked_trials(text, cell.records) if cell else text


def marked_trials(text: str, records: Sequence[Record]) -> str:
    """The text with the mark of these trials, for a caller that has no cell of them."""
    return f"{text}<!-- trials {digest(records)} -->" if text and records else text


def digest(records: Iterable[Record]) -> str:
    """The digest of some trials: another one for those of another run, even of the same seeds. What a study
    computes anew, as a goodput by another definition, does not change it.
    """
    trials = sorted(
        repr((one.cell_key, one.trial, one.seed, one.outcome, one.completion_s, one.wall_s))
        for one in records
    )
    return hashlib.blake2b("\n".join(trials).encode(), digest_size=_BYTES).hexdigest()


def without(text: str) -> str:
    """The text without its marks."""
    return _MARK.sub("", text)


def read(text: str) -> str | None:
    """The digest in the last mark of a text; None without one."""
    found = _MARK.findall(text)
    return found[-1] if found else None
