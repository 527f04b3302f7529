"""Marks in the Markdown of a page: which matrix the table below shows. They are comments, which readers of
the page do not see; a site makes each cell of that table a link to the page of its trials.
"""

from __future__ import annotations

import re

import msgspec

from bentpipe.analysis.cells import MatrixKey

_MARK = re.compile(r"<!-- matrix (\{.*\}) -->")


def mark(key: MatrixKey) -> str:
    """The mark that stands above a table with clients down and servers across."""
    text = msgspec.json.encode(key._asdict()).decode().replace("--", r"-\u002d")  # two would end the comment
    return f"<!-- matrix {text} -->"


def read(text: str) -> MatrixKey | None:
    """The matrix that a mark names; None of any other text."""
    found = _MARK.fullmatch(text.strip())
    if found is None:
        return None
    try:
        return MatrixKey(**msgspec.json.decode(found[1], type=dict[str, str]))
    except (msgspec.DecodeError, TypeError):
        return None
