"""The table of studies: the answer of each row is the title of its first page, the finding."""

from __future__ import annotations

import re
from pathlib import Path

TABLE = "studies/README.md"
_LINK = re.compile(r"\]\(([^)\s]+\.md)\)")
_CELLS = 3  # question, answer, pages


def write(root: Path) -> str:
    """The table as it stands, its answers anew. A page whose title changes so changes its row."""
    part = (root / TABLE).read_text().partition("<!-- answers: begin")[2].partition("<!-- answers: end")[0]
    rows = [line for line in part.splitlines() if line.startswith("|")]
    return "\n".join([*rows[:2], *(_row(root, one) for one in rows[2:])])


def _row(root: Path, row: str) -> str:
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    links = _LINK.findall(cells[-1])
    if len(cells) != _CELLS or not links:
        raise SystemExit(f"error: {TABLE}: a row needs a question, an answer and links to pages: {row}")
    title = ((root / TABLE).parent / links[0]).read_text().partition("\n")[0].removeprefix("# ")
    return f"| {cells[0]} | {title} | {cells[2]} |"
